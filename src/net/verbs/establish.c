/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/establish.h"

#include "base/clock.h"
#include "base/log.h"
#include "bootstrap/wire.h"
#include "net/socket/connect_request.h"
#include "net/socket/net_listener.h"
#include "net/verbs/mtu.h"
#include "net/verbs/queue.h"
#include "os/fault_inject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONTROL_DEVICE = 0 };

/* In order. The listener's end begins with AWAITS_PARAMS. */
enum stage { DIALS, AWAITS_PARAMS, AWAITS_READY };

struct kl_verbs_conn_request {
    enum stage stage;
    struct kl_verbs_link *link;
    struct kl_conn_request *dial; /* sender: until the TCP connection is there */
    struct kl_watched watched;
    int epoll;
    struct kl_verbs_conn_request *next; /* of the listener */
};

struct kl_verbs_listener {
    struct kl_verbs_device *device;
    struct kl_net_listener *control;
    struct kl_verbs_conn_request *conn_requests;
    int epoll;
    struct kl_watched watched;
};

/* ---- handles: mark, address, zeros ---- */

static const char mark[8] = "KOLOverb"; /* no zero at its end */

static void put_handle(const union kl_address *address, struct kl_net_handle *handle)
{
    memset(handle, 0, sizeof *handle);
    memcpy(handle->bytes, mark, sizeof mark);
    kl_address_pack(address, handle->bytes + sizeof mark);
}

static bool get_handle(const struct kl_net_handle *handle, union kl_address *address)
{
    return !memcmp(handle->bytes, mark, sizeof mark) && kl_address_unpack(handle->bytes + sizeof mark, address) &&
           !kl_address_is_none(address) && kl_address_port(address);
}

/* ---- connect requests ---- */

static ncclResult_t conn_request_create(struct kl_verbs_device *d, const struct kl_net_end *me, enum kl_side side,
                                        struct kl_verbs_conn_request **conn_request)
{
    struct kl_verbs_conn_request *a = kl_inject_calloc(1, sizeof *a);

    if (!a) return KL_NOMEM("a connect request");
    a->stage = side == KL_CALLER ? DIALS : AWAITS_PARAMS;
    a->epoll = -1;
    ncclResult_t rc = kl_verbs_link_create(d, me, side, &a->link);
    if (rc)
        free(a);
    else
        *conn_request = a;
    return rc;
}

void kl_verbs_conn_request_free(struct kl_verbs_conn_request *a)
{
    if (!a) return;
    kl_conn_request_free(a->dial);
    kl_verbs_link_free(a->link);
    if (a->epoll >= 0) close(a->epoll);
    free(a);
}

/* The peer learns why its connection fails. */
static ncclResult_t give_up(struct kl_verbs_conn_request *a, ncclResult_t rc)
{
    struct kl_verbs_record r = {.type = KL_VERBS_FAILED};

    snprintf(r.reason, sizeof r.reason, "%.*s", (int)sizeof r.reason - 1, kl_error_text());
    if (!a->link->failed) kl_verbs_link_tell(a->link, &r);
    return rc;
}

static ncclResult_t in_time(const struct kl_verbs_conn_request *a, const struct kl_net_end *me)
{
    const struct kl_verbs_link *l = a->link;

    if (!kl_deadline_passed(me->deadline)) return ncclInProgress;
    return KL_FAIL(ncclRemoteError, "rank %d has no RDMA connection with rank %d at %s in time: it waited for %s",
                   l->rank, l->peer, l->where, a->stage == AWAITS_READY ? "its last word" : "its parameters");
}

/* ---- the TCP connection ---- */

/* Take over a socket whose handshake is done. */
static void attach(struct kl_verbs_link *l, struct kl_socket_handshake *o)
{
    const union kl_address peer = kl_socket_peer(o->fd);

    kl_address_format(&peer, l->where);
    l->fd = o->fd;
    o->fd = -1;
    l->key = kl_verbs_record_key(&o->handshake);
}

static union kl_address own_address(int fd)
{
    struct sockaddr_storage s;
    socklen_t bytes = sizeof s;
    union kl_address a;

