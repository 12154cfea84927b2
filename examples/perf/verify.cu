/* SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <algorithm>
#include <stdint.h>

enum { THREADS = 256, MOST_BLOCKS = 64 };

/* ---- numbers: small and whole, so that sums are exact in every type ---- */

__device__ int contribution(size_t index, int rank, int ranks, ncclRedOp_t op)
{
    if (op == ncclProd) return 1 + (index % 4 && (index + rank) % ranks == 0); /* a product is 1 or 2 */
    return (int)((index * 7 + index / 64 + rank * 3) % 4);
}

__device__ double reduced(size_t index, int ranks, ncclRedOp_t op)
{
    int result = contribution(index, 0, ranks, op);

    for (int r = 1; r < ranks; r++) {
        int next = contribution(index, r, ranks, op);

        switch (op) {
        case ncclProd:
            result *= next;
            break;
        case ncclMax:
            result = max(result, next);
            break;
        case ncclMin:
            result = min(result, next);
            break;
        default:
            result += next;
        }
    }
    return op == ncclAvg ? (double)result / ranks : result;
}

/* ---- types ---- */

template <typename T> __device__ T from_double(double x)
{
    return (T)(int64_t)x; /* integers wrap, and means of them are cut */
}
template <> __device__ float from_double(double x)
{
    return (float)x;
}
template <> __device__ double from_double(double x)
{
    return x;
}
template <> __device__ __half from_double(double x)
{
    return __float2half((float)x);
}
template <> __device__ __nv_bfloat16 from_double(double x)
{
    return __float2bfloat16((float)x);
}

template <typename T> __device__ double to_double(T x)
{
    return (double)x;
}
template <> __device__ double to_double(__half x)
{
    return __half2float(x);
}
template <> __device__ double to_double(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

/* Means of floating-point numbers are rounded for each rank: by so much of the largest of them, relatively. */
static double tolerance(const numbers &n)
{
    if (n.op != ncclAvg || n.rank != FROM_ALL) return 0;
    switch (n.type) {
    case ncclFloat16:
        return 3.0 * n.ranks / (1 << 11);
    case ncclBfloat16:
        return 3.0 * n.ranks / (1 << 8);
    case ncclFloat32:
        return 3.0 * n.ranks / (1 << 24);
    case ncclFloat64:
        return 3.0 * n.ranks / (1LL << 53);
    default:
        return 0;
    }
}

/* ---- kernels ---- */

template <typename T> __global__ void put(T *to, numbers n)
{
    size_t stride = (size_t)gridDim.x * blockDim.x;

    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n.count; i += stride) {
        size_t index = n.first + i;

        to[i] = from_double<T>(n.rank == FROM_ALL ? reduced(index, n.ranks, n.op)
                                                  : contribution(index, n.rank, n.ranks, n.op));
    }
}

__device__ void add_to_counter(unsigned long long *counter, unsigned long long n)
{
    asm volatile("red.global.add.u64 [%0], %1;" ::"l"(counter), "l"(n) : "memory");
}

template <typename T>
__global__ void compare(const T *got, const T *want, size_t count, double allowed, unsigned long long *wrong)
{
    __shared__ unsigned of_block;
    size_t stride = (size_t)gridDim.x * blockDim.x;
    unsigned mine = 0;

    if (threadIdx.x == 0) of_block = 0;
    __syncthreads();
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        double difference = to_double(got[i]) - to_double(want[i]);

        mine += !(difference <= allowed && difference >= -allowed); /* NaN is wrong */
    }
    if (mine) atomicAdd(&of_block, mine);
    __syncthreads();
    if (threadIdx.x == 0 && of_block) add_to_counter(wrong, of_block);
}

/* ---- for a type that is known only at run time ---- */

static unsigned blocks(size_t count)
{
    size_t needed = (count + THREADS - 1) / THREADS;

    return (unsigned)std::min<size_t>(needed, MOST_BLOCKS);
}

template <typename F> static void with_type(ncclDataType_t type, F f)
{
    switch (type) {
    case ncclInt8:
        return f((int8_t *)nullptr);
    case ncclUint8:
        return f((uint8_t *)nullptr);
    case ncclInt32:
        return f((int32_t *)nullptr);
    case ncclUint32:
        return f((uint32_t *)nullptr);
    case ncclInt64:
        return f((int64_t *)nullptr);
    case ncclUint64:
        return f((uint64_t *)nullptr);
    case ncclFloat16:
        return f((__half *)nullptr);
    case ncclFloat32:
        return f((float *)nullptr);
    case ncclFloat64:
        return f((double *)nullptr);
    case ncclBfloat16:
        return f((__nv_bfloat16 *)nullptr);
    default:
        return;
    }
}

size_t size_of(ncclDataType_t type)
{
    size_t size = 0;

    with_type(type, [&](auto *t) { size = sizeof *t; });
    return size;
}

template <typename T> static void launch_put(T *to, const numbers &n, cudaStream_t stream)
{
    put<T><<<blocks(n.count), THREADS, 0, stream>>>(to, n);
}

void put_numbers(void *to, const numbers &n, cudaStream_t stream)
{
    if (!n.count) return;
    with_type(n.type, [&](auto *t) { launch_put((decltype(t))to, n, stream); });
    CUDACHECK(cudaGetLastError());
}

template <typename T>
static void launch_compare(const T *got, const void *want, const numbers &n, unsigned long long *wrong,
                           cudaStream_t stream)
{
    compare<<<blocks(n.count), THREADS, 0, stream>>>(got, (const T *)want, n.count, tolerance(n), wrong);
}

void count_wrong(const void *got, const void *want, const numbers &n, unsigned long long *wrong, cudaStream_t stream)
{
    if (!n.count) return;
    with_type(n.type, [&](auto *t) { launch_compare((decltype(t))got, want, n, wrong, stream); });
    CUDACHECK(cudaGetLastError());
}
