/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/net_listener.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/handshake_io.h"
#include "net/socket/watch.h"
#include "os/fault_inject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    AT_A_TIME = 64, /* accepted before others are served */
};

struct stranger {
    struct stranger *next; /* oldest first */
    struct kl_socket_handshake handshake;
    struct kl_watched watched;
    uint64_t deadline;
};

struct kl_net_listener {
    int fd, epoll;
    struct kl_watched watched;
    struct kl_hello me;
    struct kl_key key;
    bool crypt;
    int threads;
    int nstrangers;
    struct stranger *oldest;
    struct kl_accepted *arrivals;
    bool arrived; /* since the last kl_net_listener_watch */
};

/* ---- arrivals ---- */

void kl_accepted_free(struct kl_accepted *a)
{
    if (!a) return;
    for (int i = 0; i < a->n; i++) kl_socket_handshake_close(&a->handshake[i]);
    free(a);
}

static struct kl_accepted **find(struct kl_net_listener *d, unsigned peer, unsigned id)
{
    struct kl_accepted **link = &d->arrivals;

    while (*link && ((*link)->peer != peer || (*link)->id != id)) link = &(*link)->next;
    return link;
}

static struct kl_accepted *arrival_create(const struct kl_hello *from, const struct kl_session_params *params)
{
    int n = 1 + (int)params->lanes;
    struct kl_accepted *a = kl_inject_calloc(1, sizeof *a + (size_t)n * sizeof a->handshake[0]);

    if (!a) return NULL;
    a->peer = from->from;
    a->id = from->name;
    a->n = n;
    memcpy(a->group, params->group, KL_GROUP);
    for (int i = 0; i < n; i++) a->handshake[i].fd = -1;
    return a;
}

/* The connection that a socket belongs to; created for its first socket; NULL: no memory. */
static struct kl_accepted *accepted_of(struct kl_net_listener *d, const struct kl_socket_handshake *o)
{
    struct kl_hello from = kl_hello_decode(o->handshake.caller);
    struct kl_accepted **link = find(d, from.from, from.name), *a = *link;

    if (a && !memcmp(a->group, o->theirs.group, KL_GROUP)) return a;
    if (a) {
        *link = a->next;
        kl_accepted_free(a);
    }
    a = arrival_create(&from, &o->theirs);
    if (!a) return NULL;
    a->next = d->arrivals;
    d->arrivals = a;
    return a;
}

/* Keep an open socket. If it does not match the others of its connection, it is closed: the sender is at fault. */
static void keep(struct kl_net_listener *d, struct kl_socket_handshake *o)
{
    struct kl_accepted *a = accepted_of(d, o);
    unsigned lane = o->theirs.lane;

    if (!a || a->n != 1 + (int)o->theirs.lanes || a->handshake[lane].fd >= 0) {
        kl_socket_handshake_close(o);
        return;
    }
    a->disagrees |= o->theirs.crypt != o->mine.crypt;
    a->handshake[lane] = *o;
    kl_key_wipe(&o->handshake.key);
    d->arrived |= ++a->here == a->n || a->disagrees;
}

