/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/engine/grid.h"
#include "compat/cuda/engine/worker.h"
#include "compat/cuda/include/kolo_cuda/abi.h"

static bool complete(const struct kl_worker *w, const struct kl_barrier *b)
{
    return b->arrived && b->arrived >= (b->expected ? b->expected : w->live);
}

static void open_barrier(struct kl_worker *w, struct kl_barrier *b)
{
    uint32_t thread = b->first;

    if (b == &w->barrier[KL_GRID_BARRIER] && !kl_grid_barrier(w->grid)) kl_block_abandon(w, KL_CUDA_LAUNCH);
    b->result_arrived = b->arrived;
    b->result_positive = b->positive;
    b->arrived = b->positive = b->expected = 0;
    b->first = KL_NO_THREAD;
    while (thread != KL_NO_THREAD) {
        uint32_t next = w->fibre[thread].next; /* pushing it to another list changes it */

        kl_block_ready(w, thread);
        thread = next;
    }
}

static void arrive(struct kl_worker *w, struct kl_barrier *b, unsigned count, int predicate)
{
    b->arrived++;
    b->positive += predicate != 0;
    if (count) b->expected = (uint16_t)count;
    (void)w;
}

static void wait_at(struct kl_worker *w, struct kl_barrier *b, const char *file, int line)
{
    struct kl_fibre *me = &w->fibre[w->current];
    struct kl_list list = {b->first, b->last};

    if (complete(w, b)) {
        open_barrier(w, b);
        return;
    }
    me->wait = KL_WAIT_BARRIER;
    me->barrier = (uint8_t)(b - w->barrier);
    me->file = file;
    me->line = line;
    kl_list_push(w, &list, w->current);
    b->first = list.first;
    b->last = list.last;
    kl_block_wait(w);
    me->wait = KL_WAIT_NOTHING;
}

int __koloBarrier(unsigned id, unsigned count, int kind, int predicate, const char *file, int line)
{
    struct kl_worker *w = kl_worker_here;
    struct kl_barrier *b;

    if (!w) return predicate != 0;
    b = &w->barrier[id % KL_GRID_BARRIER];
    arrive(w, b, count, predicate);
    wait_at(w, b, file, line);
    switch (kind) {
    case KOLO_BARRIER_COUNT:
        return b->result_positive;
    case KOLO_BARRIER_AND:
        return b->result_positive == b->result_arrived;
    case KOLO_BARRIER_OR:
        return b->result_positive > 0;
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
    wait_at(w, &w->barrier[KL_GRID_BARRIER], file, line);
}

void kl_barrier_leave(struct kl_worker *w)
{
    for (struct kl_barrier *b = w->barrier; b < w->barrier + KL_BLOCK_BARRIERS; b++)
        if (complete(w, b)) open_barrier(w, b);
}
