/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/connection.h"

#include "os/socket.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- life ---- */

ncclResult_t kl_socket_connection_create(bool sends, const struct kl_net_end *me, struct kl_socket_shape shape,
                                         struct kl_socket_connection **connection)
{
    struct kl_socket_connection *c = calloc(1, sizeof *c);
    struct kl_lane *lane = calloc((size_t)shape.lanes + 1, sizeof *lane);

    if (!c || !lane) {
        free(c);
        free(lane);
        return KL_NOMEM("a connection");
    }
    *c = (struct kl_socket_connection){
        .sends = sends, .rank = me->rank, .peer = me->peer, .epoll = -1, .sleeper = {.bell = -1}};
    c->shape = shape;
    if (shape.threads > shape.lanes) c->shape.threads = shape.lanes;
    c->lane = lane;
    for (int i = 0; i <= c->shape.lanes; i++) lane[i].fd = -1;
    for (int i = KL_NET_REQUESTS - 1; i >= 0; i--) {
        c->request[i].connection = c;
        kl_socket_connection_give(c, &c->request[i]);
    }
    *connection = c;
    return ncclSuccess;
}

ncclResult_t kl_socket_connection_attach(struct kl_socket_connection *c, int i, int fd, enum kl_cipher cipher,
                                         const struct kl_key *session)
{
    static const char forth[] = "kolo net sender to listener", back[] = "kolo net listener to sender";
    struct kl_lane *l = &c->lane[i];
    const union kl_address peer = kl_socket_peer(fd);

    if (!i) kl_address_format(&peer, c->where);
    l->fd = l->out.fd = l->in.fd = fd;
    kl_socket_seal_init(&l->out.seal, cipher, session, c->sends ? forth : back);
    kl_socket_seal_init(&l->in.seal, cipher, session, c->sends ? back : forth);
    return kl_out_init(&l->out);
}

static void free_lane(struct kl_lane *l)
{
    kl_socket_close(l->fd);
    kl_out_fini(&l->out);
    sodium_memzero(&l->out.seal, sizeof l->out.seal);
    sodium_memzero(&l->in.seal, sizeof l->in.seal);
}

void kl_socket_connection_free(struct kl_socket_connection *c)
{
    if (!c) return;
    kl_movers_stop(c->movers);
    kl_attempt_free(c->attempt);
    for (int i = 0; i <= c->shape.lanes; i++) free_lane(&c->lane[i]);
    if (c->epoll >= 0) close(c->epoll);
    if (c->sleeper.bell >= 0) close(c->sleeper.bell);
    free(c->lane);
    free(c);
}

/* ---- failure ---- */

ncclResult_t kl_socket_connection_fail(struct kl_socket_connection *c, ncclResult_t code, const char *fmt, ...)
{
    va_list ap;

    if (c->failed) return c->failed;
    kl_movers_stop(c->movers);
    c->movers = NULL;
    for (int i = 0; i <= c->shape.lanes; i++)
        if (c->lane[i].fd >= 0) shutdown(c->lane[i].fd, SHUT_RDWR);
    va_start(ap, fmt);
    vsnprintf(c->why, sizeof c->why, fmt, ap);
    va_end(ap);
    c->failed = code;
    return KL_FAIL(code, "%s", c->why);
}

ncclResult_t kl_socket_connection_lost(struct kl_socket_connection *c, enum kl_flow flow)
{
    char reason[128];
    const char *why = errno ? strerror_r(errno, reason, sizeof reason) : "the other side closed it";

    if (flow == KL_FLOW_FORGED)
        return kl_socket_connection_fail(
            c, ncclRemoteError,
            "the connection of rank %d with rank %d at %s brought something that rank %d has not "
            "sent, or not there: somebody or something changes it on the way",
            c->rank, c->peer, c->where, c->peer);
    return kl_socket_connection_fail(c, ncclRemoteError, "rank %d has lost its connection with rank %d at %s: %s",
                                     c->rank, c->peer, c->where, why);
}

ncclResult_t kl_socket_connection_report(const struct kl_socket_connection *c)
{
    if (c->failed) kl_error_adopt(c->why);
    return c->failed;
}

/* ---- requests ---- */

struct kl_request *kl_socket_connection_take(struct kl_socket_connection *c)
{
    struct kl_request *r = c->free;

    if (r) c->free = r->next;
    return r;
}

void kl_socket_connection_give(struct kl_socket_connection *c, struct kl_request *r)
{
    r->next = c->free;
    c->free = r;
}

void kl_socket_connection_append(struct kl_socket_connection *c, struct kl_request *r)
{
    r->next = NULL;
    if (c->first)
        c->last->next = r;
    else
        c->first = r;
    c->last = r;
}

void kl_socket_connection_remove(struct kl_socket_connection *c, const struct kl_request *r)
{
    struct kl_request **link = &c->first, *before = NULL;

    while (*link != r) {
        before = *link;
        link = &before->next;
    }
    *link = r->next;
    if (c->last == r) c->last = before;
}
