/* SPDX-License-Identifier: Apache-2.0 */
/**
 * connection.h - one end of a connection: its lanes, its requests, who moves them, and how it failed.
 *
 * Everything but the lanes that helper threads move belongs to the caller. A thread that finds its lane ended only notes it there;
 * the caller makes the failure of it, and by then no thread runs any more.
 *
 * Threads:  one caller at a time.
 */
#ifndef KL_NET_SOCKET_CONNECTION_H
#define KL_NET_SOCKET_CONNECTION_H

#include "base/error.h"
#include "net/net.h"
#include "net/socket/attempt.h"
#include "net/socket/movers.h"
#include "os/address.h"

enum {
    KL_SPREAD_FROM = 128 << 10, /* bytes of a message from which on it goes over the lanes */
    KL_PART_LEAST = 64 << 10,   /* bytes of its parts, at least */
};

/** A message of a request. */
struct kl_message {
    void *data;
    size_t bytes; /* to send, or posted */
    uint32_t tag;
    bool met;    /* received: it has begun to arrive */
    size_t came; /* received: its size */
};

struct kl_request {
    struct kl_socket_connection *connection;
    struct kl_request *next; /* in the list that it is in */
    int n, unmet;            /* messages; those that have not begun to arrive */
    bool spread;             /* sent: its data go over the lanes */
    struct kl_message message[KL_NET_RECVS];
    _Atomic int left; /* frames that have not moved; 0: done */
};

struct kl_socket_connection {
    bool sends;
    int rank, peer;
    char where[KL_ADDRESS_TEXT]; /* the peer's address */
    struct kl_attempt *attempt;  /* while it is being made */
    struct kl_socket_shape shape;
    struct kl_lane *lane; /* 1 + shape.lanes */
    int turn;             /* the lane, less 1, of the next part */

    struct kl_request request[KL_NET_REQUESTS];
    struct kl_request *free;         /* list */
    struct kl_request *first, *last; /* list of sends that have not gone, or of receives that have not all been met */
    struct kl_head head;             /* received, not done with */
    bool headed;
    struct kl_request *of;      /* whose */
    struct kl_message *message; /* NULL: it waits for a receive of its tag */

    struct kl_movers *movers; /* NULL: none run, be it that none were needed yet */
    int epoll;                /* of who sleeps on the connection; -1: not yet */
    struct kl_sleeper sleeper;
    struct kl_watched watched_bell;
    uint64_t looked; /* when the hosts were last looked at */

    ncclResult_t failed;
    char why[KL_ERROR_TEXT];
};

/** One without sockets: lanes have fd -1. */
ncclResult_t kl_socket_connection_create(bool sends, const struct kl_net_end *me, struct kl_socket_shape shape,
                                         struct kl_socket_connection **connection);

/** Give lane `i` its socket and the keys of a session. `peer`: the address of the other end. */
ncclResult_t kl_socket_connection_attach(struct kl_socket_connection *c, int i, int fd, enum kl_cipher cipher,
                                         const struct kl_key *session);

void kl_socket_connection_free(struct kl_socket_connection *c);

/** Fail, unless it has: nothing moves afterwards, and the peer notices. Yields the code that is in force. */
ncclResult_t kl_socket_connection_fail(struct kl_socket_connection *c, ncclResult_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), cold));

/** Fail because of what happened on a socket; errno as `flow` says. */
ncclResult_t kl_socket_connection_lost(struct kl_socket_connection *c, enum kl_flow flow) __attribute__((cold));

/** ncclSuccess, or the failure, whose sentence becomes the thread's. */
ncclResult_t kl_socket_connection_report(const struct kl_socket_connection *c);

/** A free request with `left` 0, or NULL. */
struct kl_request *kl_socket_connection_take(struct kl_socket_connection *c);
void kl_socket_connection_give(struct kl_socket_connection *c, struct kl_request *r);

/** The list `first`. */
void kl_socket_connection_append(struct kl_socket_connection *c, struct kl_request *r);
void kl_socket_connection_remove(struct kl_socket_connection *c, const struct kl_request *r);

#endif