    memset(&a, 0, sizeof a);
    if (!getsockname(fd, (struct sockaddr *)&s, &bytes) && bytes <= sizeof a) memcpy(&a, &s, bytes);
    return a;
}

static ncclResult_t choose_gid(struct kl_verbs_link *l)
{
    const union kl_address near = own_address(l->fd), far = kl_socket_peer(l->fd);

    KL_TRY(kl_verbs_device_gid(l->device, &near, &far, &l->gid));
    l->mine.gid = l->gid.gid;
    l->mine.gid_index = (uint8_t)l->gid.index;
    l->mine.gid_version = (uint8_t)l->gid.version;
    return ncclSuccess;
}

static void tell(struct kl_verbs_link *l, enum kl_verbs_record_type type)
{
    const struct kl_verbs_record r = {.type = type, .params = l->mine};

    kl_verbs_link_tell(l, &r);
}

/* ---- the exchange ---- */

static ncclResult_t check_record(const struct kl_verbs_link *l, const struct kl_verbs_record *r,
                                 enum kl_verbs_record_type wanted)
{
    if (r->type == wanted) return ncclSuccess;
    if (r->type == KL_VERBS_FAILED)
        return KL_FAIL(ncclRemoteError, "rank %d cannot connect with rank %d at %s, which says: %s", l->rank, l->peer,
                       l->where, r->reason);
    return KL_FAIL(ncclRemoteError, "rank %d cannot connect with rank %d at %s: it answers out of turn", l->rank,
                   l->peer, l->where);
}

/* ncclInProgress: it is not here. */
static ncclResult_t receive(struct kl_verbs_link *l, enum kl_verbs_record_type wanted, struct kl_verbs_record *r)
{
    bool ended;

    if (kl_verbs_link_receive(l, r, &ended)) return check_record(l, r, wanted);
    if (!ended) return ncclInProgress;
    return KL_FAIL(ncclRemoteError, "rank %d cannot connect with rank %d at %s: it has closed the connection", l->rank,
                   l->peer, l->where);
}

static int fewer(int a, int b)
{
    return a < b ? a : b;
}

static ncclResult_t dial(struct kl_verbs_conn_request *a, const struct kl_net_end *me)
{
    struct kl_verbs_link *l = a->link;
    ncclResult_t rc = kl_conn_request_progress(a->dial);

    if (rc) return rc;
    attach(l, kl_conn_request_handshake(a->dial, 0));
    kl_conn_request_free(a->dial);
    a->dial = NULL;
    a->stage = AWAITS_PARAMS;
    KL_TRY(choose_gid(l));
    KL_TRY(kl_verbs_queues_create(l, (int)kl_verbs_settings()->qps));
    l->mine.both_ways = me->both_ways;
    tell(l, KL_VERBS_PARAMS);
    return ncclSuccess;
}

/* The sender has the listener's parameters, and is ready when its queue pairs are. */
static ncclResult_t conclude(struct kl_verbs_link *l)
{
    struct kl_verbs_record r;
    ncclResult_t rc = receive(l, KL_VERBS_PARAMS, &r);

    if (rc) return rc;
    l->theirs = r.params;
    KL_TRY(kl_verbs_queues_connect(l));
    l->both_ways = l->mine.both_ways && l->theirs.both_ways;
    tell(l, KL_VERBS_READY);
    return ncclSuccess;
}

static ncclResult_t answer(struct kl_verbs_conn_request *a)
{
    struct kl_verbs_link *l = a->link;
    struct kl_verbs_record r;
    ncclResult_t rc = receive(l, KL_VERBS_PARAMS, &r);

    if (rc) return rc;
    l->theirs = r.params;
    KL_TRY(choose_gid(l));
    KL_TRY(kl_verbs_queues_create(l, fewer((int)kl_verbs_settings()->qps, l->theirs.qps)));
    KL_TRY(kl_verbs_queues_connect(l));
    l->both_ways = l->mine.both_ways = l->theirs.both_ways;
    tell(l, KL_VERBS_PARAMS);
    a->stage = AWAITS_READY;
    return ncclSuccess;
}

