/* SPDX-License-Identifier: Apache-2.0 */
/** rma.c - an end of the plugin for one-sided operations (net/rma.h). */
#include "net/plugin/rma.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "net/plugin/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOOK_AT_ERRORS = 64 }; /* rounds of progress from one look to the next */
enum { TIMEOUT_MS = 5000 };   /* until a call that must not block is given up */

struct kl_net_rma {
    const struct kl_rma_library *library;
    _Atomic int users; /* its owner, and calls in threads of their own: the last one ends it */
    int rank, device;
    void *context, *listener, *comm, *place; /* of init, listen, connect, createContext */
    _Atomic bool busy;                       /* a thread is in a put, a test or the like */
    _Atomic bool calling;                    /* a thread of this file is in a call that may block */
    _Atomic bool stuck;                      /* a call has not returned: nothing can be freed */
    bool cancelled;                          /* under `busy` */
    unsigned rounds;
};

static ncclResult_t fail(const struct kl_net_rma *e, const char *call, ncclResult_t rc, int peer)
{
    const struct kl_rma_library *l = e->library;
    char to[32] = "";

    if (rc == ncclSuccess || rc >= ncclNumResults || rc == ncclInProgress) rc = ncclInternalError;
    if (peer >= 0) snprintf(to, sizeof to, ", to rank %d", peer);
    return KL_FAIL(rc, "RMA/%s (%s, v%d): %s failed (%s) at rank %d%s", l->name, l->file, l->adapter->version, call,
                   kl_result_text(rc), e->rank, to);
}

/* ---- calls that may block: in a thread of their own ---- */

struct call {
    struct kl_plugin_call thread; /* first */
    struct kl_net_rma *end;
    ncclResult_t (*run)(struct call *c);
    const char *name;
    int n;
    void *data;
    size_t bytes;
    uint64_t flags;
    ncclResult_t rc;
    void *mr;
};

static void end_unref(struct kl_net_rma *e);

static void call_ended(struct kl_plugin_call *thread)
{
    end_unref(((struct call *)thread)->end);
}

static void run_call(struct kl_plugin_call *thread)
{
    struct call *c = (struct call *)thread;

    c->rc = c->run(c);
}

static struct call *new_call(struct kl_net_rma *e, const char *name, ncclResult_t (*run)(struct call *))
{
    struct call *c = calloc(1, sizeof *c);

    if (!c) return NULL;
    kl_plugin_call_init(&c->thread, run_call, call_ended);
    kl_fetch_add_relaxed(&e->users, 1);
    c->end = e;
    c->name = name;
    c->run = run;
    return c;
}

static ncclResult_t await(struct call *c, struct kl_net_rma_wait wait)
{
    const struct timespec pause = {.tv_nsec = 200000};

    while (!kl_plugin_call_is_done(&c->thread)) {
        if (kl_deadline_passed(wait.deadline) || (wait.stop && wait.stop(wait.ctx))) {
            kl_store_release(&c->end->stuck, true); /* pairs with kl_net_rma_close */
            return KL_FAIL(ncclRemoteError,
                           "RMA/%s: %s has not returned in time at rank %d: not all ranks have called it",
                           c->end->library->name, c->name, c->end->rank);
        }
        nanosleep(&pause, NULL);
    }
    kl_store_release(&c->end->calling, false);
    return c->rc ? fail(c->end, c->name, c->rc, -1) : ncclSuccess;
}

static ncclResult_t make_call(struct call *c, struct kl_net_rma_wait wait)
{
    kl_store_release(&c->end->calling, true); /* pairs with kl_net_rma_cancel */
    if (kl_plugin_call_start(&c->thread)) return await(c, wait);
    kl_store_release(&c->end->calling, false);
    return KL_FAIL(ncclSystemError, "RMA/%s: no thread for %s", c->end->library->name, c->name);
}

/* ---- an end ---- */

static ncclResult_t start_listening(struct kl_net_rma *e, struct kl_net_rma_offer *offer)
{
    const struct kl_rma_library *l = e->library;
    const ncclResult_t rc = kl_rma_library_listen(l, e->context, e->device, offer->handle.bytes, &e->listener);

    if (rc || !e->listener) return fail(e, "listen", rc, -1);
    snprintf(offer->name, sizeof offer->name, "%s", l->name);
    offer->version = l->adapter->version;
    return ncclSuccess;
}

