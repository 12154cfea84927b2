/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with shuffles, votes, and functions that wait, in the ways that programs write them: the comment before each says how kolo-nvcc
 * runs it, and regions_test.sh compares. The results are printed, and are the same both ways. */
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

#define FULL 0xffffffffu
static const int N = 1 << 12;

/* ---- reductions ---- */

__device__ __forceinline__ float warp_sum(float v)
{
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(FULL, v, offset);
    return v;
}

template <typename T> __inline__ __device__ T warp_most(T val)
{
#pragma unroll
    for (int mask = warpSize / 2; mask > 0; mask >>= 1) val = max(val, __shfl_xor_sync(FULL, val, mask));
    return val;
}

template <typename T> __device__ T block_sum(T val)
{
    static __shared__ T shared[32];
    int lane = threadIdx.x % warpSize;
    int wid = threadIdx.x / warpSize;

    for (int offset = 16; offset > 0; offset /= 2) val += __shfl_down_sync(FULL, val, offset);
    if (lane == 0) shared[wid] = val;
    __syncthreads();
    val = (threadIdx.x < blockDim.x / warpSize) ? shared[lane] : 0;
    if (wid == 0)
        for (int offset = 16; offset > 0; offset /= 2) val += __shfl_down_sync(FULL, val, offset);
    return val;
}

/* loops */ __global__ void two_levels(const float *in, float *out, int n)
{
    __shared__ float part[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float v = 0;

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += in[i];
#pragma unroll
    for (int d = warpSize / 2; d > 0; d >>= 1) v += __shfl_down_sync(FULL, v, d);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32 ? part[lane] : 0;
    if (warp == 0) {
        for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(FULL, v, d);
        if (lane == 0) out[blockIdx.x] = v;
    }
}

/* loops */ __global__ void by_function(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? in[i] : 0.0f;

    v = block_sum(v);
    if (threadIdx.x == 0) out[blockIdx.x] = v;
}

__device__ void meet(float *s, float mine, float &other)
{
    s[threadIdx.x] = mine;
    __syncthreads();
    other = s[blockDim.x - 1 - threadIdx.x];
}

/* loops */ __global__ void by_reference(const float *in, float *out)
{
    extern __shared__ float room[];
    float got = 0;

    meet(room, in[threadIdx.x] + 1, got);
    out[blockIdx.x * blockDim.x + threadIdx.x] = got * 2;
}

/* loops */ __global__ void bounded(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n) return;
    float sum = warp_sum(in[i]);
    float most = warp_most<float>(in[i] - sum);
    out[i] = sum + most;
}

/* ---- a warp for each row ---- */

__launch_bounds__(1024) /* loops */ __global__ void softmax(const float *in, float *out, int rows, int C)
{
    int lane = threadIdx.x % 32, row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;

    if (row >= rows) return;
    const float *x = in + row * C;
    float maxval = -1e30f, sum = 0.0f;

    for (int i = lane; i < C; i += 32) maxval = fmaxf(maxval, x[i]);
    maxval = warp_most(maxval);
    for (int i = lane; i < C; i += 32) sum += expf(x[i] - maxval);
    sum = warp_sum(sum);
    sum = __shfl_sync(FULL, sum, 0);
    for (int i = lane; i < C; i += 32) out[row * C + i] = expf(x[i] - maxval) / sum;
}

/* loops */ __global__ void layer_norm(float *out, const float *in, const float *weight, int rows, int C)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();

    if (row >= rows) {
        return;
    }
    const float *x = in + row * C;
    float sum = 0.0f;
    for (int i = warp.thread_rank(); i < C; i += warp.size()) {
        sum += x[i];
    }
    sum = cg::reduce(warp, sum, cg::plus<float>{});
    float m = sum / C;
    sum = 0.0f;
    for (int i = warp.thread_rank(); i < C; i += warp.size()) {
        float diff = x[i] - m;
        sum += diff * diff;
    }
    sum = cg::reduce(warp, sum, cg::plus<float>{});
    float s = rsqrtf(sum / C + 1e-5f);
    float *o = out + row * C;
    for (int c = warp.thread_rank(); c < C; c += warp.size()) {
        float n = s * (x[c] - m);
        o[c] = n * weight[c];
    }
}

