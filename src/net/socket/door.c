/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/door.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "net/socket/watch.h"
#include "os/chaos.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 5000,  /* for a handshake */
    MAX_STRANGERS = 256, /* in a handshake */
    AT_A_TIME = 64,      /* accepted before others are served */
};

struct stranger {
    struct stranger *next; /* oldest first */
    struct kl_opening opening;
    struct kl_watched watched;
    uint64_t deadline;
};

struct kl_door {
    int fd, epoll;
    struct kl_watched watched;
    struct kl_hello me;
    struct kl_key key;
    bool crypt;
    int threads;
    int nstrangers;
    struct stranger *oldest;
    struct kl_arrival *arrivals;
    bool arrived; /* since the last kl_door_watch */
};

/* ---- arrivals ---- */

void kl_arrival_free(struct kl_arrival *a)
{
    if (!a) return;
    for (int i = 0; i < a->n; i++) kl_opening_close(&a->opening[i]);
    free(a);
}

static struct kl_arrival **find(struct kl_door *d, unsigned peer, unsigned id)
{
    struct kl_arrival **link = &d->arrivals;

    while (*link && ((*link)->peer != peer || (*link)->id != id)) link = &(*link)->next;
    return link;
}

static struct kl_arrival *arrival_create(const struct kl_hello *from, const struct kl_terms *terms)
{
    int n = 1 + (int)terms->lanes;
    struct kl_arrival *a = kl_chaos_calloc(1, sizeof *a + (size_t)n * sizeof a->opening[0]);

    if (!a) return NULL;
    a->peer = from->from;
    a->id = from->name;
    a->n = n;
    memcpy(a->group, terms->group, KL_GROUP);
    for (int i = 0; i < n; i++) a->opening[i].fd = -1;
    return a;
}

/* The connection that a socket belongs to; created for its first socket; NULL: no memory. */
static struct kl_arrival *arrival_of(struct kl_door *d, const struct kl_opening *o)
{
    struct kl_hello from = kl_hello_decode(o->handshake.caller);
    struct kl_arrival **link = find(d, from.from, from.name), *a = *link;

    if (a && !memcmp(a->group, o->theirs.group, KL_GROUP)) return a;
    if (a) {
        *link = a->next;
        kl_arrival_free(a);
    }
    a = arrival_create(&from, &o->theirs);
    if (!a) return NULL;
    a->next = d->arrivals;
    d->arrivals = a;
    return a;
}

/* Keep an open socket. If it does not match the others of its connection, it is closed: the sender is at fault. */
static void keep(struct kl_door *d, struct kl_opening *o)
{
    struct kl_arrival *a = arrival_of(d, o);
    unsigned lane = o->theirs.lane;

    if (!a || a->n != 1 + (int)o->theirs.lanes || a->opening[lane].fd >= 0) {
        kl_opening_close(o);
        return;
    }
    a->disagrees |= o->theirs.crypt != o->mine.crypt;
    a->opening[lane] = *o;
    kl_key_wipe(&o->handshake.key);
    d->arrived |= ++a->here == a->n || a->disagrees;
}

