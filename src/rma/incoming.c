/* SPDX-License-Identifier: Apache-2.0 */
/** incoming.c - the proxy's part: data that others put over the net are received in its window, and counted. */
#include "base/clock.h"
#include "base/error.h"
#include "device/host/idle.h"
#include "rma/state.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { FAR_MS = 1 }; /* sleep of the proxy, as a plugin has no descriptor to sleep on */
enum {
    HOLD_MS = 3000
}; /* of a failure, for the reason to come; a death is noticed within milliseconds on a quiet machine */
enum { HELD_MS = 100 }; /* sleep of the proxy meanwhile */

/* ---- a put ---- */

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

    if (size < sizeof *h || size != sizeof *h + (behind ? h->bytes : 0) || h->counter >= r->counters)
        return KL_FAIL(ncclRemoteError, "a message of %zu bytes is not the beginning of a put", size);
    in->window = h->window == KL_RMA_NO_WINDOW ? NULL : find_window(r, h->window);
    if (h->bytes && !in->window)
        return KL_FAIL(ncclInvalidUsage, "rank %d has no such window, or has deregistered it", r->config.rank);
    if (h->bytes && (h->offset > in->window->bytes || h->bytes > in->window->bytes - h->offset))
        return KL_FAIL(ncclInvalidUsage, "%llu bytes at %llu are beyond its %zu", (unsigned long long)h->bytes,
                       (unsigned long long)h->offset, in->window->bytes);
    return ncclSuccess;
}

static void end_put(struct kl_rma *r, struct kl_rma_in *in, int peer)
{
    in->data = false;
    kl_rma_signal(r->signals, r, in->header.counter, peer);
    kl_idle_notify();
}

static ncclResult_t take_header(struct kl_rma *r, struct kl_rma_in *in, int peer, size_t size)
{
    memset(&in->header, 0, sizeof in->header);
    memcpy(&in->header, in->wire, size < sizeof in->header ? size : sizeof in->header);
    KL_TRY(check(r, in, size));
    in->got = 0;
    in->data = in->header.bytes > KL_RMA_IN_HEADER;
    if (in->data) return ncclSuccess;
    if (in->header.bytes) memcpy(in->window->own + in->header.offset, in->wire + sizeof in->header, in->header.bytes);
    end_put(r, in, peer);
    return ncclSuccess;
}

static size_t next_piece(const struct kl_rma_in *in)
{
    size_t left = in->header.bytes - in->got;

    return left < KL_RMA_PIECE_BYTES ? left : KL_RMA_PIECE_BYTES;
}

static ncclResult_t ask(struct kl_rma *r, struct kl_rma_in *in)
{
    struct kl_net_recv recv = {.data = in->wire, .bytes = sizeof in->wire};

    if (in->request) return ncclSuccess;
    if (in->data) {
        recv.data = in->window->own + in->header.offset + in->got;
        recv.bytes = next_piece(in);
    }
    return r->net->irecv(in->connection, 1, &recv, &in->request);
}

static ncclResult_t take_piece(struct kl_rma *r, struct kl_rma_in *in, int peer, size_t size)
{
    if (size != next_piece(in))
        return KL_FAIL(ncclRemoteError, "%zu bytes came where %zu of a put are due", size, next_piece(in));
    in->got += size;
    if (in->got == in->header.bytes) end_put(r, in, peer);
    return ncclSuccess;
}

/* True: something came. */
static bool receive(struct kl_rma *r, struct kl_rma_in *in, int peer, ncclResult_t *rc)
{
    size_t size = 0;
    bool done = false;

    *rc = ask(r, in);
    if (!*rc && in->request) *rc = r->net->test(in->request, &done, &size);
    if (*rc || !done) return false;
    in->request = NULL;
    *rc = in->data ? take_piece(r, in, peer, size) : take_header(r, in, peer, size);
    return true;
}

/* Between two puts a connection may end: its sender has left, or the bootstrap knows a better reason. */
static void lose(struct kl_rma *r, struct kl_rma_in *in, int peer, ncclResult_t rc)
{
    char about[80];
    bool between = in->connection && !in->data && in->request;

    kl_store_release(&in->ended, true); /* pairs with kl_rma_may_arrive: earlier arrivals are counted */
    if (between) return;
    snprintf(about, sizeof about, "a put of rank %d into a window of rank %d: ", peer, r->config.rank);
    kl_rma_hold(r, peer, rc, about);
}

