/* SPDX-License-Identifier: Apache-2.0 */
/**
 * per_thread.c - functions for programs that were compiled for a default stream of each thread: stream 0 is the thread's there,
 * also in functions without a stream.
 */
#include "compat/cuda/runtime/capture.h"
#include "compat/cuda/runtime/copy.h"
#include "compat/cuda/runtime/entry.h"

/* name_ptsz(parameters, cudaStream_t stream) is name(arguments, the thread's stream). _13: in CUDA 12 it has other parameters, and is
 * where that function is. */
#define PTSZ_13(name, parameters, arguments)                                                                           \
    KL_CUDART_EXPORT cudaError_t name##_ptsz parameters;                                                               \
    cudaError_t name##_ptsz parameters                                                                                 \
    {                                                                                                                  \
        return name arguments;                                                                                         \
    }                                                                                                                  \
    KL_CUDART_ENTRY_13(name##_ptsz)
#define PTSZ(name, parameters, arguments)                                                                              \
    PTSZ_13(name, parameters, arguments);                                                                              \
    KL_CUDART_ENTRY_12(name##_ptsz, name##_ptsz)

/* name_ptds(parameters) is a call of something on the thread's stream, which it waits for. */
#define PTDS(name, parameters, call)                                                                                   \
    KL_CUDART_EXPORT cudaError_t name##_ptds parameters;                                                               \
    cudaError_t name##_ptds parameters                                                                                 \
    {                                                                                                                  \
        return call;                                                                                                   \
    }                                                                                                                  \
    KL_CUDART_ENTRY(name##_ptds)

typedef enum cudaMemcpyKind kind_t;
typedef struct cudaPitchedPtr volume_t;
typedef struct cudaExtent extent_t;

#define S cudaStreamPerThread

/* ---- copies and fills ---- */

PTDS(cudaMemcpy, (void *to, const void *from, size_t n, kind_t kind),
     kl_cudart_copy(to, from, n, kind, S, KL_CUDA_SYNC));
PTDS(cudaMemcpyToSymbol, (const void *symbol, const void *from, size_t n, size_t offset, kind_t kind),
     kl_cudart_to_symbol(symbol, from, n, offset, kind, S, KL_CUDA_SYNC));
PTDS(cudaMemcpyFromSymbol, (void *to, const void *symbol, size_t n, size_t offset, kind_t kind),
     kl_cudart_from_symbol(to, symbol, n, offset, kind, S, KL_CUDA_SYNC));
PTDS(cudaMemcpy2D, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t w, size_t h, kind_t kind),
     kl_cudart_copy_rows(&(struct kl_cuda_box){.to = to,
                                               .from = from,
                                               .width = w,
                                               .height = h,
                                               .depth = 1,
                                               .to_pitch = to_pitch,
                                               .from_pitch = from_pitch},
                         kind, S, KL_CUDA_SYNC));
PTDS(cudaMemcpy3D, (const struct cudaMemcpy3DParms *p), kl_cudart_copy_box(p, S, KL_CUDA_SYNC));
PTDS(cudaMemcpy3DPeer, (const struct cudaMemcpy3DPeerParms *p), kl_cudart_copy_box_peer(p, S, KL_CUDA_SYNC));
PTDS(cudaMemset, (void *ptr, int value, size_t n), kl_cudart_fill(ptr, value, n, S, KL_CUDA_SYNC));
PTDS(cudaMemset2D, (void *ptr, size_t pitch, int value, size_t w, size_t h),
     kl_cudart_fill_box((volume_t){.ptr = ptr, .pitch = pitch, .ysize = h}, value,
                        (extent_t){.width = w, .height = h, .depth = 1}, S, KL_CUDA_SYNC));
PTDS(cudaMemset3D, (volume_t p, int value, extent_t e), kl_cudart_fill_box(p, value, e, S, KL_CUDA_SYNC));

PTSZ(cudaMemcpyAsync, (void *to, const void *from, size_t n, kind_t kind, cudaStream_t s),
     (to, from, n, kind, kl_cudart_own(s)));
PTSZ(cudaMemcpyToSymbolAsync,
     (const void *symbol, const void *from, size_t n, size_t offset, kind_t kind, cudaStream_t s),
     (symbol, from, n, offset, kind, kl_cudart_own(s)));
PTSZ(cudaMemcpyFromSymbolAsync, (void *to, const void *symbol, size_t n, size_t offset, kind_t kind, cudaStream_t s),
     (to, symbol, n, offset, kind, kl_cudart_own(s)));
PTSZ(cudaMemcpy2DAsync,
     (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t w, size_t h, kind_t kind, cudaStream_t s),
     (to, to_pitch, from, from_pitch, w, h, kind, kl_cudart_own(s)));
PTSZ(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *p, cudaStream_t s), (p, kl_cudart_own(s)));
PTSZ(cudaMemcpy3DPeerAsync, (const struct cudaMemcpy3DPeerParms *p, cudaStream_t s), (p, kl_cudart_own(s)));
PTSZ(cudaMemsetAsync, (void *ptr, int value, size_t n, cudaStream_t s), (ptr, value, n, kl_cudart_own(s)));
PTSZ(cudaMemset2DAsync, (void *ptr, size_t pitch, int value, size_t w, size_t h, cudaStream_t s),
     (ptr, pitch, value, w, h, kl_cudart_own(s)));
PTSZ(cudaMemset3DAsync, (volume_t p, int value, extent_t e, cudaStream_t s), (p, value, e, kl_cudart_own(s)));
PTSZ(cudaMallocAsync, (void **ptr, size_t n, cudaStream_t s), (ptr, n, kl_cudart_own(s)));
PTSZ(cudaFreeAsync, (void *ptr, cudaStream_t s), (ptr, kl_cudart_own(s)));
PTSZ(cudaMallocFromPoolAsync, (void **ptr, size_t n, cudaMemPool_t pool, cudaStream_t s),
     (ptr, n, pool, kl_cudart_own(s)));
PTSZ_13(cudaMemPrefetchAsync, (const void *ptr, size_t n, struct cudaMemLocation where, unsigned flags, cudaStream_t s),
        (ptr, n, where, flags, kl_cudart_own(s)));
KL_CUDART_ENTRY_12(cudaMemPrefetchAsync_v2_ptsz, cudaMemPrefetchAsync_ptsz);

PTSZ_13(cudaMemcpyBatchAsync,
        (void *const *to, const void *const *from, const size_t *n, size_t count,
         struct cudaMemcpyAttributes *attributes, size_t *first, size_t nattributes, cudaStream_t s),
        (to, from, n, count, attributes, first, nattributes, kl_cudart_own(s)));
PTSZ_13(cudaMemcpy3DBatchAsync,
        (size_t count, struct cudaMemcpy3DBatchOp *list, unsigned long long flags, cudaStream_t s),
        (count, list, flags, kl_cudart_own(s)));

/* ---- streams, events ---- */

PTSZ(cudaStreamSynchronize, (cudaStream_t s), (kl_cudart_own(s)));
PTSZ(cudaStreamQuery, (cudaStream_t s), (kl_cudart_own(s)));
PTSZ(cudaStreamWaitEvent, (cudaStream_t s, cudaEvent_t event, unsigned flags), (kl_cudart_own(s), event, flags));
PTSZ(cudaStreamGetPriority, (cudaStream_t s, int *priority), (kl_cudart_own(s), priority));
PTSZ(cudaStreamGetFlags, (cudaStream_t s, unsigned *flags), (kl_cudart_own(s), flags));
PTSZ(cudaStreamGetId, (cudaStream_t s, unsigned long long *id), (kl_cudart_own(s), id));
PTSZ(cudaStreamGetDevice, (cudaStream_t s, int *device), (kl_cudart_own(s), device));
PTSZ(cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from), (kl_cudart_own(to), kl_cudart_own(from)));
PTSZ(cudaStreamGetAttribute, (cudaStream_t s, cudaLaunchAttributeID id, cudaLaunchAttributeValue *v),
     (kl_cudart_own(s), id, v));
