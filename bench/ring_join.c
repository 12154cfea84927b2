/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/ring_join.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/record.h"
#include "os/socket.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static const struct kl_io_wait for_ever = {.deadline = KL_NO_DEADLINE};

const size_t ring_record_bytes = KL_ADDRESS_RECORD_WIRE;

struct announcement {
    int rank;
    union kl_address reply; /* the root sends the next rank's address there */
    union kl_address ring;  /* where the one before connects */
};

struct ring {
    int rank, nranks;
    int from, to; /* of the neighbours */
    uint64_t messages;
};

struct root {
    int fd, nranks;
    struct announcement *known; /* by rank; no address: not yet */
};

/* ---- sockets ---- */

static ncclResult_t listen_here(union kl_address *address, int *fd)
{
    *address = (union kl_address){.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    return kl_socket_listen(address, fd);
}

static ncclResult_t check(enum kl_io io, const char *doing)
{
    return io ? kl_io_fail(io, "ring: %s", doing) : ncclSuccess;
}

static ncclResult_t connect_to(const union kl_address *address, int *fd)
{
    KL_TRY(check(kl_socket_connect_begin(address, fd), "connect"));
    struct pollfd p = {.fd = *fd, .events = POLLOUT};
    while (poll(&p, 1, -1) < 0 && errno == EINTR) continue;
    return check(kl_socket_connect_finish(*fd), "connect");
}

static ncclResult_t accept_one(int listener, int *fd)
{
    return check(kl_socket_accept(listener, &for_ever, fd), "accept");
}

/* ---- the root ---- */

static ncclResult_t tell_next(const struct announcement *to, const struct announcement *next)
{
    int fd = -1;

    KL_TRY(connect_to(&to->reply, &fd));
    ncclResult_t rc = check(kl_socket_send(fd, &next->ring, sizeof next->ring, &for_ever), "introduce");
    kl_socket_close(fd);
    return rc;
}

/* Serve ranks in order of arrival; send each the next one's address as soon as it is known. */
static ncclResult_t serve_one(struct root *r)
{
    struct announcement a;
    int fd = -1;

    KL_TRY(accept_one(r->fd, &fd));
    ncclResult_t rc = check(kl_socket_recv(fd, &a, sizeof a, &for_ever), "receive an announcement");
    kl_socket_close(fd);
    if (rc) return rc;
    r->known[a.rank] = a;
    const struct announcement *before = &r->known[(a.rank + r->nranks - 1) % r->nranks];
    const struct announcement *next = &r->known[(a.rank + 1) % r->nranks];
    if (!kl_address_is_none(&before->ring)) KL_TRY(tell_next(before, &a));
    if (!kl_address_is_none(&next->ring) && r->nranks > 1) KL_TRY(tell_next(&a, next));
    return ncclSuccess;
}

static void *root_main(void *arg)
{
    struct root *r = arg;
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < r->nranks && !rc; i++) rc = serve_one(r);
    kl_socket_close(r->fd); /* ranks that still wait see their connection end */
    free(r->known);
    free(r);
    return NULL;
}

ncclResult_t ring_root_start(union kl_address *address, int nranks)
{
    struct root *r = calloc(1, sizeof *r);
    pthread_t thread;

    if (!r) return KL_NOMEM("a root");
    r->nranks = nranks;
    r->known = calloc((size_t)nranks, sizeof *r->known);
    if (!r->known) return KL_NOMEM("a root");
    KL_TRY(listen_here(address, &r->fd));
    if (pthread_create(&thread, NULL, root_main, r)) return KL_FAIL(ncclSystemError, "no thread for a root");
    pthread_detach(thread);
    return ncclSuccess;
}

/* ---- a rank ---- */

static ncclResult_t announce(struct ring *r, const union kl_address *root, const struct announcement *a)
{
    int fd = -1;

    KL_TRY(connect_to(root, &fd));
    r->messages++;
    ncclResult_t rc = check(kl_socket_send(fd, a, sizeof *a, &for_ever), "announce");
    kl_socket_close(fd);
    return rc;
}

static ncclResult_t hear_next(int listener, union kl_address *next)
{
    int fd = -1;

    KL_TRY(accept_one(listener, &fd));
    ncclResult_t rc = check(kl_socket_recv(fd, next, sizeof *next, &for_ever), "receive the next address");
    kl_socket_close(fd);
    return rc;
}

ncclResult_t ring_join(const union kl_address *root, int rank, int nranks, struct ring **out)
{
    struct ring *r = calloc(1, sizeof *r);
    struct announcement me = {.rank = rank};
    union kl_address next;
    int reply, ring;

    if (!r) return KL_NOMEM("a ring");
    *r = (struct ring){.rank = rank, .nranks = nranks, .from = -1, .to = -1};
    KL_TRY(listen_here(&me.reply, &reply));
    KL_TRY(listen_here(&me.ring, &ring));
    KL_TRY(announce(r, root, &me));
    KL_TRY(hear_next(reply, &next));
    KL_TRY(connect_to(&next, &r->to));
    KL_TRY(accept_one(ring, &r->from));
    kl_socket_close(reply);
    kl_socket_close(ring);
    *out = r;
    return ncclSuccess;
}

ncclResult_t ring_allgather(struct ring *r, void *all, size_t bytes)
{
    char *record = all;

    for (int step = 0; step < r->nranks - 1; step++) {
        size_t out = (size_t)((r->rank - step + r->nranks) % r->nranks);
        size_t in = (size_t)((r->rank - step - 1 + r->nranks) % r->nranks);
        r->messages++;
        KL_TRY(check(kl_socket_send(r->to, record + out * bytes, bytes, &for_ever), "send"));
        KL_TRY(check(kl_socket_recv(r->from, record + in * bytes, bytes, &for_ever), "receive"));
    }
    return ncclSuccess;
}

uint64_t ring_messages(const struct ring *r)
{
    return r->messages;
}

void ring_leave(struct ring *r)
{
    kl_socket_close(r->from);
    kl_socket_close(r->to);
    free(r);
}
