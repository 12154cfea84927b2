/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers whose arrivals and waits are apart, and pipelines of copies into shared memory. */
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;
using barrier_t = cuda::barrier<cuda::thread_scope_block>;

#pragma nv_diag_suppress static_var_with_dynamic_init

/* Each round every thread writes, arrives, works, waits, and reads a neighbour's value. */
__global__ void rounds(int *out, int n)
{
    __shared__ barrier_t barrier;
    __shared__ int s[2][256];
    int t = threadIdx.x, sum = 0;

    if (t == 0) init(&barrier, blockDim.x);
    __syncthreads();
    for (int i = 0; i < n; i++) {
        s[i % 2][t] = i * 1000 + t;
        barrier_t::arrival_token token = barrier.arrive();
        sum += i;
        barrier.wait(std::move(token));
        sum += s[i % 2][(t + 1) % blockDim.x];
    }
    out[blockIdx.x * blockDim.x + t] = sum;
}

/* The same with the primitives; odd threads leave after half of the rounds. */
__global__ void primitives(int *out, int n)
{
    __shared__ __mbarrier_t barrier;
    __shared__ int s[2][256];
    int t = threadIdx.x, sum = 0;

    if (t == 0) __mbarrier_init(&barrier, blockDim.x);
    __syncthreads();
    for (int i = 0; i < n; i++) {
        if (i == n / 2 && t % 2) {
            __mbarrier_arrive_and_drop(&barrier);
            break;
        }
        s[i % 2][t] = i + t;
        __mbarrier_token_t token = __mbarrier_arrive(&barrier);
        while (!__mbarrier_try_wait(&barrier, token, 1000)) {
        }
        sum += s[i % 2][t ^ 2];
    }
    out[blockIdx.x * blockDim.x + t] = sum;
}

/* The first warp fills two buffers in turn, the others empty them. */
__global__ void producer_and_consumers(const float *in, float *out, int n, int part)
{
    extern __shared__ float buffer[];
    __shared__ barrier_t ready[2], filled[2];
    int t = threadIdx.x;

    if (t < 2) init(ready + t, blockDim.x), init(filled + t, blockDim.x);
    __syncthreads();
    if (t < 32) {
        for (int i = 0; i < n / part; i++) {
            ready[i % 2].arrive_and_wait();
            for (int k = t; k < part; k += 32) buffer[i % 2 * part + k] = in[i * part + k];
            (void)filled[i % 2].arrive();
        }
    } else {
        (void)ready[0].arrive();
        (void)ready[1].arrive();
        for (int i = 0; i < n / part; i++) {
            filled[i % 2].arrive_and_wait();
            for (int k = t - 32; k < part; k += blockDim.x - 32) out[i * part + k] = 2 * buffer[i % 2 * part + k];
            (void)ready[i % 2].arrive();
        }
    }
}

/* Two stages ahead: the block copies while it computes. */
template <int Stages> __global__ void staged(const int *in, int *out, int parts)
{
    extern __shared__ int memory[];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, Stages> state;
    cg::thread_block block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    const int n = block.size();

    for (int computed = 0, fetched = 0; computed < parts; computed++) {
        for (; fetched < parts && fetched < computed + Stages; fetched++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, memory + fetched % Stages * n, in + fetched * n, cuda::aligned_size_t<4>(n * sizeof(int)), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        out[computed * n + threadIdx.x] = memory[computed % Stages * n + n - 1 - threadIdx.x];
        pipe.consumer_release();
    }
}

/* Producers and consumers are different threads. */
__global__ void roles(const int *in, int *out, int parts)
{
    __shared__ int memory[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    cg::thread_block block = cg::this_thread_block();
    bool produces = block.thread_rank() < 64;
    auto pipe = cuda::make_pipeline(block, &state, produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
    int t = threadIdx.x % 64;

    for (int i = 0; i < parts; i++) {
        if (produces) {
            pipe.producer_acquire();
            cuda::memcpy_async(&memory[i % 2][t], &in[i * 64 + t], sizeof(int), pipe);
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            out[i * 64 + t] = memory[i % 2][63 - t] + 1;
            pipe.consumer_release();
        }
    }
}

/* One thread's own pipeline, a group's copy, a copy that a barrier counts in bytes, a barrier of a group in two halves. */
__global__ void copies(const int *in, int *out)
{
    __shared__ alignas(16) int a[128], b[128], c[128], d[128];
    __shared__ barrier_t barrier;
    cg::thread_block block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline();
    int t = threadIdx.x;

    if (t == 0) init(&barrier, blockDim.x);
    pipe.producer_acquire();
    cuda::memcpy_async(a + t, in + t, sizeof(int), pipe);
    pipe.producer_commit();
    cuda::pipeline_consumer_wait_prior<0>(pipe);
    cg::memcpy_async(block, b, in, sizeof b);
    cg::wait(block);
    cuda::memcpy_async(block, c, in, sizeof c, barrier);
    barrier.arrive_and_wait();
    __pipeline_memcpy_async(d + t, in + t, sizeof(int));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    auto token = block.barrier_arrive();
    int mine = a[t];
    block.barrier_wait(std::move(token));
    out[t] = mine + b[127 - t] + c[(t + 1) % 128] + d[t ^ 1];
}

static void test_barriers()
{
    int *out = managed<int>(4 * 256);

    rounds<<<4, 256>>>(out, 9);
    DONE();
    for (int i = 0; i < 4 * 256; i++) EXPECT(out[i] == 36 + 36000 + 9 * ((i + 1) % 256));
    for (int n : {2, 9}) {
        primitives<<<4, 256>>>(out, n);
        DONE();
        for (int i = 0; i < 4 * 256; i++) {
            int t = i % 256, rounds = t % 2 ? n / 2 : n;

            EXPECT(out[i] == rounds * (rounds - 1) / 2 + rounds * (t ^ 2));
        }
    }
    CUDA(cudaFree(out));
}

static void test_pipelines()
{
    int *in = managed<int>(4096), *out = managed<int>(4096);
    float *from = managed<float>(4096), *to = managed<float>(4096);

    for (int i = 0; i < 4096; i++) in[i] = 3 * i, from[i] = i;
    producer_and_consumers<<<1, 128, 2 * 64 * sizeof(float)>>>(from, to, 4096, 64);
    DONE();
    for (int i = 0; i < 4096; i++) EXPECT(to[i] == 2.0f * i);
    staged<2><<<1, 128, 2 * 128 * sizeof(int)>>>(in, out, 32);
    DONE();
    for (int i = 0; i < 4096; i++) EXPECT(out[i] == 3 * (i / 128 * 128 + 127 - i % 128));
    staged<4><<<1, 256, 4 * 256 * sizeof(int)>>>(in, out, 16);
    DONE();
    for (int i = 0; i < 4096; i++) EXPECT(out[i] == 3 * (i / 256 * 256 + 255 - i % 256));
    roles<<<1, 128>>>(in, out, 64);
    DONE();
    for (int i = 0; i < 4096; i++) EXPECT(out[i] == 3 * (i / 64 * 64 + 63 - i % 64) + 1);
    copies<<<1, 128>>>(in, out);
    DONE();
    for (int t = 0; t < 128; t++) EXPECT(out[t] == 3 * (t + 127 - t + (t + 1) % 128 + (t ^ 1)));
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
    CUDA(cudaFree(from));
    CUDA(cudaFree(to));
}

static void test(int)
{
    test_barriers();
    test_pipelines();
}

int main()
{
    return on_all_devices(test);
}
