/* SPDX-License-Identifier: Apache-2.0 */
/**
 * worker.h - a worker runs blocks: an OS thread of a grid, with the state of one block's threads.
 *
 * The threads of a block run one after the other on one stack, as a plain loop. A thread that has to wait keeps the stack, which is its
 * fibre then, and the loop goes on with the next thread on another one. Ready threads continue before new ones begin: threads that
 * only synchronise within their warp need 32 stacks.
 *
 *     unstarted --begin--> running --wait--> waiting --released--> ready --> running --return--> gone
 */
#ifndef KL_ENGINE_WORKER_H
#define KL_ENGINE_WORKER_H

#include "compat/cuda/engine/children.h"
#include "compat/cuda/engine/context.h"
#include "compat/cuda/engine/engine.h"
#include "compat/cuda/engine/stacks.h"
#include "compat/cuda/include/kolo_cuda/abi.h"
#include "src/base/atomic.h"

#include <signal.h>

enum {
    KL_BLOCK_THREADS = 1024,
    KL_WARP_LANES = 32,
    KL_BLOCK_WARPS = KL_BLOCK_THREADS / KL_WARP_LANES,
    KL_GRID_BARRIER = 16, /* behind those with a number */
    KL_TILE_BARRIERS,
    KL_BLOCK_BARRIERS = KL_TILE_BARRIERS + KOLO_TILE_BARRIERS,
    KL_NO_THREAD = 0xffff
};

/** Errors of cudaError_t that the engine gives. */
enum {
    KL_CUDA_SUCCESS = 0,
    KL_CUDA_MEMORY = 2,
    KL_CUDA_CONFIGURATION = 9,
    KL_CUDA_SYMBOL = 13,
    KL_CUDA_DEVICE = 101,
    KL_CUDA_ADDRESS = 700,
    KL_CUDA_ASSERT = 710,
    KL_CUDA_INSTRUCTION = 715,
    KL_CUDA_LAUNCH = 719,
    KL_CUDA_COOPERATIVE = 720
};

/** The reason why a thread waits. */
enum kl_io_wait { KL_WAIT_NOTHING, KL_WAIT_BARRIER, KL_WAIT_WARP, KL_WAIT_ACTIVE };

/** The threads at a barrier when it opened, and how many of them voted yes. */
struct kl_tally {
    uint16_t arrived, positive;
};

/** A thread of the block that has had to wait: a fibre. A barrier uses its first line of the cache only. */
struct kl_fibre {
    struct kl_context context;
    struct kl_stack *stack;
    const char *file; /* where it waits */
    struct kl_engine_dim index;
    int line;
    uint16_t next; /* in the list of those that are ready, or that wait at a barrier */
    uint8_t wait;
    uint8_t barrier;
    struct kl_tally tally;
    uint8_t operation, lane_source;
    uint32_t mask;
    uint64_t value, result;
} __attribute__((aligned(64)));

/** Lanes of a warp that wait for each other, and lanes that are gone or never existed. `stopped`: all lanes that wait or yield;
 * `asking`: lanes that ask for the active ones. */
struct kl_warp {
    uint32_t waiting, gone, stopped, asking;
};

struct kl_barrier {
    uint16_t first, last; /* waiting threads, in the order of arrival */
    uint16_t waiting;     /* how many they are */
    uint16_t expected;    /* with a count; 0: all that live */
    struct kl_tally tally;
    struct kl_tally opened; /* its tally when it was opened last for all that live */
};

struct kl_list {
    uint16_t first, last;
};

struct kl_grid;

struct kl_worker {
    struct kl_worker *next; /* in the store */
    struct kl_context home; /* the OS thread's own stack, where the block was begun */
    struct kl_stacks stacks;
    struct kl_stack *stack; /* of the thread that runs */
    struct kl_grid *grid;
    struct kl_engine_dim block; /* which one */
    uint32_t threads, begun, live, waiting;
    uint32_t current;
    uint32_t yields; /* since anything else than a yield happened */
    bool whole;      /* the kernel runs the block's threads itself */
    char *kept;      /* memory of such kernels */
    size_t kept_bytes;
    struct kl_list ready;
    char *thread_pointer; /* of the OS thread, while a block of a cluster runs */
    void *shared;
    size_t shared_bytes;
    void *signal_stack;
    int fault;        /* the error that ended the block early, 0 none */
    int fault_signal; /* that raised it, 0 none */
    const void *fault_address;
    struct kl_children children; /* that the block launched */
    int last_error;              /* of functions of the runtime that it called */
    uint64_t arrived;            /* barriers with arrivals: bits */
    struct kl_barrier barrier[KL_BLOCK_BARRIERS];
    struct kl_warp warp[KL_BLOCK_WARPS];
    struct kl_fibre fibre[KL_BLOCK_THREADS];
};

