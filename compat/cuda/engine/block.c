/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/engine/grid.h"
#include "compat/cuda/engine/worker.h"
#include "compat/cuda/include/kolo_cuda/abi.h"

#include <sched.h>
#include <string.h>

/* Polls of other threads' data before a thread yields: yields are rare enough to cost nothing if it does not wait. */
enum { PATIENCE = 256, YIELDS_OF_BLOCK = 4096, YIELDS_OF_WHOLE = 64 };

/* The stacks of a block's threads fill more than the fastest cache: fetch the next one meanwhile. */
static void fetch(const struct kl_fibre *fibre)
{
#if defined(__x86_64__) || defined(__aarch64__)
    __builtin_prefetch(fibre->context.machine.sp);
    __builtin_prefetch((const char *)fibre->context.machine.sp + 64);
#else
    (void)fibre;
#endif
}

static struct kl_fibre *pop_ready(struct kl_worker *w)
{
    uint32_t thread = w->ready.first;

    w->ready.first = w->fibre[thread].next;
    if (w->ready.first != KL_NO_THREAD) fetch(&w->fibre[w->ready.first]);
    return &w->fibre[thread];
}

static struct kl_engine_dim index_of(uint32_t thread, struct kl_engine_dim extent)
{
    uint32_t rest = thread / extent.x;

    return (struct kl_engine_dim){thread % extent.x, rest % extent.y, rest / extent.y};
}

/* The running thread has no more to do on its stack: switch to a thread that can run, for good. */
static void leave_stack(struct kl_worker *w) __attribute__((noreturn));

static void leave_stack(struct kl_worker *w)
{
    struct kl_stack *mine = w->stack;

    w->stack = NULL;
    kl_stacks_give(&w->stacks, mine);
    if (w->ready.first != KL_NO_THREAD) kl_context_leave(&pop_ready(w)->context);
    if (w->live) {
        kl_report_deadlock(w);
        w->fault = KL_CUDA_LAUNCH;
    }
    kl_context_leave(&w->home);
}

static void begin_thread(struct kl_worker *w)
{
    w->current = w->begun++;
    w->yields = 0;
    __koloPatience = PATIENCE;
}

static void end_thread(struct kl_worker *w)
{
    uint32_t thread = w->current;

    w->live--;
    w->warp[thread / KL_WARP_LANES].gone |= 1U << thread % KL_WARP_LANES;
    if (w->waiting) {
        kl_warp_leave(w, thread);
        kl_barrier_leave(w);
    }
}

/* The loop over threads that have not begun, on one stack after the other. */
static void run_threads(void)
{
    struct kl_worker *w = kl_worker_here;
    const struct kl_engine_launch *launch = kl_grid_launch(w->grid);
    void (*entry)(const void *) = launch->kernel->entry;
    struct kl_engine_dim extent = launch->block;

    kl_context_begin();
    __koloThreadIdx = index_of(w->begun, extent);
    while (w->begun < w->threads) {
        begin_thread(w);
        entry(launch->arguments);
        if (w->whole) w->live = 1;
        end_thread(w);
        if (w->ready.first != KL_NO_THREAD) break;
        if (w->current + 1 != w->begun || ++__koloThreadIdx.x == extent.x) __koloThreadIdx = index_of(w->begun, extent);
    }
    leave_stack(w);
}

/* A new stack for threads that have not begun; NULL with the block's fault set if there is none. */
static struct kl_context *begin_stack(struct kl_worker *w, struct kl_context *room)
{
    w->stack = kl_stacks_take(&w->stacks);
    if (!w->stack) {
        kl_report(w, "no memory for the stack of a thread: %u of %u have one", w->begun, w->threads);
        w->fault = KL_CUDA_MEMORY;
        return NULL;
    }
    kl_context_prepare(room, w->stack->low, w->stack->bytes, run_threads);
    return room;
}

/* The running thread gives way to `other`, and is the running thread again afterwards. */
static void give_way(struct kl_worker *w, struct kl_context *other)
{
    uint32_t thread = w->current;
    struct kl_fibre *me = &w->fibre[thread];

    kl_context_switch(&me->context, other);
    w->current = thread;
    w->stack = me->stack;
    me->stack = NULL;
    __koloThreadIdx = me->index;
    __koloPatience = PATIENCE;
}

static void keep_place(struct kl_worker *w)
{
    struct kl_fibre *me = &w->fibre[w->current];

    me->stack = w->stack;
#ifdef KL_ENGINE_ASAN /* does not look at the stack's description otherwise, a line of the cache */
    kl_context_place(&me->context, w->stack->low, w->stack->bytes);
#endif
    me->index = __koloThreadIdx;
}

static void give_way_to_another(struct kl_worker *w)
{
    struct kl_context fresh, *other;

    keep_place(w);
    w->waiting++;
    kl_warp_stop(w, w->current);
    if (w->ready.first != KL_NO_THREAD) {
        give_way(w, &pop_ready(w)->context);
    } else if (w->begun < w->threads) {
        other = begin_stack(w, &fresh);
        give_way(w, other ? other : &w->home);
    } else {
        kl_report_deadlock(w);
        kl_block_abandon(w, KL_CUDA_LAUNCH);
    }
}

