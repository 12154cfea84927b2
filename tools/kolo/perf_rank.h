/* SPDX-License-Identifier: Apache-2.0 */
/**
 * perf_rank.h - one rank of a measurement: its communicator, stream and buffers, and the check of its results.
 *
 * Buffers: a send and a receive buffer of `room` bytes each; a half works on both (out-of-place) or on the receive
 *          buffer alone (in-place). Iterations go through the room, as in nccl-tests, so that a small size does not
 *          stay in a cache only because it is repeated. Behind the result lies a guard that no operation may touch.
 * Errors:  ncclResult_t of the library; the caller adds the context.
 * Threads: a rank belongs to one thread.
 */
#ifndef KOLO_TOOL_PERF_RANK_H
#define KOLO_TOOL_PERF_RANK_H

#include "include/kolo.h"
#include "tools/kolo/perf_data.h"
#include "tools/kolo/perf_issue.h"
#include "tools/kolo/perf_watchdog.h"

enum { KL_PERF_GUARD = 64, KL_PERF_SCRATCH = 1024 };

/** -R: registration of the buffers with the communicator. */
enum kl_perf_registration { KL_PERF_NOT_REGISTERED, KL_PERF_REGISTERED, KL_PERF_WINDOWS };

struct kl_perf_rank {
    int rank, nranks, device;
    ncclComm_t comm;
    koloStream_t stream;
    struct kl_watchdog_slot *slot;

    size_t room, bytes; /* of a buffer, and of the memory that it is in */
    void *send_memory, *recv_memory;
    enum kl_perf_registration registration;
    void *handle[2];        /* of the two, if they are registered */
    ncclWindow_t window[2]; /* or, as windows */
    char *send, *recv;      /* in them, misaligned as asked */
    double *scratch;        /* twice KL_PERF_SCRATCH values, to agree with the others */

    struct kl_perf_op op; /* the current operation */
    bool in_place;
    struct kl_coll_piece *pieces; /* nranks to the peers, then as many from them */
    struct kl_data_table own;     /* this rank's contribution */
};

/** Buffers, and a stream of these flags (NULL: the default stream), on the rank's device; `room` bytes for each buffer, which are of ncclMemAlloc if they will be registered. */
ncclResult_t kl_perf_rank_open(struct kl_perf_rank *rank, size_t room, size_t misalign, const unsigned *stream_flags);

/** Register the send buffer (0) or the receive buffer (1). All ranks do, the ranks of a thread in one group for each. */
ncclResult_t kl_perf_rank_register(struct kl_perf_rank *rank, int which);

/** Release everything, the communicator included. Also when half open. */
void kl_perf_rank_close(struct kl_perf_rank *rank);

/** Prepare the data of a type and an operation. */
ncclResult_t kl_perf_rank_data(struct kl_perf_rank *rank, const struct kl_coll *coll, ncclDataType_t type,
                               ncclRedOp_t op);

/** Choose size and half; kl_perf_rank_data came first. */
void kl_perf_rank_shape(struct kl_perf_rank *rank, const struct kl_coll_shape *shape, bool in_place);

/** Write this rank's data to the send buffer of iteration 0, and garbage to its receive buffer. */
void kl_perf_rank_fill(struct kl_perf_rank *rank, uint64_t seed);

/** Issue one step of one operation. */
ncclResult_t kl_perf_rank_issue(struct kl_perf_rank *rank, int step, int iteration);

/**
 * Count the wrong elements that iteration 0 has received, after kl_perf_rank_fill with the same seed. `reduced`: the
 * expected result of the reduction. `complaint` describes the first wrong one, if any.
 */
ncclResult_t kl_perf_rank_check(const struct kl_perf_rank *rank, const struct kl_data_table *reduced, uint64_t seed,
                                size_t *nwrong, char *complaint, size_t size);

#endif
