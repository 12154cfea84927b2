/* SPDX-License-Identifier: Apache-2.0 */
/**
 * perf_agree.h - agreement between the ranks of a measurement: sends and receives along a binomial tree, so that settings
 * for the measured operation (NCCL_ALGO, NCCL_PROTO) do not affect it.
 *
 * All ranks of the communicators call the same function; a thread calls for all its ranks at once. Returns when done.
 */
#ifndef KOLO_PERF_AGREE_H
#define KOLO_PERF_AGREE_H

#include "tools/kolo/perf_rank.h"

/** Combine the first n (at most KL_PERF_SCRATCH) values in each rank's scratch by sum, min or max; all ranks get the result. */
ncclResult_t kl_perf_combine(struct kl_perf_rank *rank, int nown, size_t n, ncclRedOp_t op);

/** Rank 0's list receives the entries of all ranks. lists: one of nranks entries for each own rank, with its entry filled in. */
ncclResult_t kl_perf_gather(struct kl_perf_rank *rank, int nown, void *lists, size_t entry_bytes);

/** All ranks receive rank 0's data: `bytes` of it for the one own rank. */
ncclResult_t kl_perf_hand_out(struct kl_perf_rank *rank, void *data, size_t bytes);

#endif
