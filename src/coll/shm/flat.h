/* SPDX-License-Identifier: Apache-2.0 */
/**
 * flat.h - a resumable collective through shared memory (shm_exchange.h): all ranks at once, in one to three rounds for each piece, however many they are.
 *
 *                    who posts what                       who takes what
 *      broadcast     the root a piece, all a line         all others
 *      reduce        all a piece, but the root            the root merges them
 *      all-gather    all a piece of theirs                all
 *      reduce-scatter  all a piece of every part          all merge the pieces of their part
 *      all-to-all    all a piece of every part            all the pieces that are for them
 *      all-reduce    all a piece                          all merge it whole; or, if it is large for so many ranks, a slice each, and
 *                    then that slice                      all
 *      the last two reductions, by core: the same;       all merge, of the ranks of their core, what is due to them, or to the rank in
 *                    then what they have merged for others their place on another core; those the same of all cores
 *
 * Other algorithms take several rounds, this one waits for one or two flags: where ranks share cores, each round costs a switch of every
 * core. kl_channel_work.hierarchical selects reductions by core.
 *
 * Results:  merged in the order of ranks, or by core: all get the same bits. They get them again where the way is the same.
 * Aliasing: in place as NCCL defines it; buffers may be reused when the operation is DONE.
 * Errors:   ncclInvalidUsage when another rank came with another call.
 * Threads:  one at a time. Never blocks, allocates nothing. May be dropped at any point if no operation follows on the exchange.
 */
#ifndef KL_COLL_SHM_FLAT_H
#define KL_COLL_SHM_FLAT_H

#include "coll/shm/flat_op.h"

enum {
    KL_FLAT_PART = KL_SELECT_SHM_PART
}; /* bytes of an all-to-all for each rank: up to these shared memory is faster than messages */

void kl_flat_start(struct kl_flat_op *op, struct kl_shm_exchange *shm, const struct kl_channel_work *share);

/** The same, and look once whether all can be done. False: go on. *rc is set on failure, with true. */
bool kl_flat_try_now(struct kl_flat_op *op, struct kl_shm_exchange *shm, const struct kl_channel_work *share,
                     ncclResult_t *rc);

/** Go on; DONE when this rank's part is complete. *rc is set on failure, with DONE. */
enum kl_progress kl_flat_progress(struct kl_flat_op *op, ncclResult_t *rc);

/**
 * While `op` is under way: post this rank's data of the operation that follows `later` rounds behind its own; those between are posted as well. False: not now,
 * or it takes more than a round.
 */
bool kl_flat_prepost(const struct kl_flat_op *op, const struct kl_channel_work *share, uint64_t later);

/** A rank that a stalled operation waits for; with `gone`, only one that has left. -1: none. */
int kl_flat_blocked_on(struct kl_flat_op *op, bool gone);

#endif
