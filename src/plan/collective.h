/* SPDX-License-Identifier: Apache-2.0 */
/**
 * collective.h - the collectives of nccl-tests: names, sizes of buffers, the data that each rank must receive, and the
 * bandwidth that a time means. Pure arithmetic.
 *
 * Sizes: all counts are elements. A nominal size of the command line is the size of a rank's largest buffer, as in
 *        nccl-tests: collectives that cut it into a piece per rank round the piece down to a multiple of 16 bytes.
 * Source: nccl-tests, doc/PERFORMANCE.md and the table of each *_perf program.
 */
#ifndef KL_PLAN_COLLECTIVE_H
#define KL_PLAN_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>

enum kl_coll_id {
    KL_ALL_REDUCE,
    KL_ALL_GATHER,
    KL_REDUCE_SCATTER,
    KL_BROADCAST,
    KL_REDUCE,
    KL_ALLTOALL,
    KL_ALLTOALLV,
    KL_GATHER,
    KL_SCATTER,
    KL_SENDRECV,
    KL_HYPERCUBE,
    KL_BARRIER,
    KL_NCOLLS
};

enum kl_coll_cut {                 /* how a nominal count becomes buffers of n ranks; piece = count / n, rounded down */
                   KL_CUT_WHOLE,   /* count, to count */
                   KL_CUT_GATHER,  /* a piece, to n pieces */
                   KL_CUT_SCATTER, /* n pieces, to a piece */
                   KL_CUT_ALL,     /* n pieces, to n pieces */
                   KL_CUT_ONE      /* one element, whatever the size */
};

struct kl_coll {
    const char *name;
    enum kl_coll_cut cut;
    bool reduces;         /* the data are operands of a reduction */
    bool has_op;          /* -o applies; else the column says "none" */
    bool has_root;        /* -r applies; else the column says -1 */
    bool checks_in_place; /* results of the in-place half are defined */
    const char *help;
};

extern const struct kl_coll kl_colls[KL_NCOLLS];

/** Only letters and digits count: all_reduce, allreduce, AllReduce, ncclAllReduce. NULL: no such collective. */
const struct kl_coll *kl_coll_find(const char *name);
enum kl_coll_id kl_coll_id(const struct kl_coll *coll);

/** One size of one collective. */
struct kl_coll_shape {
    enum kl_coll_id id;
    int nranks, root;        /* root -1 where there is none */
    size_t count;            /* as NCCL's call takes it, and as the table shows it */
    size_t send, recv;       /* elements of a rank's buffers */
    size_t send_at, recv_at; /* in place, a rank's buffers begin at rank times this in the common one */
};

struct kl_coll_shape kl_coll_shape(enum kl_coll_id id, size_t bytes, size_t element_bytes, int nranks, int root);

/** A piece of a rank's receive buffer, and where its content comes from. */
struct kl_coll_part {
    size_t first, count;
    int source;          /* the rank that sent it; KL_COLL_REDUCED: the reduction over all */
    size_t source_first; /* in the send buffer of the source, or of every rank */
};
enum { KL_COLL_REDUCED = -1 };

/** The i-th piece that `rank` must receive; false when it receives no more. */
bool kl_coll_part(const struct kl_coll_shape *shape, int rank, int i, struct kl_coll_part *part);

/** alltoallv: how much `from` sends to `to`, and where that begins in the send and receive buffers. */
struct kl_coll_piece {
    size_t count, send_first, recv_first;
};
struct kl_coll_piece kl_coll_piece(const struct kl_coll_shape *shape, int from, int to);

/** How many dependent steps an operation is issued in; 1 but for hypercube, where rank pairs exchange step by step. */
int kl_coll_steps(enum kl_coll_id id, int nranks);

/** Bus bandwidth over algorithm bandwidth. */
double kl_coll_bus_factor(enum kl_coll_id id, int nranks);

struct kl_coll_bandwidth {
    double algorithm, bus; /* GB/s */
};

/** The bandwidths of an operation that takes `seconds`; 0 for a barrier. */
struct kl_coll_bandwidth kl_coll_bandwidth(const struct kl_coll_shape *shape, size_t element_bytes, double seconds);

#endif
