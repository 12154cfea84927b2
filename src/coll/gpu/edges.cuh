/* SPDX-License-Identifier: Apache-2.0 */
/**
 * edges.cuh - words that blocks of one or several GPUs tell each other, and lines whose data carry their flag (LL, LL128).
 *
 * Order: release and acquire, so that all that a block wrote before its barrier is there behind the other one's.
 * LL:    a line has 16 bytes: twice 4 bytes of data and the flag. Its halves are stored and loaded as 64 bits each: neither
 *        is torn.
 * LL128: a line has 120 bytes of data and 8 of the flag. 8 threads of a warp store 16 bytes each, with one instruction, and
 *        load them with one. Such an access of 128 bytes is one transaction on GPUs from 7.0 on, in their own memory and
 *        over NVLink, so that the data are there with the flag; PTX does not promise it. The stand-in runs threads one
 *        after the other, so there the flag is a release behind all data, and data are loaded behind its acquire.
 * Waits: end with false once the stop word is set.
 */
#ifndef KL_COLL_GPU_EDGES_CUH
#define KL_COLL_GPU_EDGES_CUH

#include "coll/gpu/flags.cuh"
#include "coll/gpu/rows.h"

ON_GPU uint64_t load_step(uint64_t at)
{
    uint64_t value;

    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

ON_GPU void store_step(uint64_t at, uint64_t value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

/* Until the word is `least` or more. */
ON_GPU bool await(uint64_t at, uint64_t least, uint64_t stop)
{
    uint32_t polls = 0;

    while (load_step(at) < least)
        if (is_over(stop, &polls)) return false;
    return true;
}

ON_GPU void load_pair(uint64_t at, uint64_t *low, uint64_t *high)
{
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(*low), "=l"(*high) : "l"(at) : "memory");
}

ON_GPU void store_pair(uint64_t at, uint64_t low, uint64_t high)
{
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(low), "l"(high) : "memory");
}

/* ---- LL: a line of a thread ---- */

struct narrow {
    enum { WORDS = 1, BYTES = KL_LINE_LL, DATA = KL_LINE_LL_DATA };
    uint64_t at, data; /* bytes behind the begin of the slot, and of the chunk */

    /* A thread's first line, and those from one to the next. */
    static __device__ __forceinline__ uint64_t first(uint32_t thread)
    {
        return thread;
    }
    static __device__ __forceinline__ uint64_t step(uint32_t threads)
    {
        return threads;
    }
    __device__ __forceinline__ narrow(uint64_t number, uint64_t) : at(BYTES * number), data(DATA * number)
    {
    }
    __device__ __forceinline__ bool has(int) const
    {
        return true;
    }
    __device__ __forceinline__ bool read(uint64_t slot, uint64_t step, uint64_t stop, uint64_t *word) const
    {
        const uint32_t flag = (uint32_t)step;
        uint64_t low, high;
        uint32_t polls = 0;

        for (;;) {
            load_pair(slot + at, &low, &high);
            if ((uint32_t)(low >> 32) == flag && (uint32_t)(high >> 32) == flag) break;
            if (is_over(stop, &polls)) return false;
        }
        *word = (low & 0xffffffffu) | high << 32;
        return true;
    }
    __device__ __forceinline__ void write(uint64_t slot, uint64_t step, const uint64_t *word) const
    {
        const uint64_t flags = step << 32;

        store_pair(slot + at, flags | (*word & 0xffffffffu), flags | *word >> 32);
    }
};

/* ---- LL128: a thread's share of a line; a warp has four lines, perhaps beyond the last one ---- */

struct wide {
    enum { WORDS = 2, BYTES = KL_LINE_LL128, DATA = KL_LINE_LL128_DATA, THREADS = 8, WARP = 32 };
    uint64_t at, data;
    bool there, last; /* the line exists; this thread has its flag */

    static __device__ __forceinline__ uint64_t first(uint32_t thread)
    {
        return thread / WARP * (WARP / THREADS);
    }
    static __device__ __forceinline__ uint64_t step(uint32_t threads)
    {
        return threads / THREADS;
    }
    /* `number`: the warp's first line. */
    __device__ __forceinline__ wide(uint64_t number, uint64_t lines)
    {
        const uint32_t share = threadIdx.x % THREADS;
        const uint64_t line = number + threadIdx.x % WARP / THREADS;

        at = BYTES * line + 16 * share;
        data = DATA * line + 16 * share;
        there = line < lines;
        last = share == THREADS - 1;
    }
    __device__ __forceinline__ bool has(int word) const
    {
        return there && !(last && word);
    }
    __device__ __forceinline__ bool read(uint64_t slot, uint64_t step, uint64_t stop, uint64_t *word) const
    {
        const bool waits = there && last;

        __syncwarp(); /* the threads of a line load together: none before its data, another behind its flag */
        for (uint32_t polls = 1;; polls++) {
#ifdef KL_FOR_STAND_IN
            const bool arrived = !waits || load_step(slot + at + 8) == step;
#else
            if (there) load_pair(slot + at, &word[0], &word[1]);
            const bool arrived = !waits || word[1] == step;
#endif
            if (__all_sync(0xffffffffu, arrived)) break;
            if (polls % KL_FLAGS_POLLS == 0 && __any_sync(0xffffffffu, load_acquire(stop) != 0)) return false;
        }
#ifdef KL_FOR_STAND_IN
        if (there) load_pair(slot + at, &word[0], &word[1]);
#endif
        return true;
    }
    __device__ __forceinline__ void write(uint64_t slot, uint64_t step, const uint64_t *word) const
    {
#ifdef KL_FOR_STAND_IN
        if (there) store_pair(slot + at, word[0], last ? 0 : word[1]); /* 0 is no flag */
        __syncwarp();
        if (there && last) store_step(slot + at + 8, step);
#else
        __syncwarp();
        if (there) store_pair(slot + at, word[0], last ? step : word[1]);
#endif
    }
};

#endif
