/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cuda_runtime.h - cuda_runtime_api.h, with C++ types in C++ programs; in code for kolo-nvcc also the functions of kernels.
 */
#ifndef KOLO_CUDA_RUNTIME_H
#define KOLO_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"
#include "vector_functions.h"
#include "library_types.h"
#include "vector_types.h"

/* CUDA's words for ordinary compilers. __noinline__ is not defined: libstdc++ uses it as an attribute. */
#if !defined(__KOLO_NVCC__)
#define __host__
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n)    __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__
#endif

#if defined(__cplusplus)

template <class T> static inline cudaError_t cudaMalloc(T **ptr, size_t bytes)
{
    return ::cudaMalloc((void **)(void *)ptr, bytes);
}

namespace __kolo
{
template <class T> struct channels {
    typedef T type;
};
#define KOLO_CUDA_CHANNELS(name, of)                                                                                   \
    template <> struct channels<name##1> {                                                                             \
        typedef of type;                                                                                               \
    };                                                                                                                 \
    template <> struct channels<name##2> {                                                                             \
        typedef of type;                                                                                               \
    };                                                                                                                 \
    template <> struct channels<name##4> {                                                                             \
        typedef of type;                                                                                               \
    };
KOLO_CUDA_CHANNELS(char, signed char)
KOLO_CUDA_CHANNELS(uchar, unsigned char)
KOLO_CUDA_CHANNELS(short, short)
KOLO_CUDA_CHANNELS(ushort, unsigned short)
KOLO_CUDA_CHANNELS(int, int)
KOLO_CUDA_CHANNELS(uint, unsigned int)
KOLO_CUDA_CHANNELS(float, float)
#undef KOLO_CUDA_CHANNELS
} // namespace __kolo

/* The format of elements of type T. */
template <class T> static inline struct cudaChannelFormatDesc cudaCreateChannelDesc()
{
    typedef typename __kolo::channels<T>::type of;
    const int bits = 8 * (int)sizeof(of), n = (int)(sizeof(T) / sizeof(of));

    return ::cudaCreateChannelDesc(bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0,
                                   (of)0.5f != (of)0 ? cudaChannelFormatKindFloat
                                   : (of)-1 < (of)0  ? cudaChannelFormatKindSigned
                                                     : cudaChannelFormatKindUnsigned);
}

template <class T> static inline cudaError_t cudaMallocHost(T **ptr, size_t bytes, unsigned int flags = 0)
{
    return ::cudaHostAlloc((void **)(void *)ptr, bytes, flags);
}

template <class T> static inline cudaError_t cudaHostAlloc(T **ptr, size_t bytes, unsigned int flags)
{
    return ::cudaHostAlloc((void **)(void *)ptr, bytes, flags);
}

template <class T> static inline cudaError_t cudaHostGetDevicePointer(T **device, void *host, unsigned int flags)
{
    return ::cudaHostGetDevicePointer((void **)(void *)device, host, flags);
}

template <class T>
static inline cudaError_t cudaMallocManaged(T **ptr, size_t bytes, unsigned int flags = cudaMemAttachGlobal)
{
    return ::cudaMallocManaged((void **)(void *)ptr, bytes, flags);
}

template <class T> static inline cudaError_t cudaMallocPitch(T **ptr, size_t *pitch, size_t width, size_t height)
{
    return ::cudaMallocPitch((void **)(void *)ptr, pitch, width, height);
}

template <class T> static inline cudaError_t cudaMallocAsync(T **ptr, size_t bytes, cudaStream_t stream)
{
    return ::cudaMallocAsync((void **)(void *)ptr, bytes, stream);
}

template <class T>
static inline cudaError_t cudaMallocAsync(T **ptr, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    return ::cudaMallocFromPoolAsync((void **)(void *)ptr, bytes, pool, stream);
}

static inline cudaError_t cudaMallocAsync(void **ptr, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    return ::cudaMallocFromPoolAsync(ptr, bytes, pool, stream);
}

