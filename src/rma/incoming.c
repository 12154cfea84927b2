/* SPDX-License-Identifier: Apache-2.0 */
/** incoming.c - the proxy's part: what others put over the net is received in its window, and counted. */
#include "base/clock.h"
#include "base/error.h"
#include "rma/state.h"

#include <stdio.h>
#include <string.h>

/* ---- from one rank ---- */

static struct kl_rma_window *find_window(const struct kl_rma *r, int number)
{
    struct kl_rma_window *w = kl_load_acquire(&r->window); /* pairs with kl_rma_open */

    while (w && w->number != number) w = w->next;
    return w && w->own ? w : NULL;
}

static ncclResult_t check(struct kl_rma *r, struct kl_rma_in *in, size_t size)
{
    const struct kl_rma_header *h = &in->header;
    bool behind = h->bytes <= KL_RMA_IN_HEADER;

    if (size < sizeof *h || size != sizeof *h + (behind ? h->bytes : 0) || h->signals > 1 || h->counter >= r->counters)
        return KL_FAIL(ncclRemoteError, "a message of %zu bytes is not the beginning of a put", size);
    in->window = h->window == KL_RMA_NO_WINDOW ? NULL : find_window(r, h->window);
    if (h->bytes && !in->window)
        return KL_FAIL(ncclInvalidUsage, "it puts into a window that is not there, or was deregistered");
    if (h->bytes && (h->offset > in->window->bytes || h->bytes > in->window->bytes - h->offset))
        return KL_FAIL(ncclInvalidUsage, "it puts %llu bytes at %llu into a window of %zu",
                       (unsigned long long)h->bytes, (unsigned long long)h->offset, in->window->bytes);
    return ncclSuccess;
}

static void end_put(struct kl_rma *r, struct kl_rma_in *in, int peer)
{
    if (in->header.signals) kl_rma_signal(r->signals, r, in->header.counter, peer);
    in->stage = KL_RMA_IDLE;
}

static ncclResult_t ask_header(struct kl_rma *r, struct kl_rma_in *in)
{
    const struct kl_net_recv recv = {.data = in->wire, .bytes = sizeof in->wire};

    KL_TRY(r->net->irecv(in->connection, 1, &recv, &in->request));
    if (in->request) in->stage = KL_RMA_HEADER;
    return ncclSuccess;
}

static ncclResult_t ask_data(struct kl_rma *r, struct kl_rma_in *in)
{
    const struct kl_net_recv recv = {.data = in->window->own + in->header.offset, .bytes = in->header.bytes};

    return in->request ? ncclSuccess : r->net->irecv(in->connection, 1, &recv, &in->request);
}

static ncclResult_t take_header(struct kl_rma *r, struct kl_rma_in *in, int peer, size_t size)
{
    memset(&in->header, 0, sizeof in->header);
    memcpy(&in->header, in->wire, size < sizeof in->header ? size : sizeof in->header);
    KL_TRY(check(r, in, size));
    if (in->header.bytes > KL_RMA_IN_HEADER) {
        in->stage = KL_RMA_DATA;
        return ncclSuccess;
    }
    if (in->header.bytes) memcpy(in->window->own + in->header.offset, in->wire + sizeof in->header, in->header.bytes);
    end_put(r, in, peer);
    return ncclSuccess;
}

/* True: something moved. */
static bool receive(struct kl_rma *r, struct kl_rma_in *in, int peer, ncclResult_t *rc)
{
    size_t size = 0;
    bool done;

    if (in->stage == KL_RMA_IDLE) *rc = ask_header(r, in);
    if (!*rc && in->stage == KL_RMA_DATA) *rc = ask_data(r, in);
    if (*rc || !in->request) return false;
    *rc = r->net->test(in->request, &done, &size);
    if (*rc || !done) return false;
    in->request = NULL;
    if (in->stage == KL_RMA_HEADER)
        *rc = take_header(r, in, peer, size);
    else
        end_put(r, in, peer);
    return true;
}

/* Between two puts a connection may end: its sender has left, or the bootstrap knows better why. */
static void lose(struct kl_rma *r, struct kl_rma_in *in, int peer, ncclResult_t rc)
{
    char text[KL_ERROR_TEXT];
    bool quiet = in->stage == KL_RMA_HEADER && in->request;

    kl_store_release(&in->ended, true); /* pairs with kl_rma_may_come: what came before is counted */
    if (quiet) return;
    snprintf(text, sizeof text, "what rank %d puts here: %.900s", peer, kl_error_text());
    r->config.fail(r->config.ctx, peer, rc, text);
}

/* ---- from all ---- */

static bool accept_peer(struct kl_rma *r, struct kl_rma_in *in, int peer)
{
    const struct kl_net_end me = {.secret = r->config.secret,
                                  .rank = r->config.rank,
                                  .peer = peer,
                                  .id = KL_RMA_CONNECTION,
                                  .deadline = KL_NO_DEADLINE};
    void *connection = NULL;

    if (r->net->accept(r->listener, &me, &connection) || !connection) return false;
    in->connection = connection;
    r->unconnected--;
    return true;
}

enum kl_progress kl_rma_receive(struct kl_duty *duty)
{
    struct kl_rma *r = (struct kl_rma *)duty;
    bool moved = false;
    int quiet = kl_error_quiet(1);

    /* Whoever puts here may have been let go on by an operation, before whose call this rank has read what was there. */
    (void)kl_load_acquire(r->config.issued);
    for (int i = 0; i < r->config.nranks && !r->cancelled; i++) {
        struct kl_rma_in *in = &r->in[i];
        ncclResult_t rc = ncclSuccess;
        if (!in->comes || kl_load_relaxed(&in->ended)) continue;
        if (!in->connection && !accept_peer(r, in, i)) continue;
        moved |= receive(r, in, i, &rc);
        if (rc) lose(r, in, i, rc);
    }
    kl_error_quiet(quiet);
    return moved ? KL_MOVED : KL_STALLED;
}

void kl_rma_rest(struct kl_duty *duty, struct kl_rest *rest)
{
    struct kl_rma *r = (struct kl_rma *)duty;
    int fd = -1;

    if (r->cancelled) return;
    if (r->unconnected && !r->net->sleep_on_listener(r->listener, &fd) && fd >= 0) kl_rest_until(rest, fd);
    for (int i = 0; i < r->config.nranks; i++) {
        struct kl_rma_in *in = &r->in[i];
        if (in->connection && !kl_load_relaxed(&in->ended) && !r->net->sleep_on(in->connection, &fd) && fd >= 0)
            kl_rest_until(rest, fd);
    }
    kl_rest_at_most(rest, 1000);
}
