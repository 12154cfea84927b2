/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/engine/grid.h"
#include "compat/cuda/engine/worker.h"

const struct kl_engine_launch *kl_grid_launch(const struct kl_grid *grid)
{
    return grid->launch;
}

unsigned kl_grid_depth(const struct kl_grid *grid)
{
    return grid->depth;
}

bool kl_grid_failed(const struct kl_grid *grid)
{
    return kl_load_relaxed(&grid->error) != KL_CUDA_SUCCESS;
}

bool kl_grid_fail(struct kl_grid *grid, int error)
{
    int none = KL_CUDA_SUCCESS;
    bool first = kl_cas_acq_rel(&grid->error, &none, error);

    if (grid->together) {
        (void)pthread_mutex_lock(&grid->lock);
        (void)pthread_cond_broadcast(&grid->moved);
        (void)pthread_mutex_unlock(&grid->lock);
    }
    return first;
}

void kl_grid_add_worker(struct kl_grid *grid)
{
    grid->add_worker(grid);
}

bool kl_grid_barrier(struct kl_grid *grid)
{
    uint64_t turn;

    if (grid->blocks == 1) return true;
    (void)pthread_mutex_lock(&grid->lock);
    turn = grid->turn;
    if (++grid->waiting >= grid->live) {
        grid->waiting = 0;
        grid->turn++;
        (void)pthread_cond_broadcast(&grid->moved);
    }
    while (turn == grid->turn && !kl_grid_failed(grid)) (void)pthread_cond_wait(&grid->moved, &grid->lock);
    (void)pthread_mutex_unlock(&grid->lock);
    return !kl_grid_failed(grid);
}