template <class T>
static inline cudaError_t cudaMallocFromPoolAsync(T **ptr, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    return ::cudaMallocFromPoolAsync((void **)(void *)ptr, bytes, pool, stream);
}

template <class T>
static inline cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, T *ptr, size_t bytes = 0,
                                                   unsigned int flags = cudaMemAttachSingle)
{
    return ::cudaStreamAttachMemAsync(stream, (void *)ptr, bytes, flags);
}

static inline cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned int flags)
{
    return ::cudaEventCreateWithFlags(event, flags);
}

/* The form of CUDA 11: the returned code has the error. */
static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, cudaGraphNode_t *node,
                                               char *text, size_t bytes)
{
    if (node) *node = 0;
    if (text && bytes) text[0] = 0;
    return ::cudaGraphInstantiate(exec, graph, 0);
}

template <class T> static inline cudaError_t cudaGetSymbolAddress(void **ptr, const T &symbol)
{
    return ::cudaGetSymbolAddress(ptr, (const void *)&symbol);
}

template <class T> static inline cudaError_t cudaGetSymbolSize(size_t *bytes, const T &symbol)
{
    return ::cudaGetSymbolSize(bytes, (const void *)&symbol);
}

template <class T>
static inline cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *from, size_t bytes, size_t offset = 0,
                                             enum cudaMemcpyKind kind = cudaMemcpyHostToDevice)
{
    return ::cudaMemcpyToSymbol((const void *)&symbol, from, bytes, offset, kind);
}

template <class T>
static inline cudaError_t cudaMemcpyFromSymbol(void *to, const T &symbol, size_t bytes, size_t offset = 0,
                                               enum cudaMemcpyKind kind = cudaMemcpyDeviceToHost)
{
    return ::cudaMemcpyFromSymbol(to, (const void *)&symbol, bytes, offset, kind);
}

template <class T>
static inline cudaError_t cudaMemcpyToSymbolAsync(const T &symbol, const void *from, size_t bytes, size_t offset = 0,
                                                  enum cudaMemcpyKind kind = cudaMemcpyHostToDevice,
                                                  cudaStream_t stream = 0)
{
    return ::cudaMemcpyToSymbolAsync((const void *)&symbol, from, bytes, offset, kind, stream);
}

template <class T>
static inline cudaError_t cudaMemcpyFromSymbolAsync(void *to, const T &symbol, size_t bytes, size_t offset = 0,
                                                    enum cudaMemcpyKind kind = cudaMemcpyDeviceToHost,
                                                    cudaStream_t stream = 0)
{
    return ::cudaMemcpyFromSymbolAsync(to, (const void *)&symbol, bytes, offset, kind, stream);
}

template <class T>
static inline cudaError_t
cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                               const T &symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
    return ::cudaGraphAddMemcpyNodeToSymbol(node, graph, after, count, (const void *)&symbol, from, bytes, offset,
                                            kind);
}

template <class T>
static inline cudaError_t
cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
                                 void *to, const T &symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
    return ::cudaGraphAddMemcpyNodeFromSymbol(node, graph, after, count, to, (const void *)&symbol, bytes, offset,
                                              kind);
}

template <class T>
static inline cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const T &symbol, const void *from,
                                                               size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
    return ::cudaGraphMemcpyNodeSetParamsToSymbol(node, (const void *)&symbol, from, bytes, offset, kind);
}

template <class T>
static inline cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *to, const T &symbol,
                                                                 size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
    return ::cudaGraphMemcpyNodeSetParamsFromSymbol(node, to, (const void *)&symbol, bytes, offset, kind);
}

template <class T>
static inline cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                                   const T &symbol, const void *from, size_t bytes,
                                                                   size_t offset, enum cudaMemcpyKind kind)
{
    return ::cudaGraphExecMemcpyNodeSetParamsToSymbol(exec, node, (const void *)&symbol, from, bytes, offset, kind);
}