struct kl_net_rma *kl_net_rma_offer(int device, int rank, struct kl_net_rma_offer *offer)
{
    const struct kl_rma_library *l = kl_rma_plugin_of_process();
    struct kl_net_rma *e = l ? calloc(1, sizeof *e) : NULL;
    int ndevices;

    memset(offer, 0, sizeof *offer);
    if (!e) return NULL;
    *e = (struct kl_net_rma){.library = l, .users = 1, .rank = rank};
    if (!kl_rma_library_start(l, (uint64_t)(uintptr_t)e, &e->context, &ndevices)) {
        free(e);
        return NULL;
    }
    e->device = device % ndevices;
    if (!start_listening(e, offer)) return e;
    KL_WARN("%s; one-sided operations go over NET", kl_error_text());
    kl_net_rma_close(e);
    return NULL;
}

bool kl_net_rma_agree(const struct kl_net_rma_offer *offers, int n)
{
    for (int i = 0; i < n; i++) {
        if (!memcmp(offers[i].name, offers[0].name, sizeof offers[i].name) && offers[i].version == offers[0].version)
            continue;
        KL_INFO(KL_INIT | KL_NET,
                "RMA/Plugin: not used, as rank 0 has \"%.63s\" (v%d), and rank %d \"%.63s\" (v%d): all need the same",
                offers[0].name, offers[0].version, i, offers[i].name, offers[i].version);
        return false;
    }
    return *offers[0].name;
}

static ncclResult_t call_connect(struct call *c)
{
    struct kl_net_rma *e = c->end;
    const struct kl_rma_library *l = e->library;

    ncclResult_t rc = kl_rma_library_connect(l, e->context, c->thread.handles, c->n, e->rank, e->listener, &e->comm);
    if (!rc && !e->comm) rc = ncclInternalError;
    if (rc) return rc;
    c->name = "createContext";
    rc = l->adapter->create_context(l, e->comm, &e->place);
    return rc || e->place ? rc : ncclInternalError;
}

ncclResult_t kl_net_rma_connect(struct kl_net_rma *e, const struct kl_net_rma_offer *offers, int n,
                                struct kl_net_rma_wait wait)
{
    struct call *c = new_call(e, "connect", call_connect);
    ncclResult_t rc = ncclSuccess;

    if (!c) return KL_NOMEM("one-sided operations");
    c->n = n;
    rc = kl_plugin_call_add_handles(&c->thread, &offers->handle, sizeof *offers, n) ? make_call(c, wait)
                                                                                    : KL_NOMEM("one-sided operations");
    kl_plugin_call_drop(&c->thread);
    if (kl_load_relaxed(&e->stuck)) return rc; /* stored by this thread */
    kl_rma_library_close_listen(e->library, e->listener);
    e->listener = NULL;
    return rc;
}

/* ---- memory ---- */

static ncclResult_t call_enroll(struct call *c)
{
    const struct kl_rma_library *l = c->end->library;

    return l->adapter->reg_mr(l, c->end->comm, c->data, c->bytes, c->flags, &c->mr);
}

ncclResult_t kl_net_rma_enroll(struct kl_net_rma *e, void *data, size_t bytes, bool counters,
                               struct kl_net_rma_wait wait, void **mr)
{
    struct call *c = new_call(e, "regMrSym", call_enroll);

    if (!c) return KL_NOMEM("one-sided operations");
    c->data = data;
    c->bytes = bytes;
    c->flags = counters ? KL_RMA_ABI_IN_ORDER | KL_RMA_ABI_NEVER_RESET : 0;
    const ncclResult_t rc = make_call(c, wait);
    if (!rc) *mr = c->mr;
    kl_plugin_call_drop(&c->thread);
    return rc;
}

/* ---- puts ---- */

static bool enter(struct kl_net_rma *e)
{
    return !kl_swap_acquire(&e->busy, true);
}

static void leave(struct kl_net_rma *e)
{
    kl_store_release(&e->busy, false); /* pairs with enter */
}

