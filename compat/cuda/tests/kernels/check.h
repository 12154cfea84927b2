/* SPDX-License-Identifier: Apache-2.0 */
/** check.h - shared by the programs of this folder: ordinary CUDA, which nvcc compiles as well. */
#ifndef KERNELS_CHECK_H
#define KERNELS_CHECK_H

#include <cstdio>
#include <cstdlib>

/** End the program with a sentence unless the call succeeds. */
#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));            \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                               \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

/** The launches before are right, and done. */
#define DONE()                                                                                                         \
    do {                                                                                                               \
        CUDA(cudaGetLastError());                                                                                      \
        CUDA(cudaDeviceSynchronize());                                                                                 \
    } while (0)

/** Memory that both sides use. */
template <class T> T *managed(size_t count)
{
    T *p = nullptr;

    CUDA(cudaMallocManaged((void **)&p, count * sizeof(T)));
    for (size_t i = 0; i < count; i++) p[i] = T();
    return p;
}

/** Call `test` on each device. */
template <class F> int on_all_devices(F test)
{
    int devices = 0;

    CUDA(cudaGetDeviceCount(&devices));
    for (int d = 0; d < devices; d++) {
        CUDA(cudaSetDevice(d));
        test(d);
    }
    std::printf("%d devices\n", devices);
    return 0;
}

#endif
