/* SPDX-License-Identifier: Apache-2.0 */
#include "os/socket.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/fault_inject.h"
#include "os/fd_limit.h"

#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    BACKLOG = 16384, /* the system lowers it to net.core.somaxconn */
    KEEPALIVE_IDLE_S = 10,
    KEEPALIVE_INTERVAL_S = 5,
    KEEPALIVE_COUNT = 3,
};

/* ---- waiting ---- */

static enum kl_io wait_for(int fd, short events, const struct kl_io_wait *wait)
{
    struct pollfd p[2] = {{.fd = fd, .events = events}, {.fd = wait->stop ? wait->stop->fd : -1, .events = POLLIN}};

    for (;;) {
        int left = wait->deadline == KL_NO_DEADLINE ? -1 : kl_deadline_left_ms(wait->deadline, INT_MAX);
        int ready = poll(p, 2, left);
        if (ready < 0 && errno != EINTR) return KL_IO_ERROR;
        if (ready > 0 && p[1].revents) return KL_IO_CANCELLED;
        if (ready > 0) return KL_IO_DONE;
        if (kl_deadline_passed(wait->deadline)) return KL_IO_TIMEOUT;
    }
}

/* ---- opening and closing ---- */

/* None of these fails on a TCP socket of Linux; without them the connection is slower to use or to be declared dead,
 * not wrong. */
static void set_nodelay(int fd)
{
    const int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static bool is_within_host(int fd)
{
    union kl_address here = kl_socket_local(fd), there = kl_socket_peer(fd);

    return kl_address_same_host(&here, &there);
}

/* Not within a host: the kernel reports the end of the other side. And of thousands of silent connections it would send
 * all probes at once, lose most in a queue of 1000 packets (netdev_max_backlog), and break healthy connections. */
static void probe_while_silent(int fd)
{
    const int on = 1, idle = KEEPALIVE_IDLE_S, interval = KEEPALIVE_INTERVAL_S, count = KEEPALIVE_COUNT;

    if (is_within_host(fd)) return;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

static int open_socket(const union kl_address *address)
{
    int fd;

    do fd = kl_inject_socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (fd < 0 && kl_fd_limit_make_room(errno));
    return fd;
}

void kl_socket_close(int fd)
{
    if (fd < 0) return;
    shutdown(fd, SHUT_RDWR); /* a forked child may hold a copy, which would keep the connection alive */
    close(fd);
}

typedef int kl_name_fn(int fd, struct sockaddr *restrict name, socklen_t *restrict bytes);

/* A caller does not need the number of a Unix socket, so it is left out. */
static union kl_address name_of(int fd, kl_name_fn *fn)
{
    union kl_address a = {0};
    socklen_t bytes = sizeof a;

    if (fn(fd, &a.any, &bytes)) memset(&a, 0, sizeof a);
    return kl_address_is_unix(&a) ? kl_address_new_unix(0) : a;
}

union kl_address kl_socket_local(int fd)
{
    return name_of(fd, getsockname);
}

union kl_address kl_socket_peer(int fd)
{
    return name_of(fd, getpeername);
}

/* The other end of a Unix socket is a process of the same user. */
static bool is_own(int fd)
{
    const union kl_address here = kl_socket_local(fd);
    socklen_t bytes = sizeof(struct ucred);
    struct ucred peer;

    if (!kl_address_is_unix(&here)) return true;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) && peer.uid == geteuid();
}

static bool is_bound(int s, union kl_address *address)
{
    struct sockaddr_storage system;

    if (kl_address_is_unix(address) && !kl_address_is_bound(address))
        randombytes_buf(address->un.number, sizeof address->un.number);
    const socklen_t bytes = kl_address_sockaddr(address, &system);
    if (bind(s, (const struct sockaddr *)(const void *)&system, bytes)) return false;
    if (!kl_address_is_unix(address)) *address = kl_socket_local(s);
    return true;
}

ncclResult_t kl_socket_listen(union kl_address *address, int *fd)
{
    char text[KL_ADDRESS_TEXT];
    const int on = 1;
    int s = open_socket(address);

    if (s < 0) return KL_FAIL_ERRNO("cannot create a socket to listen on %s", kl_address_format(address, text));
    /* Connections of an earlier listener may still linger on the port: both sockets must have set SO_REUSEADDR. With
     * port 0 it is not set until the system has chosen a port, so that it chooses an unused one. A live listener causes
     * EADDRINUSE in any case. */
    if (kl_address_port(address)) setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const union kl_address asked = *address;
    bool bound = is_bound(s, address);
    if (bound) setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!bound || listen(s, BACKLOG)) {
        int err = errno;
        *address = asked;
        errno = err;
        ncclResult_t rc = KL_FAIL_ERRNO("cannot listen on %s", kl_address_format(address, text));
        close(s);
        errno = err;
        return rc;
    }
    *fd = s;
    return ncclSuccess;
}

/* The connection ended before it was accepted, or the network has a problem: the next accept may succeed. accept(2)
 * lists the errors. */
static bool accept_may_go_on(int err)
{
    static const int passing[] = {EINTR,     EAGAIN,       ECONNABORTED, ENETDOWN,    EPROTO,     ENOPROTOOPT,
                                  EHOSTDOWN, EHOSTUNREACH, EOPNOTSUPP,   ENETUNREACH, EWOULDBLOCK};

    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
        if (err == passing[i]) return true;
    return false;
}

