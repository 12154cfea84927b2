/* SPDX-License-Identifier: Apache-2.0 */
/**
 * settings.c - CUDA_LAUNCH_BLOCKING, and the limits of devices, which are kept and given back.
 */
#include "compat/cuda/runtime/settings.h"

#include "base/atomic.h"
#include "compat/cuda/engine/engine.h"
#include "compat/cuda/runtime/entry.h"

#include <pthread.h>
#include <stdlib.h>

static bool blocking;

static void read_environment(void)
{
    const char *text = getenv("CUDA_LAUNCH_BLOCKING");

    blocking = text && strtol(text, NULL, 10) != 0;
}

bool kl_cudart_launch_blocking(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_environment);
    return blocking;
}

/* ---- limits: the stack of kernels is real, the others are numbers ---- */

enum { LIMITS = cudaLimitPersistingL2CacheSize + 1 };

static _Atomic size_t limits[LIMITS] = {
    [cudaLimitPrintfFifoSize] = 7 << 20,   [cudaLimitMallocHeapSize] = 8 << 20,
    [cudaLimitDevRuntimeSyncDepth] = 2,    [cudaLimitDevRuntimePendingLaunchCount] = 2048,
    [cudaLimitMaxL2FetchGranularity] = 64,
};

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    cudaError_t rc = kl_cuda_enter();

    if (rc) return kl_cudart_done(rc);
    if ((unsigned)limit >= LIMITS) return kl_cudart_done(cudaErrorUnsupportedLimit);
    if (limit == cudaLimitStackSize) kl_engine_set_stack_bytes(value);
    kl_store_relaxed(&limits[limit], value);
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaDeviceSetLimit);

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    cudaError_t rc = value ? kl_cuda_enter() : cudaErrorInvalidValue;

    if (rc) return kl_cudart_done(rc);
    if ((unsigned)limit >= LIMITS) return kl_cudart_done(cudaErrorUnsupportedLimit);
    *value = kl_load_relaxed(&limits[limit]);
    if (limit == cudaLimitStackSize && !*value) *value = kl_engine_stack_bytes();
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaDeviceGetLimit);

/* The caches of CPUs keep nothing on demand. */
cudaError_t cudaCtxResetPersistingL2Cache(void)
{
    return kl_cudart_done(kl_cuda_enter());
}
KL_CUDART_ENTRY(cudaCtxResetPersistingL2Cache);