/* Has the sender closed the socket without sending a byte? Then it has given up, and may try again. */
static bool is_deserted(const struct kl_socket_handshake *o)
{
    char byte;
    ssize_t n = recv(o->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return !n || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

struct kl_accepted *kl_net_listener_take(struct kl_net_listener *d, unsigned peer, unsigned id)
{
    struct kl_accepted **link = find(d, peer, id), *a = *link;

    if (!a || (a->here < a->n && !a->disagrees)) return NULL;
    *link = a->next;
    if (a->disagrees || !is_deserted(&a->handshake[0])) return a;
    kl_accepted_free(a);
    return NULL;
}

/* ---- sockets in a handshake ---- */

static void log_refusal(const struct kl_socket_handshake *o, const char *why)
{
    char text[KL_ADDRESS_TEXT];
    union kl_address peer = kl_socket_peer(o->fd);

    KL_INFO(KL_NET, "NET/Socket : dropped a connection from %s: %s", kl_address_format(&peer, text), why);
}

/* True: finished, and kept or closed. */
static bool progress_handshake(struct kl_net_listener *d, struct stranger *s)
{
    switch (kl_socket_handshake_progress(&s->handshake)) {
    case KL_HANDSHAKE_OK:
        if (s->watched.added) epoll_ctl(d->epoll, EPOLL_CTL_DEL, s->handshake.fd, NULL);
        keep(d, &s->handshake);
        return true;
    case KL_HANDSHAKE_PENDING:
        if (!kl_deadline_passed(s->deadline)) return false;
        log_refusal(&s->handshake, "it does not finish the handshake");
        break;
    case KL_HANDSHAKE_REFUSED:
        log_refusal(&s->handshake, s->handshake.outcome == KL_REFUSED ? "another secret" : "it asks for another rank");
        break;
    case KL_HANDSHAKE_LOST:
        log_refusal(&s->handshake, errno ? "it speaks something else" : "it has closed it");
        break;
    }
    kl_socket_handshake_close(&s->handshake);
    return true;
}

static void move_strangers(struct kl_net_listener *d)
{
    for (struct stranger **link = &d->oldest, *s; (s = *link);) {
        if (!progress_handshake(d, s)) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        free(s);
        d->nstrangers--;
    }
}

static void drop_oldest(struct kl_net_listener *d)
{
    struct stranger *s = d->oldest;

    d->oldest = s->next;
    d->nstrangers--;
    kl_socket_handshake_close(&s->handshake);
    free(s);
}

static void receive(struct kl_net_listener *d, int fd)
{
    struct stranger *s = kl_inject_calloc(1, sizeof *s), **last = &d->oldest;

    if (!s) {
        kl_socket_close(fd);
        return;
    }
    kl_socket_handshake_host(&s->handshake, fd, &d->me, &d->key, d->crypt);
    s->deadline = kl_deadline_in_ms(KL_HANDSHAKE_MS);
    while (*last) last = &(*last)->next;
    *last = s;
    if (++d->nstrangers > KL_HANDSHAKES_MAX) drop_oldest(d);
}

ncclResult_t kl_net_listener_progress(struct kl_net_listener *d)
{
    const struct kl_io_wait at_once = {.deadline = 0};
    int fd = -1;

    for (int i = 0; i < AT_A_TIME; i++) {
        enum kl_io io = kl_socket_accept(d->fd, &at_once, &fd);
        if (io == KL_IO_TIMEOUT) break;
        if (io) return kl_io_fail(io, "cannot accept connections of other ranks");
        receive(d, fd);
    }
    move_strangers(d);
    return ncclSuccess;
}

/* ---- life ---- */

ncclResult_t kl_net_listener_create(const struct kl_socket_device *device, const struct kl_net_end *me, bool crypt,
                                    union kl_address *address, struct kl_net_listener **listener)
{
    struct kl_net_listener *d = kl_inject_calloc(1, sizeof *d);

    if (!d) return KL_NOMEM("a listener");
    *d = (struct kl_net_listener){.fd = -1, .epoll = -1, .crypt = crypt, .threads = device->shape.threads};
    d->me = (struct kl_hello){.version = KL_PROTOCOL,
                              .type = KL_CONNECTION_NET,
                              .side = KL_HOST,
                              .from = (uint32_t)me->rank,
                              .to = KL_NO_RANK};
    d->key = kl_session_params_handshake_key(&me->secret);
    *address = device->netif.address;
    ncclResult_t rc = kl_socket_listen(address, &d->fd);
    if (rc)
        kl_net_listener_free(d);
    else
        *listener = d;
    return rc;
}

int kl_net_listener_rank(const struct kl_net_listener *d)
{
    return (int)d->me.from;
}

int kl_net_listener_threads(const struct kl_net_listener *d)
{
    return d->threads;
}

ncclResult_t kl_net_listener_watch(struct kl_net_listener *d, int *fd)
{
    KL_TRY(kl_watch_open(&d->epoll));
    KL_TRY(kl_watch(d->epoll, &d->watched, d->fd, EPOLLIN));
    for (struct stranger *s = d->oldest; s; s = s->next)
        KL_TRY(kl_watch(d->epoll, &s->watched, s->handshake.fd, kl_socket_handshake_events(&s->handshake)));
    *fd = d->arrived ? -1 : d->epoll;
    d->arrived = false;
    return ncclSuccess;
}

void kl_net_listener_free(struct kl_net_listener *d)
{
    if (!d) return;
    while (d->oldest) drop_oldest(d);
    for (struct kl_accepted *a; (a = d->arrivals);) {
        d->arrivals = a->next;
        kl_accepted_free(a);
    }
    kl_socket_close(d->fd);
    if (d->epoll >= 0) close(d->epoll);
    kl_key_wipe(&d->key);
    free(d);
}
