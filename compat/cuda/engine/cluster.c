/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters: the blocks of one run together, each in a thread of its own, one cluster of the grid after the other. The shared memory of another
 * block is its worker's; a variable of shared memory is one of its thread, as far from the thread's pointer as here. */
#include "compat/cuda/engine/grid.h"
#include "compat/cuda/engine/worker.h"

#include "compat/cuda/include/kolo_cuda/abi.h"

#include <sched.h>

/* Variables of libraries that were loaded later lie elsewhere in each thread; those that were there at the start are near its pointer. */
enum { NEAR = 64 << 20 };

static const struct kl_engine_dim one = {1, 1, 1};

static struct kl_engine_dim cluster_of(const struct kl_worker *w)
{
    return w && w->grid->together && kl_grid_launch(w->grid)->cluster.x ? kl_grid_launch(w->grid)->cluster : one;
}

uint32_t kl_cluster_blocks(const struct kl_engine_launch *launch)
{
    return launch->cluster.x * launch->cluster.y * launch->cluster.z;
}

uint64_t kl_cluster_block(const struct kl_engine_launch *l, uint64_t cluster, uint64_t rank)
{
    const uint64_t columns = l->grid.x / l->cluster.x, rows = l->grid.y / l->cluster.y;
    const uint64_t x = cluster % columns * l->cluster.x + rank % l->cluster.x,
                   y = cluster / columns % rows * l->cluster.y + rank / l->cluster.x % l->cluster.y,
                   z = cluster / columns / rows * l->cluster.z + rank / l->cluster.x / l->cluster.y;

    return x + l->grid.x * (y + (uint64_t)l->grid.y * z);
}

void __koloClusterDim(unsigned *x, unsigned *y, unsigned *z)
{
    const struct kl_engine_dim d = cluster_of(kl_worker_here);

    *x = d.x;
    *y = d.y;
    *z = d.z;
}

void __koloClusterBarrier(const char *file, int line)
{
    struct kl_worker *w = kl_worker_here;

    if (cluster_of(w).x * cluster_of(w).y * cluster_of(w).z == 1)
        (void)__koloBarrier(0, 0, KOLO_BARRIER_PLAIN, 0, file, line);
    else
        kl_barrier_of_grid(w, file, line);
}

static unsigned own_rank(const struct kl_worker *w)
{
    const struct kl_engine_dim d = cluster_of(w);

    return w->block.x % d.x + d.x * (w->block.y % d.y + d.y * (w->block.z % d.z));
}

/* All blocks of the cluster have threads: the worker of this one comes. */
static struct kl_worker *member(struct kl_worker *w, unsigned rank)
{
    struct kl_worker *other;

    while (!(other = kl_load_acquire(&w->grid->members[rank]))) {
        if (kl_grid_failed(w->grid)) kl_block_abandon(w, KL_CUDA_LAUNCH);
        (void)sched_yield();
    }
    return other;
}

static bool is_in(const struct kl_worker *w, const char *p)
{
    return (const char *)w->shared <= p && p < (const char *)w->shared + w->shared_bytes;
}

void *__koloClusterShared(void *own, unsigned rank)
{
    struct kl_worker *w = kl_worker_here, *other;
    const struct kl_engine_dim d = cluster_of(w);
    char *p = own;

    if (!w || rank == own_rank(w)) return own;
    if (rank >= d.x * d.y * d.z) __koloTrap("the cluster has no block of this rank");
    other = member(w, rank);
    if (is_in(w, p)) return (char *)other->shared + (p - (char *)w->shared);
    if (p - w->thread_pointer > NEAR || p - w->thread_pointer < -(ptrdiff_t)NEAR)
        __koloTrap("the shared memory of another block of the cluster, from an address that is not in shared memory");
    return other->thread_pointer + (p - w->thread_pointer);
}

unsigned __koloClusterRankOf(const void *address)
{
    struct kl_worker *w = kl_worker_here;
    const struct kl_engine_dim d = cluster_of(w);
    const char *p = address;

    for (unsigned rank = 0; w && rank < d.x * d.y * d.z; rank++) {
        const struct kl_worker *other = d.x * d.y * d.z > 1 ? member(w, rank) : w;
        const ptrdiff_t near = p - other->thread_pointer;

        if (is_in(other, p) || (near < 1 << 20 && near > -(1 << 20))) return rank;
    }
    return w ? own_rank(w) : 0;
}