enum kl_io kl_socket_accept(int listener, const struct kl_io_wait *wait, int *fd)
{
    for (;;) {
        enum kl_io io = wait_for(listener, POLLIN, wait);
        if (io) return io;
        int s = kl_inject_accept(listener, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (s >= 0 && !is_own(s)) {
            close(s);
            continue;
        }
        if (s >= 0) {
            set_nodelay(s);
            probe_while_silent(s);
            *fd = s;
            return KL_IO_DONE;
        }
        if (!accept_may_go_on(errno) && !kl_fd_limit_make_room(errno)) return KL_IO_ERROR;
    }
}

/* ---- connecting ---- */

/* A client connecting to a port of the ephemeral range without a listener may be assigned that port, and connect to
 * itself. */
static bool met_itself(int fd)
{
    union kl_address here = kl_socket_local(fd), there = kl_socket_peer(fd);

    return !kl_address_is_unix(&here) && !memcmp(&here, &there, sizeof here);
}

static void close_quietly(int fd)
{
    int err = errno;

    close(fd);
    errno = err;
}

enum kl_io kl_socket_connect_begin(const union kl_address *address, int *fd)
{
    struct sockaddr_storage system;
    const socklen_t bytes = kl_address_sockaddr(address, &system);
    int s = open_socket(address);

    if (s < 0) return KL_IO_ERROR;
    set_nodelay(s);
    if (connect(s, (const struct sockaddr *)(const void *)&system, bytes) && errno != EINPROGRESS && errno != EINTR) {
        close_quietly(s);
        return KL_IO_ERROR;
    }
    *fd = s;
    return KL_IO_DONE;
}

enum kl_io kl_socket_connect_finish(int fd)
{
    int err = 0;
    socklen_t bytes = sizeof err;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &bytes)) return KL_IO_ERROR;
    if (!err && met_itself(fd)) err = ECONNREFUSED;
    if (!err && !is_own(fd)) err = EACCES;
    if (!err) probe_while_silent(fd);
    errno = err;
    return err ? KL_IO_ERROR : KL_IO_DONE;
}

bool kl_retry_is_transient(int err)
{
    return err == ECONNREFUSED || err == ETIMEDOUT || err == EHOSTUNREACH || err == ENETUNREACH || err == ECONNRESET ||
           err == EAGAIN;
}

int kl_retry_pause_ms(const struct kl_retry *retry, int tries)
{
    int first = tries < 30 ? 1 << tries : INT_MAX;
    int ms = tries < INT_MAX / (retry->sleep_ms + 1) ? tries * retry->sleep_ms : INT_MAX;

    return ms < first ? ms : first;
}

/* ---- bytes ---- */

static enum kl_io verdict_of(int err)
{
    return err == EPIPE || err == ECONNRESET ? KL_IO_CLOSED : KL_IO_ERROR;
}

static bool must_wait(int err)
{
    return err == EAGAIN || err == EWOULDBLOCK;
}

enum kl_io kl_socket_send(int fd, const void *data, size_t bytes, const struct kl_io_wait *wait)
{
    const unsigned char *from = data;
    enum kl_io io = KL_IO_DONE;

    while (bytes && !io) {
        ssize_t n = kl_inject_send(fd, from, bytes, MSG_NOSIGNAL);
        if (n >= 0) {
            from += n;
            bytes -= (size_t)n;
        } else if (must_wait(errno)) {
            io = wait_for(fd, POLLOUT, wait);
        } else if (errno != EINTR) {
            io = verdict_of(errno);
        }
    }
    return io;
}

enum kl_io kl_socket_recv(int fd, void *data, size_t bytes, const struct kl_io_wait *wait)
{
    unsigned char *to = data;
    enum kl_io io = KL_IO_DONE;

    while (bytes && !io) {
        ssize_t n = kl_inject_recv(fd, to, bytes, 0);
        if (n > 0) {
            to += n;
            bytes -= (size_t)n;
        } else if (!n) {
            io = KL_IO_CLOSED;
        } else if (must_wait(errno)) {
            io = wait_for(fd, POLLIN, wait);
        } else if (errno != EINTR) {
            io = verdict_of(errno);
        }
    }
    return io;
}

/* ---- errors ---- */

ncclResult_t kl_io_fail(enum kl_io io, const char *doing, ...)
{
    char text[KL_ERROR_TEXT], reason[128];
    int err = errno;
    va_list ap;

    va_start(ap, doing);
    vsnprintf(text, sizeof text, doing, ap);
    va_end(ap);
    switch (io) {
    case KL_IO_DONE:
        return ncclSuccess;
    case KL_IO_CLOSED:
        return KL_FAIL(ncclRemoteError, "%s: the other side closed the connection", text);
    case KL_IO_TIMEOUT:
        return KL_FAIL(ncclRemoteError, "%s: no answer before the deadline", text);
    case KL_IO_CANCELLED:
        return KL_FAIL(ncclInternalError, "%s: aborted", text);
    case KL_IO_ERROR:
        break;
    }
    bool theirs = kl_retry_is_transient(err) || err == EPROTO;
    return KL_FAIL(theirs ? ncclRemoteError : ncclSystemError, "%s: %s%s", text, strerror_r(err, reason, sizeof reason),
                   kl_errno_remedy(err));
}