/* loops */ __global__ void strided_rows(const float *in, float *out, int rows, int C)
{
    int warps = blockDim.x / 32, lane = threadIdx.x & 31;

    for (int row = threadIdx.x / 32; row < rows; row += warps) {
        float v = 0, other;

        if (row % 3 == 1) continue;
        for (int i = lane; i < C; i += 32) v += in[row * C + i];
        other = __shfl_up_sync(FULL, v, 1);
        if (lane > 0) v += other;
        out[blockIdx.x * rows + row] = 0;
        v = warp_sum(v);
        if (lane == 0) out[row] = v;
    }
}

/* ---- scan, compaction, histogram ---- */

/* loops */ __global__ void scan(const int *in, int *out, int n)
{
    __shared__ int sums[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, wid = threadIdx.x / 32;
    int value = i < n ? in[i] : 0;

    for (int d = 1; d < 32; d <<= 1) {
        int up = __shfl_up_sync(FULL, value, d);
        if (lane >= d) value += up;
    }
    if (lane == 31) sums[wid] = value;
    __syncthreads();
    if (wid == 0) {
        int sum = lane < (int)blockDim.x / 32 ? sums[lane] : 0;
        for (int d = 1; d < 32; d *= 2) {
            int up = __shfl_up_sync(FULL, sum, d, 32);
            if (lane >= d) sum += up;
        }
        sums[lane] = sum;
    }
    __syncthreads();
    if (wid > 0) value += sums[wid - 1];
    if (i < n) out[i] = value;
}

/* loops */ __global__ void compact(const int *in, int *out, int *counts)
{
    int lane = threadIdx.x % 32, wid = threadIdx.x / 32, base = blockIdx.x * blockDim.x + wid * 32;
    int v = in[base + lane];
    unsigned keep = __ballot_sync(FULL, v % 3 == 0);
    int before = __popc(keep & ((1u << lane) - 1));

    if (v % 3 == 0) out[base + before] = v;
    if (lane == 0) counts[base] = __popc(keep);
    if (__any_sync(FULL, v == 7)) counts[base + 1 + lane % 2] = 5;
    if (__all_sync(FULL, v > -1000)) counts[base + 3] = 6;
}

/* loops */ __global__ void bins_of(const int *in, int *bins, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    int bin = (unsigned)in[i % n] % 64;
    unsigned peers = __match_any_sync(FULL, bin);
    int leader = __ffs(peers) - 1;

    if (lane == leader) atomicAdd(&bins[bin], __popc(peers));
    __syncwarp();
    int total = __reduce_add_sync(FULL, bin), most = __reduce_max_sync(peers, bin + lane);
    if (lane == leader) atomicAdd(&bins[64 + bin], total + most);
}

/* ---- attention ---- */

/* loops */ __global__ void attention(const float *q, const float *k, float *out, int H)
{
    extern __shared__ float scores[];
    int lane = threadIdx.x % 32, wid = threadIdx.x / 32, warps = blockDim.x / 32, t = blockIdx.x;
    const float *mine = q + t * H;
    float most = -1e30f, sum = 0.0f;

    for (int j = wid; j <= t; j += warps) {
        float dot = 0.0f;

        for (int i = lane; i < H; i += 32) dot += mine[i] * k[j * H + i];
        dot = warp_sum(dot);
        if (lane == 0) scores[j] = dot * 0.125f;
    }
    __syncthreads();
    for (int j = lane; j <= t; j += 32) most = fmaxf(most, scores[j]);
    most = warp_most(most);
    for (int j = lane; j <= t; j += 32) sum += __expf(scores[j] - most);
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(FULL, sum, o);
    for (int i = threadIdx.x; i < H; i += blockDim.x) {
        float v = 0.0f;
        for (int j = 0; j <= t; j++) v += __expf(scores[j] - most) * k[j * H + i];
        out[t * H + i] = v / sum;
    }
}

/* loops */ __global__ void rows_of_block(const float *in, float *out)
{
    int lane = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y;
    float v = in[row * 32 + lane], history[3] = {v, v * 2, 1};

    if (threadIdx.y % 2 == 0) {
        v += __shfl_xor_sync(FULL, v, 5);
        history[1] += __shfl_sync(FULL, v, lane % 7, 8);
    } else {
        double wide = __shfl_down_sync(FULL, (double)v, lane % 4);
        history[2] = (float)wide;
    }
    __syncwarp();
    out[row * 32 + lane] = v + history[0] + history[1] - history[2];
}

/* ---- fibres ---- */

/* fibres */ __global__ void some_lanes(const int *in, int *out)
{
    int t = threadIdx.x, v = in[t];

    if (t % 32 < 16) v += __shfl_xor_sync(0xffff, v, 1);
    out[blockIdx.x * blockDim.x + t] = v;
}

/* fibres */ __global__ void own_rounds(const int *in, int *out)
{
    int v = in[threadIdx.x];

    for (int i = 0; i < v * 0 + 2; i++) v += __shfl_xor_sync(FULL, v, 1);
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

__device__ int chosen(int v)
{
    if (v < 0) return __shfl_sync(__activemask(), v, 0) * 0;
    return v;
}

/* fibres */ __global__ void returns_within(const int *in, int *out)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = chosen(in[threadIdx.x]);
}

/* fibres */ __global__ void in_condition(const int *in, int *out)
{
    int v = in[threadIdx.x], n = 0;

    while (__any_sync(FULL, n < 3 + v * 0)) n++;
    out[blockIdx.x * blockDim.x + threadIdx.x] = n;
}

/* ---- results ---- */

static int *in, *out, *more;
static float *real, *product;

template <class T> static void tell(const char *name, int threads, T *data)
{
    unsigned long long hash = 1469598103934665603ull;
    const unsigned char *bytes = (const unsigned char *)data;

    DONE();
    for (size_t i = 0; i < N * sizeof(T); i++) hash = (hash ^ bytes[i]) * 1099511628211ull;
    std::printf("%s %d %016llx\n", name, threads, hash);
    for (int i = 0; i < N; i++) data[i] = 0;
    for (int i = 0; i < N; i++) more[i] = 0;
}

static void test(int t)
{
    int blocks = N / t;
    double sum = 0, expected = 0;

    two_levels<<<blocks, t>>>(real, product, N);
    tell("two_levels", t, product);
    by_function<<<blocks, t>>>(real, product, N - 5);
    DONE();
    for (int i = 0; i < blocks; i++) sum += product[i];
    for (int i = 0; i < N - 5 && i < blocks * t; i++) expected += real[i];
    EXPECT(t % 32 || sum == expected);
    tell("by_function", t, product);
    by_reference<<<blocks, t, t * 4>>>(real, product);
    tell("by_reference", t, product);
    bounded<<<blocks, t>>>(real, product, N - 2 * t > 40 ? N - t - 40 : 7);
    tell("bounded", t, product);
    if (t % 32 == 0) {
        softmax<<<(32 * 32 + t - 1) / t, t>>>(real, product, 29, 70);
        tell("softmax", t, product);
        layer_norm<<<(32 * 32 + t - 1) / t, t>>>(product, real, real + 7, 31, 100);
        tell("layer_norm", t, product);
        strided_rows<<<1, t>>>(real, product, 50, 64);
        tell("strided_rows", t, product);
        compact<<<blocks, t>>>(in, out, more);
        tell("compact", t, out);
        attention<<<24, t, 24 * 4>>>(real, real + 50, product, 64);
        tell("attention", t, product);
        rows_of_block<<<N / t, dim3(32, t / 32)>>>(real, product);
        tell("rows_of_block", t, product);
    }
    scan<<<blocks, t>>>(in, out, N - 3);
    tell("scan", t, out);
    bins_of<<<blocks, t>>>(in, out, N);
    tell("bins_of", t, out);
    some_lanes<<<blocks, t>>>(in, out);
    tell("some_lanes", t, out);
    own_rounds<<<blocks, t>>>(in, out);
    tell("own_rounds", t, out);
    returns_within<<<blocks, t>>>(in + 1000, out);
    tell("returns_within", t, out);
    in_condition<<<blocks, t>>>(in, out);
    tell("in_condition", t, out);
}

int main()
{
    in = managed<int>(2 * N);
    out = managed<int>(N);
    more = managed<int>(N);
    real = managed<float>(2 * N);
    product = managed<float>(N);
    for (int i = 0; i < 2 * N; i++) in[i] = (int)((i * 2654435761u) >> 23) + 1;
    for (int i = 0; i < 2 * N; i++) real[i] = (float)(i % 17) / 4 - 2 + (float)(i % 5);
    for (int t : {32, 48, 64, 256, 1024}) test(t);
    return 0;
}
