/* SPDX-License-Identifier: Apache-2.0 */
/** flags.cuh - waiting for kernels of other GPUs: by words of 64 bits at most, in own memory. */
#ifndef KL_COLL_GPU_FLAGS_CUH
#define KL_COLL_GPU_FLAGS_CUH

#include "coll/gpu/flags_job.h"
#include "coll/gpu/format.cuh"

ON_GPU uint32_t load_acquire(uint64_t at)
{
    uint32_t value;

    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

ON_GPU void store_release(uint64_t at, uint32_t value)
{
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

/* After some polls: has the host said that no other GPU will come? */
ON_GPU bool is_over(uint64_t stop, uint32_t *polls)
{
    return ++*polls % KL_FLAGS_POLLS == 0 && load_acquire(stop);
}

/* The GPU's work before this kernel is visible to others, and theirs to the kernel behind it. */
ON_GPU void meet(const kl_meet_job &j)
{
    const uint32_t epoch = *(const uint32_t *)j.epoch + 1;
    uint32_t polls = 0;

    for (uint32_t g = threadIdx.x; g < j.gpus; g += blockDim.x)
        if (g != j.own) store_release(j.flags[g] + 4 * j.own, epoch);
    __syncthreads();
    for (uint32_t g = threadIdx.x; g < j.gpus; g += blockDim.x)
        while (g != j.own && (int32_t)(load_acquire(j.flags[j.own] + 4 * g) - epoch) < 0)
            if (is_over(j.stop, &polls)) break;
    __syncthreads();
    if (threadIdx.x == 0) *(uint32_t *)j.epoch = epoch;
}

#endif
