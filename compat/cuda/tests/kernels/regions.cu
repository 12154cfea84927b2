/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels whose barriers all threads meet alike, and others that look like it: the comment before each says how kolo-nvcc runs it, and
 * regions_test.sh compares. The results are printed, and are the same both ways. */
#include "check.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

static const int N = 1 << 12;
const int ROUNDS = 3;

/* ---- loops around barriers ---- */

/* loops */ __global__ void tree(const int *in, int *out, int n)
{
    __shared__ int s[1024];
    unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;

    s[tid] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned k = blockDim.x / 2; k > 0; k >>= 1) {
        if (tid < k) s[tid] += s[tid + k];
        __syncthreads();
    }
    if (tid == 0) out[blockIdx.x] = s[0];
}

/* loops */ __global__ void dot(const int *a, const int *b, int *out, int n)
{
    __shared__ int cache[1024];
    int tid = threadIdx.x + blockIdx.x * blockDim.x;
    int cacheIndex = threadIdx.x;
    int temp = 0;

    while (tid < n) {
        temp += a[tid] % 100 * b[tid];
        tid += blockDim.x * gridDim.x;
    }
    cache[cacheIndex] = temp;
    __syncthreads();
    int i = blockDim.x / 2;
    while (i != 0) {
        if (cacheIndex < i) cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
        i /= 2;
    }
    if (cacheIndex == 0) out[blockIdx.x] = cache[0];
}

template <class T, unsigned blockSize> /* loops */ __global__ void unrolled(const T *in, T *out, unsigned n)
{
    extern __shared__ int raw[];
    T *sdata = (T *)raw;
    unsigned tid = threadIdx.x, i = blockIdx.x * blockSize * 2 + threadIdx.x, gridSize = blockSize * 2 * gridDim.x;
    T mySum = 0;

    while (i < n) {
        mySum += in[i];
        if (i + blockSize < n) mySum += in[i + blockSize];
        i += gridSize;
    }
    sdata[tid] = mySum;
    __syncthreads();
    if (blockSize >= 512) {
        if (tid < 256) sdata[tid] = mySum = mySum + sdata[tid + 256];
        __syncthreads();
    }
    if (blockSize >= 256 && tid < 128) sdata[tid] = mySum = mySum + sdata[tid + 128];
    __syncthreads();
    if (blockSize >= 128 && tid < 64) sdata[tid] = mySum = mySum + sdata[tid + 64];
    __syncthreads();
    if (tid == 0) {
        T sum = 0;

        for (int k = 0; k < 64 && k < blockDim.x; k++) sum += sdata[k];
        out[blockIdx.x] = sum;
    }
}

/* loops */ __global__ void scan_twice(const int *in, int *out)
{
    __shared__ int temp[2048];
    int t = threadIdx.x, n = blockDim.x, from = 1, to = 0;

    temp[t] = in[blockIdx.x * n + t];
    temp[n + t] = 0;
    __syncthreads();
    for (int offset = 1; offset < n; offset *= 2) {
        to = 1 - to;
        from = 1 - to;
        if (t >= offset)
            temp[to * n + t] = temp[from * n + t] + temp[from * n + t - offset];
        else
            temp[to * n + t] = temp[from * n + t];
        __syncthreads();
    }
    out[blockIdx.x * n + t] = temp[to * n + t];
}

/* loops */ __global__ void up_and_down(int *out, const int *in, int *sums)
{
    extern __shared__ int tree[];
    int t = threadIdx.x, size = 2 * blockDim.x, base = blockIdx.x * size, ai = t, bi = t + size / 2, offset = 1;

    tree[ai] = in[base + ai];
    tree[bi] = in[base + bi];
    for (int d = size >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) {
            int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
            tree[b] += tree[a];
        }
        offset *= 2;
    }
    if (t == 0) {
        sums[blockIdx.x] = tree[size - 1];
        tree[size - 1] = 0;
    }
    for (int d = 1; d < size; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1, was = tree[a];
            tree[a] = tree[b];
            tree[b] += was;
        }
    }
    __syncthreads();
    out[base + ai] = tree[ai];
    out[base + bi] = tree[bi];
}

