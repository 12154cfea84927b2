/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices: tiles in shared memory, transposition with padding, and half precision in pairs. */
#pragma once

#include <cuda_fp16.h>
#include <vector>

template <int BLOCK_SIZE, class T> __global__ void multiply(T *C, const T *A, const T *B, int wA, int wB)
{
    int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
    int aBegin = wA * BLOCK_SIZE * by, aEnd = aBegin + wA - 1, aStep = BLOCK_SIZE;
    int bBegin = BLOCK_SIZE * bx, bStep = BLOCK_SIZE * wB;
    T Csub = 0;

    for (int a = aBegin, b = bBegin; a <= aEnd; a += aStep, b += bStep) {
        __shared__ T As[BLOCK_SIZE][BLOCK_SIZE];
        __shared__ T Bs[BLOCK_SIZE][BLOCK_SIZE];

        As[ty][tx] = A[a + wA * ty + tx];
        Bs[ty][tx] = B[b + wB * ty + tx];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BLOCK_SIZE; ++k) Csub += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    C[wB * BLOCK_SIZE * by + BLOCK_SIZE * bx + wB * ty + tx] = Csub;
}

constexpr int TILE_DIM = 16, BLOCK_ROWS = 4;

__global__ void transpose(float *out, const float *in, int width, int height)
{
    __shared__ float tile[TILE_DIM][TILE_DIM + 1];
    int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;

    for (int i = 0; i < TILE_DIM; i += BLOCK_ROWS) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * width + x];
    __syncthreads();
    x = blockIdx.y * TILE_DIM + threadIdx.x;
    y = blockIdx.x * TILE_DIM + threadIdx.y;
    for (int i = 0; i < TILE_DIM; i += BLOCK_ROWS) out[(y + i) * height + x] = tile[threadIdx.x][threadIdx.y + i];
}

/* C[m][2n], two columns a thread; fused, and so rounded once for each product. */
__global__ void multiply_halves(__half2 *C, const __half *A, const __half2 *B, int depth)
{
    extern __shared__ __align__(16) unsigned char raw[];
    __half *row = reinterpret_cast<__half *>(raw);
    __half2 sum = __float2half2_rn(0.0f);

    for (int k = threadIdx.x; k < depth; k += blockDim.x) row[k] = A[blockIdx.x * depth + k];
    __syncthreads();
    for (int k = 0; k < depth; k++) sum = __hfma2(__half2half2(row[k]), B[k * blockDim.x + threadIdx.x], sum);
    C[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

template <int size, class T> static void products()
{
    const int hA = 2 * size, wA = 3 * size, wB = 4 * size;
    T *A = managed<T>(hA * wA), *B = managed<T>(wA * wB), *C = managed<T>(hA * wB);
    dim3 threads(size, size), grid(wB / threads.x, hA / threads.y);

    for (int i = 0; i < hA * wA; i++) A[i] = (T)(i % 11 - 4);
    for (int i = 0; i < wA * wB; i++) B[i] = (T)(i % 7 - 3);
    multiply<size><<<grid, threads>>>(C, A, B, wA, wB);
    DONE();
    for (int i = 0; i < hA; i++) {
        for (int j = 0; j < wB; j++) {
            T sum = 0;
            for (int k = 0; k < wA; k++) sum += A[i * wA + k] * B[k * wB + j];
            EXPECT(C[i * wB + j] == sum);
        }
    }
    for (T *p : {A, B, C}) CUDA(cudaFree(p));
}

/* a * b + c in half, rounded once, from integers: the value is exact in double, and the conversion rounds it. */
static __half fused(__half a, __half b, __half c)
{
    return __double2half((double)__half2float(a) * __half2float(b) + __half2float(c));
}

static void half_products()
{
    const int rows = 5, pairs = 32, depth = 40;
    __half *A = managed<__half>(rows * depth);
    __half2 *B = managed<__half2>(depth * pairs), *C = managed<__half2>(rows * pairs);

    for (int i = 0; i < rows * depth; i++) A[i] = __float2half((float)(i % 19 - 9) / 8);
    for (int i = 0; i < depth * pairs; i++) B[i] = __floats2half2_rn((float)(i % 23) / 16, (float)(i % 29 - 14) * 3);
    multiply_halves<<<rows, pairs, depth * sizeof(__half)>>>(C, A, B, depth);
    DONE();
    for (int i = 0; i < rows * pairs; i++) {
        __half low = __float2half(0.0f), high = low;

        for (int k = 0; k < depth; k++) {
            __half a = A[i / pairs * depth + k];
            __half2 b = B[k * pairs + i % pairs];

            low = fused(a, __low2half(b), low);
            high = fused(a, __high2half(b), high);
        }
        EXPECT(__half2float(__low2half(C[i])) == __half2float(low) &&
               __half2float(__high2half(C[i])) == __half2float(high));
    }
    CUDA(cudaFree(A));
    CUDA(cudaFree(B));
    CUDA(cudaFree(C));
}

static void test_matrices()
{
    const int width = 64, height = 32;
    float *in = managed<float>(width * height), *out = managed<float>(width * height);

    products<16, float>();
    products<8, int>();
    for (int i = 0; i < width * height; i++) in[i] = (float)i;
    transpose<<<dim3(width / TILE_DIM, height / TILE_DIM), dim3(TILE_DIM, BLOCK_ROWS)>>>(out, in, width, height);
    DONE();
    for (int i = 0; i < width * height; i++) EXPECT(out[i % width * height + i / width] == in[i]);
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
    half_products();
}
