/* SPDX-License-Identifier: Apache-2.0 */
/**
 * socket.h - stream sockets (TCP, or Unix: address.h) with a limit on every wait: listen, connect, accept, and send or
 * receive exactly N bytes.
 *
 * Waiting is poll(2) on the socket and on a stop (os/stop.h): no spinning, and a raised stop is noticed at once. All
 * sockets are non-blocking, close-on-exec, without Nagle delay. Keepalive probes silent connections to other addresses
 * (after 10 s, every 5 s, three times), so that the loss of a host ends them within half a minute. Unix sockets accept
 * processes of one user only.
 *
 * Results:  operations that a caller may want to repeat return enum kl_io and are silent; kl_io_fail makes the error
 *           with the sentence, if the caller decides that it is one.
 * Threads:  one at a time per socket and direction.
 * Source:   tcp(7), poll(2).
 */
#ifndef KL_OS_SOCKET_H
#define KL_OS_SOCKET_H

#include "os/address.h"
#include "os/stop.h"

enum kl_io {
    KL_IO_DONE,
    KL_IO_CLOSED,  /* the peer closed or reset the connection */
    KL_IO_LATE,    /* the deadline passed */
    KL_IO_STOPPED, /* the stop was raised */
    KL_IO_BROKEN,  /* another error: errno */
};

/** How long an operation may wait, and its cancellation. */
struct kl_wait {
    uint64_t deadline;          /* base/clock.h */
    const struct kl_stop *stop; /* NULL: cannot be cancelled */
};

/** Repetition of connects that are refused. */
struct kl_retry {
    int count;    /* tries after the first */
    int sleep_ms; /* pause after try n, times n; with short_at_first 2^n ms at most */
};

int kl_retry_pause_ms(const struct kl_retry *retry, int tries);

/**
 * May a connect that failed with this errno succeed later? (ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH,
 * ECONNRESET; EAGAIN of a Unix socket: its backlog is full)
 */
bool kl_retry_worth(int err);

/**
 * Listen on `address`; port 0 lets the system choose one. `address` then holds the port. A port that is taken, or any
 * other failure, is ncclSystemError with the address in the sentence, and errno says why.
 */
ncclResult_t kl_socket_listen(union kl_address *address, int *fd);

/** Accept one connection from a listening socket. */
enum kl_io kl_socket_accept(int listener, const struct kl_wait *wait, int *fd);

/**
 * Connect, in two halves: begin, wait by any means until the socket is writable, finish. KL_IO_BROKEN: see errno. After
 * a failure of `finish` the caller still closes the socket.
 */
enum kl_io kl_socket_connect_begin(const union kl_address *address, int *fd);
enum kl_io kl_socket_connect_finish(int fd);

/** Send or receive exactly `bytes`. After any result but KL_IO_DONE the connection is unusable. */
enum kl_io kl_socket_send(int fd, const void *data, size_t bytes, const struct kl_wait *wait);
enum kl_io kl_socket_recv(int fd, void *data, size_t bytes, const struct kl_wait *wait);

/** End a connection or listener, in forked children too, then close. -1 is fine. */
void kl_socket_close(int fd);

/** The address of this end or of the other; none if there is none. Of a Unix socket neither number nor place. */
union kl_address kl_socket_local(int fd);
union kl_address kl_socket_peer(int fd);

/**
 * Make an error of a result: CLOSED and LATE are ncclRemoteError, STOPPED ncclInternalError, BROKEN ncclSystemError, or
 * ncclRemoteError if errno means that the peer cannot be reached, or (EPROTO) uses another protocol. Reads "<doing>: <why>".
 */
ncclResult_t kl_io_fail(enum kl_io io, const char *doing, ...) __attribute__((format(printf, 2, 3), cold));

#endif
