/* SPDX-License-Identifier: Apache-2.0 */
/* A stencil with its coefficients in constant memory, bodies that attract each other, and a solver with all its steps in one cooperative grid.
 * Hosts compute the same in the same order: the results are equal to the last bit. */
#pragma once

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cmath>
#include <vector>

constexpr int RADIUS = 3;

__constant__ float c_weights[RADIUS + 1];

/* A plane at a time: neighbours in it are shared, those above and below in registers. */
template <int BX, int BY> __global__ void stencil_3d(float *out, const float *in, int nx, int ny, int nz)
{
    __shared__ float s[BY + 2 * RADIUS][BX + 2 * RADIUS];
    int x = blockIdx.x * BX + threadIdx.x, y = blockIdx.y * BY + threadIdx.y, tx = threadIdx.x + RADIUS,
        ty = threadIdx.y + RADIUS;
    int stride = nx * ny, at = y * nx + x;
    float behind[RADIUS], current, front[RADIUS];
    auto value = [=](int i, int j, int k) {
        return i >= 0 && i < nx && j >= 0 && j < ny && k >= 0 && k < nz ? in[k * stride + j * nx + i] : 0.0f;
    };

    for (int r = 0; r < RADIUS; r++) behind[r] = 0;
    current = value(x, y, 0);
    for (int r = 0; r < RADIUS; r++) front[r] = value(x, y, r + 1);
    for (int z = 0; z < nz; z++, at += stride) {
        __syncthreads();
        s[ty][tx] = current;
        if (threadIdx.x < RADIUS) {
            s[ty][tx - RADIUS] = value(x - RADIUS, y, z);
            s[ty][tx + BX] = value(x + BX, y, z);
        }
        if (threadIdx.y < RADIUS) {
            s[ty - RADIUS][tx] = value(x, y - RADIUS, z);
            s[ty + BY][tx] = value(x, y + BY, z);
        }
        __syncthreads();
        float sum = c_weights[0] * current;
#pragma unroll RADIUS
        for (int r = 1; r <= RADIUS; r++)
            sum += c_weights[r] *
                   (front[r - 1] + behind[r - 1] + s[ty - r][tx] + s[ty + r][tx] + s[ty][tx - r] + s[ty][tx + r]);
        out[at] = sum;
        for (int r = RADIUS - 1; r > 0; r--) behind[r] = behind[r - 1];
        behind[0] = current;
        current = front[0];
        for (int r = 0; r + 1 < RADIUS; r++) front[r] = front[r + 1];
        front[RADIUS - 1] = value(x, y, z + RADIUS + 1);
    }
}

static void test_stencil()
{
    const int nx = 32, ny = 16, nz = 9;
    const float weights[RADIUS + 1] = {6, -1, 0.5f, 0.25f};
    float *in = managed<float>(nx * ny * nz), *out = managed<float>(nx * ny * nz);
    auto at = [&](int x, int y, int z) {
        return x < 0 || y < 0 || z < 0 || x >= nx || y >= ny || z >= nz ? 0.0f : in[(z * ny + y) * nx + x];
    };

    for (int i = 0; i < nx * ny * nz; i++) in[i] = (float)(i * 37 % 101);
    CUDA(cudaMemcpyToSymbol(c_weights, weights, sizeof weights));
    stencil_3d<16, 8><<<dim3(nx / 16, ny / 8), dim3(16, 8)>>>(out, in, nx, ny, nz);
    DONE();
    for (int i = 0; i < nx * ny * nz; i++) {
        int x = i % nx, y = i / nx % ny, z = i / nx / ny;
        float sum = weights[0] * at(x, y, z);

        for (int r = 1; r <= RADIUS; r++)
            sum += weights[r] * (at(x, y, z + r) + at(x, y, z - r) + at(x, y - r, z) + at(x, y + r, z) +
                                 at(x - r, y, z) + at(x + r, y, z));
        EXPECT(out[i] == sum);
    }
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
}

template <class T> struct vec3 {
    typedef float type;
};
template <> struct vec3<float> {
    typedef float3 type;
};
template <class T> struct vec4 {
    typedef float type;
};
template <> struct vec4<float> {
    typedef float4 type;
};

template <class T>
__host__ __device__ inline typename vec3<T>::type interaction(typename vec3<T>::type a, typename vec4<T>::type bi,
                                                              typename vec4<T>::type bj)
{
    T x = bj.x - bi.x, y = bj.y - bi.y, z = bj.z - bi.z, square = x * x + y * y + z * z + (T)0.5;
    T inverse = 1 / sqrtf(square), s = bj.w * (inverse * inverse * inverse);

    a.x += x * s, a.y += y * s, a.z += z * s;
    return a;
}