PTSZ(cudaStreamSetAttribute, (cudaStream_t s, cudaLaunchAttributeID id, const cudaLaunchAttributeValue *v),
     (kl_cudart_own(s), id, v));
PTSZ(cudaStreamAttachMemAsync, (cudaStream_t s, void *ptr, size_t n, unsigned flags),
     (kl_cudart_own(s), ptr, n, flags));
PTSZ(cudaStreamAddCallback, (cudaStream_t s, cudaStreamCallback_t f, void *argument, unsigned flags),
     (kl_cudart_own(s), f, argument, flags));
PTSZ(cudaLaunchHostFunc, (cudaStream_t s, cudaHostFn_t f, void *argument), (kl_cudart_own(s), f, argument));
PTSZ(cudaEventRecord, (cudaEvent_t event, cudaStream_t s), (event, kl_cudart_own(s)));
PTSZ(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t s, unsigned flags), (event, kl_cudart_own(s), flags));

/* ---- kernels, graphs ---- */

PTSZ(cudaLaunchKernel, (const void *f, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t s),
     (f, grid, block, arguments, shared, kl_cudart_own(s)));
PTSZ(cudaLaunchCooperativeKernel,
     (const void *f, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t s),
     (f, grid, block, arguments, shared, kl_cudart_own(s)));

