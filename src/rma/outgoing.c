/* SPDX-License-Identifier: Apache-2.0 */
/** outgoing.c - puts over the net: a header, with small data behind it, then large data from where they lie, in pieces. */
#include "base/clock.h"
#include "base/error.h"
#include "rma/state.h"

#include <string.h>

static ncclResult_t connect_peer(struct kl_rma *r, struct kl_rma_out *out, int peer)
{
    if (out->connected) return ncclSuccess;
    if (!out->deadline) out->deadline = kl_deadline_in_ms(r->config.timeout_ms);
    const struct kl_net_end me = {.secret = r->config.secret,
                                  .rank = r->config.rank,
                                  .peer = peer,
                                  .id = KL_RMA_CONNECTION,
                                  .deadline = out->deadline};
    ncclResult_t rc = r->net->connect(r->device, &me, &out->address, &out->connection);
    if (rc) return rc;
    out->connected = true;
    out->deadline = 0;
    return ncclSuccess;
}

static void write_header(struct kl_rma_op *op)
{
    const struct kl_rma_header h = {.offset = op->offset,
                                    .bytes = op->bytes,
                                    .window = op->window ? op->window->number : KL_RMA_NO_WINDOW,
                                    .counter = op->counter};
    bool behind = op->bytes <= KL_RMA_IN_HEADER;

    memcpy(op->wire, &h, sizeof h);
    if (behind && op->bytes) memcpy(op->wire + sizeof h, op->data, op->bytes);
    op->wire_bytes = sizeof h + (behind ? op->bytes : 0);
    op->done = behind ? op->bytes : 0;
}

/* Send the next message, if there is one and the net accepts it. */
static ncclResult_t post(struct kl_rma *r, struct kl_rma_op *op, void *connection, void **request)
{
    size_t left = op->bytes - op->done, n = left < KL_RMA_PIECE_BYTES ? left : KL_RMA_PIECE_BYTES;

    if (op->wire_bytes) {
        KL_TRY(r->net->isend(connection, op->wire, op->wire_bytes, 0, NULL, request));
        if (*request) op->wire_bytes = 0;
    } else if (n) {
        KL_TRY(r->net->isend(connection, op->data + op->done, n, 0, NULL, request));
        if (*request) op->done += n;
    }
    return ncclSuccess;
}

/* Two messages are in flight at a time. */
static ncclResult_t post_and_test(struct kl_rma *r, struct kl_rma_op *op, void *connection, bool *moved)
{
    for (int i = 0; i < 2; i++) {
        void **request = &op->request[i];
        bool done = false;
        if (!*request) KL_TRY(post(r, op, connection, request));
        if (!*request) continue;
        KL_TRY(r->net->test(*request, &done, NULL));
        if (!done) continue;
        *request = NULL;
        *moved = true;
    }
    return ncclSuccess;
}

static bool is_sent(const struct kl_rma_op *op)
{
    return !op->wire_bytes && op->done == op->bytes && !op->request[0] && !op->request[1];
}

/* ncclInProgress: not yet. No other operation sends until all is sent. */
static ncclResult_t go_on(struct kl_rma *r, struct kl_rma_op *op, bool *moved)
{
    struct kl_rma_out *out = &r->out[op->peer];

    if (out->sender && out->sender != op) return ncclInProgress;
    if (op->stage == KL_RMA_CONNECT) {
        ncclResult_t rc = connect_peer(r, out, op->peer);
        if (rc) return rc;
        write_header(op);
        op->stage = KL_RMA_SEND;
        *moved = true;
    }
    out->sender = op;
    KL_TRY(post_and_test(r, op, out->connection, moved));
    if (!is_sent(op)) return ncclInProgress;
    out->sender = NULL;
    return ncclSuccess;
}

enum kl_progress kl_rma_send(struct kl_rma *r, struct kl_rma_op *op, ncclResult_t *rc)
{
    bool moved = false;

    *rc = go_on(r, op, &moved);
    if (*rc != ncclInProgress) return KL_DONE;
    *rc = ncclSuccess;
    return moved ? KL_MOVED : KL_STALLED;
}
