/* SPDX-License-Identifier: Apache-2.0 */
/**
 * reducer.h - a link into a network that reduces, which the heads of all nodes make together.
 *
 *     begin: listen, post the handle to all -> wait for theirs -> connect -> ready
 *
 * Errors:  as the bootstrap and the network.
 * Threads: one at a time, per rank.
 */
#ifndef KL_CHANNEL_REDUCER_H
#define KL_CHANNEL_REDUCER_H

#include "channel/edge.h"
#include "transport/collnet/link.h"

struct kl_bootstrap;

struct kl_reducer_config {
    struct kl_bootstrap *bootstrap; /* outlives the reducer */
    const struct kl_collnet *collnet;
    const struct kl_net *net;
    struct kl_key secret;
    const int32_t *ranks; /* the heads by node, the same list at all of them */
    int n, own;           /* number of heads, and this rank's index */
    uint32_t id;          /* index among the groups of these ranks; no edge has it */
    uint32_t tag;         /* of the messages, unique among these ranks */
    const struct kl_fifo_shape *shape;
    uint64_t timeout_ms; /* limit for connecting, once all handles are here */
};

struct kl_reducer {
    struct kl_reducer_config config;
    struct kl_edge edge; /* the owner's: the edge it serves */
    int32_t *ranks;      /* the ranks of the configuration */
    struct kl_collnet_link *link;
    int device;
    bool ready;
    void *listener;
    struct kl_net_handle *handle; /* by head */
    int heard;                    /* number of handles received, in order */
    uint64_t deadline;            /* 0: not all handles are here */
    struct kl_reducer *next;      /* the owner's */
};

/** Make the link, without connecting it: algorithms may take its connectors, which are not ready. */
ncclResult_t kl_reducer_create(const struct kl_reducer_config *config, struct kl_reducer **reducer);

/** Begin, on a device. */
ncclResult_t kl_reducer_begin(struct kl_reducer *reducer, int device);

/** Continue until it is ready: DONE. *rc is set on failure, with DONE. */
enum kl_progress kl_reducer_progress(struct kl_reducer *reducer, ncclResult_t *rc);

/** A head that it waits for; -1: none. */
int kl_reducer_blocked_on(const struct kl_reducer *reducer);

/** Any state. NULL is fine. */
void kl_reducer_free(struct kl_reducer *reducer);

#endif
