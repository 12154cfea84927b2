/* SPDX-License-Identifier: Apache-2.0 */
/**
 * link.h - a head's connection to a network that reduces. An algorithm sees two ordinary edges: one out, one in.
 *
 *      algorithm -> fifo out -> request of the collnet (net/collnet.h) -> fifo in -> algorithm
 *
 * One request consumes steps of the out fifo and produces steps of the in fifo. Data are sent from their place, and received
 * in the slots of the produced steps. For a group of n members:
 *
 *      what                consumes                         produces
 *      all-reduce          1, reduced within the node       1, reduced among all nodes
 *      all-gather          1, the own part                  n, by member
 *      reduce-scatter      n, by member                     1, the own part
 *
 * A step of `out` is released once its request is done: then neither the network nor the other ranks need this side any more.
 *
 * Threads: one at a time: the thread that waits for the algorithm.
 */
#ifndef KL_TRANSPORT_COLLNET_LINK_H
#define KL_TRANSPORT_COLLNET_LINK_H

#include "net/collnet.h"
#include "transport/transport.h"

enum kl_collnet_what { KL_COLLNET_ALL_REDUCE, KL_COLLNET_ALL_GATHER, KL_COLLNET_REDUCE_SCATTER };

/** Steps of one request; sends and receives. */
struct kl_collnet_step {
    void *request; /* NULL: none */
    size_t bytes;  /* of a produced step */
};

struct kl_collnet_link {
    struct kl_connector send, recv; /* for algorithms; this link holds the network's ends */
    const struct kl_collnet *collnet;
    void *group; /* NULL: not there, or (not `connected`) an attempt */
    bool connected, cancelled;
    int n;
    const int32_t *ranks; /* by member */
    void *memory;         /* of both fifos */
    size_t mapped;

    /* the operation */
    enum kl_collnet_what what;
    struct kl_collnet_op op;
    size_t elem_bytes;

    struct kl_fifo_rx out;        /* steps [released, out.step) are with the network, or collected */
    struct kl_collnet_part *part; /* the steps of the next request, n of them */
    size_t part_bytes;            /* each */
    int collected;                /* number of collected steps */
    uint64_t released;

    struct kl_fifo_tx in; /* steps [in.step, expected) are on their way */
    uint64_t expected;

    struct kl_collnet_step pending[KL_COLLNET_REQUESTS];
    uint64_t asked, done; /* requests */
};

/** With memory for fifos that hold a request's steps twice. `ranks`: by member; outlives it. */
ncclResult_t kl_collnet_link_create(const struct kl_collnet *collnet, const int32_t *ranks, int n, int own,
                                    const struct kl_fifo_shape *shape, struct kl_collnet_link **link);

/** Set the operation of the next steps, and its signature. No step may be in flight. `op` is only used by reductions. */
void kl_collnet_link_begin(struct kl_collnet_link *link, enum kl_collnet_what what, struct kl_collnet_op op,
                           size_t elem_bytes, uint64_t signature);

/** In any state. NULL is fine. */
void kl_collnet_link_free(struct kl_collnet_link *link);

#endif
