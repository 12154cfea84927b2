/* SPDX-License-Identifier: Apache-2.0 */
/**
 * sync.h - barriers, warps and fences.
 *
 * Each function notes where the program calls it: `file` and `line` are no arguments of the program's.
 */
#ifndef KOLO_CUDA_SYNC_H
#define KOLO_CUDA_SYNC_H

#pragma GCC system_header

#include "abi.h"

#include <cstring>

#define KOLO_CUDA_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

static inline void __syncthreads(KOLO_CUDA_HERE)
{
    (void)__koloBarrier(0, 0, KOLO_BARRIER_PLAIN, 0, file, line);
}

static inline int __syncthreads_count(int predicate, KOLO_CUDA_HERE)
{
    return __koloBarrier(0, 0, KOLO_BARRIER_COUNT, predicate, file, line);
}

static inline int __syncthreads_and(int predicate, KOLO_CUDA_HERE)
{
    return __koloBarrier(0, 0, KOLO_BARRIER_AND, predicate, file, line);
}

static inline int __syncthreads_or(int predicate, KOLO_CUDA_HERE)
{
    return __koloBarrier(0, 0, KOLO_BARRIER_OR, predicate, file, line);
}

static inline void __syncwarp(unsigned mask = 0xffffffffu, KOLO_CUDA_HERE)
{
    (void)__koloWarp(mask, KOLO_WARP_SYNC, 0, 0, file, line);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, KOLO_CUDA_HERE)
{
    return (unsigned)__koloWarp(mask, KOLO_WARP_BALLOT, predicate != 0, 0, file, line);
}

namespace __kolo
{

inline unsigned thread_rank()
{
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

inline unsigned lane()
{
    return thread_rank() % 32;
}

/** The lanes of `mask` that are there: a ballot in which all vote yes. */
inline unsigned present(unsigned mask, const char *file, int line)
{
    return (unsigned)__koloWarp(mask, KOLO_WARP_BALLOT, 1, 0, file, line);
}

template <class T> inline uint64_t to_bits(const T &value)
{
    uint64_t bits = 0;

    static_assert(sizeof value <= 8, "lanes exchange values of up to 8 bytes");
    memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T> inline T of_bits(uint64_t bits)
{
    T value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/** The value of lane `source`; larger than 8 bytes in several steps. */
template <class T> inline T take_from(unsigned mask, T value, unsigned source, const char *file, int line)
{
    if constexpr (sizeof(T) <= 8) {
        return of_bits<T>(__koloWarp(mask, KOLO_WARP_SHUFFLE, to_bits(value), source, file, line));
    } else {
        for (size_t at = 0; at < sizeof(T); at += 8) {
            size_t bytes = sizeof(T) - at < 8 ? sizeof(T) - at : 8;
            uint64_t bits = 0;

            memcpy(&bits, (const char *)&value + at, bytes);
            bits = __koloWarp(mask, KOLO_WARP_SHUFFLE, bits, source, file, line);
            memcpy((char *)&value + at, &bits, bytes);
        }
        return value;
    }
}

template <class T> inline T reduce(unsigned mask, int operation, T value, const char *file, int line)
{
    return (T)__koloWarp(mask, operation, (unsigned)value, 0, file, line);
}

} // namespace __kolo

static inline int __all_sync(unsigned mask, int predicate, KOLO_CUDA_HERE)
{
    return __koloWarp(mask, KOLO_WARP_BALLOT, predicate == 0, 0, file, line) == 0;
}

static inline int __any_sync(unsigned mask, int predicate, KOLO_CUDA_HERE)
{
    return __koloWarp(mask, KOLO_WARP_BALLOT, predicate != 0, 0, file, line) != 0;
}

static inline int __uni_sync(unsigned mask, int predicate, KOLO_CUDA_HERE)
{
    return __koloWarp(mask, KOLO_WARP_MATCH_ALL, predicate != 0, 0, file, line) != 0;
}

static inline unsigned __activemask(KOLO_CUDA_HERE)
{
    return __koloActiveMask(file, line);
}

/* Of the lanes of a group of `width`: lane `source` of it, the one `delta` below or above, the one that differs by `other`. */
template <class T> static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, KOLO_CUDA_HERE)
{
    unsigned lane = __kolo::lane(), group = lane & ~(unsigned)(width - 1);

    return __kolo::take_from(mask, value, group + ((unsigned)source & (unsigned)(width - 1)), file, line);
}

template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, KOLO_CUDA_HERE)
{
    unsigned lane = __kolo::lane(), group = lane & ~(unsigned)(width - 1);

    return __kolo::take_from(mask, value, lane - group < delta ? lane : lane - delta, file, line);
}

template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, KOLO_CUDA_HERE)
{
    unsigned lane = __kolo::lane(), end = (lane & ~(unsigned)(width - 1)) + (unsigned)width;

    return __kolo::take_from(mask, value, delta >= end - lane ? lane : lane + delta, file, line);
}

template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int other, int width = 32, KOLO_CUDA_HERE)
{
    unsigned lane = __kolo::lane(), end = (lane & ~(unsigned)(width - 1)) + (unsigned)width,
             source = lane ^ (unsigned)other;

    return __kolo::take_from(mask, value, source >= end ? lane : source, file, line);
}

