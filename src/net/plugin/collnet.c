/* SPDX-License-Identifier: Apache-2.0 */
#include "net/plugin/collnet.h"

#include "base/clock.h"
#include "base/error.h"
#include "device/host/redop.h"
#include "net/plugin/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kl_collnet_library library;
static bool taken;

void kl_collnet_plugin_open(const struct kl_net_library *net)
{
    taken = kl_collnet_library_open(&library, net);
    if (taken) kl_collnet_plugin.name = library.name;
}

void kl_collnet_plugin_close(void)
{
    if (taken) kl_collnet_library_finalize(&library);
    taken = false;
}

const char *kl_collnet_plugin_name(void)
{
    return taken ? library.name : NULL;
}

/* ---- connecting ---- */

struct joining {
    struct kl_plugin_call thread; /* first */
    int n, own;
    void *listener;
    ncclResult_t rc;
    void *comm;
};

static void join(struct kl_plugin_call *thread)
{
    struct joining *j = (struct joining *)thread;

    j->rc = kl_collnet_library_connect(&library, j->thread.handles, j->n, j->own, j->listener, &j->comm);
}

static ncclResult_t start_joining(const struct kl_collnet_end *me, const struct kl_net_handle *handles, void *listener,
                                  struct joining **joining)
{
    struct joining *j = calloc(1, sizeof *j);

    if (!j) return KL_NOMEM("a connection over a CollNet plugin");
    kl_plugin_call_init(&j->thread, join, NULL);
    j->n = me->n;
    j->own = me->own;
    j->listener = listener;
    if (!kl_plugin_call_add_handles(&j->thread, handles, sizeof *handles, me->n) || !kl_plugin_call_start(&j->thread)) {
        kl_plugin_call_drop(&j->thread);
        return KL_FAIL(ncclSystemError, "COLLNET/%s: no thread or no memory to connect", library.name);
    }
    *joining = j;
    return ncclSuccess;
}

/* ---- groups ---- */

struct request {
    struct group *group; /* NULL: free */
    void *request;
    struct {
        void *data, *mr;
    } reg[2];
    unsigned char *bounce;              /* n parts: of a gathering, or of a scattering */
    const struct kl_collnet_part *part; /* where gathered parts go; NULL: nowhere */
    struct kl_collnet_part *parts;      /* copy of them */
    void *recv;                         /* where the own part of a reduction of all parts goes; NULL: nowhere */
    size_t bytes;                       /* each */
};

struct group {
    int n, own, rank;
    size_t most;
    struct joining *joining;
    void *comm;
    bool cancelled;
    ncclResult_t failed;
    char why[KL_ERROR_TEXT];
    struct request request[KL_COLLNET_REQUESTS];
    struct kl_collnet_part *parts; /* of all requests */
    unsigned char *bounce;         /* the same: n parts for sending, and n for receiving */
};

static ncclResult_t report(const struct group *g)
{
    kl_error_adopt(g->why);
    return g->failed;
}

static ncclResult_t fail(struct group *g, const char *call, ncclResult_t rc)
{
    if (g->failed) return report(g);
    if (rc == ncclSuccess || rc >= ncclNumResults || rc == ncclInProgress) rc = ncclInternalError;
    g->failed = KL_FAIL(rc, "COLLNET/%s (%s, v%d): %s failed (%s) at rank %d, member %d of %d", library.name,
                        library.file, library.adapter->version, call, kl_result_text(rc), g->rank, g->own, g->n);
    snprintf(g->why, sizeof g->why, "%s", kl_error_text());
    return g->failed;
}

static void unregister(const struct group *g, struct request *r)
{
    for (int i = 0; i < 2; i++)
        if (r->reg[i].data && g->comm) (void)kl_collnet_library_dereg_mr(&library, g->comm, r->reg[i].mr);
    r->reg[0].data = r->reg[1].data = NULL;
}

static void leave(struct group *g)
{
    if (!g->comm) return;
    for (int i = 0; i < KL_COLLNET_REQUESTS; i++)
        if (g->request[i].group) unregister(g, &g->request[i]);
    kl_collnet_library_close(&library, g->comm);
    g->comm = NULL;
}

static void group_free(struct group *g)
{
    if (!g) return;
    leave(g);
    if (g->joining) kl_plugin_call_drop(&g->joining->thread);
    free(g->parts);
    free(g->bounce);
    free(g);
}

static struct group *group_create(const struct kl_collnet_end *me)
{
    struct group *g = calloc(1, sizeof *g);

    if (!g) return NULL;
    g->n = me->n;
    g->own = me->own;
    g->rank = me->ranks[me->own];
    g->most = me->most;
    g->parts = calloc((size_t)KL_COLLNET_REQUESTS * (size_t)me->n, sizeof *g->parts);
    g->bounce = calloc((size_t)KL_COLLNET_REQUESTS * 2 * (size_t)me->n, me->most);
    for (int i = 0; i < KL_COLLNET_REQUESTS && g->parts && g->bounce; i++) {
        g->request[i].parts = g->parts + (size_t)i * (size_t)me->n;
        g->request[i].bounce = g->bounce + (size_t)i * 2 * (size_t)me->n * me->most;
    }
    if (g->parts && g->bounce) return g;
    group_free(g);
    return NULL;
}