template <class T>
static inline cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                                     void *to, const T &symbol, size_t bytes,
                                                                     size_t offset, enum cudaMemcpyKind kind)
{
    return ::cudaGraphExecMemcpyNodeSetParamsFromSymbol(exec, node, to, (const void *)&symbol, bytes, offset, kind);
}

template <class T>
static inline cudaError_t cudaLaunchKernel(T *function, dim3 grid, dim3 block, void **arguments,
                                           size_t shared_bytes = 0, cudaStream_t stream = 0)
{
    return ::cudaLaunchKernel((const void *)function, grid, block, arguments, shared_bytes, stream);
}

template <class T>
static inline cudaError_t cudaLaunchCooperativeKernel(T *function, dim3 grid, dim3 block, void **arguments,
                                                      size_t shared_bytes = 0, cudaStream_t stream = 0)
{
    return ::cudaLaunchCooperativeKernel((const void *)function, grid, block, arguments, shared_bytes, stream);
}

template <class T> static inline cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, T *function)
{
    return ::cudaFuncGetAttributes(attributes, (const void *)function);
}

template <class T> static inline cudaError_t cudaFuncSetAttribute(T *function, enum cudaFuncAttribute attribute, int v)
{
    return ::cudaFuncSetAttribute((const void *)function, attribute, v);
}

template <class T> static inline cudaError_t cudaFuncSetCacheConfig(T *function, enum cudaFuncCache config)
{
    return ::cudaFuncSetCacheConfig((const void *)function, config);
}

template <class T>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, T function, int block_threads,
                                                                        size_t shared_bytes)
{
    return ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)function, block_threads, shared_bytes);
}

template <class T>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, T function,
                                                                                 int block_threads, size_t shared_bytes,
                                                                                 unsigned int flags)
{
    return ::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, (const void *)function, block_threads,
                                                                    shared_bytes, flags);
}

template <class T>
static inline cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, T *function, int blocks,
                                                                    int block_threads)
{
    return ::cudaOccupancyAvailableDynamicSMemPerBlock(bytes, (const void *)function, blocks, block_threads);
}

template <class T> static inline cudaError_t cudaFuncGetName(const char **name, T *function)
{
    return ::cudaFuncGetName(name, (const void *)function);
}

/* The block with which most threads are active on a multiprocessor, and as many of them as fill the device. */
template <class Size, class T>
static inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int *grid, int *block, T function, Size shared,
                                                                         int limit = 0)
{
    struct cudaFuncAttributes attributes;
    int device, processors, best = 0, active;
    cudaError_t error = ::cudaGetDevice(&device);

    if (!error) error = ::cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (!error) error = ::cudaFuncGetAttributes(&attributes, (const void *)function);
    if (error) return error;
    if (!limit || limit > attributes.maxThreadsPerBlock) limit = attributes.maxThreadsPerBlock;
    for (int threads = (limit + 31) / 32 * 32; threads > 0; threads -= 32) {
        int size = threads < limit ? threads : limit;

        error = ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(&active, (const void *)function, size, shared(size));
        if (error) return error;
        if (active * size <= best) continue;
        best = active * size;
        *block = size;
        *grid = active * processors;
    }
    return cudaSuccess;
}

struct koloCudaConstantSize {
    size_t bytes;
    size_t operator()(int) const
    {
        return bytes;
    }
};

template <class T>
static inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, T function, size_t shared = 0,
                                                             int limit = 0)
{
    koloCudaConstantSize size = {shared};

    return cudaOccupancyMaxPotentialBlockSizeVariableSMem(grid, block, function, size, limit);
}

#if __cplusplus >= 201103L
template <class... Parameters, class... Arguments>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                                             Arguments &&...arguments)
{
    return [&](Parameters... copies) {
        void *list[] = {(void *)&copies..., nullptr};

        return ::cudaLaunchKernelExC(config, (const void *)kernel, list);
    }(static_cast<Arguments &&>(arguments)...);
}
#endif

#endif

#if defined(__KOLO_NVCC__)
#include "kolo_cuda/device.h"
#endif

#endif