template <class T> static inline unsigned __match_any_sync(unsigned mask, T value, KOLO_CUDA_HERE)
{
    return (unsigned)__koloWarp(mask, KOLO_WARP_MATCH_ANY, __kolo::to_bits(value), 0, file, line);
}

template <class T> static inline unsigned __match_all_sync(unsigned mask, T value, int *all, KOLO_CUDA_HERE)
{
    unsigned lanes = (unsigned)__koloWarp(mask, KOLO_WARP_MATCH_ALL, __kolo::to_bits(value), 0, file, line);

    *all = lanes != 0;
    return lanes;
}

#define KOLO_CUDA_REDUCE(name, type, operation)                                                                        \
    static inline type name(unsigned mask, type value, KOLO_CUDA_HERE)                                                 \
    {                                                                                                                  \
        return __kolo::reduce(mask, operation, value, file, line);                                                     \
    }
KOLO_CUDA_REDUCE(__reduce_add_sync, unsigned, KOLO_WARP_ADD)
KOLO_CUDA_REDUCE(__reduce_add_sync, int, KOLO_WARP_ADD)
KOLO_CUDA_REDUCE(__reduce_min_sync, unsigned, KOLO_WARP_MIN)
KOLO_CUDA_REDUCE(__reduce_min_sync, int, KOLO_WARP_MIN_SIGNED)
KOLO_CUDA_REDUCE(__reduce_max_sync, unsigned, KOLO_WARP_MAX)
KOLO_CUDA_REDUCE(__reduce_max_sync, int, KOLO_WARP_MAX_SIGNED)
KOLO_CUDA_REDUCE(__reduce_and_sync, unsigned, KOLO_WARP_AND)
KOLO_CUDA_REDUCE(__reduce_or_sync, unsigned, KOLO_WARP_OR)
KOLO_CUDA_REDUCE(__reduce_xor_sync, unsigned, KOLO_WARP_XOR)
#undef KOLO_CUDA_REDUCE

/* CUDA 9 removed the forms without _sync for devices that Kolo emulates. */
#define KOLO_CUDA_GONE __attribute__((error("this form without _sync is gone: name the lanes that take part")))
extern "C" {
KOLO_CUDA_GONE int __all(int);
KOLO_CUDA_GONE int __any(int);
KOLO_CUDA_GONE unsigned __ballot(int);
}
template <class T> KOLO_CUDA_GONE T __shfl(T, int, int = 32);
template <class T> KOLO_CUDA_GONE T __shfl_up(T, unsigned, int = 32);
template <class T> KOLO_CUDA_GONE T __shfl_down(T, unsigned, int = 32);
template <class T> KOLO_CUDA_GONE T __shfl_xor(T, int, int = 32);
#undef KOLO_CUDA_GONE

/* ---- clusters ---- */

static inline dim3 __clusterDim()
{
    dim3 d;

    __koloClusterDim(&d.x, &d.y, &d.z);
    return d;
}

static inline dim3 __clusterRelativeBlockIdx()
{
    const dim3 d = __clusterDim();

    return dim3(blockIdx.x % d.x, blockIdx.y % d.y, blockIdx.z % d.z);
}

static inline dim3 __clusterIdx()
{
    const dim3 d = __clusterDim();

    return dim3(blockIdx.x / d.x, blockIdx.y / d.y, blockIdx.z / d.z);
}

static inline dim3 __clusterGridDimInClusters()
{
    const dim3 d = __clusterDim();

    return dim3(gridDim.x / d.x, gridDim.y / d.y, gridDim.z / d.z);
}

static inline unsigned __clusterSizeInBlocks()
{
    const dim3 d = __clusterDim();

    return d.x * d.y * d.z;
}

static inline unsigned __clusterRelativeBlockRank()
{
    const dim3 d = __clusterDim(), at = __clusterRelativeBlockIdx();

    return at.x + d.x * (at.y + d.y * at.z);
}

/* A thread that has arrived waits where all others do: so the wait is the whole barrier. */
static inline void __cluster_barrier_arrive()
{
}

static inline void __cluster_barrier_wait(KOLO_CUDA_HERE)
{
    __koloClusterBarrier(file, line);
}

static inline void *__cluster_map_shared_rank(const void *address, unsigned rank)
{
    return __koloClusterShared((void *)address, rank);
}

static inline unsigned __cluster_query_shared_rank(const void *address)
{
    return __koloClusterRankOf(address);
}

/* ---- order, and letting others run ---- */

namespace __kolo
{

/** Called after each poll of other threads' data: yields from time to time. */
inline void patience()
{
    if (__builtin_expect(--__koloPatience <= 0, 0)) __koloYield();
}

} // namespace __kolo

static inline void __threadfence_block()
{
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
    __kolo::patience();
}

static inline void __threadfence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    __kolo::patience();
}

static inline void __threadfence_system()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    __kolo::patience();
}

static inline void __nanosleep(unsigned)
{
    __koloYield();
}

static inline long long clock64()
{
    __kolo::patience();
    return (long long)__koloClock();
}

/** clock() in kernels: the C library has another one, with the same type. */
static inline long __kolo_clock()
{
    return (long)clock64();
}

static inline unsigned long long __globaltimer()
{
    __kolo::patience();
    return __koloNanoseconds();
}

static inline void __trap()
{
    __koloTrap("__trap()");
}

static inline void __brkpt()
{
}

#endif