template <class T>
__global__ void bodies(typename vec4<T>::type *out, const typename vec4<T>::type *__restrict__ in, int n, T dt)
{
    extern __shared__ typename vec4<T>::type positions[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    typename vec4<T>::type me = in[i];
    typename vec3<T>::type a = {0, 0, 0};

    for (int tile = 0; tile < n / (int)blockDim.x; tile++) {
        positions[threadIdx.x] = in[tile * blockDim.x + threadIdx.x];
        __syncthreads();
#pragma unroll 32
        for (unsigned j = 0; j < blockDim.x; j++) a = interaction<T>(a, me, positions[j]);
        __syncthreads();
    }
    me.x += a.x * dt, me.y += a.y * dt, me.z += a.z * dt;
    out[i] = me;
}

static void test_bodies()
{
    const int n = 128;
    float4 *in = managed<float4>(n), *out = managed<float4>(n);

    for (int i = 0; i < n; i++) in[i] = make_float4(sinf((float)i), cosf(3.0f * i), i / 64.0f, 1.0f + i % 3);
    bodies<float><<<n / 64, 64, 64 * sizeof(float4)>>>(out, in, n, 0.01f);
    DONE();
    for (int i = 0; i < n; i++) {
        float3 a = {0, 0, 0};

        for (int j = 0; j < n; j++) a = interaction<float>(a, in[i], in[j]);
        EXPECT(out[i].x == in[i].x + a.x * 0.01f && out[i].y == in[i].y + a.y * 0.01f &&
               out[i].z == in[i].z + a.z * 0.01f);
    }
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
}

namespace cg = cooperative_groups;

__device__ void dot_product(const double *a, const double *b, int n, double *result, cg::grid_group grid,
                            cg::thread_block block)
{
    extern __shared__ double of_warp[];
    auto warp = cg::tiled_partition<32>(block);
    double sum = 0;

    for (unsigned i = grid.thread_rank(); i < (unsigned)n; i += grid.size()) sum += a[i] * b[i];
    sum = cg::reduce(warp, sum, cg::plus<double>());
    if (warp.thread_rank() == 0) of_warp[warp.meta_group_rank()] = sum;
    cg::sync(block);
    if (block.thread_rank() == 0) {
        sum = 0;
        for (unsigned w = 0; w < warp.meta_group_size(); w++) sum += of_warp[w];
        atomicAdd(result, sum);
    }
    cg::sync(block);
}

/* Conjugate gradients for the matrix with 4 on the diagonal and -1 beside it. */
__global__ void solve(double *x, double *r, double *p, double *q, double *dots, int n, int steps)
{
    cg::thread_block block = cg::this_thread_block();
    cg::grid_group grid = cg::this_grid();
    unsigned first = grid.thread_rank(), stride = grid.size();

    for (unsigned i = first; i < (unsigned)n; i += stride) x[i] = 0, p[i] = r[i];
    dot_product(r, r, n, &dots[0], grid, block);
    cg::sync(grid);
    for (int k = 0; k < steps; k++) {
        double *d = dots + 2 * k;

        for (unsigned i = first; i < (unsigned)n; i += stride)
            q[i] = 4 * p[i] - (i ? p[i - 1] : 0) - (i + 1 < (unsigned)n ? p[i + 1] : 0);
        grid.sync();
        dot_product(p, q, n, &d[1], grid, block);
        grid.sync();
        double alpha = d[0] / d[1];
        for (unsigned i = first; i < (unsigned)n; i += stride) x[i] += alpha * p[i], r[i] -= alpha * q[i];
        grid.sync();
        dot_product(r, r, n, &d[2], grid, block);
        grid.sync();
        double beta = d[2] / d[0];
        for (unsigned i = first; i < (unsigned)n; i += stride) p[i] = r[i] + beta * p[i];
        grid.sync();
    }
}

static void test_solver()
{
    const int threads = 64;
    int n = 500, steps = 40, device, processors = 0, active = 0, supported = 0;
    double *x = managed<double>(n), *r = managed<double>(n), *p = managed<double>(n), *q = managed<double>(n),
           *dots = managed<double>(2 * steps + 1);
    void *arguments[] = {&x, &r, &p, &q, &dots, &n, &steps};
    size_t shared = threads / 32 * sizeof(double);

    CUDA(cudaGetDevice(&device));
    CUDA(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, device));
    CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&active, solve, threads, shared));
    EXPECT(supported && processors * active >= 6);
    for (int i = 0; i < n; i++) r[i] = i % 10 + 1;
    CUDA(cudaLaunchCooperativeKernel((void *)solve, dim3(6), dim3(threads), arguments, shared, nullptr));
    DONE();
    for (int i = 0; i < n; i++) {
        double left = 4 * x[i] - (i ? x[i - 1] : 0) - (i + 1 < n ? x[i + 1] : 0);
        EXPECT(std::fabs(left - (i % 10 + 1)) < 1e-9);
    }
    for (double *v : {x, r, p, q, dots}) CUDA(cudaFree(v));
}

static void test_simulations()
{
    test_stencil();
    test_bodies();
    test_solver();
}