KL_CUDART_EXPORT cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *f,
                                                      void **arguments);
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *f, void **arguments)
{
    if (!config) return kl_cudart_done(cudaErrorInvalidValue);
    cudaLaunchConfig_t same = *config;
    same.stream = kl_cudart_own(same.stream);
    return cudaLaunchKernelExC(&same, f, arguments);
}
KL_CUDART_ENTRY(cudaLaunchKernelExC_ptsz);

KL_CUDART_EXPORT cudaError_t __cudaLaunchKernel_ptsz(void *kernel, dim3 grid, dim3 block, void **arguments,
                                                     size_t shared, cudaStream_t s);
cudaError_t __cudaLaunchKernel_ptsz(void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                                    cudaStream_t s)
{
    return cudaLaunchKernel(kernel, grid, block, arguments, shared, kl_cudart_own(s));
}
KL_CUDART_ENTRY(__cudaLaunchKernel_ptsz);

PTSZ(cudaStreamBeginCapture, (cudaStream_t s, enum cudaStreamCaptureMode mode), (kl_cudart_own(s), mode));
PTSZ(cudaStreamBeginCaptureToGraph,
     (cudaStream_t s, cudaGraph_t graph, const cudaGraphNode_t *after, const cudaGraphEdgeData *edges, size_t n,
      enum cudaStreamCaptureMode mode),
     (kl_cudart_own(s), graph, after, edges, n, mode));
PTSZ(cudaStreamEndCapture, (cudaStream_t s, cudaGraph_t *graph), (kl_cudart_own(s), graph));
PTSZ(cudaStreamIsCapturing, (cudaStream_t s, enum cudaStreamCaptureStatus *status), (kl_cudart_own(s), status));
PTSZ_13(cudaStreamGetCaptureInfo,
        (cudaStream_t s, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
         const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges, size_t *count),
        (kl_cudart_own(s), status, id, graph, nodes, edges, count));
KL_CUDART_ENTRY_12(cudaStreamGetCaptureInfo_v3_ptsz, cudaStreamGetCaptureInfo_ptsz);
PTSZ(cudaGraphInstantiateWithParams, (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams *p),
     (exec, graph, p));
PTSZ(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t s), (exec, kl_cudart_own(s)));
PTSZ(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t s), (exec, kl_cudart_own(s)));

/* ---- the driver's functions for the thread's stream ---- */

KL_CUDART_EXPORT cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function, unsigned long long flags,
                                                          enum cudaDriverEntryPointQueryResult *found);
cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function, unsigned long long flags,
                                         enum cudaDriverEntryPointQueryResult *found)
{
    return cudaGetDriverEntryPoint(symbol, function, flags ? flags : cudaEnablePerThreadDefaultStream, found);
}
KL_CUDART_ENTRY(cudaGetDriverEntryPoint_ptsz);

KL_CUDART_EXPORT cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function,
                                                                   unsigned version, unsigned long long flags,
                                                                   enum cudaDriverEntryPointQueryResult *found);
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function, unsigned version,
                                                  unsigned long long flags, enum cudaDriverEntryPointQueryResult *found)
{
    return cudaGetDriverEntryPointByVersion(symbol, function, version, flags ? flags : cudaEnablePerThreadDefaultStream,
                                            found);
}
KL_CUDART_ENTRY(cudaGetDriverEntryPointByVersion_ptsz);
