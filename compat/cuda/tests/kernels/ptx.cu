/* SPDX-License-Identifier: Apache-2.0 */
/* Inline PTX as communication libraries and their benchmarks write it. */
#include "check.h"

static __device__ __forceinline__ int laneid()
{
    int lane;

    asm("mov.s32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

template <typename T> __device__ __forceinline__ T load_volatile(T *p);

template <> __device__ __forceinline__ unsigned long long load_volatile(unsigned long long *p)
{
    unsigned long long v;
    asm volatile("ld.volatile.global.u64 %0, [%1];" : "=l"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
    return v;
}

__device__ uint4 load_four(const uint4 *p)
{
    uint4 v;
    asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
    return v;
}

__device__ int shared_counter;

__global__ void all(unsigned long long *sum, uint4 *four, float *real, unsigned *flags, int *bad)
{
    __shared__ unsigned s[64];
    extern __shared__ int dynamic[];
    int lane = laneid();
    unsigned mask, old, value, less;
    unsigned long long time, base;

    asm volatile("red.global.add.u64 [%0], %1;" ::"l"(sum), "l"((unsigned long long)threadIdx.x) : "memory");
    asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(less));
    if (less != (1u << lane) - 1) atomicAdd(bad, 1);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    if (time == 0) atomicAdd(bad, 1);
    asm("activemask.b32 %0;" : "=r"(mask));
    if (!(mask >> lane & 1)) atomicAdd(bad, 1);
    asm volatile("atom.add.release.gpu.global.u32 %0,[%1],%2;" : "=r"(old) : "l"(flags), "r"(2));
    if (old % 2) atomicAdd(bad, 1);
    asm volatile("red.relaxed.sys.global.add.u32 [%0], %1;" ::"l"(flags + 1), "r"(1) : "memory");
    asm volatile("red.global.add.f32 [%0+4], %1;" ::"l"(real), "f"(0.5f) : "memory");
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    asm volatile("membar.gl;" ::: "memory");
    asm volatile("prefetch.global.L2 [%0];" ::"l"(real));
    s[threadIdx.x] = threadIdx.x;
    dynamic[threadIdx.x] = 3 * threadIdx.x;
    asm volatile("bar.sync 0;");
    asm volatile("barrier.sync %0, %1;" ::"r"(1), "r"(64) : "memory");
    asm volatile("bar.sync %0, %1;" : : "n"(3), "r"(64) : "memory");
    if (s[63 - threadIdx.x] != 63 - threadIdx.x) atomicAdd(bad, 1);
    if (lane == 0) {
        unsigned at = (unsigned)__cvta_generic_to_shared(dynamic);

        asm volatile("ld.shared.u32 %0, [%1+12];" : "=r"(value) : "r"(at));
        if (value != 9) atomicAdd(bad, 1);
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at + 4), "r"(77u));
        asm("cvta.to.global.u64 %0, %1;" : "=l"(base) : "l"(flags));
        asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(base + 8), "r"(5u) : "memory");
        asm volatile("ld.acquire.gpu.global.L1::no_allocate.u32 %0, [%1];" : "=r"(value) : "l"(flags + 2) : "memory");
        if (value != 5) atomicAdd(bad, 1);
        asm volatile("st.volatile.global.v4.u32 [%4], {%0,%1,%2,%3};" ::"r"(1), "r"(2), "r"(3), "r"(4), "l"(four) : "memory");
        value = load_four(four).w;
        if (value != 4) atomicAdd(bad, 1);
        asm volatile("atom.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(flags + 3), "r"(0), "r"(9));
        asm volatile("red.global.add.s32 [%0], %1;" ::"l"(&shared_counter), "r"(1));
    }
    __syncthreads();
    if (dynamic[1] != 77) atomicAdd(bad, 1);
    if (threadIdx.x == 1) asm volatile("exit;");
    if (threadIdx.x == 1) atomicAdd(bad, 1);
    __syncthreads();
}

static void test(int)
{
    unsigned long long *sum = managed<unsigned long long>(1);
    uint4 *four = managed<uint4>(1);
    float *real = managed<float>(2);
    unsigned *flags = managed<unsigned>(4);
    int *bad = managed<int>(1), n = 0;

    all<<<2, 64, 256>>>(sum, four, real, flags, bad);
    DONE();
    EXPECT(*bad == 0 && *sum == 2 * 63 * 32 && real[1] == 64.0f && flags[0] == 256 && flags[1] == 128 && flags[2] == 5 && flags[3] == 9);
    EXPECT(four->x == 1 && four->w == 4);
    CUDA(cudaMemcpyFromSymbol(&n, shared_counter, sizeof n));
    EXPECT(n == 4);
    CUDA(cudaFree(sum));
    CUDA(cudaFree(four));
    CUDA(cudaFree(real));
    CUDA(cudaFree(flags));
    CUDA(cudaFree(bad));
}

int main()
{
    return on_all_devices(test);
}