static ncclResult_t put(struct kl_net_rma *e, const struct kl_net_rma_put *p, void **request)
{
    const struct kl_rma_adapter *a = e->library->adapter;

    if (e->cancelled) return fail(e, "the end of its communicator", ncclInternalError, p->peer);
    const ncclResult_t rc =
        p->counter_mr ? a->put_signal(e->library, e->place, p, request) : a->put(e->library, e->place, p, request);
    if (rc) return fail(e, p->counter_mr ? "iputSignal" : "iput", rc, p->peer);
    return *request ? ncclSuccess : fail(e, "a put without a request", ncclInternalError, p->peer);
}

ncclResult_t kl_net_rma_put(struct kl_net_rma *e, const struct kl_net_rma_put *p, void **request)
{
    *request = NULL;
    if (!enter(e)) return ncclSuccess;
    const ncclResult_t rc = put(e, p, request);
    leave(e);
    return rc;
}

ncclResult_t kl_net_rma_test(struct kl_net_rma *e, void *request, int peer, bool *done)
{
    int is_done = 0;

    *done = false;
    if (!enter(e)) return ncclSuccess;
    const ncclResult_t rc =
        e->cancelled ? ncclInternalError : kl_rma_library_test(e->library, e->comm, request, &is_done);
    leave(e);
    if (rc) return fail(e, "test", rc, peer);
    *done = is_done;
    return ncclSuccess;
}

static ncclResult_t make_progress(struct kl_net_rma *e)
{
    const ncclResult_t rc = kl_rma_library_progress(e->library, e->place);

    if (rc) return fail(e, e->library->adapter->version > 13 ? "rmaProgress" : "ginProgress", rc, -1);
    if (e->rounds++ % LOOK_AT_ERRORS || !kl_rma_library_has_failed(e->library, e->place)) return ncclSuccess;
    return fail(e, "something that queryLastError reports", ncclRemoteError, -1);
}

ncclResult_t kl_net_rma_progress(struct kl_net_rma *e)
{
    if (!enter(e)) return ncclSuccess;
    const ncclResult_t rc = e->cancelled ? ncclSuccess : make_progress(e);
    leave(e);
    return rc;
}

/* ---- the end ---- */

/* False: a call of the plugin does not return. */
static bool enter_soon(struct kl_net_rma *e)
{
    const struct timespec pause = {.tv_nsec = 50000};
    const uint64_t deadline = kl_deadline_in_ms(TIMEOUT_MS);

    while (!enter(e)) {
        if (kl_deadline_passed(deadline)) {
            KL_WARN("RMA/%s: a call has not returned for %d ms at rank %d", e->library->name, TIMEOUT_MS, e->rank);
            kl_store_release(&e->stuck, true);
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

void kl_net_rma_withdraw(struct kl_net_rma *e, void *mr)
{
    if (kl_load_acquire(&e->stuck) || !enter_soon(e)) return;
    const ncclResult_t rc = e->comm ? kl_rma_library_dereg_mr(e->library, e->comm, mr) : ncclSuccess;
    leave(e);
    if (rc) KL_INFO(KL_NET, "RMA/%s: deregMrSym returned %d", e->library->name, (int)rc);
}

static void leave_plugin(struct kl_net_rma *e)
{
    if (e->place) kl_rma_library_destroy_context(e->library, e->place);
    if (e->comm) kl_rma_library_close(e->library, e->comm);
    e->place = e->comm = NULL;
}

/* While a call that may block is under way, its communicator stays; but there are no more puts. */
void kl_net_rma_cancel(struct kl_net_rma *e)
{
    if (kl_load_acquire(&e->stuck) || !enter_soon(e)) return;
    e->cancelled = true;
    if (!kl_load_acquire(&e->calling)) leave_plugin(e);
    leave(e);
}

/* By the owner, or by the thread of a call that has returned after the owner had given up: nothing uses it any more. */
static void end_unref(struct kl_net_rma *e)
{
    if (kl_fetch_sub_acq_rel(&e->users, 1) > 1) return;
    leave_plugin(e);
    if (e->listener) kl_rma_library_close_listen(e->library, e->listener);
    kl_rma_library_finalize(e->library, e->context);
    free(e);
}

void kl_net_rma_close(struct kl_net_rma *e)
{
    if (!e) return;
    kl_net_rma_cancel(e);
    if (kl_load_acquire(&e->stuck) && !kl_load_acquire(&e->calling))
        return; /* a put has not returned, and may use it */
    end_unref(e);
}
