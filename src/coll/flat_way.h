/* SPDX-License-Identifier: Apache-2.0 */
/**
 * flat_way.h - whether a reduction over a board goes by core; for the files of Flat only.
 *
 * Where cores have several ranks each, slices, or parts, may be merged core by core first: what they come to is then taken from another core once, not from
 * each rank there. That costs a turn more, and so pays where lines take long from core to core, which can change while a program runs. So both ways are
 * measured, by function and size (lately.h). All ranks use the same way in the same operation: times are told with posts that all ranks read, and so all
 * decide from the same times, in the same operation.
 */
#ifndef KL_COLL_FLAT_WAY_H
#define KL_COLL_FLAT_WAY_H

#include "coll/shm/flat_op.h"

/** Is that of use at all, for this function and so many bytes and ranks? Slices are settled. */
bool kl_flat_may_go_by_core(const struct kl_flat_op *op);

/** It may: choose for this operation, which begins. */
void kl_flat_choose_way(struct kl_flat_op *op);

/** The first turn of one that decides (op->decides) is over. */
void kl_flat_decide_way(struct kl_flat_op *op);

/** The operation is complete. */
void kl_flat_took_way(struct kl_flat_op *op);

#endif
