/* SPDX-License-Identifier: Apache-2.0 */
/** multicast.cuh - a multicast object with memory of several devices, and checks of instructions on it against plain loops. */
#ifndef KERNELS_MULTICAST_CUH
#define KERNELS_MULTICAST_CUH

#include "check.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <cuda.h>
#include <vector>

#define CU(call) EXPECT((call) == CUDA_SUCCESS)

static const size_t unit = 2 << 20;
enum { THREADS = 64, BLOCKS = 4, AMOUNT = THREADS * BLOCKS }; /* vectors of an operation */

/** Memory at an address that `device` has access to. */
static inline char *place(CUmemGenericAllocationHandle handle, int device)
{
    CUmemAccessDesc access = {};
    CUdeviceptr p;

    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CU(cuMemAddressReserve(&p, unit, 0, 0, 0));
    CU(cuMemMap(p, unit, 0, handle, 0));
    CU(cuMemSetAccess(p, unit, &access, 1));
    return (char *)(uintptr_t)p;
}

static inline void displace(char *p)
{
    CU(cuMemUnmap((CUdeviceptr)(uintptr_t)p, unit));
    CU(cuMemAddressFree((CUdeviceptr)(uintptr_t)p, unit));
}

static inline CUmemGenericAllocationHandle memory_of(int device)
{
    CUmemAllocationProp properties = {};
    CUmemGenericAllocationHandle memory;

    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    CU(cuMemCreate(&memory, unit, &properties, 0));
    return memory;
}

static inline CUmemGenericAllocationHandle object_of(unsigned devices)
{
    CUmulticastObjectProp properties = {};
    CUmemGenericAllocationHandle object;

    properties.numDevices = devices;
    properties.size = unit;
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CU(cuMulticastCreate(&object, &properties));
    return object;
}

/** The devices of this process from 0 on: `all` is the multicast address of device 0, own[d] the memory of device d. */
struct team {
    CUmemGenericAllocationHandle object;
    std::vector<CUmemGenericAllocationHandle> memory;
    std::vector<char *> own;
    char *all;

    explicit team(int devices) : object(object_of((unsigned)devices))
    {
        for (int d = 0; d < devices; d++) CU(cuMulticastAddDevice(object, d));
        for (int d = 0; d < devices; d++) {
            memory.push_back(memory_of(d));
            own.push_back(place(memory[(size_t)d], d));
            CU(cuMulticastBindMem(object, 0, memory[(size_t)d], 0, unit, 0));
        }
        all = place(object, 0);
    }

    ~team()
    {
        displace(all);
        for (size_t d = 0; d < own.size(); d++) {
            CU(cuMulticastUnbind(object, (CUdevice)d, 0, unit));
            displace(own[d]);
            CU(cuMemRelease(memory[d]));
        }
        CU(cuMemRelease(object));
    }
};

/* ---- data ---- */

static inline uint64_t random_bits()
{
    static uint64_t state = 88172645463325252ull;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 2685821657736338717ull;
}

