/* SPDX-License-Identifier: Apache-2.0 */
/**
 * software.h - members that reduce among themselves: a connection from each to each, and their requests.
 *
 * A request consists of transfers, of which any may be missing:
 *
 *      offer          own data to the member that adds them up
 *      contribution   another member's, received ahead of time in a slot of own memory
 *      result         to, and from, every other member
 *
 * A member adds up once all contributions of a request are there; then its result is sent. Contributions and results of
 * one sender have tags of their own. Receives for contributions are posted in advance, one for each possible request:
 * so a contribution that arrives before its request never blocks a result behind it.
 *
 * Threads: one at a time.
 */
#ifndef KL_NET_COLLNET_SOFTWARE_H
#define KL_NET_COLLNET_SOFTWARE_H

#include "base/error.h"
#include "device/host/redop.h"
#include "net/collnet.h"

enum { KL_TAG_CONTRIBUTION = 0, KL_TAG_RESULT = 1 };

/** A message between two members. */
struct kl_transfer {
    void *data; /* only read, if it is to be sent */
    size_t bytes;
    bool wanted;   /* part of the request, and not done */
    void *request; /* of the net; NULL: not posted */
};

/** Transfers of a request with one other member. */
struct kl_exchange_of {
    struct kl_transfer offer, result_out, result_in;
};

struct kl_software_request {
    struct kl_software_group *group; /* NULL: free */
    uint64_t number;                 /* sequence number in the group */
    struct kl_redop redop;

    bool adds;                   /* if this member adds up: */
    uint64_t addition;           /* sequence number of the addition, by this member */
    const void *own;             /* its own contribution, */
    void *sum;                   /* the result, */
    size_t count, bytes;         /* and how much */
    bool tells;                  /* the result is sent to all */
    int came;                    /* members whose contribution has come, in order; when all have: it is added up */
    struct kl_exchange_of *with; /* by member */
};

struct kl_software_member {
    void *send, *recv; /* connections; NULL: none, or (not `sends`) a connect request */
    bool sends, receives;
    void *contribution[KL_COLLNET_REQUESTS]; /* receives, by slot; NULL: not posted, or finished */
    uint64_t expected;                       /* contributions with lower numbers have been posted */
};

struct kl_software_group {
    struct kl_collnet_end me;
    int device;
    bool connected, cancelled;
    struct kl_software_member *member; /* by number; the own entry is unused */
    /* for contributions: KL_COLLNET_REQUESTS for every member, of `most` bytes each, rounded up */
    unsigned char *slots;
    size_t slot_bytes, slots_bytes;
    struct kl_exchange_of *with; /* of all requests */
    struct kl_software_request request[KL_COLLNET_REQUESTS];
    uint64_t requests, additions; /* counts so far */

    ncclResult_t failed;
    char why[KL_ERROR_TEXT];
};

ncclResult_t kl_software_create(int device, const struct kl_collnet_end *me, struct kl_software_group **group);

/** Make progress on the connections. ncclInProgress: call again. */
ncclResult_t kl_software_join(struct kl_software_group *g, const struct kl_net_handle *handles, void *listener);

void kl_software_free(struct kl_software_group *g);

/** Record a failure, with the thread's last sentence, unless there is one already; returns the recorded code. */
ncclResult_t kl_software_fail(struct kl_software_group *g, ncclResult_t code);

/** ncclSuccess, or the recorded failure, whose sentence becomes the thread's. */
ncclResult_t kl_software_report(const struct kl_software_group *g);

/** The slot for contribution number `addition` of a member. */
static inline unsigned char *kl_software_slot(const struct kl_software_group *g, int member, uint64_t addition)
{
    size_t slot = (size_t)(addition % KL_COLLNET_REQUESTS) * (size_t)g->me.n + (size_t)member;

    return g->slots + slot * g->slot_bytes;
}

/** Post receives for the member's contributions with numbers below `end`, in order, as far as the net has room. */
ncclResult_t kl_software_expect(struct kl_software_group *g, int member, uint64_t end);

#endif
