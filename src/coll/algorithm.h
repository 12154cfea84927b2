/* SPDX-License-Identifier: Apache-2.0 */
/**
 * algorithm.h - what an algorithm is: a row for each one and the functions that it carries out in the same way.
 *
 * An operation runs on some channels. On each, the algorithm has *links*: the connectors of this rank's edges, or memory
 * that all ranks share, and its position, asked for once and kept. The share of a channel is carried out by an `op`: memory of op_bytes that belongs to the
 * communicator, started, and progressed until it is done.
 *
 * A new algorithm is a file and a line in the table of algorithms.c.
 */
#ifndef KL_COLL_ALGORITHM_H
#define KL_COLL_ALGORITHM_H

#include "channel/connections.h"
#include "coll/schedule.h"
#include "coll/select/agreement.h"
#include "coll/steps.h"
#include "device/host/redop.h"

/** What a rank has for an algorithm on one channel. */
struct kl_links {
    struct kl_position position;
    int *order; /* of the position; owned */
    int nrecv, nsend;
    struct kl_connector *recv[KL_EDGES_MAX], *send[KL_EDGES_MAX]; /* by edge number; NULL: there is none */
    struct kl_arena *arena;                                       /* NULL: it shares none */
    void *own;                                                    /* the algorithm's, given back by its unlink */
    bool ready;                                                   /* all of them are */
    bool moved_here;                                              /* some are moved by this side: kl_links_receive */
};

/** A channel's share of an operation, in terms of one rank. It stays until the operation is done, or dropped: who carries it out refers to it. */
struct kl_share {
    int func, proto, root;        /* root: rank */
    uint64_t signature;           /* of the operation (signature.h) */
    const struct kl_redop *redop; /* NULL where nothing is reduced */
    ncclDataType_t type;
    ncclRedOp_t op; /* what `redop` does */
    const void *send;
    void *recv;
    size_t count;      /* elements of the buffer, or of one part of it */
    size_t first, end; /* of these, the channel's */
    size_t elem_bytes;
    bool more;          /* more collectives of the algorithm follow, and are launched */
    bool processes;     /* the ranks live in several */
    size_t chain_bytes; /* of a chunk of rooted functions, at most; 0: a slot's */
    bool lends;         /* others may map this rank's buffers, or have them in their own memory */
    const uint64_t
        *mark;         /* of this process, by which others know it (os/foreign.h); NULL: they may not read its memory */
    bool reads;        /* the kernel copies, if not all buffers can be mapped; the same at all ranks, as: */
    bool hierarchical; /* ranks of a core reduce among themselves first, where Flat does it in more than a turn */
    bool nt;           /* results go past the caches */
    bool wide;         /* LL128: with stores of 64 bytes */
    void *scratch;     /* KL_SCRATCH_BYTES, for one hop at a time */
    int channel;
    const struct kl_step_watch *steps; /* who wants to know of each step; NULL: nobody */
};

/** How far memory reaches that several ranks can map. */
enum kl_reach {
    KL_REACH_NONE,
    KL_REACH_NODE, /* the ranks of each node */
    KL_REACH_ALL   /* all ranks of the communicator */
};

struct kl_algorithm {
    enum kl_algo algo;
    uint32_t funcs, protos; /* bits that it serves */
    enum kl_reach memory;   /* it needs some that so many ranks can map */
    bool one_channel;       /* operations use the first, whatever the plan has */
    bool unsigned_data;     /* they pass through a network that carries no signatures (signature.h) */
    size_t op_bytes;
    const struct kl_schedule *schedule[KL_FUNCS]; /* for the mover; NULL: it has an op of its own */

    /** Fill in position and edges of a channel; the connectors are asked for, not ready. */
    ncclResult_t (*link)(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                         struct kl_links *links);

    /** Give back what `own` holds, also after a failure of link. NULL: nothing. */
    void (*unlink)(struct kl_links *links);

    void (*start)(const struct kl_algorithm *a, void *op, struct kl_links *links, const struct kl_share *share);

    /** Of one with one channel: start, and look once whether all can be done, as most small operations can. False: progress it. *rc is set on
     * failure, with true. NULL: start it. */
    bool (*at_once)(void *op, struct kl_links *links, const struct kl_share *share, ncclResult_t *rc);

    /** Go on; DONE when this rank's part is complete and its buffers may be reused. *rc is set on failure, with DONE. */
    enum kl_progress (*progress)(void *op, ncclResult_t *rc);

    /** While `op` is under way: post already what this rank brings to the operation that comes `later` behind it. False: not now. NULL: never. */
    bool (*post_ahead)(void *op, const struct kl_share *share, unsigned later);

    /** For a thread that is about to sleep (device/host/idle.h): true if descriptors tell when a stalled op may go on. NULL: none do. */
    bool (*sleep_on)(void *op);

    /** A rank that a stalled op waits for; with `gone`, only one that has freed its communicator. -1: none. */
    int (*blocked_on)(void *op, bool gone);

    /** The outcome of an op that is DONE, of an algorithm that ranks may decline; the same at all ranks. NULL: it is complete. */
    enum kl_agreed (*agreed)(const void *op);
};

#endif
