/* SPDX-License-Identifier: Apache-2.0 */
/** calls.c - functions that kernels call: they end or yield the running thread, or read a clock. */
#include "compat/cuda/engine/worker.h"
#include "compat/cuda/include/kolo_cuda/abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void __koloTrap(const char *why)
{
    struct kl_worker *w = kl_worker_here;

    if (!w) {
        fprintf(stderr, "kolo: %s, outside of a kernel\n", why);
        abort();
    }
    kl_report(w, "%s", why);
    kl_block_abandon(w, KL_CUDA_LAUNCH);
}

void kl_engine_refuse_access(const void *address, int error, const char *why)
{
    struct kl_worker *w = kl_worker_here;

    if (!w) {
        fprintf(stderr, "kolo: %s, at %p, outside of a kernel\n", why, address);
        abort();
    }
    kl_report(w, "%s, at %p", why, address);
    kl_block_abandon(w, error);
}

void __koloGridBarrier(const char *file, int line)
{
    if (!__koloCooperative())
        __koloTrap("grid-wide barrier in a kernel that was not launched with cudaLaunchCooperativeKernel");
    kl_barrier_of_grid(kl_worker_here, file, line);
}

void __koloExit(void)
{
    if (!kl_worker_here) exit(0);
    kl_block_exit(kl_worker_here);
}

void __koloAssert(const char *expression, const char *file, unsigned line, const char *function)
{
    struct kl_worker *w = kl_worker_here;

    if (!w) {
        fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, expression);
        abort();
    }
    kl_report_assertion(w, expression, file, line, function);
    kl_block_abandon(w, KL_CUDA_ASSERT);
}

void __koloYield(void)
{
    if (kl_worker_here) kl_block_yield(kl_worker_here);
}

static uint64_t nanoseconds(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

uint64_t __koloClock(void)
{
    return nanoseconds(CLOCK_MONOTONIC);
}

uint64_t __koloNanoseconds(void)
{
    return nanoseconds(CLOCK_REALTIME);
}