static ncclResult_t look_at_joining(struct group *g, const struct kl_collnet_end *me)
{
    struct joining *j = g->joining;

    if (!kl_plugin_call_is_done(&j->thread)) {
        if (!kl_deadline_passed(me->deadline)) return ncclInProgress;
        return KL_FAIL(ncclRemoteError,
                       "COLLNET/%s: connect has not returned in time at rank %d: not all %d members have called it",
                       library.name, g->rank, g->n);
    }
    if (!j->rc && j->comm) g->comm = j->comm;
    const ncclResult_t rc = j->rc;
    g->joining = NULL;
    kl_plugin_call_drop(&j->thread);
    if (g->comm) return ncclSuccess;
    return KL_FAIL(rc ? rc : ncclSystemError,
                   "COLLNET/%s: connect gave no communicator (%d) at rank %d; NCCL_COLLNET_ENABLE=0 does without it",
                   library.name, (int)rc, g->rank);
}

static ncclResult_t connect_all(int device, const struct kl_collnet_end *me, const struct kl_net_handle *handles,
                                void *listener, void **group)
{
    struct group *g = *group;
    ncclResult_t rc = ncclSuccess;

    (void)device;
    if (!g) g = group_create(me);
    if (!g) return KL_NOMEM("a group of a CollNet plugin");
    if (!g->joining) rc = start_joining(me, handles, listener, &g->joining);
    if (!rc) rc = look_at_joining(g, me);
    if (rc && rc != ncclInProgress) {
        group_free(g);
        g = NULL;
    }
    *group = g;
    return rc;
}

/* ---- requests ---- */

static struct request *find_free(struct group *g)
{
    for (int i = 0; i < KL_COLLNET_REQUESTS; i++)
        if (!g->request[i].group) return &g->request[i];
    return NULL;
}

static ncclResult_t reg(struct group *g, struct request *r, int which, const void *data, size_t bytes)
{
    void *at = (void *)(uintptr_t)data;
    const ncclResult_t rc = library.adapter->reg_mr(&library, g->comm, at, bytes, &r->reg[which].mr);

    if (rc) return fail(g, "regMr", rc);
    r->reg[which].data = at;
    return ncclSuccess;
}

/* A request is there, or there is no room now, or the call has failed. */
static ncclResult_t posted(struct group *g, struct request *r, const char *call, ncclResult_t rc, void **request)
{
    if (!rc && r->request) {
        r->group = g;
        *request = r;
        return ncclSuccess;
    }
    unregister(g, r);
    return rc ? fail(g, call, rc) : ncclSuccess;
}

static ncclResult_t begin(struct group *g, struct request **r)
{
    *r = NULL;
    if (g->failed) return report(g);
    *r = find_free(g);
    if (!*r) return ncclSuccess;
    **r = (struct request){.bounce = (*r)->bounce, .parts = (*r)->parts};
    return ncclSuccess;
}

static ncclResult_t reduce(struct group *g, struct request *r, const void *send, void *recv, size_t count,
                           struct kl_collnet_op op, void **request)
{
    const size_t bytes = count * kl_type_bytes(op.type);

    KL_TRY(reg(g, r, 0, send, bytes));
    KL_TRY(reg(g, r, 1, recv, bytes));
    const ncclResult_t rc =
        library.adapter->iallreduce(&library, g->comm, send, recv, count, op, r->reg[0].mr, r->reg[1].mr, &r->request);
    return posted(g, r, "iallreduce", rc, request);
}

static ncclResult_t iallreduce(void *group, const void *send, void *recv, size_t count, struct kl_collnet_op op,
                               void **request)
{
    struct group *g = group;
    struct request *r;

    *request = NULL;
    KL_TRY(begin(g, &r));
    return r ? reduce(g, r, send, recv, count, op, request) : ncclSuccess;
}

/* The second half of the bounce buffer. */
static unsigned char *other_half(const struct group *g, const struct request *r)
{
    return r->bounce + (size_t)g->n * g->most;
}

/* A sum of all parts, which are zero but for the own one. */
static ncclResult_t gather_by_sum(struct group *g, struct request *r, const void *send, size_t bytes, void **request)
{
    const size_t all = (size_t)g->n * bytes;
    unsigned char *own = other_half(g, r);

    memset(own, 0, all);
    memcpy(own + (size_t)g->own * bytes, send, bytes);
    return reduce(g, r, own, r->bounce, all, (struct kl_collnet_op){.type = ncclUint8, .op = ncclSum}, request);
}

