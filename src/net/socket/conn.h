/* SPDX-License-Identifier: Apache-2.0 */
/**
 * conn.h - one end of a connection: its lanes, its requests, who moves them, and how it failed.
 *
 * Everything but the lanes that helper threads move belongs to the caller. A thread that finds its lane ended only notes it there;
 * the caller makes the failure of it, and by then no thread runs any more.
 *
 * Threads:  one caller at a time.
 */
#ifndef KL_NET_SOCKET_CONN_H
#define KL_NET_SOCKET_CONN_H

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
struct kl_request_message {
    void *data;
    size_t bytes; /* to send, or posted */
    uint32_t tag;
    bool met;    /* received: it has begun to arrive */
    size_t came; /* received: its size */
};

struct kl_request {
    struct kl_conn *connection;
    struct kl_request *next; /* in the list that it is in */
    int n, unmet;            /* messages; those that have not begun to arrive */
    bool spread;             /* sent: its data go over the lanes */
    struct kl_request_message message[KL_NET_RECVS];
    _Atomic int left; /* frames that have not moved; 0: done */
};

struct kl_conn {
    bool sends;
    int rank, peer;
    char where[KL_ADDRESS_TEXT]; /* the peer's address */
    struct kl_attempt *attempt;  /* while it is being made */
    struct kl_socket_shape shape;
    struct kl_socket_lane *lane; /* 1 + shape.lanes */
    int turn;                    /* the lane, less 1, of the next part */

    struct kl_request request[KL_NET_REQUESTS];
    struct kl_request *free;         /* list */
    struct kl_request *first, *last; /* list of sends that have not gone, or of receives that have not all been met */
    int begun;                       /* of those sends, the first so many are in the frames that lane 0 sends now */
    struct kl_head head;             /* received, not done with */
    bool headed;
    struct kl_request *of;              /* whose */
    struct kl_request_message *message; /* NULL: it waits for a receive of its tag */

    bool both_ways;       /* the other direction of its one socket is free for a twin, or was */
    struct kl_conn *twin; /* that uses it (twin.h); NULL: none */
    bool halved;          /* a twin has, or had, the half of the lane that this one does not need */
    bool called_back;     /* sender: the receiver is about to send back, and nothing else is to be heard here */
    uint32_t back;        /* which connection that is to be */

    struct kl_movers *movers; /* NULL: none run, be it that none were needed yet */
    int epoll;                /* of who sleeps on the connection; -1: not yet */
    struct kl_sleeper sleeper;
    struct kl_watched watched_bell;
    uint64_t looked; /* when the hosts were last looked at */

    ncclResult_t failed;
    char why[KL_ERROR_TEXT];
};

/** One without sockets: lanes have fd -1. */
ncclResult_t kl_conn_create(bool sends, const struct kl_net_end *me, struct kl_socket_shape shape,
                            struct kl_conn **connection);

/** Give lane `i` its socket and the keys of a session. `peer`: the address of the other end. */
ncclResult_t kl_conn_attach(struct kl_conn *c, int i, int fd, enum kl_cipher cipher, const struct kl_key *session);

void kl_conn_free(struct kl_conn *c);

/** Fail, unless it has: nothing moves afterwards, and the peer notices. Yields the code that is in force. */
ncclResult_t kl_conn_fail(struct kl_conn *c, ncclResult_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), cold));

/** Fail because of what happened on a socket; errno as `flow` says. */
ncclResult_t kl_conn_lost(struct kl_conn *c, enum kl_flow flow) __attribute__((cold));

/** Sender: a message was refused. Two heads say of how many bytes it was, and what was posted; the second ends the connection. */
void kl_conn_refused(struct kl_conn *c, const struct kl_head *head);

/** ncclSuccess, or the failure, whose sentence becomes the thread's. */
ncclResult_t kl_conn_report(const struct kl_conn *c);

/** A free request with `left` 0, or NULL. */
struct kl_request *kl_conn_take(struct kl_conn *c);
void kl_conn_give(struct kl_conn *c, struct kl_request *r);

/** The list `first`. */
void kl_conn_append(struct kl_conn *c, struct kl_request *r);
void kl_conn_remove(struct kl_conn *c, const struct kl_request *r);

#endif