/* Has the sender closed the socket without sending a byte? Then it has given up, and may try again. */
static bool is_deserted(const struct kl_opening *o)
{
    char byte;
    ssize_t n = recv(o->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return !n || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

struct kl_arrival *kl_door_take(struct kl_door *d, unsigned peer, unsigned id)
{
    struct kl_arrival **link = find(d, peer, id), *a = *link;

    if (!a || (a->here < a->n && !a->disagrees)) return NULL;
    *link = a->next;
    if (a->disagrees || !is_deserted(&a->opening[0])) return a;
    kl_arrival_free(a);
    return NULL;
}

/* ---- sockets in a handshake ---- */

static void log_refusal(const struct kl_opening *o, const char *why)
{
    char text[KL_ADDRESS_TEXT];
    union kl_address peer = kl_socket_peer(o->fd);

    KL_INFO(KL_NET, "NET/Socket : dropped a connection from %s: %s", kl_address_format(&peer, text), why);
}

/* True: finished, and kept or closed. */
static bool move_stranger(struct kl_door *d, struct stranger *s)
{
    switch (kl_opening_move(&s->opening)) {
    case KL_OPENED:
        if (s->watched.added) epoll_ctl(d->epoll, EPOLL_CTL_DEL, s->opening.fd, NULL);
        keep(d, &s->opening);
        return true;
    case KL_OPENED_NOT_YET:
        if (!kl_deadline_passed(s->deadline)) return false;
        log_refusal(&s->opening, "it does not finish the handshake");
        break;
    case KL_OPENED_REFUSED:
        log_refusal(&s->opening, s->opening.outcome == KL_REFUSED ? "another secret" : "it asks for another rank");
        break;
    case KL_OPENED_LOST:
        log_refusal(&s->opening, errno ? "it speaks something else" : "it has closed it");
        break;
    }
    kl_opening_close(&s->opening);
    return true;
}

static void move_strangers(struct kl_door *d)
{
    for (struct stranger **link = &d->oldest, *s; (s = *link);) {
        if (!move_stranger(d, s)) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        free(s);
        d->nstrangers--;
    }
}

static void drop_oldest(struct kl_door *d)
{
    struct stranger *s = d->oldest;

    d->oldest = s->next;
    d->nstrangers--;
    kl_opening_close(&s->opening);
    free(s);
}

static void receive(struct kl_door *d, int fd)
{
    struct stranger *s = kl_chaos_calloc(1, sizeof *s), **last = &d->oldest;

    if (!s) {
        kl_socket_close(fd);
        return;
    }
    kl_opening_host(&s->opening, fd, &d->me, &d->key, d->crypt);
    s->deadline = kl_deadline_in_ms(PATIENCE_MS);
    while (*last) last = &(*last)->next;
    *last = s;
    if (++d->nstrangers > MAX_STRANGERS) drop_oldest(d);
}

ncclResult_t kl_door_move(struct kl_door *d)
{
    const struct kl_wait at_once = {.deadline = 0};
    int fd = -1;

    for (int i = 0; i < AT_A_TIME; i++) {
        enum kl_io io = kl_socket_accept(d->fd, &at_once, &fd);
        if (io == KL_IO_LATE) break;
        if (io) return kl_io_fail(io, "cannot accept connections of other ranks");
        receive(d, fd);
    }
    move_strangers(d);
    return ncclSuccess;
}

/* ---- life ---- */

ncclResult_t kl_door_create(const struct kl_socket_device *device, const struct kl_net_end *me, bool crypt,
                            union kl_address *address, struct kl_door **door)
{
    struct kl_door *d = kl_chaos_calloc(1, sizeof *d);

    if (!d) return KL_NOMEM("a listener");
    *d = (struct kl_door){.fd = -1, .epoll = -1, .crypt = crypt, .threads = device->shape.threads};
    d->me = (struct kl_hello){.version = KL_PROTOCOL,
                              .type = KL_CONNECTION_NET,
                              .side = KL_HOST,
                              .from = (uint32_t)me->rank,
                              .to = KL_NO_RANK};
    d->key = kl_terms_handshake_key(&me->secret);
    *address = device->netif.address;
    ncclResult_t rc = kl_socket_listen(address, &d->fd);
    if (rc)
        kl_door_free(d);
    else
        *door = d;
    return rc;
}

int kl_door_rank(const struct kl_door *d)
{
    return (int)d->me.from;
}

int kl_door_threads(const struct kl_door *d)
{
    return d->threads;
}

ncclResult_t kl_door_watch(struct kl_door *d, int *fd)
{
    KL_TRY(kl_watch_open(&d->epoll));
    KL_TRY(kl_watch(d->epoll, &d->watched, d->fd, EPOLLIN));
    for (struct stranger *s = d->oldest; s; s = s->next)
        KL_TRY(kl_watch(d->epoll, &s->watched, s->opening.fd, kl_opening_events(&s->opening)));
    *fd = d->arrived ? -1 : d->epoll;
    d->arrived = false;
    return ncclSuccess;
}

void kl_door_free(struct kl_door *d)
{
    if (!d) return;
    while (d->oldest) drop_oldest(d);
    for (struct kl_arrival *a; (a = d->arrivals);) {
        d->arrivals = a->next;
        kl_arrival_free(a);
    }
    kl_socket_close(d->fd);
    if (d->epoll >= 0) close(d->epoll);
    kl_key_wipe(&d->key);
    free(d);
}