static ncclResult_t iallgather(void *group, const void *send, const struct kl_collnet_part *recv, size_t bytes,
                               void **request)
{
    struct group *g = group;
    struct request *r;

    *request = NULL;
    KL_TRY(begin(g, &r));
    if (!r) return ncclSuccess;
    memcpy(r->parts, recv, (size_t)g->n * sizeof *recv);
    r->part = r->parts;
    r->bytes = bytes;
    if (!kl_collnet_library_has_gather(&library)) return gather_by_sum(g, r, send, bytes, request);
    KL_TRY(reg(g, r, 0, send, bytes));
    KL_TRY(reg(g, r, 1, r->bounce, (size_t)g->n * bytes));
    const ncclResult_t rc = kl_collnet_library_gather(&library, g->comm, send, r->reg[0].mr, r->bounce, r->reg[1].mr,
                                                      g->n, bytes, &r->request);
    return posted(g, r, "iallgather", rc, request);
}

static ncclResult_t ireducescatter(void *group, const struct kl_collnet_part *send, void *recv, size_t count,
                                   struct kl_collnet_op op, void **request)
{
    struct group *g = group;
    const size_t bytes = count * kl_type_bytes(op.type);
    struct request *r;

    *request = NULL;
    KL_TRY(begin(g, &r));
    if (!r) return ncclSuccess;
    for (int i = 0; i < g->n; i++) memcpy(r->bounce + (size_t)i * bytes, send[i].data, bytes);
    if (!kl_collnet_library_has_scatter(&library)) {
        r->recv = recv;
        r->bytes = bytes;
        return reduce(g, r, r->bounce, other_half(g, r), (size_t)g->n * count, op, request);
    }
    KL_TRY(reg(g, r, 0, r->bounce, (size_t)g->n * bytes));
    KL_TRY(reg(g, r, 1, recv, bytes));
    const ncclResult_t rc = kl_collnet_library_scatter(&library, g->comm, r->bounce, r->reg[0].mr, recv, r->reg[1].mr,
                                                       g->n, bytes, op, &r->request);
    return posted(g, r, "ireducescatter", rc, request);
}

static void finish(struct request *r)
{
    struct group *g = r->group;

    unregister(g, r);
    for (int i = 0; r->part && i < g->n; i++) memcpy(r->part[i].data, r->bounce + (size_t)i * r->bytes, r->bytes);
    if (r->recv) memcpy(r->recv, other_half(g, r) + (size_t)g->own * r->bytes, r->bytes);
    r->group = NULL;
}

static ncclResult_t test(void *request, bool *done)
{
    struct request *r = request;
    int is_done = 0;

    *done = false;
    if (r->group->failed) return report(r->group);
    const ncclResult_t rc = kl_collnet_library_test(&library, r->request, &is_done);
    if (rc) return fail(r->group, "test", rc);
    if (!is_done) return ncclSuccess;
    finish(r);
    *done = true;
    return ncclSuccess;
}

static void cancel(void *group)
{
    struct group *g = group;

    if (g->cancelled) return;
    g->cancelled = true;
    const int quiet = kl_error_quiet(1);
    if (!g->failed) {
        g->failed = KL_FAIL(ncclInternalError, "COLLNET/%s: the group of rank %d was given up", library.name, g->rank);
        snprintf(g->why, sizeof g->why, "%s", kl_error_text());
    }
    kl_error_quiet(quiet);
    leave(g);
}

/* ---- the table ---- */

static ncclResult_t init(const struct kl_net *net)
{
    (void)net;
    return taken ? ncclSuccess : KL_FAIL(ncclInternalError, "no CollNet plugin is in use");
}

static bool reduces(struct kl_collnet_op op)
{
    return kl_collnet_library_reduces(&library, op);
}

/* Devices of both tables are in the same order; there may be fewer that reduce. */
static ncclResult_t listen_on(int device, const struct kl_collnet_end *me, struct kl_net_handle *handle,
                              void **listener)
{
    const ncclResult_t rc = library.adapter->listen(&library, device % library.ndevices, handle->bytes, listener);

    if (!rc && *listener) return ncclSuccess;
    return KL_FAIL(rc ? rc : ncclSystemError, "COLLNET/%s: listen gave no listener (%d) at rank %d", library.name,
                   (int)rc, me->ranks[me->own]);
}

static int waits_for(const void *group)
{
    (void)group; /* the plugin does not report it */
    return -1;
}

static void close_group(void *group)
{
    group_free(group);
}

static void close_listen(void *listener)
{
    if (listener) kl_collnet_library_close_listen(&library, listener);
}

struct kl_collnet kl_collnet_plugin = {
    .name = "Plugin",
    .init = init,
    .reduces = reduces,
    .listen = listen_on,
    .connect = connect_all,
    .iallreduce = iallreduce,
    .iallgather = iallgather,
    .ireducescatter = ireducescatter,
    .test = test,
    .waits_for = waits_for,
    .cancel = cancel,
    .close = close_group,
    .close_listen = close_listen,
};