static ncclResult_t step(struct kl_verbs_conn_request *a, const struct kl_net_end *me)
{
    struct kl_verbs_record r;
    ncclResult_t rc = ncclSuccess;

    if (a->stage == DIALS) rc = dial(a, me);
    if (rc) return rc;
    if (a->link->side == KL_CALLER) return conclude(a->link);
    if (a->stage == AWAITS_PARAMS) rc = answer(a);
    return rc ? rc : receive(a->link, KL_VERBS_READY, &r);
}

static ncclResult_t progress(struct kl_verbs_conn_request *a, const struct kl_net_end *me)
{
    ncclResult_t rc = step(a, me);

    if (rc == ncclInProgress && a->stage != DIALS) rc = in_time(a, me);
    return rc && rc != ncclInProgress ? give_up(a, rc) : rc;
}

/* The link is open: give it to `end`. */
static void finish(struct kl_verbs_conn_request *a, struct kl_verbs_end *end)
{
    struct kl_verbs_link *l = a->link;
    char text[KL_VERBS_GID_TEXT];

    end->link = l;
    *(end->sends ? &l->out : &l->in) = end;
    a->link = NULL;
    KL_INFO(KL_NET, "NET/IB : rank %d %s rank %d at %s over %s, GID %s, MTU %d, %d queue pair%s", l->rank,
            end->sends ? "sends to" : "receives from", l->peer, l->where, l->device->name,
            kl_verbs_gid_format(&l->gid, text), kl_verbs_mtu_bytes(fewer(l->mine.mtu, l->theirs.mtu)), l->nqueues,
            l->nqueues > 1 ? "s" : "");
    kl_verbs_conn_request_free(a);
}

/* ---- sender ---- */

static ncclResult_t begin(struct kl_verbs_device *d, const struct kl_net_end *me, const struct kl_net_handle *handle,
                          struct kl_verbs_end *end)
{
    const struct kl_socket_devices *all = kl_socket_devices();
    struct kl_conn_request_plan plan = {.me = me, .retry = all->retry};

    if (!get_handle(handle, &plan.address))
        return KL_FAIL(ncclInvalidArgument,
                       "rank %d cannot connect with rank %d: the handle is not one of NET/IB of this version", me->rank,
                       me->peer);
    if (kl_address_is_link_local(&plan.address))
        plan.address.v6.sin6_scope_id = if_nametoindex(all->device[CONTROL_DEVICE].netif.name);
    KL_TRY(conn_request_create(d, me, KL_CALLER, &end->conn_request));
    return kl_conn_request_create(&plan, &end->conn_request->dial);
}

ncclResult_t kl_verbs_connect(struct kl_verbs_device *d, const struct kl_net_end *me,
                              const struct kl_net_handle *handle, struct kl_verbs_end **end)
{
    ncclResult_t rc = ncclSuccess;

    if (!*end) {
        KL_TRY(kl_verbs_end_create(NULL, true, end));
        rc = begin(d, me, handle, *end);
    }
    if (!rc) rc = progress((*end)->conn_request, me);
    if (rc == ncclInProgress) return rc;
    if (!rc) {
        finish((*end)->conn_request, *end);
        (*end)->conn_request = NULL;
        return ncclSuccess;
    }
    kl_verbs_conn_request_free((*end)->conn_request);
    free(*end);
    *end = NULL;
    return rc;
}

ncclResult_t kl_verbs_conn_request_sleep_on(struct kl_verbs_conn_request *a, int *fd)
{
    KL_TRY(kl_watch_open(&a->epoll));
    *fd = a->epoll;
    if (a->dial) return kl_conn_request_watch(a->dial, a->epoll);
    return kl_watch(a->epoll, &a->watched, a->link->fd, EPOLLIN);
}

/* ---- listener ---- */

ncclResult_t kl_verbs_listen(struct kl_verbs_device *d, const struct kl_net_end *me, struct kl_net_handle *handle,
                             struct kl_verbs_listener **listener)
{
    struct kl_verbs_listener *l = kl_inject_calloc(1, sizeof *l);
    const struct kl_socket_device *control;
    union kl_address address;