/* loops */ __global__ void until_sorted(int *data)
{
    __shared__ int s[1024], swapped;
    int t = threadIdx.x, base = blockIdx.x * blockDim.x, n = blockDim.x;

    s[t] = data[base + t];
    do {
        __syncthreads();
        if (t == 0) swapped = 0;
        __syncthreads();
        for (int odd = 0; odd < 2; odd++) {
            int i = 2 * t + odd;
            if (i + 1 < n && s[i] > s[i + 1]) {
                int was = s[i];
                s[i] = s[i + 1];
                s[i + 1] = was;
                swapped = 1;
            }
            __syncthreads();
        }
    } while (swapped);
    data[base + t] = s[t];
}

/* loops */ __global__ void grid_stride(const int *in, int *out, int tiles)
{
    __shared__ int s[1024];

    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        s[threadIdx.x] = in[tile * blockDim.x + threadIdx.x];
        __syncthreads();
        const int other = s[blockDim.x - 1 - threadIdx.x];
        if (tile == 1) continue;
        __syncthreads();
        if (other < 0) s[threadIdx.x] = 7;
        __syncthreads();
        out[tile * blockDim.x + threadIdx.x] = other + s[threadIdx.x] * tile;
        if (tile > 40) break;
        __syncthreads();
    }
}

/* loops */ __global__ void bounds_from_memory(const int *counts, int *out, int step)
{
    __shared__ int s[1024], last;
    int t = threadIdx.x, sum = 0;

    if (t == 3) last = counts[blockIdx.x] % 9;
    __syncthreads();
    int rounds = last;
    for (int r = 0; r < rounds; r += step) {
        s[t] = t * r;
        __syncthreads();
        sum += s[(t + 1) % blockDim.x];
        __syncthreads();
    }
    step += 2;
    for (int r = 0; r < counts[blockIdx.x] % 4; r++) __syncthreads();
    out[blockIdx.x * blockDim.x + t] = sum + step;
}

/* ---- blocks of two and three dimensions, arrays of threads ---- */

template <int TILE> /* loops */ __global__ void turn(const int *in, int *out, int width, int height)
{
    __shared__ int tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;

    for (int j = 0; j < TILE; j += blockDim.y) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += blockDim.y) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

template <class T, int TILE> /* loops */ __global__ void multiply(const T *A, const T *B, T *C, int wA, int wB)
{
    int bx = blockIdx.x, by = blockIdx.y;
    int tx = threadIdx.x, ty = threadIdx.y;
    int aBegin = wA * TILE * by, aEnd = aBegin + wA - 1, aStep = TILE;
    int bBegin = TILE * bx, bStep = TILE * wB;
    T Csub = 0;

    for (int a = aBegin, b = bBegin; a <= aEnd; a += aStep, b += bStep) {
        __shared__ T As[TILE][TILE];
        __shared__ T Bs[TILE][TILE];

        As[ty][tx] = A[a + wA * ty + tx];
        Bs[ty][tx] = B[b + wB * ty + tx];
        __syncthreads();
        for (int k = 0; k < TILE; ++k) {
            Csub += As[ty][k] * Bs[k][tx];
        }
        __syncthreads();
    }
    int c = wB * TILE * by + TILE * bx;
    C[c + wB * ty + tx] = Csub;
}

/* loops */ __global__ void registers(const float *a, const float *b, float *c, int n)
{
    constexpr int TM = 4, TK = 8;
    __shared__ float As[TK][32], Bs[TK][32];
    const int row = threadIdx.y, col = threadIdx.x;
    float results[TM] = {0.0f};
    float column[TM][2];

    a += blockIdx.y * 32 * n;
    b += blockIdx.x * 32;
    for (int i = 0; i < TM; i++) column[i][0] = column[i][1] = i;
    for (int block = 0; block < n; block += TK) {
        As[row][col] = a[col * n + block + row];
        Bs[row][col] = b[(block + row) * n + col];
        __syncthreads();
        for (int k = 0; k < TK; k++) {
            const float right = Bs[k][col];
            for (int i = 0; i < TM; i++) {
                results[i] += As[k][row * TM + i] * right;
                column[i][k % 2] += right;
            }
        }
        __syncthreads();
    }
    c += blockIdx.y * 32 * n + blockIdx.x * 32;
    for (int i = 0; i < TM; i++) c[(row * TM + i) * n + col] = results[i] + column[i][0] - column[i][1];
}

