/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/establish.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#include <stdlib.h>

/* ---- both ---- */

/* Give the connection an open socket. */
static ncclResult_t attach(struct kl_conn *c, int i, struct kl_socket_handshake *o)
{
    struct kl_key session = kl_session_params_session_key(&o->handshake);
    const struct kl_session_params *listeners = o->side == KL_CALLER ? &o->theirs : &o->mine;
    ncclResult_t rc = kl_conn_attach(c, i, o->fd, (enum kl_cipher)listeners->ciphers, &session);

    c->both_ways = !c->shape.lanes && o->theirs.both_ways;
    o->fd = -1; /* owned by the connection, even after a failure */
    kl_key_wipe(&session);
    return rc;
}

static void log_made(const struct kl_conn *c)
{
    KL_INFO(KL_NET, "NET/Socket : rank %d %s rank %d at %s, %d socket%s, %d thread%s%s", c->rank,
            c->sends ? "sends to" : "receives from", c->peer, c->where, 1 + c->shape.lanes,
            kl_plural(1 + c->shape.lanes), c->shape.threads, kl_plural(c->shape.threads),
            c->lane[0].out.cipher_state.cipher ? ", encrypted" : "");
}

/* ---- sender ---- */

/* An interface number is valid on its own host only. */
static union kl_address as_seen_from(const struct kl_socket_device *device, union kl_address address)
{
    if (kl_address_is_link_local(&address)) address.v6.sin6_scope_id = if_nametoindex(device->netif.name);
    return address;
}

static ncclResult_t begin(int device, const struct kl_net_end *me, const struct kl_net_handle *handle,
                          struct kl_conn **connection)
{
    const struct kl_socket_devices *all = kl_socket_devices();
    struct kl_conn_request_plan plan = {.me = me, .retry = all->retry, .crypt = all->params.crypt};
    const struct kl_socket_device *d;
    struct kl_conn *c;

    KL_TRY(kl_socket_device_find(device, &d));
    if (!kl_session_params_get_handle(handle, &plan.address))
        return KL_FAIL(ncclInvalidArgument,
                       "rank %d cannot connect with rank %d: the handle is not one of NET/Socket of this version",
                       me->rank, me->peer);
    plan.address = as_seen_from(d, plan.address);
    plan.lanes = d->shape.lanes;
    KL_TRY(kl_conn_create(true, me, d->shape, &c));
    ncclResult_t rc = kl_conn_request_create(&plan, &c->connect_request);
    if (rc)
        kl_conn_free(c);
    else
        *connection = c;
    return rc;
}

static ncclResult_t go_on(struct kl_conn *c)
{
    KL_TRY(kl_conn_request_progress(c->connect_request));
    for (int i = 0; i <= c->shape.lanes; i++) KL_TRY(attach(c, i, kl_conn_request_handshake(c->connect_request, i)));
    kl_conn_request_free(c->connect_request);
    c->connect_request = NULL;
    return ncclSuccess;
}

ncclResult_t kl_establish_send(int device, const struct kl_net_end *me, const struct kl_net_handle *handle,
                               struct kl_conn **connection)
{
    if (!*connection) KL_TRY(begin(device, me, handle, connection));
    ncclResult_t rc = go_on(*connection);
    if (!rc) log_made(*connection);
    if (rc && rc != ncclInProgress) {
        kl_conn_free(*connection);
        *connection = NULL;
    }
    return rc;
}

/* ---- receiver ---- */

static ncclResult_t not_here(const struct kl_net_listener *listener, const struct kl_net_end *me)
{
    if (!kl_deadline_passed(me->deadline)) return ncclInProgress;
    return KL_FAIL(ncclRemoteError,
                   "rank %d has waited for a connection of rank %d, which has not come before the deadline",
                   kl_net_listener_rank(listener), me->peer);
}

static ncclResult_t crypt_differs(const struct kl_net_listener *listener, const struct kl_accepted *a)
{
    bool ours = kl_socket_devices()->params.crypt;

    return KL_FAIL(
        ncclInvalidUsage,
        "rank %d cannot accept rank %u: KOLO_NET_CRYPT is %s at rank %d and %s at rank %u; set it alike on all "
        "ranks",
        kl_net_listener_rank(listener), a->peer, ours ? "on" : "off", kl_net_listener_rank(listener),
        ours ? "off" : "on", a->peer);
}

/* The sender chooses the number of sockets, the receiver the number of its threads. */
static ncclResult_t connection_of(const struct kl_net_listener *listener, const struct kl_net_end *me,
                                  struct kl_accepted *a, struct kl_conn **connection)
{
    struct kl_socket_shape shape = {.threads = kl_net_listener_threads(listener), .lanes = a->n - 1};
    struct kl_conn *c;
    ncclResult_t rc = ncclSuccess;

    if (a->disagrees) return crypt_differs(listener, a);
    KL_TRY(kl_conn_create(false, me, shape, &c));
    for (int i = 0; i < a->n && !rc; i++) rc = attach(c, i, &a->handshake[i]);
    if (rc)
        kl_conn_free(c);
    else
        *connection = c;
    return rc;
}

ncclResult_t kl_establish_recv(struct kl_net_listener *listener, const struct kl_net_end *me,
                               struct kl_conn **connection)
{
    KL_TRY(kl_net_listener_progress(listener));
    struct kl_accepted *a = kl_net_listener_take(listener, (unsigned)me->peer, me->id);
    if (!a) return not_here(listener, me);
    ncclResult_t rc = connection_of(listener, me, a, connection);
    kl_accepted_free(a);
    if (!rc) log_made(*connection);
    return rc;
}
