/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/engine/grid.h"
#include "compat/cuda/engine/worker.h"

static bool complete(const struct kl_worker *w, const struct kl_barrier *b)
{
    return b->tally.arrived && b->tally.arrived >= (b->expected ? b->expected : w->live);
}

/* No thread waits anywhere else: all of them at once. They find the tally in the barrier. */
static void ready_all(struct kl_worker *w, struct kl_list list)
{
    w->waiting = w->yields = 0;
    for (uint32_t i = 0; i * KL_WARP_LANES < w->threads; i++) w->warp[i].stopped = 0;
    kl_list_append(w, &w->ready, list);
}

static void ready_each(struct kl_worker *w, uint32_t thread, struct kl_tally tally)
{
    while (thread != KL_NO_THREAD) {
        uint32_t next = w->fibre[thread].next; /* pushing it to another list changes it */

        w->fibre[thread].tally = tally;
        kl_block_ready(w, thread);
        thread = next;
    }
}

/* Writes before the barrier are visible behind it, also on other CPUs that the block's threads notify. */
static void open_barrier(struct kl_worker *w, struct kl_barrier *b)
{
    struct kl_tally tally = b->tally;
    struct kl_list list = {b->first, b->last};
    bool all = !b->expected && b->waiting == w->waiting;

    if (b == &w->barrier[KL_GRID_BARRIER] && !kl_grid_barrier(w->grid)) kl_block_abandon(w, KL_CUDA_LAUNCH);
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
    *b = (struct kl_barrier){.first = KL_NO_THREAD, .opened = tally};
    w->arrived &= ~(1ULL << (b - w->barrier));
    if (all && list.first != KL_NO_THREAD)
        ready_all(w, list);
    else
        ready_each(w, list.first, tally);
}

static void arrive(struct kl_worker *w, struct kl_barrier *b, unsigned count, int predicate)
{
    b->tally.arrived++;
    b->tally.positive += predicate != 0;
    w->arrived |= 1ULL << (b - w->barrier);
    if (count) b->expected = (uint16_t)count;
}

static void join(struct kl_worker *w, struct kl_barrier *b)
{
    struct kl_list list = {b->first, b->last};

    w->fibre[w->current].barrier = (uint8_t)(b - w->barrier);
    kl_list_push(w, &list, w->current);
    b->first = list.first;
    b->last = list.last;
    b->waiting++;
}

static struct kl_tally wait_at(struct kl_worker *w, struct kl_barrier *b, unsigned count, const char *file, int line)
{
    struct kl_fibre *me = &w->fibre[w->current];
    struct kl_tally tally = b->tally;

    if (complete(w, b)) {
        open_barrier(w, b);
        return tally;
    }
    join(w, b);
    kl_block_wait(w, KL_WAIT_BARRIER, file, line);
    return count ? me->tally : b->opened;
}

int __koloBarrier(unsigned id, unsigned count, int kind, int predicate, const char *file, int line)
{
    struct kl_worker *w = kl_worker_here;
    struct kl_barrier *b;
    struct kl_tally tally;

    if (!w) return predicate != 0;
    b = &w->barrier[id % KL_GRID_BARRIER];
    arrive(w, b, count, predicate);
    if (kind == KOLO_BARRIER_PLAIN &&
        !complete(w, b)) { /* the common case has no frame of its own on the stack that is left */
        join(w, b);
        return kl_block_wait(w, KL_WAIT_BARRIER, file, line);
    }
    tally = wait_at(w, b, count, file, line);
    switch (kind) {
    case KOLO_BARRIER_COUNT:
        return tally.positive;
    case KOLO_BARRIER_AND:
        return tally.positive == tally.arrived;
    case KOLO_BARRIER_OR:
        return tally.positive > 0;
    default:
        return 0;
    }
}

void __koloBarrierArrive(unsigned id, unsigned count)
{
    struct kl_worker *w = kl_worker_here;
    struct kl_barrier *b;

    if (!w) return;
    b = &w->barrier[id % KL_GRID_BARRIER];
    arrive(w, b, count, 0);
    if (complete(w, b)) open_barrier(w, b);
}

void __koloTileBarrier(unsigned which, unsigned count, const char *file, int line)
{
    struct kl_worker *w = kl_worker_here;
    struct kl_barrier *b;

    if (!w) return;
    b = &w->barrier[KL_TILE_BARRIERS + which % KOLO_TILE_BARRIERS];
    arrive(w, b, count, 0);
    (void)wait_at(w, b, count, file, line);
}

int __koloCooperative(void)
{
    return kl_worker_here && kl_grid_launch(kl_worker_here->grid)->cooperative;
}

void __koloGridBarrier(const char *file, int line)
{
    struct kl_worker *w = kl_worker_here;

    if (!__koloCooperative())
        __koloTrap("grid-wide barrier in a kernel that was not launched with cudaLaunchCooperativeKernel");
    arrive(w, &w->barrier[KL_GRID_BARRIER], 0, 0);
    (void)wait_at(w, &w->barrier[KL_GRID_BARRIER], 0, file, line);
}

void kl_barrier_leave(struct kl_worker *w)
{
    for (uint64_t rest = w->arrived; rest; rest &= rest - 1) {
        struct kl_barrier *b = &w->barrier[__builtin_ctzll(rest)];

        if (complete(w, b)) open_barrier(w, b);
    }
}
