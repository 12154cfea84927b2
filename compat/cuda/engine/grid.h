/* SPDX-License-Identifier: Apache-2.0 */
/**
 * grid.h - a grid that runs: blocks that workers take, the first error, and what its blocks share.
 */
#ifndef KL_ENGINE_GRID_H
#define KL_ENGINE_GRID_H

#include "compat/cuda/engine/engine.h"

#include <stdbool.h>

struct kl_grid;

const struct kl_engine_launch *kl_grid_launch(const struct kl_grid *grid);

/** Has a block failed? Then nobody needs to go on. */
bool kl_grid_failed(const struct kl_grid *grid);

/** A block waits for what somebody else must do, perhaps one of this grid that has no worker yet: get it one. */
void kl_grid_starved(struct kl_grid *grid);

/** A block has failed with `error`; only the first counts. Returns whether it is the first. */
bool kl_grid_fail(struct kl_grid *grid, int error);

/** One block has come to the grid's barrier: wait for the others. False: the grid has failed. */
bool kl_grid_barrier(struct kl_grid *grid);

#endif
