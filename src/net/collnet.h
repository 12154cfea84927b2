/* SPDX-License-Identifier: Apache-2.0 */
/**
 * collnet.h - a network that reduces, as Kolo uses it: groups of ranks, one per node, whose data it adds up on their way.
 *
 * The semantics are those of NCCL's CollNet plugins (v10), so that one can be put behind this table. Nothing blocks: what is not
 * finished is ncclInProgress, and is called again. As with net.h there are keys, deadlines, and a way to end everything at
 * the first error.
 *
 *      every member
 *        listen -> handle, which the others get
 *        connect(handles of all)                      again while ncclInProgress
 *        iallreduce, iallgather, ireducescatter, test
 *        close, close_listen
 *
 * Members:   are numbered alike by all of them; struct kl_collnet_end has their ranks.
 * Requests:  all members make the same ones in the same order. Who is late holds up the others, but no request waits for a later one.
 * Results:   of a reduction are the same at all members, to the last bit, and the same again for the same data: what members
 *            contribute is combined in the order of their numbers.
 * Buffers:   belong to the network until test says done or fails, or until cancel or close returns. What is received may not
 *            overlap what is sent.
 * Errors:    a member that was lost is ncclRemoteError, and named; one that makes another request is ncclInvalidUsage. What
 *            fails once fails from then on.
 * Threads:   one at a time per listener and per group; different ones at once.
 * Source:    the runtime specification, 3.11 and 5.2.
 */
#ifndef KL_NET_COLLNET_H
#define KL_NET_COLLNET_H

#include "net/net.h"

enum { KL_COLLNET_REQUESTS = 4 }; /* of a group, not yet reported done */

/** One member of a group that is being made. All but `own` is the same at all of them. */
struct kl_collnet_end {
    const struct kl_net
        *net;             /* what carries messages, where the network does not reduce by itself; it is initialised */
    struct kl_key secret; /* of the communicator */
    const int32_t *ranks; /* by member; outlives the group */
    int n, own;
    uint32_t id;       /* which of the groups of these ranks; no connection of theirs has it */
    size_t most;       /* bytes that one member sends another in a request, at most */
    uint64_t deadline; /* base/clock.h; for connect */
};

/** Of an all-gather's result, or a reduce-scatter's data: what comes from, or goes to, one member. */
struct kl_collnet_part {
    void *data;
    void *mr;
};

/** A reduction. */
struct kl_collnet_op {
    ncclDataType_t type;
    ncclRedOp_t op; /* the mean counts as its sum: who knows the number of ranks divides */
};

struct kl_collnet {
    const char *name; /* "via COLLNET/<name>" in logs */

    /** Of the devices of a net, whose numbers these are; ncclSuccess, or why it cannot reduce. */
    ncclResult_t (*init)(const struct kl_net *net);
    int (*devices)(const struct kl_net *net);
    ncclResult_t (*properties)(const struct kl_net *net, int device, struct kl_net_properties *properties);

    /** Can it reduce this? */
    bool (*reduces)(struct kl_collnet_op op);

    /** Listen on a device, for one group. */
    ncclResult_t (*listen)(int device, const struct kl_collnet_end *me, struct kl_net_handle *handle, void **listener);

    /**
     * Join the group: `handles` by member. ncclInProgress: `*group`, NULL at the first call, is an attempt: call again with it
     * and the same arguments, or end it with close. A failure has ended it, and `*group` is NULL.
     */
    ncclResult_t (*connect)(int device, const struct kl_collnet_end *me, const struct kl_net_handle *handles,
                            void *listener, void **group);

    /** As those of net.h. */
    ncclResult_t (*reg_mr)(void *group, void *data, size_t bytes, enum kl_net_memory memory, void **mr);
    ncclResult_t (*dereg_mr)(void *group, void *mr);

    /** Combine `count` elements of all members. `*request` NULL, here and below: there is no room now, ask again. */
    ncclResult_t (*iallreduce)(void *group, const void *send, void *recv, size_t count, struct kl_collnet_op op,
                               void *send_mr, void *recv_mr, void **request);

    /** Get `bytes` of every member. NULL: the network cannot. */
    ncclResult_t (*iallgather)(void *group, const void *send, const struct kl_collnet_part *recv, size_t bytes,
                               void *send_mr, void **request);

    /** Combine the parts of `count` elements that all members have for this one. NULL: the network cannot. */
    ncclResult_t (*ireducescatter)(void *group, const struct kl_collnet_part *send, void *recv, size_t count,
                                   struct kl_collnet_op op, void *recv_mr, void **request);

    /** Make what was received visible to the device. `*request` NULL: it is. */
    ncclResult_t (*iflush)(void *group, void *data, size_t bytes, void *mr, void **request);

    /** Work on the group; is this request done? Then it is gone. */
    ncclResult_t (*test)(void *request, bool *done);

    /** A rank that the oldest request waits for, or that the group is not connected with; -1: none. */
    int (*waits_for)(const void *group);

    /** End a group because of an error elsewhere: the others notice, requests fail, and no buffer is touched any more. */
    void (*cancel)(void *group);

    /** Free; NULL is fine. What requests that were done have sent still arrives. */
    void (*close)(void *group);
    void (*close_listen)(void *listener);
};

/** Reductions by the members themselves, over any net. */
extern const struct kl_collnet kl_collnet_heads;

/** All of them, best first; ends with NULL. A new one is a folder and a line in nets.c. */
extern const struct kl_collnet *const kl_collnets[];

#endif
