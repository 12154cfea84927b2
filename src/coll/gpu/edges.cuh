/* SPDX-License-Identifier: Apache-2.0 */
/**
 * edges.cuh - words that blocks of one or several GPUs tell each other, and lines whose data carry their flag (LL).
 *
 * Order: release and acquire, so that all that a block wrote before its barrier is there behind the other one's.
 * A line has 16 bytes: twice 4 bytes of data and the flag. Its halves are stored and loaded as 64 bits each: neither is torn.
 * Waits: end with false once the stop word is set.
 */
#ifndef KL_COLL_GPU_EDGES_CUH
#define KL_COLL_GPU_EDGES_CUH

#include "coll/gpu/flags.cuh"

enum { LINE_BYTES = 16, LINE_DATA = 8 };

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

ON_GPU bool read_line(uint64_t at, uint32_t flag, uint64_t stop, uint64_t *data)
{
    uint64_t low, high;
    uint32_t polls = 0;

    for (;;) {
        asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(at) : "memory");
        if ((uint32_t)(low >> 32) == flag && (uint32_t)(high >> 32) == flag) break;
        if (is_over(stop, &polls)) return false;
    }
    *data = (low & 0xffffffffu) | high << 32;
    return true;
}

ON_GPU void write_line(uint64_t at, uint32_t flag, uint64_t data)
{
    const uint64_t flags = (uint64_t)flag << 32;
    const uint64_t low = flags | (data & 0xffffffffu);
    const uint64_t high = flags | data >> 32;

    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(low), "l"(high) : "memory");
}

#endif
