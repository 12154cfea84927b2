/* SPDX-License-Identifier: Apache-2.0 */
/**
 * collnet.h - a network that reduces: groups of ranks, one per node, whose data it combines on the way.
 *
 * The semantics are those of NCCL's CollNet plugins (v10), so that one can be put behind this table. No call blocks: an
 * unfinished one returns ncclInProgress, and is repeated. As with net.h there are keys, deadlines, and a way to end
 * everything at the first error.
 *
 *      every member
 *        listen -> handle, which the others get
 *        connect(handles of all)                      again while ncclInProgress
 *        iallreduce, iallgather, ireducescatter, test
 *        close, close_listen
 *
 * Members:   are numbered alike by all of them; struct kl_collnet_end has their ranks.
 * Requests:  all members make the same ones in the same order. A late member delays the others, but no request waits
 *            for a later one.
 * Results:   of a reduction are the same at all members, bit for bit, and reproducible: contributions are combined in
 *            the order of member numbers.
 * Buffers:   are host memory, and need no registration. They belong to the network until test says done or fails, or until cancel or close returns. Receive and send
 *            buffers must not overlap.
 * Errors:    a lost member is ncclRemoteError, and named; a member with another request is ncclInvalidUsage. A failed
 *            group stays failed.
 * Threads:   one at a time per listener and per group; different ones at once.
 * Source:    the runtime specification, 3.11 and 5.2.
 */
#ifndef KL_NET_COLLNET_H
#define KL_NET_COLLNET_H

#include "net/net.h"

enum { KL_COLLNET_REQUESTS = 4 }; /* of a group, not yet reported done */

/** One member of a group that is being made. All fields but `own` are the same at all members. */
struct kl_collnet_end {
    const struct kl_net *net; /* carries messages if the network itself does not reduce; initialised */
    struct kl_key secret;     /* of the communicator */
    const int32_t *ranks;     /* by member; outlives the group */
    int n, own;
    uint32_t id;       /* distinguishes the groups of these ranks; not used by any other connection of theirs */
    size_t most;       /* most bytes from one member to another in a request */
    uint64_t deadline; /* base/clock.h; for connect */
};

/** Part of an all-gather's result, or a reduce-scatter's data: received from, or sent to, one member. */
struct kl_collnet_part {
    void *data;
};

/** A reduction. */
struct kl_collnet_op {
    ncclDataType_t type;
    ncclRedOp_t op; /* the mean is treated as a sum: the caller, which knows the number of ranks, divides */
};

struct kl_collnet {
    const char *name; /* "via COLLNET/<name>" in logs */

    /** For the devices of a net, with that net's numbers; ncclSuccess, or the reason why it cannot reduce. */
    ncclResult_t (*init)(const struct kl_net *net);

    /** Can it reduce this? */
    bool (*reduces)(struct kl_collnet_op op);

    /** Listen on a device, for one group. */
    ncclResult_t (*listen)(int device, const struct kl_collnet_end *me, struct kl_net_handle *handle, void **listener);

    /**
     * Join the group: `handles` by member. ncclInProgress: `*group`, NULL at the first call, is a connect request: call again
     * with it and the same arguments, or end it with close. A failure has ended it, and `*group` is NULL.
     */
    ncclResult_t (*connect)(int device, const struct kl_collnet_end *me, const struct kl_net_handle *handles,
                            void *listener, void **group);

    /** Combine `count` elements of all members. `*request` NULL, here and below: no room now, try again. */
    ncclResult_t (*iallreduce)(void *group, const void *send, void *recv, size_t count, struct kl_collnet_op op,
                               void **request);

    /** Get `bytes` of every member. NULL: the network cannot. */
    ncclResult_t (*iallgather)(void *group, const void *send, const struct kl_collnet_part *recv, size_t bytes,
                               void **request);

    /** Combine the parts of `count` elements that all members have for this one. NULL: the network cannot. */
    ncclResult_t (*ireducescatter)(void *group, const struct kl_collnet_part *send, void *recv, size_t count,
                                   struct kl_collnet_op op, void **request);

    /** Make progress on the group, and test this request. *done: the request has been freed. */
    ncclResult_t (*test)(void *request, bool *done);

    /** A rank that the oldest request waits for, or that the group is not connected with; -1: none. */
    int (*waits_for)(const void *group);

    /**
     * End a group because of an error elsewhere: the others notice, requests fail, and buffers are no longer accessed.
     */
    void (*cancel)(void *group);

    /** Free; NULL is fine. Data sent by finished requests still arrives. */
    void (*close)(void *group);
    void (*close_listen)(void *listener);
};

/** Reductions done by the members themselves, over any net. */
extern const struct kl_collnet kl_collnet_software;

/** Of the net plugin in use (kl_net_plugin), if its library has one; see kl_collnet_of. */
extern struct kl_collnet kl_collnet_plugin;

/** The network that reduces for a communicator with this net: the plugin's own, else reductions over sockets. */
const struct kl_collnet *kl_collnet_of(const struct kl_net *net);

#endif
