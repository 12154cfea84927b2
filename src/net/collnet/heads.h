/* SPDX-License-Identifier: Apache-2.0 */
/**
 * heads.h - members that reduce by themselves: a connection from each to each, and their requests.
 *
 * A request consists of transfers, of which any may be missing:
 *
 *      offer          own data to the member that adds them up
 *      contribution   another member's, received ahead of time in a slot of own memory
 *      result         to, and from, every other member
 *
 * A member adds up once all contributions of a request are there; then its result goes out. Contributions and results of one
 * sender have tags of their own. As many contributions are being received, from before anything is asked for, as there can be
 * requests: so a contribution that comes before its request never stands in the way of a result behind it.
 *
 * Threads: one at a time.
 */
#ifndef KL_NET_COLLNET_HEADS_H
#define KL_NET_COLLNET_HEADS_H

#include "base/error.h"
#include "device/host/redop.h"
#include "net/collnet.h"

enum { KL_TAG_CONTRIBUTION = 0, KL_TAG_RESULT = 1 };

/** A message, between two members. */
struct kl_transfer {
    void *data; /* only read, if it is sent */
    size_t bytes;
    bool wanted;   /* there is one, and it is not done */
    void *request; /* of the net; NULL: not posted */
};

/** What a request has to do with one other member. */
struct kl_exchange_of {
    struct kl_transfer offer, result_out, result_in;
};

struct kl_heads_request {
    struct kl_heads *group; /* NULL: free */
    uint64_t number;        /* among those of the group */
    struct kl_redop redop;

    bool adds;                   /* this member adds up: */
    uint64_t addition;           /* the number of the addition, among those of this member */
    const void *own;             /* its own contribution, */
    void *sum;                   /* the result, */
    size_t count, bytes;         /* and how much */
    bool tells;                  /* the result goes to all */
    int came;                    /* members whose contribution is there, in order; all: it is added up */
    struct kl_exchange_of *with; /* by member */
};

struct kl_heads_member {
    void *send, *recv; /* connections; NULL: not there, or (not `sends`) an attempt */
    bool sends, receives;
    void *contribution[KL_COLLNET_REQUESTS]; /* receives, by slot; NULL: not posted, or here */
    uint64_t expected;                       /* contributions before this one were posted */
};

struct kl_heads {
    struct kl_collnet_end me;
    int device;
    bool connected, cancelled;
    struct kl_heads_member *member; /* by number; nothing of the own one */
    unsigned char *slots;           /* contributions: KL_COLLNET_REQUESTS times every member, `most` rounded up each */
    size_t slot_bytes, slots_bytes;
    struct kl_exchange_of *with; /* of all requests */
    struct kl_heads_request request[KL_COLLNET_REQUESTS];
    uint64_t requests, additions; /* so far */

    ncclResult_t failed;
    char why[KL_ERROR_TEXT];
};

ncclResult_t kl_heads_create(int device, const struct kl_collnet_end *me, struct kl_heads **group);

/** Go on with the connections. ncclInProgress: call again. */
ncclResult_t kl_heads_join(struct kl_heads *g, const struct kl_net_handle *handles, void *listener);

void kl_heads_free(struct kl_heads *g);

/** Keep the failure, whose sentence is the thread's last, unless there was one; yields the code that is in force. */
ncclResult_t kl_heads_fail(struct kl_heads *g, ncclResult_t code);

/** ncclSuccess, or the failure, whose sentence becomes the thread's. */
ncclResult_t kl_heads_report(const struct kl_heads *g);

/** Where contribution number `addition` of a member is received. */
static inline unsigned char *kl_heads_slot(const struct kl_heads *g, int member, uint64_t addition)
{
    size_t slot = (size_t)(addition % KL_COLLNET_REQUESTS) * (size_t)g->me.n + (size_t)member;

    return g->slots + slot * g->slot_bytes;
}

/** Receive the member's contributions before number `end`, in order, as far as the net has room. */
ncclResult_t kl_heads_expect(struct kl_heads *g, int member, uint64_t end);

#endif