/* ---- arriving senders ---- */

/* Is a connection waiting at the listener? One system call, however many have not come yet. */
static bool has_pending_connection(struct kl_rma *r)
{
    struct pollfd listening = {.fd = -1, .events = POLLIN};

    if (!r->unconnected) return false;
    if (r->look_again) {
        r->look_again = false;
        return true;
    }
    if (r->net->sleep_on_listener(r->listener, &listening.fd) || listening.fd < 0) return true;
    return poll(&listening, 1, 0) > 0;
}

static ncclResult_t accept_peer(struct kl_rma *r, struct kl_rma_in *in, int peer)
{
    const struct kl_net_end me = {.secret = r->config.secret,
                                  .rank = r->config.rank,
                                  .peer = peer,
                                  .id = KL_RMA_CONNECTION,
                                  .deadline = KL_NO_DEADLINE};
    ncclResult_t rc = r->net->accept(r->listener, &me, &in->connection);

    if (!rc) r->unconnected--;
    return rc == ncclInProgress ? ncclSuccess : rc;
}

/* ---- the duty ---- */

/* The plugin counts arrivals by itself: nothing is known to have moved here. */
static void progress_far(struct kl_rma *r)
{
    const ncclResult_t rc = kl_rma_far_progress(r);
    char about[80];

    if (!rc) return;
    snprintf(about, sizeof about, "one-sided operations at rank %d: ", r->config.rank);
    kl_rma_hold(r, r->config.rank, rc, about);
}

/* How long a failure is held now, ns; 0: none is, or it was reported. */
static uint64_t held_for(const struct kl_rma *r)
{
    const uint64_t since = kl_load_acquire(&r->held.since), now = kl_now_ns(); /* pairs with kl_rma_hold */

    return since && !r->held.reported ? now > since ? now - since : 1 : 0;
}

static void report_held(struct kl_rma *r)
{
    if (held_for(r) < (uint64_t)HOLD_MS * 1000000u) return;
    r->held.reported = true;
    r->config.fail(r->config.ctx, r->held.culprit, r->held.rc, r->held.text);
}

enum kl_progress kl_rma_receive(struct kl_proxy_task *duty)
{
    struct kl_rma *r = (struct kl_rma *)duty;
    bool moved = false, knocks = !r->cancelled && has_pending_connection(r);
    int quiet = kl_error_quiet(1);

    /* A sender puts only because of an operation that this rank called after it had read the window: that read comes before this
     * write. */
    (void)kl_load_acquire(r->config.issued);
    for (int i = 0; i < r->config.nranks && !r->cancelled; i++) {
        struct kl_rma_in *in = &r->in[i];
        ncclResult_t rc = ncclSuccess;
        if (!in->comes || kl_load_relaxed(&in->ended)) continue;
        if (!in->connection && knocks) rc = accept_peer(r, in, i);
        if (!rc && in->connection) moved |= receive(r, in, i, &rc);
        if (rc) lose(r, in, i, rc);
    }
    if (!r->cancelled && !kl_load_relaxed(&r->held.taken)) progress_far(r);
    if (!r->cancelled) report_held(r);
    kl_error_quiet(quiet);
    return moved ? KL_MOVED : KL_STALLED;
}

static void pause_listener(struct kl_rma *r, struct kl_proxy_sleep *rest)
{
    int fd = -1;

    r->look_again = r->net->sleep_on_listener(r->listener, &fd) || fd < 0;
    if (r->look_again)
        kl_proxy_sleep_at_most(rest, KL_NET_AGAIN_MS);
    else
        kl_proxy_sleep_on(rest, fd);
}

void kl_rma_rest(struct kl_proxy_task *duty, struct kl_proxy_sleep *rest)
{
    struct kl_rma *r = (struct kl_rma *)duty;
    int fd = -1;

    if (r->cancelled) return;
    if (kl_rma_far_is_used(r)) kl_proxy_sleep_at_most(rest, FAR_MS);
    if (held_for(r)) kl_proxy_sleep_at_most(rest, HELD_MS);
    if (r->unconnected) pause_listener(r, rest);
    for (int i = 0; i < r->config.nranks; i++) {
        struct kl_rma_in *in = &r->in[i];
        if (in->connection && !kl_load_relaxed(&in->ended) && !r->net->sleep_on(in->connection, &fd) && fd >= 0)
            kl_proxy_sleep_on(rest, fd);
    }
}
