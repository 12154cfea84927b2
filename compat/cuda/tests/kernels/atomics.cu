/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics from eight blocks of 1024 threads: exact, each with the old value; and threads that wait for each other by them. */
#include "check.h"

struct counters {
    int added, subtracted, least, most, all_of, any_of, odd_of, exchanged;
    unsigned up, down, swapped, least_u, most_u;
    unsigned long long large, least_ull, most_ull, any_ull;
    long long least_ll, most_ll;
    float sum;
    double precise;
    unsigned short narrow, pad;
    int lock, guarded;
    float2 pair;
    float4 four;
};

static __global__ void count(counters *c)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned short seen;
    unsigned old;

    atomicAdd(&c->added, 2);
    atomicSub(&c->subtracted, 1);
    atomicMin(&c->least, -i);
    atomicMax(&c->most, i);
    atomicAnd(&c->all_of, ~(1 << i % 8));
    atomicOr(&c->any_of, 1 << i % 30);
    atomicXor(&c->odd_of, i);
    atomicExch(&c->exchanged, 7);
    atomicInc(&c->up, 99);
    atomicDec(&c->down, 99);
    atomicMin(&c->least_u, (unsigned)i + 5);
    atomicMax(&c->most_u, 0x80000000u + i);
    atomicAdd(&c->large, 1ull << 32);
    atomicMin(&c->least_ull, (unsigned long long)i + 9);
    atomicMax(&c->most_ull, 1ull << 63);
    atomicOr(&c->any_ull, 1ull << i % 60);
    atomicMin(&c->least_ll, -(long long)i * (1ll << 33));
    atomicMax(&c->most_ll, (long long)i << 33);
    atomicAdd(&c->sum, 1.0f);
    atomicAdd(&c->precise, 0.5);
    atomicAdd_block(&c->added, 1);
    atomicAdd_system(&c->added, -1);
    do {
        old = c->swapped;
    } while (atomicCAS(&c->swapped, old, old + 3) != old);
    do {
        seen = c->narrow;
    } while (atomicCAS(&c->narrow, seen, (unsigned short)(seen + 1)) != seen);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    atomicAdd(&c->pair, make_float2(1, 2));
    atomicAdd(&c->four, make_float4(1, 2, 3, 4));
#endif
}

/* A lock that lanes of one warp, of one block and of several wait for. */
static __global__ void locked(counters *c)
{
    bool done = false;

    while (!done) {
        if (atomicCAS(&c->lock, 0, 1) == 0) {
            c->guarded = c->guarded + 1;
            __threadfence();
            atomicExch(&c->lock, 0);
            done = true;
        }
    }
}

/* Old values are all different: each thread takes a ticket. */
static __global__ void tickets(unsigned *next, unsigned char *taken)
{
    taken[atomicAdd(next, 1u)]++;
}

/* The last block to finish sums up the results of all: as in NVIDIA's samples. */
static __global__ void last_block(const int *in, int *part, unsigned *finished, int *out)
{
    __shared__ bool last;

    if (threadIdx.x == 0) {
        part[blockIdx.x] = in[blockIdx.x];
        __threadfence();
        last = atomicInc(finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0)
        for (unsigned i = 0; i < gridDim.x; i++) *out += part[i];
}

static void test(int)
{
    const int n = 8 * 1024;
    counters *c = managed<counters>(1);
    unsigned *next = managed<unsigned>(1);
    unsigned char *taken = managed<unsigned char>(n);
    int *in = managed<int>(100), *part = managed<int>(100), *out = managed<int>(1);

    c->all_of = 0xffff;
    c->least_u = c->least_ull = 0xffffffffu;
    c->down = 50;
    count<<<8, 1024>>>(c);
    locked<<<4, 64>>>(c);
    tickets<<<8, 1024>>>(next, taken);
    DONE();
    EXPECT(c->added == 2 * n && c->subtracted == -n && c->least == 1 - n && c->most == n - 1);
    EXPECT(c->all_of == 0xff00 && c->any_of == (1 << 30) - 1 && c->odd_of == 0 && c->exchanged == 7);
    EXPECT(c->up == n % 100 && c->down == (50 + 100 - n % 100 % 100) % 100);
    EXPECT(c->least_u == 5 && c->most_u == 0x80000000u + n - 1 && c->large == (unsigned long long)n << 32);
    EXPECT(c->least_ull == 9 && c->most_ull == 1ull << 63 && c->any_ull == (1ull << 60) - 1);
    EXPECT(c->least_ll == -(long long)(n - 1) * (1ll << 33) && c->most_ll == (long long)(n - 1) << 33);
    EXPECT(c->sum == n && c->precise == n / 2 && c->swapped == 3 * n && c->narrow == n && c->pad == 0);
    EXPECT(c->pair.x == n && c->pair.y == 2 * n && c->four.w == 4 * n && c->four.z == 3 * n);
    EXPECT(c->guarded == 256 && c->lock == 0);
    for (int i = 0; i < n; i++) EXPECT(taken[i] == 1);
    *next = 0;
    for (int i = 0; i < 100; i++) in[i] = i;
    last_block<<<100, 32>>>(in, part, next, out);
    DONE();
    EXPECT(*out == 4950 && *next == 0);
    CUDA(cudaFree(c));
    CUDA(cudaFree(next));
    CUDA(cudaFree(taken));
    CUDA(cudaFree(in));
    CUDA(cudaFree(part));
    CUDA(cudaFree(out));
}

int main()
{
    return on_all_devices(test);
}
