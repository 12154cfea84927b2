/* SPDX-License-Identifier: Apache-2.0 */
#include "net/plugin/conn.h"

#include "base/clock.h"
#include "base/error.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_EVERY = 32,       /* tests that find nothing, per look at the control connection: that is a system call */
    GRACE_NS = 500000000,  /* messages sent before the peer closed may still arrive */
    REASON_NS = 100000000, /* the plugin may notice a dead peer before the control connection does */
    NO_SIZE = -1,
};

/* ---- failures ---- */

static ncclResult_t report(const struct kl_plugin_conn *c)
{
    kl_error_adopt(c->text);
    return c->failed;
}

static void keep_failure(struct kl_plugin_conn *c, ncclResult_t rc)
{
    c->failed = rc;
    snprintf(c->text, sizeof c->text, "%s", kl_error_text());
}

/* The reason of the control connection's end is the better one: it names the peer, its address and the cause. */
static bool is_control_lost(struct kl_plugin_conn *c)
{
    bool done = false;
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = c->control.watch ? kl_net_socket.test(c->control.watch, &done, NULL) : ncclSuccess;

    kl_error_quiet(quiet);
    return rc;
}

/* Requests that are finished before a failure are reported so afterwards. */
static void keep_finished(struct kl_plugin_conn *c)
{
    for (int i = 0; i < KL_NET_REQUESTS; i++) {
        struct kl_plugin_request *r = &c->request[i];
        if (!r->used || !r->request || !c->comm) continue;
        for (int k = 0; k < KL_NET_RECVS; k++) r->came[k] = NO_SIZE;
        if (kl_net_library_test(c->library, r->request, &r->done, r->n ? r->came : NULL)) r->done = 0;
        if (r->done) r->request = NULL;
    }
}

ncclResult_t kl_plugin_conn_fail(struct kl_plugin_conn *c, const char *call, ncclResult_t rc)
{
    if (c->failed) return report(c);
    if (is_control_lost(c))
        keep_failure(c, ncclRemoteError);
    else {
        if (rc == ncclSuccess || rc >= ncclNumResults || rc == ncclInProgress) rc = ncclInternalError;
        rc = KL_FAIL(rc, "NET/%s (%s, v%d): %s failed (%s) on device %d (%s), connection of rank %d with rank %d",
                     c->library->name, c->library->file, c->library->adapter->version, call, kl_result_text(rc),
                     c->device, c->library->device[c->device].name, c->rank, c->peer);
        keep_failure(c, rc);
    }
    keep_finished(c);
    return c->failed;
}

/* Nothing is posted and nothing done any more; a later test fails, with the better reason if that comes soon. */
static void break_off(struct kl_plugin_conn *c, const char *call, ncclResult_t rc)
{
    if (c->broken.at) return;
    c->broken.at = kl_now_ns();
    c->broken.call = call;
    c->broken.rc = rc;
}

static ncclResult_t find_reason(struct kl_plugin_conn *c)
{
    if (!is_control_lost(c) && kl_now_ns() - c->broken.at < REASON_NS) return ncclSuccess;
    return kl_plugin_conn_fail(c, c->broken.call, c->broken.rc);
}

/* Has the peer left, so long ago that nothing is on its way any more? */
static ncclResult_t look_at_peer(struct kl_plugin_conn *c)
{
    if (!c->lost_at && ++c->misses % LOOK_EVERY) return ncclSuccess;
    if (!c->lost_at && is_control_lost(c)) c->lost_at = kl_now_ns();
    if (!c->lost_at || kl_now_ns() - c->lost_at < GRACE_NS) return ncclSuccess;
    return kl_plugin_conn_fail(c, "test", ncclRemoteError);
}

/* ---- memory ---- */

static void unregister(struct kl_plugin_request *r)
{
    struct kl_plugin_conn *c = r->conn;

    for (int i = 0; i < r->n; i++)
        if (r->registered >> i & 1 && c->comm) kl_net_library_dereg_mr(c->library, c->comm, r->part[i].mr);
    r->registered = 0;
}