/* loops */ __global__ void cube(int *out)
{
    __shared__ int s[8][8][16];
    int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
    int *mine = out + ((blockIdx.x * blockDim.z + z) * blockDim.y + y) * blockDim.x;

    s[z][y][x] = x + 100 * y + 10000 * z;
    __syncthreads();
    if (x > 2 && y < 5) mine[x] = s[blockDim.z - 1 - z][y][x - 2] + 1;
    __syncthreads();
    if (z == 1) mine[x] += s[0][y][x];
    __syncthreads();
    if (threadIdx.x <= blockDim.y - 9u) mine[x] += 5;
}

/* ---- threads that leave ---- */

/* loops */ __global__ void some_return(const int *in, int *out, int n)
{
    __shared__ int s[1024];
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    s[threadIdx.x] = -1;
    if (i >= n) return;
    s[threadIdx.x] = in[i];
    __syncthreads();
    int left = threadIdx.x ? s[threadIdx.x - 1] : 0;
    if (left % 5 == 3) {
        for (int k = 0; k < 3; k++)
            if (left > k) return;
    }
    __syncthreads();
    s[threadIdx.x] = left;
    __syncthreads();
    out[i] = s[(threadIdx.x + 1) % blockDim.x];
}

/* loops */ __global__ void leave_in_turn(int *out)
{
    __shared__ int round[1024];
    int t = threadIdx.x;

    round[t] = 0;
    for (int i = 0; i < 8; i++) {
        if (t % 8 == i) return;
        __syncthreads();
        round[t]++;
        __syncthreads();
        out[blockIdx.x * blockDim.x + t] += round[(t + 1) % blockDim.x];
        __syncthreads();
    }
}

/* loops */ __global__ void all_return(const int *starts, int *out, int blocks)
{
    __shared__ int s[1024];
    int b = blockIdx.x;

    if (b >= blocks) return;
    if (threadIdx.x < 2000000u) {
        if (b == 1) return;
    }
    for (int i = starts[b]; i < starts[b] + 2; i++) { /* must not be read for block 1 if it has no start */
        s[threadIdx.x] = i;
        __syncthreads();
        out[b * blockDim.x + threadIdx.x] += s[0] + i;
        __syncthreads();
    }
}

/* ---- branches, handles, types ---- */

/* loops */ __global__ void same_branch(const int *in, int *out, bool forward)
{
    auto block = cg::this_thread_block();
    __shared__ int s[1024];
    const int t = threadIdx.x, n = blockDim.x;
    int v = in[blockIdx.x * n + t];

    if (forward) {
        s[t] = v;
        cg::sync(block);
        v = s[(t + 1) % n];
    } else if (blockIdx.x % 2 == 0) {
        s[n - 1 - t] = v;
        block.sync();
        v += s[t];
    } else
        __syncthreads();
    block.sync();
    for (int i = 0; i < ROUNDS; i++)
        if (i != 1) {
            s[t] = v + i;
            __syncthreads();
            v = s[t ^ 1];
            __syncthreads();
        }
    out[blockIdx.x * n + t] = v;
}

struct pair {
    int low, high;
};

__device__ pair ordered(pair p)
{
    return p.low < p.high ? p : pair{p.high, p.low};
}

__host__ __device__ inline int wrap(int i, int n)
{
    return i < n ? i : i - n;
}

