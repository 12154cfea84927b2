// SPDX-License-Identifier: Apache-2.0
// Atomics of <cuda/atomic>: exact from many blocks, of numbers of all kinds, and in an order that blocks wait for.
#include "check.h"

#include <cuda/atomic>
#include <new>

typedef cuda::atomic<int, cuda::thread_scope_device> turn_type;

__global__ void adds(int *n, float *halves, unsigned *top, unsigned long long *bits)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    cuda::atomic_ref<int, cuda::thread_scope_device>(*n).fetch_add(1, cuda::memory_order_relaxed);
    cuda::atomic_ref<float>(*halves).fetch_add(0.5f);
    cuda::atomic_ref<unsigned, cuda::thread_scope_block>(*top).fetch_max(i);
    cuda::atomic_ref<unsigned long long>(*bits).fetch_or(1ull << i % 64, cuda::memory_order_acq_rel);
}

__global__ void in_turn(turn_type *turn, int *next, int *order)
{
    int mine = (int)(gridDim.x - 1 - blockIdx.x), expected = 0;

    while (turn->load(cuda::memory_order_acquire) != mine) continue;
    order[mine] = (*next)++;
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
    expected = mine + 7;
    if (turn->compare_exchange_strong(expected, mine) || expected != mine) order[mine] = -1;
    turn->store(mine + 1, cuda::memory_order_release);
}

int main()
{
    return on_all_devices([](int) {
        const int blocks = 12;
        int *n = managed<int>(1), *next = managed<int>(1), *order = managed<int>(blocks);
        float *halves = managed<float>(1);
        unsigned *top = managed<unsigned>(1);
        unsigned long long *bits = managed<unsigned long long>(1);
        void *memory = nullptr;

        CUDA(cudaMallocManaged(&memory, sizeof(turn_type)));
        turn_type *turn = new (memory) turn_type(0);
        adds<<<8, 1024>>>(n, halves, top, bits);
        in_turn<<<blocks, 1>>>(turn, next, order);
        DONE();
        EXPECT(*n == 8192 && *halves == 4096 && *top == 8191 && *bits == ~0ull);
        for (int i = 0; i < blocks; i++) EXPECT(order[i] == i);
        EXPECT(turn->load() == blocks);
    });
}
