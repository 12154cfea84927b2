/* SPDX-License-Identifier: Apache-2.0 */
/**
 * algorithm.h - the interface of an algorithm: a row per algorithm and set of functions that it runs in the same way.
 *
 * An operation runs on some channels. On each, the algorithm has *edges*: the connectors of this rank, or
 * memory that all ranks share, and its position, made once and kept. An `op` runs a channel's share: memory of op_bytes
 * that belongs to the communicator, started, and progressed until it is done.
 *
 * A new algorithm is a file and a line in the table of algorithms.h; CONTRIBUTING.md has the other steps.
 */
#ifndef KL_COLL_PIPELINE_ALGORITHM_H
#define KL_COLL_PIPELINE_ALGORITHM_H

#include "channel/connections.h"
#include "coll/schedule/schedule.h"
#include "coll/select/agreement.h"
#include "coll/pipeline/steps.h"
#include "device/host/redop.h"

/** A rank's connections for an algorithm on one channel. */
struct kl_edges {
    struct kl_position position;
    int *order; /* of the position; owned */
    int nrecv, nsend;
    struct kl_connector *recv[KL_EDGES_MAX], *send[KL_EDGES_MAX]; /* by edge number; NULL: there is none */
    struct kl_arena *arena;                                       /* NULL: it shares none */
    void *own;                                                    /* the algorithm's, freed by its unlink */
    bool ready;                                                   /* all connectors are */
    bool moved_here;                                              /* this side moves the data of some:
                                                                   * kl_edges_progress_receive */
};

/** A rank's place in the graph of a channel, and the ranks at its edges, by edge number; -1: there is none. */
struct kl_neighbours {
    struct kl_position position; /* its order is the caller's memory */
    int nrecv, nsend;
    int recv[KL_EDGES_MAX], send[KL_EDGES_MAX];
};

/** A question for the neighbours of `rank`, which may be any. */
struct kl_neighbours_request {
    const struct kl_connect *graph;
    int rank, channel;
    int steps;  /* capacity of an edge in chunks */
    int *order; /* room for the order of a ring: nranks */
};

/** A channel's share of an operation, seen from one rank. It stays until the operation is done, or dropped: the op
 * refers to it. */
struct kl_channel_work {
    int func, proto, root;        /* root: rank */
    uint64_t signature;           /* of the operation (signature.h) */
    const struct kl_redop *redop; /* NULL where nothing is reduced */
    ncclDataType_t type;
    ncclRedOp_t op; /* the operator of `redop` */
    const void *send;
    void *recv;
    size_t count;      /* elements of the buffer, or of one part of it */
    size_t first, end; /* the channel's range of these */
    size_t elem_bytes;
    bool more;            /* more collectives of the algorithm follow, and are launched */
    bool processes;       /* the ranks live in several processes */
    size_t chain_bytes;   /* bytes of a chunk of rooted functions, at most; 0: a slot's */
    bool exposed;         /* others may map this rank's buffers, or share its address space */
    const uint64_t *mark; /* of this process, for its peers (os/cma.h); NULL: they may not read its memory */
    bool reads;           /* the kernel copies, if not all buffers can be mapped; the same on all ranks, as: */
    bool hierarchical;    /* ranks of a core reduce among themselves first, where Flat takes more than a round */
    bool nt;              /* results are stored with non-temporal stores */
    bool wide;            /* LL128: with stores of 64 bytes */
    void *scratch;        /* KL_SCRATCH_BYTES, used by one hop at a time */
    int channel;
    const struct kl_step_watch *steps; /* called at each step; NULL: no callback */
};

/** The set of ranks that can map the same memory. */
enum kl_peer_connect {
    KL_REACH_NONE,
    KL_REACH_NODE, /* the ranks of each node */
    KL_REACH_ALL   /* all ranks of the communicator */
};

struct kl_algorithm {
    enum kl_algo algo;
    uint32_t funcs, protos;      /* bits: the functions and protocols that it serves */
    enum kl_peer_connect memory; /* it needs memory that these ranks can map */
    bool one_channel;            /* operations use channel 0, whatever the plan has */
    bool unsigned_data;          /* its data pass through a network that carries no signatures (signature.h) */
    size_t op_bytes;
    const struct kl_schedule *schedule[KL_FUNCS]; /* for the pipeline; NULL: the algorithm has an op of its own */

    /** For an algorithm whose edges lead from rank to rank: find them. NULL: it is linked in another way. */
    ncclResult_t (*find)(const struct kl_neighbours_request *request, struct kl_neighbours *neighbours);

    /** Fill in position and edges of a channel; the connectors are requested, not ready. */
    ncclResult_t (*link)(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                         struct kl_edges *edges);

    /** Free the resources in `own`, also after a failure of link. NULL: nothing. */
    void (*unlink)(struct kl_edges *edges);

    void (*start)(const struct kl_algorithm *a, void *op, struct kl_edges *edges, const struct kl_channel_work *share);

    /** For an algorithm with one channel: start, and poll once: most small operations complete at once. False: progress
     * it. *rc is set on failure, with true. NULL: start it. */
    bool (*at_once)(void *op, struct kl_edges *edges, const struct kl_channel_work *share, ncclResult_t *rc);

    /** Continue; DONE when this rank's part is complete and its buffers may be reused. *rc is set on failure, with
     * DONE. */
    enum kl_progress (*progress)(void *op, ncclResult_t *rc);

    /** While `op` is in progress: post this rank's data for the operation that comes `later` behind it. False: not now.
     * NULL: never. */
    bool (*prepost)(void *op, const struct kl_channel_work *share, unsigned later);

    /** For a thread that is about to sleep (device/host/idle.h): true if descriptors become ready when a stalled op may
     * go on. NULL: none do. */
    bool (*sleep_on)(void *op);

    /** A rank that a stalled op waits for; with `gone`, only one that has freed its communicator. -1: none. */
    int (*blocked_on)(void *op, bool gone);

    /** The outcome of an op that is DONE, of an algorithm that ranks may decline; the same on all ranks. NULL: it is
     * complete. */
    enum kl_agreed (*agreed)(const void *op);
};

#endif