static ncclResult_t register_parts(struct kl_plugin_request *r)
{
    struct kl_plugin_conn *c = r->conn;

    for (int i = 0; i < r->n; i++) {
        struct kl_net_recv *p = &r->part[i];
        if (p->mr || !p->bytes || r->registered >> i & 1) continue;
        ncclResult_t rc = c->library->adapter->reg_mr(c->library, c->comm, p->data, p->bytes, KL_NET_ABI_HOST, &p->mr);
        if (rc) return kl_plugin_conn_fail(c, "regMr", rc);
        r->registered |= 1u << i;
    }
    return ncclSuccess;
}

/* ---- posting ---- */

static ncclResult_t post(struct kl_plugin_request *r)
{
    struct kl_plugin_conn *c = r->conn;
    const struct kl_net_adapter *a = c->library->adapter;

    KL_TRY(register_parts(r));
    r->request = NULL;
    kl_profile_parent = r->parent;
    ncclResult_t rc = c->sends ? a->isend(c->library, c->comm, &r->part[0], &r->request)
                               : a->irecv(c->library, c->comm, r->n, r->part, &r->request);
    kl_profile_parent = NULL;
    if (rc) r->request = NULL;
    if (rc) break_off(c, c->sends ? "isend" : "irecv", rc);
    return ncclSuccess;
}

static ncclResult_t post_waiting(struct kl_plugin_conn *c)
{
    for (; c->nwaiting && !c->broken.at; c->nwaiting--) {
        struct kl_plugin_request *r = &c->request[c->waiting[c->first]];
        KL_TRY(post(r));
        if (!r->request) return ncclSuccess; /* it has no room now */
        c->first = (c->first + 1) % KL_NET_REQUESTS;
    }
    return ncclSuccess;
}

static struct kl_plugin_request *find_free(struct kl_plugin_conn *c)
{
    for (int i = 0; i < KL_NET_REQUESTS; i++)
        if (!c->request[i].used) return &c->request[i];
    return NULL;
}

static ncclResult_t check_parts(const struct kl_plugin_conn *c, int n, const struct kl_net_recv *parts)
{
    const struct kl_net_properties *p = &c->library->device[c->device];

    if (n < 1 || n > p->max_recvs)
        return KL_FAIL(ncclInvalidArgument, "NET/%s takes 1 to %d messages at once, not %d", c->library->name,
                       p->max_recvs, n);
    for (int i = 0; i < n; i++)
        if (parts[i].bytes > p->max_bytes)
            return KL_FAIL(ncclInvalidArgument, "NET/%s takes messages of %zu bytes at most, not %zu", c->library->name,
                           p->max_bytes, parts[i].bytes);
    return ncclSuccess;
}

ncclResult_t kl_plugin_conn_post(struct kl_plugin_conn *c, int n, const struct kl_net_recv *parts,
                                 struct kl_plugin_request **request)
{
    struct kl_plugin_request *r;

    *request = NULL;
    if (c->failed) return report(c);
    KL_TRY(check_parts(c, n, parts));
    if (!(r = find_free(c))) return ncclSuccess;
    *r = (struct kl_plugin_request){.conn = c, .used = true, .n = n, .parent = kl_profile_parent};
    memcpy(r->part, parts, (size_t)n * sizeof *parts);
    c->waiting[(c->first + c->nwaiting++) % KL_NET_REQUESTS] = (uint8_t)(r - c->request);
    *request = r;
    return post_waiting(c);
}

ncclResult_t kl_plugin_conn_flush(struct kl_plugin_conn *c, int n, const struct kl_net_recv *parts,
                                  struct kl_plugin_request **request)
{
    struct kl_plugin_request *r;