/* loops */ __global__ void pairs(const int *in, int *out)
{
    __shared__ pair s[512];
    int t = threadIdx.x, n = blockDim.x;
    pair p = {in[t], in[wrap(t + 1, n)]};
    const pair kept = ordered(p);
    float4 four = make_float4(t, 1, 2, 3);

    s[t] = p;
    __syncthreads();
    p = ordered(s[wrap(t + 7, n)]);
    four.x += p.low;
    __syncthreads();
    out[blockIdx.x * n + t] = p.high - kept.low + (int)four.x;
}

/* loops */ __global__ void bins_of(const unsigned char *in, unsigned *bins, int n)
{
    __shared__ unsigned s[256];
    int i = threadIdx.x + blockIdx.x * blockDim.x, stride = blockDim.x * gridDim.x;

    for (int k = threadIdx.x; k < 256; k += blockDim.x) s[k] = 0;
    __syncthreads();
    while (i < n) {
        atomicAdd(&s[in[i]], 1);
        atomicMax(&s[255], 3u);
        i += stride;
    }
    __syncthreads();
    for (int k = threadIdx.x; k < 256; k += blockDim.x) atomicAdd(&bins[k], s[k]);
}

/* loops */ __global__ void edges(int *out, int low, int n)
{
    __shared__ int s[1024];
    int t = threadIdx.x, i = 5;
    unsigned u = threadIdx.x;

    s[t] = 0;
    __syncthreads();
    if (t <= low) s[t] += 1;
    __syncthreads();
    if (t > low) s[t] += 10;
    __syncthreads();
    if (u < low) s[t] += 100;
    __syncthreads();
    if (t == low) s[t] += 1000;
    __syncthreads();
    if (u >= n - 1000000) s[t] += 10000;
    __syncthreads();
    if (t < n >> 1 && s[t] % 3 == 1) s[t] += 100000;
    __syncthreads();
    if (u == low + 3) s[t] += 1000000;
    else s[t]++;
    __syncthreads();
    for (int i = 0; i < 2; i++) s[t] += i;
    __syncthreads();
    if (threadIdx.x < 3.5f) s[t] *= 2;
    __syncthreads();
    if (low < t) s[t]++;
    out[blockIdx.x * blockDim.x + t] = s[t] + i;
}

/* loops */ __global__ void barriers_only()
{
    __syncthreads();
    __syncthreads();
}

/* loops */ __global__ void normalise(const float *in, float *out, int c)
{
    __shared__ float s[1024];
    const float *x = in + blockIdx.x * c;
    int tid = threadIdx.x;
    float sum = 0.0f;

    for (int i = tid; i < c; i += blockDim.x) sum += x[i];
    s[tid] = sum;
    __syncthreads();
    for (int k = blockDim.x / 2; k >= 1; k /= 2) {
        __syncthreads();
        if (tid < k) s[tid] += s[tid + k];
    }
    __syncthreads();
    float mean = s[0] / c;
    sum = 0.0f;
    __syncthreads();
    for (int i = tid; i < c; i += blockDim.x) sum += (x[i] - mean) * (x[i] - mean);
    s[tid] = sum;
    __syncthreads();
    for (int k = blockDim.x / 2; k >= 1; k /= 2) {
        if (tid < k) s[tid] += s[tid + k];
        __syncthreads();
    }
    const float scale = rsqrtf(s[0] / c + 1e-5f);
    __syncthreads();
    for (int i = tid; i < c; i += blockDim.x) out[blockIdx.x * c + i] = (x[i] - mean) * scale;
}

/* ---- fibres ---- */

__device__ void meet(int *s, int t)
{
    s[t] = t;
    __syncthreads();
}

