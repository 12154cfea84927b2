/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/fdshare.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/fdpass.h"
#include "proxy/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST_CLIENTS = 128, CLIENT_MS = 5000, BACKLOG = 1024 };

struct offer {
    struct kl_fd_ticket ticket;
    int fd;
    struct offer *next;
};

/** Somebody who has connected and owes us a secret. The event loop's own. */
struct client {
    int fd;
    struct kl_source *source;
};

/* The service: there while there are offers. */
static struct {
    pthread_mutex_t lock;
    struct offer *offers; /* under lock, as all but nclients */
    struct kl_loop *loop; /* NULL: no service */
    struct kl_source *door;
    int fd; /* listens */
    uint64_t number;
    int nclients; /* the event loop's */
} service = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* ---- names ---- */

/* In the abstract namespace: nothing appears in the file system, and the name ends with the socket. */
static socklen_t name_service(uint64_t number, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length =
        snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "kolo-fd-%016llx", (unsigned long long)number);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* ---- serving, in the event loop ---- */

static bool same_user(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.uid == geteuid();
}

static void end_client(struct client *c)
{
    kl_source_remove(c->source);
    close(c->fd);
    free(c);
    service.nclients--;
}

/* A duplicate of what is on offer for this secret, -1 if nothing is: the offer may end while it is sent. */
static int find_fd(const unsigned char secret[16])
{
    int fd = -1;

    pthread_mutex_lock(&service.lock);
    for (struct offer *o = service.offers; o && fd < 0; o = o->next)
        if (!sodium_memcmp(o->ticket.secret, secret, sizeof o->ticket.secret)) fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&service.lock);
    return fd;
}

static void serve_client(void *ctx, uint32_t events)
{
    struct client *c = ctx;
    unsigned char secret[16];
    char yes = 1;

    if (events & EPOLLIN && recv(c->fd, secret, sizeof secret, 0) == (ssize_t)sizeof secret) {
        int fd = find_fd(secret), quiet = kl_error_quiet(1);
        if (fd >= 0) {
            kl_fdpass_send(c->fd, fd, &yes, 1, kl_now_ns()); /* the buffer of a new connection has room */
            close(fd);
        }
        kl_error_quiet(quiet);
    }
    end_client(c);
}

static void take_client(int fd)
{
    struct client *c = service.nclients < MOST_CLIENTS && same_user(fd) ? calloc(1, sizeof *c) : NULL;

    if (!c) {
        close(fd);
        return;
    }
    c->fd = fd;
    service.nclients++;
    if (kl_loop_add(service.loop, fd, EPOLLIN, serve_client, c, &c->source)) {
        service.nclients--;
        close(fd);
        free(c);
        return;
    }
    kl_source_deadline(c->source, kl_deadline_in_ms(CLIENT_MS));
}

static void open_door(void *ctx, uint32_t events)
{
    int listener = service.fd, fd;

    (void)ctx, (void)events;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) take_client(fd);
}

/* ---- the service's life; under the lock ---- */

static ncclResult_t listen_here(void)
{
    struct sockaddr_un address;
    socklen_t size;

    randombytes_buf(&service.number, sizeof service.number);
    size = name_service(service.number, &address);
    service.fd = new_socket();
    if (service.fd < 0 || bind(service.fd, (struct sockaddr *)&address, size) || listen(service.fd, BACKLOG))
        return KL_FAIL_ERRNO("cannot open a local socket to hand out shared memory");
    return ncclSuccess;
}

static void forget_service(void)
{
    if (service.fd >= 0) close(service.fd);
    service.fd = -1;
    service.door = NULL;
    kl_loop_drop(service.loop);
    service.loop = NULL;
}

static ncclResult_t start_service(void)
{
    ncclResult_t rc;

    if (sodium_init() < 0) return KL_FAIL(ncclSystemError, "libsodium finds no source of random numbers");
    KL_TRY(kl_loop_hold(&service.loop));
    KL_TRY_OR(rc, failed, listen_here());
    KL_TRY_OR(rc, failed, kl_loop_add(service.loop, service.fd, EPOLLIN, open_door, NULL, &service.door));
    return ncclSuccess;
failed:
    forget_service();
    return rc;
}

/* ---- offering ---- */

/* A forked child inherits offers that are not its own. */
static void forget_inherited(void)
{
    if (!service.loop || !kl_loop_inherited(service.loop)) return;
    for (struct offer *next; service.offers; service.offers = next) {
        next = service.offers->next;
        free(service.offers);
    }
    service.fd = -1; /* the event loop closed it in the child */
    service.nclients = 0;
    forget_service();
}

ncclResult_t kl_fdshare_offer(int fd, struct kl_fd_ticket *ticket)
{
    struct offer *o = calloc(1, sizeof *o);
    ncclResult_t rc = ncclSuccess;

    if (!o) return KL_NOMEM("an offer of shared memory");
    pthread_mutex_lock(&service.lock);
    forget_inherited();
    if (!service.loop) rc = start_service();
    if (!rc) {
        randombytes_buf(o->ticket.secret, sizeof o->ticket.secret);
        o->ticket.service = service.number;
        o->fd = fd;
        o->next = service.offers;
        service.offers = o;
        *ticket = o->ticket;
        o = NULL;
    }
    pthread_mutex_unlock(&service.lock);
    free(o);
    return rc;
}

static struct offer *take_out(const struct kl_fd_ticket *ticket)
{
    struct offer **link = &service.offers;

    while (*link && sodium_memcmp((*link)->ticket.secret, ticket->secret, sizeof ticket->secret)) link = &(*link)->next;
    struct offer *o = *link;
    if (o) *link = o->next;
    return o;
}

void kl_fdshare_withdraw(const struct kl_fd_ticket *ticket)
{
    pthread_mutex_lock(&service.lock);
    forget_inherited();
    free(take_out(ticket));
    pthread_mutex_unlock(&service.lock);
}

/* ---- redeeming ---- */

static ncclResult_t connect_service(int sock, uint64_t number, uint64_t deadline)
{
    struct sockaddr_un address;
    socklen_t size = name_service(number, &address);

    while (connect(sock, (struct sockaddr *)&address, size)) {
        if (errno == ECONNREFUSED) return KL_FAIL(ncclRemoteError, "the process that offers shared memory is gone");
        if (errno != EAGAIN && errno != EINTR)
            return KL_FAIL_ERRNO("cannot connect to the process that offers shared memory");
        if (kl_deadline_passed(deadline))
            return KL_FAIL(ncclRemoteError, "the process that offers shared memory is silent");
        poll(NULL, 0, 1); /* its backlog is full: there is nothing to wait for but time */
    }
    return ncclSuccess;
}

ncclResult_t kl_fdshare_redeem(const struct kl_fd_ticket *ticket, uint64_t deadline, int *fd)
{
    ncclResult_t rc;
    char yes;
    int sock = new_socket();

    if (sock < 0) return KL_FAIL_ERRNO("cannot open a local socket to get shared memory");
    KL_TRY_OR(rc, out, connect_service(sock, ticket->service, deadline));
    if (send(sock, ticket->secret, sizeof ticket->secret, MSG_NOSIGNAL) != (ssize_t)sizeof ticket->secret) {
        rc = KL_FAIL(ncclRemoteError, "the process that offers shared memory hung up");
        goto out;
    }
    rc = kl_fdpass_recv(sock, fd, &yes, 1, deadline);
out:
    close(sock);
    return rc;
}
