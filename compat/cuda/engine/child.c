/* SPDX-License-Identifier: Apache-2.0 */
/* A block's launches wait in its worker until the block has ended, and run there one after the other: in all of its streams, which CUDA
 * allows. Launches into the tail stream wait in the grid until all blocks and their launches have ended. */
#include "compat/cuda/engine/grid.h"
#include "compat/cuda/engine/worker.h"

#include <stdlib.h>

enum { DEPTH_MAX = 24, ERROR_INVALID = 1, ERROR_RESOURCES = 701, ERROR_DEPTH = 65 };

static int refuse(struct kl_worker *w, int error, const char *why)
{
    if (!w->last_error) kl_report(w, "a launch from this kernel: %s", why);
    return error;
}

static int check(struct kl_worker *w, const struct kl_engine_launch *l, void *const *arguments)
{
    if (kl_grid_depth(w->grid) >= DEPTH_MAX)
        return refuse(w, ERROR_DEPTH, "kernels that launch kernels go 24 levels deep, and this is one more");
    if (!kl_engine_possible(l))
        return refuse(w, KL_CUDA_CONFIGURATION, "no device has such extents, or so much shared memory");
    if (l->kernel->max_threads && l->block.x * l->block.y * l->block.z > l->kernel->max_threads)
        return refuse(w, ERROR_RESOURCES, "a block has more threads than __launch_bounds__ allows");
    if (l->cooperative) return refuse(w, ERROR_INVALID, "cooperative grids are launched from the host");
    if (l->kernel->parameter_count && !arguments) return refuse(w, ERROR_INVALID, "the arguments are missing");
    return KL_CUDA_SUCCESS;
}

int kl_engine_launch_child(const struct kl_engine_launch *launch, void *const *arguments, bool tail)
{
    struct kl_worker *w = kl_worker_here;
    struct kl_child *child;
    int error = check(w, launch, arguments);

    if (error) return error;
    child = aligned_alloc(64, (sizeof *child + launch->kernel->argument_bytes + 63) / 64 * 64);
    if (!child) return refuse(w, KL_CUDA_MEMORY, "no memory for its arguments");
    child->launch = *launch;
    child->launch.device = kl_grid_launch(w->grid)->device;
    child->launch.arguments = child->arguments;
    if (launch->kernel->parameter_count) kl_engine_pack(launch->kernel, arguments, child->arguments);
    if (tail)
        kl_grid_add_tail(w->grid, child);
    else
        kl_children_add(&w->children, child);
    return KL_CUDA_SUCCESS;
}

int *kl_engine_last_error(void)
{
    return kl_worker_here ? &kl_worker_here->last_error : NULL;
}
