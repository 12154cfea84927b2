/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/conn.h"

#include "os/fault_inject.h"
#include "os/socket.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- life ---- */

ncclResult_t kl_conn_create(bool sends, const struct kl_net_end *me, struct kl_socket_shape shape,
                            struct kl_conn **connection)
{
    struct kl_conn *c = kl_inject_calloc(1, sizeof *c);
    struct kl_socket_lane *lane = kl_inject_calloc((size_t)shape.lanes + 1, sizeof *lane);

    if (!c || !lane) {
        free(c);
        free(lane);
        return KL_NOMEM("a connection");
    }
    *c =
        (struct kl_conn){.sends = sends, .rank = me->rank, .peer = me->peer, .epoll = -1, .sleeper = {.wakeup_fd = -1}};
    c->shape = shape;
    if (shape.threads > shape.lanes) c->shape.threads = shape.lanes;
    c->lane = lane;
    for (int i = 0; i <= c->shape.lanes; i++) lane[i].fd = -1;
    for (int i = KL_NET_REQUESTS - 1; i >= 0; i--) {
        c->request[i].connection = c;
        kl_conn_give(c, &c->request[i]);
    }
    *connection = c;
    return ncclSuccess;
}

ncclResult_t kl_conn_attach(struct kl_conn *c, int i, int fd, enum kl_cipher cipher, const struct kl_key *session)
{
    static const char forth[] = "kolo net sender to listener", back[] = "kolo net listener to sender";
    struct kl_socket_lane *l = &c->lane[i];
    const union kl_address peer = kl_socket_peer(fd);

    if (!i) kl_address_format(&peer, c->where);
    l->fd = l->out.fd = l->in.fd = fd;
    kl_cipher_init(&l->out.cipher_state, cipher, session, c->sends ? forth : back);
    kl_cipher_init(&l->in.cipher_state, cipher, session, c->sends ? back : forth);
    return kl_out_init(&l->out);
}

/* A connection with an opposite leaves the socket to it; the receiver learns that no more is sent. */
static void let_go(const struct kl_conn *c)
{
    c->opposite->opposite = NULL;
    if (c->sends) shutdown(c->lane[0].fd, SHUT_WR);
    c->lane[0].fd = -1;
}

static void free_lane(struct kl_socket_lane *l)
{
    kl_socket_close(l->fd);
    kl_out_fini(&l->out);
    sodium_memzero(&l->out.cipher_state, sizeof l->out.cipher_state);
    sodium_memzero(&l->in.cipher_state, sizeof l->in.cipher_state);
}

void kl_conn_free(struct kl_conn *c)
{
    if (!c) return;
    kl_io_threads_stop(c->io_threads);
    kl_conn_request_free(c->connect_request);
    if (c->opposite) let_go(c);
    for (int i = 0; i <= c->shape.lanes; i++) free_lane(&c->lane[i]);
    if (c->epoll >= 0) close(c->epoll);
    if (c->sleeper.wakeup_fd >= 0) close(c->sleeper.wakeup_fd);
    free(c->lane);
    free(c);
}

/* ---- failure ---- */

ncclResult_t kl_conn_fail(struct kl_conn *c, ncclResult_t code, const char *fmt, ...)
{
    va_list ap;

    if (c->failed) return c->failed;
    kl_io_threads_stop(c->io_threads);
    c->io_threads = NULL;
    for (int i = 0; i <= c->shape.lanes; i++)
        if (c->lane[i].fd >= 0) shutdown(c->lane[i].fd, SHUT_RDWR);
    va_start(ap, fmt);
    vsnprintf(c->why, sizeof c->why, fmt, ap);
    va_end(ap);
    c->failed = code;
    if (c->opposite && !c->opposite->failed) {
        c->opposite->failed = code;
        memcpy(c->opposite->why, c->why, sizeof c->why);
    }
    return KL_FAIL(code, "%s", c->why);
}

ncclResult_t kl_conn_lost(struct kl_conn *c, enum kl_flow flow)
{
    char reason[128];
    const char *why = errno ? strerror_r(errno, reason, sizeof reason) : "the other side closed it";

    if (flow == KL_FLOW_FORGED)
        return kl_conn_fail(c, ncclRemoteError,
                            "the connection of rank %d with rank %d at %s brought something that rank %d has not "
                            "sent, or not there: somebody or something changes it on the way",
                            c->rank, c->peer, c->where, c->peer);
    return kl_conn_fail(c, ncclRemoteError, "rank %d has lost its connection with rank %d at %s: %s", c->rank, c->peer,
                        c->where, why);
}

void kl_conn_refused(struct kl_conn *c, const struct kl_head *head)
{
    if (!c->headed) {
        c->head = *head;
        c->headed = true;
        return;
    }
    kl_conn_fail(c, ncclInvalidUsage,
                 "rank %d has sent %" PRIu64 " bytes (tag %d) to rank %d at %s, which has posted %" PRIu64
                 "; sizes and settings have to be alike on all ranks",
                 c->rank, c->head.bytes, (int)head->tag, c->peer, c->where, head->bytes);
}

ncclResult_t kl_conn_report(const struct kl_conn *c)
{
    if (c->failed) kl_error_adopt(c->why);
    return c->failed;
}

/* ---- requests ---- */

struct kl_request *kl_conn_take(struct kl_conn *c)
{
    struct kl_request *r = c->free;

    if (r) c->free = r->next;
    return r;
}

void kl_conn_give(struct kl_conn *c, struct kl_request *r)
{
    r->next = c->free;
    c->free = r;
}

void kl_conn_append(struct kl_conn *c, struct kl_request *r)
{
    r->next = NULL;
    if (c->first)
        c->last->next = r;
    else
        c->first = r;
    c->last = r;
}

void kl_conn_remove(struct kl_conn *c, const struct kl_request *r)
{
    struct kl_request **link = &c->first, *before = NULL;

    while (*link != r) {
        before = *link;
        link = &before->next;
    }
    *link = r->next;
    if (c->last == r) c->last = before;
}