template <class T> T random_element()
{
    uint64_t bits = random_bits();
    T value;

    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/** The same bits, or no number both times. */
template <class T> bool alike(T a, T b)
{
    return !std::memcmp(&a, &b, sizeof a) || (a != a && b != b);
}

/** Fill the memory of each device with random elements, and return them. */
template <class T> std::vector<std::vector<T>> scatter(team &t, size_t count)
{
    std::vector<std::vector<T>> each(t.own.size(), std::vector<T>(count));

    for (size_t d = 0; d < each.size(); d++) {
        for (T &x : each[d]) x = random_element<T>();
        CUDA(cudaMemcpy(t.own[d], each[d].data(), count * sizeof(T), cudaMemcpyHostToDevice));
    }
    return each;
}

template <class T> std::vector<T> fetch(const char *from, size_t count)
{
    std::vector<T> host(count);

    CUDA(cudaMemcpy(host.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

/* ---- instructions: vectors of N elements, one for each thread ---- */

/** `combine` gets the elements of all devices. */
template <unsigned N, class T, class Combine>
void check_load(team &t, const char *name, void (*kernel)(const char *, T *), Combine combine)
{
    const auto each = scatter<T>(t, AMOUNT * N);
    T *out;

    CUDA(cudaMalloc((void **)&out, AMOUNT * N * sizeof(T)));
    kernel<<<BLOCKS, THREADS>>>(t.all, out);
    DONE();
    const std::vector<T> got = fetch<T>((char *)out, AMOUNT * N);
    for (size_t i = 0; i < AMOUNT * N; i++) {
        std::vector<T> copies;

        for (const auto &e : each) copies.push_back(e[i]);
        if (alike(got[i], combine(copies))) continue;
        std::fprintf(stderr, "%s: element %zu of %d devices is wrong\n", name, i, (int)each.size());
        std::exit(1);
    }
    CUDA(cudaFree(out));
}

/** `change` gets the element of a device, and the thread's. */
template <unsigned N, class T, class Change>
void check_change(team &t, const char *name, void (*kernel)(char *, const T *), Change change)
{
    const auto each = scatter<T>(t, AMOUNT * N);
    std::vector<T> by(AMOUNT * N);
    T *in;

    for (T &x : by) x = random_element<T>();
    CUDA(cudaMalloc((void **)&in, by.size() * sizeof(T)));
    CUDA(cudaMemcpy(in, by.data(), by.size() * sizeof(T), cudaMemcpyHostToDevice));
    kernel<<<BLOCKS, THREADS>>>(t.all, in);
    DONE();
    for (size_t d = 0; d < each.size(); d++) {
        const std::vector<T> got = fetch<T>(t.own[d], by.size());

        for (size_t i = 0; i < by.size(); i++) {
            if (alike(got[i], change(each[d][i], by[i]))) continue;
            std::fprintf(stderr, "%s: element %zu of device %d is wrong\n", name, i, (int)d);
            std::exit(1);
        }
    }
    CUDA(cudaFree(in));
}

/** One after the other. */
template <class T, class F> auto fold(F f)
{
    return [f](const std::vector<T> &copies) {
        T result = copies[0];

        for (size_t d = 1; d < copies.size(); d++) result = f(result, copies[d]);
        return result;
    };
}

/** The lanes of an element by themselves: f gets the lanes of two elements, or of all devices. */
template <class Code, class T, class F> auto lanes(F f)
{
    return [f](T a, T b) {
        T result = 0;

        for (unsigned at = 0; at < 8 * sizeof(T); at += 8 * sizeof(Code))
            result = (T)(result | (T)f((Code)(a >> at), (Code)(b >> at)) << at);
        return result;
    };
}

template <class Code, class T, class F> auto lanes_of_all(F f)
{
    return [f](const std::vector<T> &copies) {
        T result = 0;

        for (unsigned at = 0; at < 8 * sizeof(T); at += 8 * sizeof(Code)) {
            std::vector<Code> lane;

            for (T c : copies) lane.push_back((Code)(c >> at));
            result = (T)(result | (T)f(lane) << at);
        }
        return result;
    };
}

#define HERE(type, n) ((size_t)(blockIdx.x * blockDim.x + threadIdx.x) * (n) * sizeof(type))

/* clang-format off */
#define LOAD1(name, text, type, letter)                                                                                                    \
    __global__ void name(const char *at, type *out)                                                                                        \
    {                                                                                                                                      \
        type *to = (type *)((char *)out + HERE(type, 1));                                                                                  \
        asm volatile("multimem.ld_reduce" text " %0, [%1];" : "=" letter(*to) : "l"(at + HERE(type, 1)) : "memory");                       \
    }
#define LOAD2(name, text, type, letter)                                                                                                    \
    __global__ void name(const char *at, type *out)                                                                                        \
    {                                                                                                                                      \
        type *to = (type *)((char *)out + HERE(type, 2));                                                                                  \
        asm volatile("multimem.ld_reduce" text " {%0, %1}, [%2];" : "=" letter(to[0]), "=" letter(to[1]) : "l"(at + HERE(type, 2)) : "memory"); \
    }
#define LOAD4(name, text, type, letter)                                                                                                    \
    __global__ void name(const char *at, type *out)                                                                                        \
    {                                                                                                                                      \
        type *to = (type *)((char *)out + HERE(type, 4));                                                                                  \
        asm volatile("multimem.ld_reduce" text " {%0, %1, %2, %3}, [%4];"                                                                  \
                     : "=" letter(to[0]), "=" letter(to[1]), "=" letter(to[2]), "=" letter(to[3])                                          \
                     : "l"(at + HERE(type, 4)) : "memory");                                                                                \
    }
#define LOAD8(name, text, type, letter)                                                                                                    \
    __global__ void name(const char *at, type *out)                                                                                        \
    {                                                                                                                                      \
        type *to = (type *)((char *)out + HERE(type, 8));                                                                                  \
        asm volatile("multimem.ld_reduce" text " {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"                                                  \
                     : "=" letter(to[0]), "=" letter(to[1]), "=" letter(to[2]), "=" letter(to[3]),                                         \
                       "=" letter(to[4]), "=" letter(to[5]), "=" letter(to[6]), "=" letter(to[7])                                          \
                     : "l"(at + HERE(type, 8)) : "memory");                                                                                \
    }
#define CHANGE1(name, text, type, letter)                                                                                                  \
    __global__ void name(char *at, const type *in)                                                                                         \
    {                                                                                                                                      \
        const type *from = (const type *)((const char *)in + HERE(type, 1));                                                               \
        asm volatile("multimem." text " [%0], %1;" ::"l"(at + HERE(type, 1)), letter(*from) : "memory");                                   \
    }
#define CHANGE2(name, text, type, letter)                                                                                                  \
    __global__ void name(char *at, const type *in)                                                                                         \
    {                                                                                                                                      \
        const type *from = (const type *)((const char *)in + HERE(type, 2));                                                               \
        asm volatile("multimem." text " [%0], {%1, %2};" ::"l"(at + HERE(type, 2)), letter(from[0]), letter(from[1]) : "memory");          \
    }
#define CHANGE4(name, text, type, letter)                                                                                                  \
    __global__ void name(char *at, const type *in)                                                                                         \
    {                                                                                                                                      \
        const type *from = (const type *)((const char *)in + HERE(type, 4));                                                               \
        asm volatile("multimem." text " [%0], {%1, %2, %3, %4};" ::"l"(at + HERE(type, 4)),                                                \
                     letter(from[0]), letter(from[1]), letter(from[2]), letter(from[3]) : "memory");                                       \
    }
#define CHANGE8(name, text, type, letter)                                                                                                  \
    __global__ void name(char *at, const type *in)                                                                                         \
    {                                                                                                                                      \
        const type *from = (const type *)((const char *)in + HERE(type, 8));                                                               \
        asm volatile("multimem." text " [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"l"(at + HERE(type, 8)),                                \
                     letter(from[0]), letter(from[1]), letter(from[2]), letter(from[3]),                                                   \
                     letter(from[4]), letter(from[5]), letter(from[6]), letter(from[7]) : "memory");                                       \
    }
/* clang-format on */

/** Teams of 1, 2 and 4 devices, as far as there are so many; each with device 0 as the current one. */
template <class F> void with_teams(F test)
{
    int devices = 0;

    CUDA(cudaGetDeviceCount(&devices));
    for (int n = 1; n <= 4 && n <= devices; n *= 2) {
        for (int d = n - 1; d >= 0; d--) {
            CUDA(cudaSetDevice(d));
            CUDA(cudaFree(nullptr));
        }
        team t(n);
        test(t);
    }
}

#endif
