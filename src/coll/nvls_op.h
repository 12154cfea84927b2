/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nvls_op.h - a resumable collective through the memory of NVLS (nvls.h), on one channel.
 *
 * An all-reduce is cut into blocks of a slice for each head, reduce-scatter and all-gather into blocks of a piece of
 * every part, whose head is the part's rank. Each rank does up to three things side by side; none waits for another:
 *
 *      scatter   its own data of a slice to the slice's head          not in an all-gather
 *      head      add up its slice, or its part, and publish it
 *      gather    the data that other heads published                  not in a reduce-scatter
 *
 * Ranks begin with different heads. Scattering runs at most as many blocks ahead of gathering as there are slots. In an
 * all-reduce of several nodes a head's sums go up a tree between the nodes, and it publishes the results that come down
 * (nvls_tree.h): slice after slice, so that one is on its way while the next is added up.
 *
 * Results: each slice is computed once, by its head, from its own and then the other ranks' data by rank, then the sums of
 *          the nodes below: all ranks get the same bits, and get them again with the same heads and trees.
 * Aliasing: in place as NCCL defines it; buffers may be reused when the operation is DONE.
 * Errors:  ncclInvalidUsage when another rank made another call, or has another size.
 * Threads: one at a time. Never blocks, allocates nothing. May be dropped at any point if the memory is not used again.
 */
#ifndef KL_COLL_NVLS_OP_H
#define KL_COLL_NVLS_OP_H

#include "coll/nvls.h"
#include "device/host/redop.h"
#include "device/host/stream.h"

struct kl_links;

/** The kind of a collective. */
struct kl_nvls_kind {
    const char *name;
    bool reduces, multicasts;
};

extern const struct kl_nvls_kind kl_nvls_allreduce, kl_nvls_allgather, kl_nvls_reducescatter;

/** An operation seen from one rank. Ranks are the ranks that share the memory. */
struct kl_nvls_task {
    const struct kl_nvls_kind *kind;
    const struct kl_redop *redop; /* NULL where nothing is reduced */
    const void *send;
    void *recv;
    size_t count;      /* elements of the buffer, or of one part of it */
    size_t first, end; /* the share of them that this channel moves */
    size_t elem_bytes;
    size_t most;      /* elements of a slice at most; as many as fit into a slot: 0 */
    size_t grain;     /* elements: slices of an all-reduce are multiples of it, but for the last */
    const int *heads; /* all-reduce: ranks that add up, each once; NULL: all */
    int nheads;
    const int32_t *ranks;  /* their numbers in the communicator; NULL: the same */
    bool finish;           /* results from above are not finished: above is a network that only reduces */
    struct kl_links *tree; /* all-reduce of several nodes: this rank's edges in its head's tree; NULL: one node */
    uint32_t operation;    /* compared by the ranks that share the memory: kl_call_short of the call */
    uint64_t signature;    /* compared by the heads of several nodes (signature.h) */
};

/** A place in the sequence of blocks and heads. */
struct kl_nvls_place {
    size_t block;
    int head; /* in this rank's order, which begins behind itself */
};

struct kl_nvls_op {
    struct kl_nvls *nvls;
    struct kl_nvls_task task;
    int nheads, own; /* own: this rank's number among the heads; -1: it is none */
    size_t most, blocks;
    struct kl_nvls_place scatter, gather;
    size_t risen;  /* blocks this rank has added up as a head */
    size_t headed; /* blocks it has published */
    int arrived;   /* ranks whose data for the next slice to rise have arrived */
};

/** Begin. The share may be empty. */
void kl_nvls_op_start(struct kl_nvls_op *op, struct kl_nvls *nvls, const struct kl_nvls_task *task);

/** Continue; DONE when this rank's part is complete and its buffers may be reused, with a tree once kl_links_drained.
 * *rc is set on failure, with DONE. */
enum kl_progress kl_nvls_op_progress(struct kl_nvls_op *op, ncclResult_t *rc);

/** A rank of the communicator that the operation waits for; -1: none. */
int kl_nvls_op_blocked_on(const struct kl_nvls_op *op);

/** The rank that a stalled operation waits for and that has left; -1: none. */
int kl_nvls_op_waits_in_vain(const struct kl_nvls_op *op);

#endif