    if (!l) return KL_NOMEM("a listener");
    l->device = d;
    l->epoll = -1;
    ncclResult_t rc = kl_socket_device_find(CONTROL_DEVICE, &control);
    if (!rc) rc = kl_net_listener_create(control, me, false, &address, &l->control);
    if (rc) {
        free(l);
        return rc;
    }
    put_handle(&address, handle);
    *listener = l;
    return ncclSuccess;
}

static struct kl_verbs_conn_request **find(struct kl_verbs_listener *l, const struct kl_net_end *me)
{
    struct kl_verbs_conn_request **a = &l->conn_requests;

    while (*a && ((*a)->link->peer != me->peer || (*a)->link->id != me->id)) a = &(*a)->next;
    return a;
}

static void forget(struct kl_verbs_conn_request **at)
{
    struct kl_verbs_conn_request *a = *at;

    *at = a->next;
    kl_verbs_conn_request_free(a);
}

/* A TCP connection of this peer has come: begin, instead of an earlier request that it has given up. */
static ncclResult_t welcome(struct kl_verbs_listener *l, const struct kl_net_end *me, struct kl_accepted *accepted)
{
    struct kl_verbs_conn_request **at = find(l, me), *a;

    if (*at) forget(at);
    if (accepted->n != 1 || accepted->disagrees)
        return KL_FAIL(ncclInvalidUsage,
                       "rank %d cannot accept rank %d: it uses another network, or KOLO_NET_CRYPT; set NCCL_NET and "
                       "KOLO_NET_CRYPT alike on all ranks",
                       me->rank, me->peer);
    KL_TRY(conn_request_create(l->device, me, KL_HOST, &a));
    attach(a->link, &accepted->handshake[0]);
    a->next = l->conn_requests;
    l->conn_requests = a;
    return ncclSuccess;
}

static ncclResult_t not_here(const struct kl_net_end *me)
{
    if (!kl_deadline_passed(me->deadline)) return ncclInProgress;
    return KL_FAIL(ncclRemoteError,
                   "rank %d has waited for a connection of rank %d, which has not come before the deadline", me->rank,
                   me->peer);
}

static ncclResult_t take(struct kl_verbs_listener *l, const struct kl_net_end *me)
{
    KL_TRY(kl_net_listener_progress(l->control));
    struct kl_accepted *accepted = kl_net_listener_take(l->control, (unsigned)me->peer, me->id);
    if (!accepted) return ncclSuccess;
    ncclResult_t rc = welcome(l, me, accepted);
    kl_accepted_free(accepted);
    return rc;
}

ncclResult_t kl_verbs_accept(struct kl_verbs_listener *l, const struct kl_net_end *me, struct kl_verbs_end **end)
{
    struct kl_verbs_end *e;

    *end = NULL;
    KL_TRY(take(l, me));
    struct kl_verbs_conn_request **at = find(l, me), *a = *at;
    if (!a) return not_here(me);
    ncclResult_t rc = progress(a, me);
    if (rc == ncclInProgress) return rc;
    if (!rc) rc = kl_verbs_end_create(NULL, false, &e);
    if (rc) {
        forget(at);
        return rc;
    }
    *at = a->next;
    finish(a, e);
    *end = e;
    return ncclSuccess;
}

ncclResult_t kl_verbs_listener_sleep_on(struct kl_verbs_listener *l, int *fd)
{
    int control_fd;

    KL_TRY(kl_watch_open(&l->epoll));
    KL_TRY(kl_net_listener_watch(l->control, &control_fd));
    if (control_fd >= 0) KL_TRY(kl_watch(l->epoll, &l->watched, control_fd, EPOLLIN));
    for (struct kl_verbs_conn_request *a = l->conn_requests; a; a = a->next)
        KL_TRY(kl_watch(l->epoll, &a->watched, a->link->fd, EPOLLIN));
    *fd = control_fd < 0 ? -1 : l->epoll;
    return ncclSuccess;
}

void kl_verbs_listener_free(struct kl_verbs_listener *l)
{
    if (!l) return;
    while (l->conn_requests) forget(&l->conn_requests);
    kl_net_listener_free(l->control);
    if (l->epoll >= 0) close(l->epoll);
    free(l);
}
