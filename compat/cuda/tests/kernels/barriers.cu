/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers of blocks: in loops, in functions, after early returns; blocks of all shapes; static and dynamic shared memory. */
#include "check.h"

__device__ int barrier_inside(int *s, int t, int n)
{
    s[t] = t;
    __syncthreads();
    return s[n - 1 - t];
}

__global__ void reverse(int *out)
{
    __shared__ int s[1024];
    int n = blockDim.x * blockDim.y * blockDim.z, t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);

    out[blockIdx.x * n + t] = barrier_inside(s, t, n);
}

/* Threads leave one after the other; those that stay still meet. */
__global__ void leave_early(int *out)
{
    __shared__ int round[256];
    int t = threadIdx.x;

    round[t] = 0;
    for (int i = 0; i < 8; i++) {
        if (t % 8 == i) return;
        __syncthreads();
        round[t]++;
        __syncthreads();
        if (round[(t + 1) % 8 == 0 ? t : t + 1 < (int)blockDim.x && (t + 1) % 8 > i ? t + 1 : t] != i + 1) out[0] = -1;
        __syncthreads();
    }
}

__global__ void vote(int *out)
{
    int t = threadIdx.x, n = blockDim.x;
    int count = __syncthreads_count(t % 3 == 0), all = __syncthreads_and(t < n), none = __syncthreads_and(t != 5), any = __syncthreads_or(t == n - 1),
        never = __syncthreads_or(t > n);

    if (count != (n + 2) / 3 || !all || (n > 5) != !none || !any || never) atomicAdd(out, 1);
}

/* Different statements may meet each other: only arrivals count. */
__global__ void branches(int *out)
{
    __shared__ int s[64];
    int t = threadIdx.x;

    if (t % 2) {
        s[t] = t;
        __syncthreads();
    } else {
        s[t] = -t;
        __syncthreads();
    }
    out[t] = s[t ^ 1];
}

/* One declared array without a size, as two types in two kernels, beside memory of known size. */
template <typename T> __global__ void prefix(const T *in, T *out, int n)
{
    extern __shared__ __align__(sizeof(double)) unsigned char memory[];
    __shared__ T total;
    T *s = reinterpret_cast<T *>(memory);
    int t = threadIdx.x;

    s[t] = in[t];
    for (int d = 1; d < n; d *= 2) {
        __syncthreads();
        T v = t >= d ? s[t - d] : T(0);
        __syncthreads();
        s[t] += v;
    }
    if (t == n - 1) total = s[t];
    __syncthreads();
    out[t] = s[t];
    if (t == 0) out[n] = total;
}

extern __shared__ float at_file_scope[];

__global__ void use_file_scope(float *out)
{
    float *alias = at_file_scope;

    at_file_scope[threadIdx.x] = threadIdx.x + 0.5f;
    __syncthreads();
    out[threadIdx.x] = alias[blockDim.x - 1 - threadIdx.x] + *(at_file_scope + 0);
}

struct tile {
    float value[16][17];
    int count;
};

__global__ void transpose(const float *in, float *out, int n)
{
    __shared__ tile t;
    static __shared__ volatile int seen;
    __shared__ alignas(16) char padding[32], more[3];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;

    if (threadIdx.x + threadIdx.y == 0) {
        t.count = 0;
        seen = 0;
        padding[0] = more[0] = 1;
    }
    t.value[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    atomicAdd(&t.count, 1);
    seen = 1;
    out[(blockIdx.x * 16 + threadIdx.y) * n + blockIdx.y * 16 + threadIdx.x] = t.value[threadIdx.x][threadIdx.y];
    __syncthreads();
    if (t.count != 256 || !seen || padding[0] + more[0] != 2 || (size_t)padding % 16) out[0] = -1;
}

static void test_shapes(int *p)
{
    const dim3 shapes[] = {dim3(1), dim3(2), dim3(31), dim3(32), dim3(33), dim3(96), dim3(1024), dim3(8, 4), dim3(3, 5, 7), dim3(1, 1, 64)};

    for (const dim3 &shape : shapes) {
        int n = shape.x * shape.y * shape.z;

        reverse<<<7, shape>>>(p);
        DONE();
        for (int i = 0; i < 7 * n; i++) EXPECT(p[i] == n - 1 - i % n);
    }
}

static void test_shared(int *p)
{
    double *in = managed<double>(256), *out = managed<double>(257);
    float *m = managed<float>(64 * 64), *w = managed<float>(64 * 64);

    for (int i = 0; i < 256; i++) in[i] = i;
    prefix<<<1, 256, 256 * sizeof(double)>>>(in, out, 256);
    DONE();
    EXPECT(out[255] == 255 * 128 && out[256] == out[255] && out[1] == 1);
    for (int i = 0; i < 64; i++) p[i] = 1;
    prefix<<<1, 64, 64 * sizeof(int)>>>(p, p + 64, 64);
    DONE();
    EXPECT(p[64 + 63] == 64);
    use_file_scope<<<1, 64, 64 * sizeof(float)>>>(m);
    DONE();
    EXPECT(m[0] == 64.0f && m[63] == 1.0f);
    for (int i = 0; i < 64 * 64; i++) m[i] = i;
    transpose<<<dim3(4, 4), dim3(16, 16)>>>(m, w, 64);
    DONE();
    for (int i = 0; i < 64; i++)
        for (int k = 0; k < 64; k++) EXPECT(w[i * 64 + k] == k * 64 + i);
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
    CUDA(cudaFree(m));
    CUDA(cudaFree(w));
}

static void test(int)
{
    int *p = managed<int>(7 * 1024);

    test_shapes(p);
    p[0] = 0;
    leave_early<<<3, 256>>>(p);
    DONE();
    EXPECT(p[0] == 0);
    for (int n : {1, 5, 6, 32, 100, 1024}) vote<<<2, n>>>(p);
    DONE();
    EXPECT(p[0] == 0);
    branches<<<1, 64>>>(p);
    DONE();
    EXPECT(p[0] == 1 && p[1] == 0 && p[63] == -62);
    test_shared(p);
    CUDA(cudaFree(p));
}

int main()
{
    return on_all_devices(test);
}
