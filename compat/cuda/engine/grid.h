/* SPDX-License-Identifier: Apache-2.0 */
/**
 * grid.h - a running grid: the blocks that workers take, the first error, and the blocks' shared state.
 */
#ifndef KL_ENGINE_GRID_H
#define KL_ENGINE_GRID_H

#include "compat/cuda/engine/children.h"
#include "compat/cuda/engine/engine.h"

#include <pthread.h>
#include <stdbool.h>

enum { KL_CLUSTER_BLOCKS = 16 };

struct kl_worker;

struct kl_grid {
    const struct kl_engine_launch *launch;
    uint64_t blocks;
    _Atomic uint64_t next; /* the next block to take */
    _Atomic int error;
    void (*add_worker)(struct kl_grid *grid);
    unsigned helpers; /* under the pool's lock, as the next two */
    struct kl_grid *link;
    bool starved;
    unsigned depth;
    struct kl_children tails; /* under the pool's lock */
    /* of a cooperative grid, or of one cluster at a time */
    bool together;
    uint64_t cluster;
    struct kl_worker *_Atomic members[KL_CLUSTER_BLOCKS]; /* of a cluster, by ranks */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t live, waiting, turn;
    bool open; /* the threads of all blocks are there */
};

const struct kl_engine_launch *kl_grid_launch(const struct kl_grid *grid);

/** Has a block failed? Then the others may stop. */
bool kl_grid_failed(const struct kl_grid *grid);

/** A block waits for another thread, perhaps of a block of this grid that has no worker yet: start one for it. */
void kl_grid_add_worker(struct kl_grid *grid);

/** A block has failed with `error`; only the first counts. Returns whether it is the first. */
bool kl_grid_fail(struct kl_grid *grid, int error);

/** How many grids launched each other until this one was: 0 for one of the host's. */
unsigned kl_grid_depth(const struct kl_grid *grid);

/** Run it when the grid has ended. It belongs to the grid then. */
void kl_grid_add_tail(struct kl_grid *grid, struct kl_child *child);

/** Are these extents and shared memory that a device has? */
bool kl_engine_possible(const struct kl_engine_launch *launch);

/** The number of blocks in a cluster, 0: there are none; the block of a rank in a cluster, by their numbers. */
uint32_t kl_cluster_blocks(const struct kl_engine_launch *launch);
uint64_t kl_cluster_block(const struct kl_engine_launch *launch, uint64_t cluster, uint64_t rank);

/** One block has come to the grid's barrier: wait for the others. False: the grid has failed. */
bool kl_grid_barrier(struct kl_grid *grid);

#endif
