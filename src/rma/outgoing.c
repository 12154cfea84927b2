/* SPDX-License-Identifier: Apache-2.0 */
/** outgoing.c - puts over the net: a header, with small data behind it, then large data from where they lie. */
#include "base/clock.h"
#include "base/error.h"
#include "rma/state.h"

#include <string.h>

static ncclResult_t connect_peer(struct kl_rma *r, struct kl_rma_out *out, int peer)
{
    if (out->connected) return ncclSuccess;
    if (!out->deadline) out->deadline = kl_deadline_in_ms(r->config.patience_ms);
    const struct kl_net_end me = {.secret = r->config.secret,
                                  .rank = r->config.rank,
                                  .peer = peer,
                                  .id = KL_RMA_CONNECTION,
                                  .deadline = out->deadline};
    ncclResult_t rc = r->net->connect(r->device, &me, &out->handle, &out->connection);
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
                                    .counter = op->counter,
                                    .signals = !op->quietly};
    bool behind = op->bytes <= KL_RMA_IN_HEADER;

    memcpy(op->wire, &h, sizeof h);
    if (behind && op->bytes) memcpy(op->wire + sizeof h, op->data, op->bytes);
    op->wire_bytes = sizeof h + (behind ? op->bytes : 0);
    op->done = behind ? op->bytes : 0;
}

/* Both messages in a row; nobody else sends meanwhile. */
static ncclResult_t post(struct kl_rma *r, struct kl_rma_op *op, void *connection)
{
    if (!op->request[0] && op->stage == KL_RMA_POST) {
        KL_TRY(r->net->isend(connection, op->wire, op->wire_bytes, 0, NULL, &op->request[0]));
        if (!op->request[0]) return ncclInProgress;
    }
    if (op->done < op->bytes) {
        KL_TRY(r->net->isend(connection, op->data, op->bytes, 0, NULL, &op->request[1]));
        if (!op->request[1]) return ncclInProgress;
        op->done = op->bytes;
    }
    return ncclSuccess;
}

static ncclResult_t test(struct kl_rma *r, struct kl_rma_op *op)
{
    for (int i = 0; i < 2; i++) {
        bool done = true;
        if (op->request[i]) KL_TRY(r->net->test(op->request[i], &done, NULL));
        if (!done) return ncclInProgress;
        op->request[i] = NULL;
    }
    return ncclSuccess;
}

static ncclResult_t go_on(struct kl_rma *r, struct kl_rma_op *op, struct kl_rma_out *out)
{
    ncclResult_t rc;

    if (out->sender && out->sender != op) return ncclInProgress;
    if (op->stage == KL_RMA_CONNECT) {
        if ((rc = connect_peer(r, out, op->peer))) return rc;
        write_header(op);
        op->stage = KL_RMA_POST;
    }
    out->sender = op;
    if (op->stage == KL_RMA_POST) {
        if ((rc = post(r, op, out->connection))) return rc;
        op->stage = KL_RMA_AWAIT;
    }
    if ((rc = test(r, op))) return rc;
    out->sender = NULL;
    return ncclSuccess;
}

enum kl_progress kl_rma_send(struct kl_rma *r, struct kl_rma_op *op, ncclResult_t *rc)
{
    int before = op->stage;

    *rc = go_on(r, op, &r->out[op->peer]);
    if (*rc != ncclInProgress) return KL_DONE;
    *rc = ncclSuccess;
    return op->stage == before ? KL_STALLED : KL_MOVED;
}