/** Indices and extents of the running thread of a kernel, under the names that kernels use. */
extern __thread struct kl_engine_dim __koloThreadIdx __attribute__((tls_model("initial-exec")));
extern __thread struct kl_engine_dim __koloBlockIdx __attribute__((tls_model("initial-exec")));
extern __thread struct kl_engine_dim __koloBlockDim __attribute__((tls_model("initial-exec")));
extern __thread struct kl_engine_dim __koloGridDim __attribute__((tls_model("initial-exec")));

/** The worker that runs a block in this thread, NULL outside of kernels. */
extern __thread struct kl_worker *kl_worker_here __attribute__((tls_model("initial-exec")));

/** A worker with `shared_bytes` of shared memory and stacks of the size that is set now; NULL: no memory. */
struct kl_worker *kl_worker_take(size_t shared_bytes);
void kl_worker_give(struct kl_worker *worker);

/** Run one block of the worker's grid to its end; 0 or the error that ended it, which was reported. */
int kl_block_run(struct kl_worker *worker, uint64_t block);

/** The running thread waits for this, at this line, until another thread readies it. Returns 0. */
int kl_block_wait(struct kl_worker *worker, enum kl_io_wait what, const char *file, int line);

/** The running thread lets all others that can run go first. */
void kl_block_yield(struct kl_worker *worker);

/** The running thread is all threads of the block, and will not wait. */
void kl_block_take_all(struct kl_worker *worker);

/** End the running block with an error, from within it. */
void kl_block_abandon(struct kl_worker *worker, int error) __attribute__((noreturn));

/** End the running thread, from within it. */
void kl_block_exit(struct kl_worker *worker) __attribute__((noreturn));

/** The running thread waits for all threads of a cooperative grid. */
void kl_barrier_of_grid(struct kl_worker *worker, const char *file, int line);

/** A thread is gone: release the threads that wait for it. */
void kl_barrier_leave(struct kl_worker *worker);
void kl_warp_leave(struct kl_worker *worker, uint32_t thread);

/** If no lane of the thread's warp can run, answer the lanes that ask for the active ones. */
void kl_warp_answer(struct kl_worker *worker, uint32_t thread);

/** The running thread will not run for a while, and when it does again. */
static inline void kl_warp_stop(struct kl_worker *worker, uint32_t thread)
{
    struct kl_warp *warp = &worker->warp[thread / KL_WARP_LANES];

    warp->stopped |= 1U << thread % KL_WARP_LANES;
    if (warp->asking) kl_warp_answer(worker, thread);
}

static inline void kl_warp_resume(struct kl_worker *worker, uint32_t thread)
{
    worker->warp[thread / KL_WARP_LANES].stopped &= ~(1U << thread % KL_WARP_LANES);
}

/** Put a thread at the end of a list. */
static inline void kl_list_push(struct kl_worker *worker, struct kl_list *list, uint32_t thread)
{
    worker->fibre[thread].next = KL_NO_THREAD;
    if (list->first == KL_NO_THREAD)
        list->first = (uint16_t)thread;
    else
        worker->fibre[list->last].next = (uint16_t)thread;
    list->last = (uint16_t)thread;
}

/** Put another list, which is not empty, behind a list. */
static inline void kl_list_append(struct kl_worker *worker, struct kl_list *list, struct kl_list other)
{
    if (list->first == KL_NO_THREAD)
        list->first = other.first;
    else
        worker->fibre[list->last].next = other.first;
    list->last = other.last;
}

/** A thread that waited may go on. */
static inline void kl_block_ready(struct kl_worker *worker, uint32_t thread)
{
    worker->waiting--;
    worker->yields = 0;
    kl_warp_resume(worker, thread);
    kl_list_push(worker, &worker->ready, thread);
}

/** Write to stderr why a block ended: kernel, block, thread and `what`. */
void kl_report(const struct kl_worker *worker, const char *what, ...) __attribute__((format(printf, 2, 3)));

/** Write to stderr which assertion failed, and in which thread, as CUDA does. */
void kl_report_assertion(const struct kl_worker *worker, const char *expression, const char *file, unsigned line,
                         const char *function);

/** Write to stderr which threads wait where, if none can run. */
void kl_report_deadlock(const struct kl_worker *worker);

#endif
