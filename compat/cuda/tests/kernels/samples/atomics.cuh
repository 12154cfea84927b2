/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes that do one atomic operation for all of them, a lock, a queue, a table without locks, and a stream of pieces over streams. */
#pragma once

#include <cooperative_groups.h>

namespace aggregated
{
namespace cg = cooperative_groups;

__device__ int next_place(int *counter)
{
    cg::coalesced_group active = cg::coalesced_threads();
    int first = 0;

    if (active.thread_rank() == 0) first = atomicAdd(counter, active.num_threads());
    return active.shfl(first, 0) + active.thread_rank();
}

/* The same without cooperative groups. */
__device__ int next_place_by_mask(int *counter)
{
    unsigned mask = __activemask(), lane = threadIdx.x & 31;
    int leader = __ffs(mask) - 1, first = 0;

    if ((int)lane == leader) first = atomicAdd(counter, __popc(mask));
    first = __shfl_sync(mask, first, leader);
    return first + __popc(mask & ((1u << lane) - 1));
}

template <bool ByMask> __global__ void filter(int *out, int *count, int *additions, const int *in, int n)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x;

    if (i >= n || in[i] <= 0) return;
    int at = ByMask ? next_place_by_mask(count) : next_place(count);
    out[at] = in[i];
    if (at < n) atomicAdd(additions, 1);
}

struct Lock {
    int *mutex;

    __device__ void lock()
    {
        while (atomicCAS(mutex, 0, 1) != 0) {
        }
        __threadfence();
    }
    __device__ void unlock()
    {
        __threadfence();
        atomicExch(mutex, 0);
    }
};

__global__ void with_lock(Lock l, volatile int *shared)
{
    if (threadIdx.x % 8 == 0) {
        bool done = false;

        while (!done) {
            l.lock();
            shared[0] = shared[0] + 1;
            shared[1] = shared[1] + shared[0];
            l.unlock();
            done = true;
        }
    }
}

/* Open addressing: the first to come to a place has it. */
__global__ void insert(unsigned long long *table, unsigned size, const unsigned *keys, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned at = keys[i] * 2654435761u % size;

        for (;; at = (at + 1) % size) {
            unsigned long long entry = (unsigned long long)(keys[i] + 1) << 32;
            unsigned long long old = atomicCAS(&table[at], 0ull, entry);
            if (old != 0 && old >> 32 != keys[i] + 1) continue;
            atomicAdd(&table[at], 1ull);
            break;
        }
    }
}

__global__ void extremes(const float *in, int n, int *least, unsigned long long *place_of_largest)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n) return;
    atomicMin(least, int(in[i] * 1024));
    atomicMax(place_of_largest, (unsigned long long)__float_as_uint(in[i] + 100) << 32 | (unsigned)i);
}
} // namespace aggregated

static void test_atomics()
{
    using namespace aggregated;
    const int n = 1000;
    int *in = managed<int>(n), *out = managed<int>(n), *counts = managed<int>(4), positive = 0, sum = 0, out_sum;

    for (int i = 0; i < n; i++) {
        in[i] = i * 37 % 11 - 5;
        if (in[i] > 0) positive++, sum += in[i];
    }
    for (int by_mask = 0; by_mask < 2; by_mask++) {
        counts[0] = counts[1] = out_sum = 0;
        by_mask ? filter<true><<<8, 128>>>(out, counts, counts + 1, in, n)
                : filter<false><<<8, 128>>>(out, counts, counts + 1, in, n);
        DONE();
        for (int i = 0; i < positive; i++) out_sum += out[i];
        EXPECT(counts[0] == positive && counts[1] == positive && out_sum == sum);
    }
    counts[0] = counts[1] = counts[2] = 0;
    with_lock<<<4, 64>>>(Lock{counts + 2}, counts);
    DONE();
    EXPECT(counts[0] == 32 && counts[1] == 33 * 16);

    unsigned long long *table = managed<unsigned long long>(256), found = 0, *largest = managed<unsigned long long>(1);
    unsigned *keys = managed<unsigned>(n);
    for (int i = 0; i < n; i++) keys[i] = i * 7 % 100;
    insert<<<4, 64>>>(table, 256, keys, n);
    DONE();
    for (int i = 0; i < 256; i++) {
        EXPECT(table[i] == 0 || (unsigned)table[i] == n / 100);
        found += (unsigned)table[i];
    }
    EXPECT(found == n);

    float *real = managed<float>(n);
    for (int i = 0; i < n; i++) real[i] = (i * 31 % 997) / 8.0f - 50;
    counts[3] = 1 << 30;
    extremes<<<8, 128>>>(real, n, counts + 3, largest);
    DONE();
    EXPECT(counts[3] == -50 * 1024 && real[(unsigned)*largest] == 996 / 8.0f - 50);
    for (void *p :
         {(void *)in, (void *)out, (void *)counts, (void *)table, (void *)keys, (void *)real, (void *)largest})
        CUDA(cudaFree(p));
}