/* loops */ __global__ void barrier_in_function(int *out)
{
    __shared__ int s[1024];

    meet(s, threadIdx.x);
    out[blockIdx.x * blockDim.x + threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
    __syncthreads();
}

__device__ int my_index()
{
    return threadIdx.x;
}

/* loops */ __global__ void index_in_function(int *out)
{
    __syncthreads();
    out[blockIdx.x * blockDim.x + my_index()] = my_index();
}

/* fibres */ __global__ void own_branch(int *out)
{
    __shared__ int s[1024];
    int t = threadIdx.x;

    s[t] = 0;
    if (t % 2) {
        s[t] = t;
        __syncthreads();
    } else {
        s[t] = -t;
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + t] = s[t ^ 1];
}

/* fibres */ __global__ void own_count(const int *counts, int *out)
{
    int n = counts[threadIdx.x] * 0 + 3, sum = 0;

    for (int i = 0; i < n; i++) {
        __syncthreads();
        sum += i;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/* fibres */ __global__ void count_changes(int *out)
{
    int left = 4;

    while (left > 0) {
        __syncthreads();
        if (threadIdx.x < 5000) left--;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = left;
}

/* fibres */ __global__ void break_alone(int *out)
{
    int t = threadIdx.x, i;

    for (i = 0; i < 9; i++) {
        if (t * 0 + i == 4) break;
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + t] = i;
}

/* fibres */ __global__ void address_kept(int *out)
{
    int v = threadIdx.x, *p = &v;

    __syncthreads();
    *p += 1;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

__device__ void bump(int &v)
{
    v++;
}

/* fibres */ __global__ void reference_kept(int *out)
{
    int v = threadIdx.x;

    __syncthreads();
    bump(v);
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

/* fibres */ __global__ void deduced(const int *in, int *out)
{
    auto v = in[threadIdx.x] + 1;

    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

/* fibres */ __global__ void wait_for_other(int *out)
{
    __shared__ int flag;
    int t = threadIdx.x;

    if (t == 0) flag = 0;
    __syncthreads();
    if (t == 1)
        while (atomicAdd(&flag, 0) == 0) {
        }
    if (t == 2) atomicExch(&flag, 1);
    __syncthreads();
    out[blockIdx.x * blockDim.x + t] = flag;
}

/* loops */ __global__ void parameter_changes(const int *in, int *out)
{
    in += threadIdx.x;
    out += blockIdx.x * blockDim.x + threadIdx.x;
    __syncthreads();
    *out = *in;
}

/* loops */ __global__ void shuffled(int *out)
{
    int v = threadIdx.x;

    __syncthreads();
    v += __shfl_xor_sync(0xffffffff, v, 1);
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

/* fibres */ __global__ void counted(int *out)
{
    int n = __syncthreads_count(threadIdx.x % 3 == 0);

    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = n;
}

/* ---- results ---- */

static int *in, *out, *more;
static float *real, *product;

template <class T> static void tell(const char *name, int threads, const T *data, int count)
{
    unsigned long long hash = 1469598103934665603ull;
    const unsigned char *bytes = (const unsigned char *)data;

    DONE();
    for (size_t i = 0; i < count * sizeof(T); i++) hash = (hash ^ bytes[i]) * 1099511628211ull;
    std::printf("%s %d %016llx\n", name, threads, hash);
    for (int i = 0; i < N; i++) out[i] = more[i] = 0;
}

#define SHOW(kernel, ...)                                                                                              \
    kernel<<<__VA_ARGS__;                                                                                              \
    tell(#kernel, t, out, N)

static void test_loops(int t, int blocks)
{
    long sum = 0, expected = 0;

    tree<<<blocks, t>>>(in, out, N - 100);
    DONE();
    for (int i = 0; i < blocks; i++) sum += out[i];
    for (int i = 0; i < N - 100 && i < blocks * t; i++) expected += in[i];
    EXPECT((t & (t - 1)) != 0 || sum == expected);
    tell("tree", t, out, N);
    SHOW(dot, blocks, t>>>(in, in + 1, out, N - 1));
    SHOW(scan_twice, blocks, t>>>(in, out));
    if ((t & (t - 1)) == 0 && 2 * t * 2 <= N) {
        SHOW(up_and_down, 2, t, 8 * t>>>(out, in, more));
    }
    for (int i = 0; i < N; i++) out[i] = in[i];
    SHOW(until_sorted, blocks < 4 ? blocks : 4, t>>>(out));
    SHOW(grid_stride, 3, t>>>(in, out, blocks));
    SHOW(bounds_from_memory, blocks, t>>>(in + 40, out, 2));
    SHOW(some_return, blocks, t>>>(in, out, N - 2 * t - 5 > 0 ? N - 2 * t - 5 : 3));
    SHOW(leave_in_turn, blocks, t>>>(out));
    SHOW(all_return, blocks, t>>>(in, out, blocks - 1));
    SHOW(same_branch, blocks, t & ~1>>>(in, out, true));
    SHOW(same_branch, blocks, t & ~1>>>(in, out, false));
    for (int low : {-3, 0, 2, 31, 5000}) {
        SHOW(edges, blocks, t>>>(out, low, 77));
    }
    barriers_only<<<blocks, t>>>();
    normalise<<<blocks, t>>>(real, product, N / blocks);
    tell("normalise", t, product, N / blocks * blocks);
}

static void test_fibres(int t, int blocks)
{
    SHOW(barrier_in_function, blocks, t>>>(out));
    SHOW(index_in_function, blocks, t>>>(out));
    SHOW(own_branch, blocks, t & ~1>>>(out));
    SHOW(own_count, blocks, t>>>(in, out));
    SHOW(count_changes, blocks, t>>>(out));
    SHOW(break_alone, blocks, t>>>(out));
    SHOW(address_kept, blocks, t>>>(out));
    SHOW(reference_kept, blocks, t>>>(out));
    SHOW(deduced, blocks, t>>>(in, out));
    SHOW(wait_for_other, blocks, t>>>(out));
    SHOW(parameter_changes, blocks, t>>>(in, out));
    SHOW(shuffled, blocks, t>>>(out));
    SHOW(counted, blocks, t>>>(out));
}

static void test_shapes()
{
    turn<16><<<dim3(4, 4), dim3(16, 16)>>>(in, out, 64, 64);
    tell("turn", 16, out, N);
    turn<32><<<dim3(2, 2), dim3(32, 8)>>>(in, out, 64, 64);
    tell("turn", 8, out, N);
    multiply<int, 16><<<dim3(4, 4), dim3(16, 16)>>>(in, in, out, 64, 64);
    tell("multiply", 16, out, N);
    multiply<float, 8><<<dim3(8, 8), dim3(8, 8)>>>(real, real, product, 64, 64);
    tell("multiply", 8, product, N);
    registers<<<dim3(2, 2), dim3(32, 8)>>>(real, real, product, 64);
    tell("registers", 256, product, N);
    cube<<<4, dim3(16, 8, 8)>>>(out);
    tell("cube", 1024, out, N);
    cube<<<4, dim3(5, 7, 3)>>>(out);
    tell("cube", 105, out, N);
    pairs<<<2, 512>>>(in, out);
    tell("pairs", 512, out, N);
    bins_of<<<3, 100>>>((const unsigned char *)in, (unsigned *)out, 4 * N);
    tell("bins_of", 100, out, N);
    unrolled<int, 512><<<4, 512, 512 * 4>>>(in, out, N);
    tell("unrolled", 512, out, N);
    unrolled<double, 64><<<4, 64, 64 * 8>>>((const double *)real, (double *)product, N / 2);
    tell("unrolled", 64, product, N);
}

int main()
{
    in = managed<int>(2 * N);
    out = managed<int>(N);
    more = managed<int>(N);
    real = managed<float>(N);
    product = managed<float>(N);
    for (int i = 0; i < 2 * N; i++) in[i] = (int)((i * 2654435761u) >> 20) - 300;
    for (int i = 0; i < 200; i++) in[i] = i * 7 % 11 + 1;
    for (int i = 0; i < N; i++) real[i] = (float)(i % 17) / 4 - 2 + (float)(i % 5);
    for (int t : {4, 37, 64, 256, 1000, 1024}) {
        test_loops(t, N / t);
        test_fibres(t, N / t);
    }
    test_shapes();
    return 0;
}
