/* SPDX-License-Identifier: Apache-2.0 */
/**
 * conn.h - one end of a connection: its lanes, its requests, and its failure.
 *
 * Everything but the lanes that helper threads move belongs to the caller. A thread whose lane has ended only records
 * that there; the caller turns it into the failure, after it has stopped the threads.
 *
 * Threads:  one caller at a time.
 */
#ifndef KL_NET_SOCKET_CONN_H
#define KL_NET_SOCKET_CONN_H

#include "base/error.h"
#include "net/net.h"
#include "net/socket/connect_request.h"
#include "net/socket/io_threads.h"
#include "os/address.h"

enum {
    KL_STRIPE_MIN_BYTES = 128 << 10, /* messages of at least this many bytes use the lanes */
    KL_PART_LEAST = 64 << 10,        /* smallest part of such a message, bytes */
};

/** A message of a request. */
struct kl_request_message {
    void *data;
    size_t bytes; /* to send, or posted */
    uint32_t tag;
    bool met;    /* receive: matched with a message */
    size_t came; /* receive: its size */
};

struct kl_request {
    struct kl_conn *connection;
    struct kl_request *next; /* in its current list */
    int n, unmet;            /* messages; those not matched yet */
    bool striped;            /* send: the data uses the lanes */
    struct kl_request_message message[KL_NET_RECVS];
    _Atomic int left; /* frames not moved yet; 0: done */
};

struct kl_conn {
    bool sends;
    int rank, peer;
    char where[KL_ADDRESS_TEXT];             /* the peer's address */
    struct kl_conn_request *connect_request; /* while connecting */
    struct kl_socket_shape shape;
    struct kl_socket_lane *lane; /* 1 + shape.lanes */
    int turn;                    /* lane of the next part, less 1 */

    struct kl_request request[KL_NET_REQUESTS];
    struct kl_request *free;         /* list */
    struct kl_request *first, *last; /* list of sends that are not complete, or of receives that are not all matched */
    int begun;                       /* number of these sends that are in the frames that lane 0 is sending */
    struct kl_head head;             /* receiver: head of the current message */
    bool headed;
    struct kl_request *of;              /* request of the current message */
    struct kl_request_message *message; /* NULL: no receive of its tag has been posted yet */

    bool both_ways;           /* the other direction of its single socket is, or was, free for an opposite */
    struct kl_conn *opposite; /* the connection that uses it (duplex.h); NULL: none */
    bool halved;              /* an opposite has, or had, the unused half of the lane */
    bool called_back;         /* sender: the receiver is about to send back; no more heads are read here */
    uint32_t back;            /* id of that connection */

    struct kl_io_threads *io_threads; /* NULL: not running, for instance not needed yet */
    int epoll;                        /* for sleep_on; -1: not yet */
    struct kl_sleeper sleeper;
    struct kl_watched watched_wakeup;
    uint64_t looked; /* when the hosts were last checked */

    ncclResult_t failed;
    char why[KL_ERROR_TEXT];
};

/** Create one without sockets: lanes have fd -1. */
ncclResult_t kl_conn_create(bool sends, const struct kl_net_end *me, struct kl_socket_shape shape,
                            struct kl_conn **connection);

/** Give lane `i` its socket and the keys of a session. `peer`: the address of the other end. */
ncclResult_t kl_conn_attach(struct kl_conn *c, int i, int fd, enum kl_cipher cipher, const struct kl_key *session);

void kl_conn_free(struct kl_conn *c);

/** Fail, unless it has failed already: no data moves afterwards, and the peer notices. Returns the recorded code. */
ncclResult_t kl_conn_fail(struct kl_conn *c, ncclResult_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), cold));

/** Fail because of a result of a socket; errno as for `flow`. */
ncclResult_t kl_conn_lost(struct kl_conn *c, enum kl_flow flow) __attribute__((cold));

/** Sender: a message was refused. Two heads have its size, and the size posted; the second ends the connection. */
void kl_conn_refused(struct kl_conn *c, const struct kl_head *head);

/** ncclSuccess, or the recorded failure, whose sentence becomes the thread's. */
ncclResult_t kl_conn_report(const struct kl_conn *c);

/** A free request with `left` 0, or NULL. */
struct kl_request *kl_conn_take(struct kl_conn *c);
void kl_conn_give(struct kl_conn *c, struct kl_request *r);

/** Append to the list `first`. */
void kl_conn_append(struct kl_conn *c, struct kl_request *r);
void kl_conn_remove(struct kl_conn *c, const struct kl_request *r);

#endif