    *request = NULL;
    if (c->failed) return report(c);
    if (!(r = find_free(c))) return kl_plugin_conn_fail(c, "iflush (no request is free)", ncclInternalError);
    *r = (struct kl_plugin_request){.conn = c};
    const ncclResult_t rc = kl_net_library_iflush(c->library, c->comm, n, parts, &r->request);
    if (rc) return kl_plugin_conn_fail(c, "iflush", rc);
    r->used = r->request;
    if (r->used) *request = r;
    return ncclSuccess;
}

/* ---- testing ---- */

static ncclResult_t take_sizes(struct kl_plugin_request *r, size_t *sizes)
{
    struct kl_plugin_conn *c = r->conn;

    for (int i = 0; i < r->n; i++) {
        const size_t posted = r->part[i].bytes, size = c->sends ? posted : (size_t)r->came[i];
        if (!c->sends && r->came[i] == NO_SIZE)
            return kl_plugin_conn_fail(c, "test (no size of a received message)", ncclInternalError);
        if (size > posted) return kl_plugin_conn_fail(c, "test (more was received than was posted)", ncclInvalidUsage);
        if (sizes) sizes[i] = size;
    }
    return ncclSuccess;
}

static ncclResult_t finish(struct kl_plugin_request *r, size_t *sizes)
{
    unregister(r);
    r->used = false;
    r->request = NULL;
    return take_sizes(r, sizes);
}

ncclResult_t kl_plugin_conn_test(struct kl_plugin_request *r, bool *done, size_t *sizes)
{
    struct kl_plugin_conn *c = r->conn;

    *done = false;
    if (c->failed && !r->done) return report(c);
    if (c->broken.at && !c->failed) return find_reason(c);
    if (c->nwaiting && !r->done) KL_TRY(post_waiting(c));
    for (int i = 0; i < r->n && !r->done; i++) r->came[i] = NO_SIZE;
    if (r->request) {
        ncclResult_t rc = kl_net_library_test(c->library, r->request, &r->done, r->n ? r->came : NULL);
        if (rc) break_off(c, "test", rc);
        if (rc) return find_reason(c);
    }
    if (!r->done) return look_at_peer(c);
    if (c->lost_at) c->lost_at = kl_now_ns(); /* more may follow */
    *done = true;
    return finish(r, sizes);
}

/* ---- the end ---- */

bool kl_plugin_conn_peer_is_there(struct kl_plugin_conn *c)
{
    return !c->failed && !c->broken.at && !c->lost_at && !is_control_lost(c);
}

static void close_comm(struct kl_plugin_conn *c)
{
    if (!c->comm) return;
    for (int i = 0; i < KL_NET_REQUESTS; i++)
        if (c->request[i].used) unregister(&c->request[i]);
    (c->sends ? kl_net_library_close_send : kl_net_library_close_recv)(c->library, c->comm);
    c->comm = NULL;
}

void kl_plugin_conn_cancel(struct kl_plugin_conn *c)
{
    if (c->cancelled) return;
    c->cancelled = true;
    if (!c->failed) {
        int quiet = kl_error_quiet(1);
        keep_failure(
            c, KL_FAIL(ncclInternalError, "the connection of rank %d with rank %d was given up", c->rank, c->peer));
        kl_error_quiet(quiet);
    }
    if (c->control.recv) kl_net_socket.cancel(c->control.recv);
    close_comm(c);
}

/* A sender that has not seen yet that this end leaves may be sending its goodbye: into a connection that is still open. */
static void await_sender(struct kl_plugin_conn *c)
{
    const uint64_t deadline = kl_deadline_in_ms(KL_NET_GOODBYE_MS);

    if (c->sends || !c->comm || c->failed || c->broken.at) return;
    while (!is_control_lost(c) && !kl_deadline_passed(deadline)) sched_yield();
}

void kl_plugin_conn_free(struct kl_plugin_conn *c)
{
    if (!c) return;
    kl_net_socket.close_send(c->control.send); /* first: its reason is better than the plugin's */
    await_sender(c);
    kl_net_socket.close_recv(c->control.recv);
    close_comm(c);
    free(c);
}