int kl_block_wait(struct kl_worker *w, enum kl_io_wait what, const char *file, int line)
{
    struct kl_fibre *me = &w->fibre[w->current];

    me->wait = (uint8_t)what;
    me->file = file;
    me->line = line;
    give_way_to_another(w);
    me->wait = KL_WAIT_NOTHING;
    return 0;
}

void kl_block_yield(struct kl_worker *w)
{
    struct kl_context fresh, *other;

    if (kl_grid_failed(w->grid)) kl_block_abandon(w, KL_CUDA_LAUNCH);
    if (++w->yields % YIELDS_OF_BLOCK == 0) kl_grid_add_worker(w->grid);
    if (w->whole) {
        __koloPatience = PATIENCE;
        if (w->yields % YIELDS_OF_WHOLE == 0) (void)sched_yield();
        return;
    }
    kl_warp_stop(w, w->current);
    if (w->begun == w->threads && w->ready.first == KL_NO_THREAD) {
        __koloPatience = PATIENCE;
        kl_warp_resume(w, w->current);
        (void)sched_yield();
        return;
    }
    keep_place(w);
    kl_list_push(w, &w->ready, w->current);
    if (w->begun < w->threads) {
        other = begin_stack(w, &fresh);
        give_way(w, other ? other : &w->home);
    } else {
        if (w->yields % w->live == 0) (void)sched_yield();
        give_way(w, &pop_ready(w)->context);
    }
    kl_warp_resume(w, w->current);
}

void kl_block_take_all(struct kl_worker *w)
{
    w->whole = true;
    w->begun = w->threads;
}

void kl_block_abandon(struct kl_worker *w, int error)
{
    w->fault = error;
    kl_context_leave(&w->home);
}

void kl_block_exit(struct kl_worker *w)
{
    struct kl_context fresh, *other;

    end_thread(w);
    if (w->ready.first == KL_NO_THREAD && w->begun < w->threads) {
        kl_stacks_give(&w->stacks, w->stack);
        other = begin_stack(w, &fresh); /* the same stack, from its top: the running frame is deeper than the new one */
        kl_context_leave(other ? other : &w->home);
    }
    leave_stack(w);
}

static void set_out(struct kl_worker *w, uint64_t block)
{
    const struct kl_engine_launch *launch = kl_grid_launch(w->grid);
    uint64_t row = block / launch->grid.x;

    w->block = (struct kl_engine_dim){(uint32_t)(block % launch->grid.x), (uint32_t)(row % launch->grid.y),
                                      (uint32_t)(row / launch->grid.y)};
    w->threads = w->live = launch->block.x * launch->block.y * launch->block.z;
    w->begun = w->waiting = w->current = w->yields = 0;
    w->fault = w->last_error = KL_CUDA_SUCCESS;
    w->ready.first = KL_NO_THREAD;
    w->whole = false;
    w->kept_bytes = 0;
    for (; w->arrived; w->arrived &= w->arrived - 1)
        w->barrier[__builtin_ctzll(w->arrived)] = (struct kl_barrier){.first = KL_NO_THREAD};
    for (uint32_t i = 0; i * KL_WARP_LANES < w->threads; i++) w->warp[i] = (struct kl_warp){0};
    if (w->threads % KL_WARP_LANES)
        w->warp[w->threads / KL_WARP_LANES].gone = UINT32_MAX
                                                   << w->threads % KL_WARP_LANES; /* lanes that are not there */
    __koloBlockIdx = w->block;
    __koloBlockDim = launch->block;
    __koloGridDim = launch->grid;
    __koloShared = w->shared;
    __koloImage = 1 + launch->device;
}

/* A block that was abandoned leaves stacks in threads that will not run again. */
static void collect_stacks(struct kl_worker *w)
{
    if (w->stack) {
        w->fibre[w->current].stack = NULL;
        kl_stacks_give(&w->stacks, w->stack);
        w->stack = NULL;
    }
    for (uint32_t i = 0; i < w->begun; i++) {
        if (!w->fibre[i].stack) continue;
        kl_stacks_give(&w->stacks, w->fibre[i].stack);
        w->fibre[i].stack = NULL;
    }
}

static const char *reason_of(const struct kl_worker *w)
{
    const struct kl_engine_launch *launch = kl_grid_launch(w->grid);
    const char *known = launch->explain ? launch->explain(w->fault_address) : NULL;

    return known ? known : "an access to memory that is not there";
}

static void tell_fault(struct kl_worker *w)
{
    if (w->fault_signal == SIGILL)
        kl_report(w, "an illegal instruction at %p", w->fault_address);
    else if (w->fault_signal == SIGFPE)
        kl_report(w, "an arithmetic exception at %p", w->fault_address);
    else if (w->stack && kl_stack_overflowed(w->stack, w->fault_address))
        kl_report(w, "its stack of %zu bytes is full; cudaDeviceSetLimit(cudaLimitStackSize, ...) makes it larger",
                  kl_engine_stack_bytes());
    else
        kl_report(w, "%s, at %p", reason_of(w), w->fault_address);
    w->fault_signal = 0;
}

int kl_block_run(struct kl_worker *w, uint64_t block)
{
    struct kl_context fresh, *first;

    set_out(w, block);
    kl_worker_here = w;
    first = begin_stack(w, &fresh);
    if (first) kl_context_switch(&w->home, first);
    kl_worker_here = NULL;
    __koloImage = 0;
    if (w->fault_signal) tell_fault(w);
    if (w->fault) collect_stacks(w);
    return w->fault;
}
