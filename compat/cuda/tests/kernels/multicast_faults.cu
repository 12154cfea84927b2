/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses to multicast objects that fail: the error, and the sentence that names the reason. */
#include "faults.cuh"
#include "multicast.cuh"

__global__ void loads(const int *p, int *out)
{
    *out = *p;
}

__global__ void stores(int *p)
{
    *p = 1;
}

__global__ void adds(const char *p, unsigned *out)
{
    asm volatile("multimem.ld_reduce.add.u32 %0, [%1];" : "=r"(*out) : "l"(p) : "memory");
}

__global__ void adds_four(const char *p, float *out)
{
    asm volatile("multimem.ld_reduce.add.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(out[0]), "=f"(out[1]), "=f"(out[2]), "=f"(out[3]) : "l"(p) : "memory");
}

/* A team of one device that stays as it is: the device fails. */
static team &any()
{
    CUDA(cudaFree(nullptr));
    return *new team(1);
}

template <class T> static T *room()
{
    T *p = nullptr;

    CUDA(cudaMalloc((void **)&p, 64));
    return p;
}

static int plain_load()
{
    loads<<<1, 1>>>((const int *)any().all, room<int>());
    return fails_with(cudaErrorIllegalAddress);
}

static int plain_store()
{
    stores<<<1, 1>>>((int *)any().all + 3);
    return fails_with(cudaErrorIllegalAddress);
}

static int no_object()
{
    adds<<<1, 1>>>(any().own[0], room<unsigned>());
    return fails_with(cudaErrorIllegalAddress);
}

static int not_aligned()
{
    adds_four<<<1, 1>>>(any().all + 8, room<float>());
    return fails_with(cudaErrorMisalignedAddress);
}

static int nothing_bound()
{
    team &t = any();

    CU(cuMulticastUnbind(t.object, 0, 0, unit));
    adds<<<1, 1>>>(t.all, room<unsigned>());
    return fails_with(cudaErrorIllegalAddress);
}

int main()
{
    setenv("KOLO_HOST_DEVICES", "4", 0);
    setenv("KOLO_CUDA_MULTICAST", "1", 1);
    child("load", plain_load, "loads|thread (0, 0, 0)|an access to a multicast object, which only multimem instructions may access, at 0x");
    child("store", plain_store, "stores|which only multimem instructions may access");
    child("no object", no_object, "adds|a multimem instruction at an address without a multicast object, at 0x");
    child("alignment", not_aligned, "adds_four|that is not aligned to its size");
    child("nothing bound", nothing_bound, "adds|a multimem instruction where no memory of device 0 is bound, at 0x");
    std::printf("done\n");
    return 0;
}
