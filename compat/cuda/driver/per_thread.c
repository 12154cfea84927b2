/* SPDX-License-Identifier: Apache-2.0 */
/**
 * per_thread.c - functions for programs that were compiled for a default stream of each thread: stream 0 is the thread's there,
 * also in functions without a stream.
 */
#include "compat/cuda/driver/copies.h"
#include "compat/cuda/driver/driver.h"

#undef cuMemPrefetchAsync
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync
#undef cuStreamBeginCapture
#undef cuStreamGetCaptureInfo
#undef cuStreamWaitValue32
#undef cuStreamWriteValue32
#undef cuStreamWaitValue64
#undef cuStreamWriteValue64

#define S CU_STREAM_PER_THREAD

static CUstream own(CUstream stream)
{
    return stream ? stream : S;
}

/* name_ptsz(parameters, CUstream s) is name(arguments, the thread's stream). */
#define PTSZ(name, parameters, arguments)                                                                              \
    extern CUresult name parameters;                                                                                   \
    __attribute__((visibility("default"))) CUresult name##_ptsz parameters;                                            \
    CUresult name##_ptsz parameters                                                                                    \
    {                                                                                                                  \
        return name arguments;                                                                                         \
    }

/* name_ptds(parameters) is a call of something on the thread's stream, which it waits for. */
#define PTDS(name, parameters, call)                                                                                   \
    __attribute__((visibility("default"))) CUresult name##_ptds parameters;                                            \
    CUresult name##_ptds parameters                                                                                    \
    {                                                                                                                  \
        return call;                                                                                                   \
    }

/* ---- copies, fills, memory ---- */

PTDS(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t n),
     kl_cu_copy(kl_cu_address(to), kl_cu_address(from), n, cudaMemcpyDefault, S, KL_CUDA_SYNC))
PTDS(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t n),
     kl_cu_copy(kl_cu_address(to), from, n, cudaMemcpyHostToDevice, S, KL_CUDA_SYNC))
PTDS(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t n),
     kl_cu_copy(to, kl_cu_address(from), n, cudaMemcpyDeviceToHost, S, KL_CUDA_SYNC))
PTDS(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t n),
     kl_cu_copy(kl_cu_address(to), kl_cu_address(from), n, cudaMemcpyDeviceToDevice, S, KL_CUDA_SYNC))
PTDS(cuMemcpyPeer, (CUdeviceptr to, CUcontext a, CUdeviceptr from, CUcontext b, size_t n),
     a &&b ? cuMemcpyDtoD_v2_ptds(to, from, n) : CUDA_ERROR_INVALID_CONTEXT)
PTDS(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *p), kl_cu_copy_rows(p, S, KL_CUDA_SYNC))
PTDS(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *p), kl_cu_copy_rows(p, S, KL_CUDA_SYNC))
PTDS(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *p), kl_cu_copy_box(p, S, KL_CUDA_SYNC))
PTDS(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *p), kl_cu_copy_box_peer(p, S, KL_CUDA_SYNC))
PTDS(cuMemsetD8_v2, (CUdeviceptr p, unsigned char value, size_t n), kl_cu_fill(p, value, 1, n, S, KL_CUDA_SYNC))
PTDS(cuMemsetD2D8_v2, (CUdeviceptr p, size_t pitch, unsigned char value, size_t w, size_t h),
     kl_cu_fill_rows(p, (struct kl_cu_rows){pitch, w, h, 1}, value, S, KL_CUDA_SYNC))
PTDS(cuMemsetD16_v2, (CUdeviceptr p, unsigned short value, size_t n), kl_cu_fill(p, value, 2, n, S, KL_CUDA_SYNC))
PTDS(cuMemsetD2D16_v2, (CUdeviceptr p, size_t pitch, unsigned short value, size_t w, size_t h),
     kl_cu_fill_rows(p, (struct kl_cu_rows){pitch, w, h, 2}, value, S, KL_CUDA_SYNC))
PTDS(cuMemsetD32_v2, (CUdeviceptr p, unsigned value, size_t n), kl_cu_fill(p, value, 4, n, S, KL_CUDA_SYNC))
PTDS(cuMemsetD2D32_v2, (CUdeviceptr p, size_t pitch, unsigned value, size_t w, size_t h),
     kl_cu_fill_rows(p, (struct kl_cu_rows){pitch, w, h, 4}, value, S, KL_CUDA_SYNC))

PTSZ(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), (to, from, n, own(s)))
PTSZ(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t n, CUstream s), (to, from, n, own(s)))
PTSZ(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t n, CUstream s), (to, from, n, own(s)))
PTSZ(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), (to, from, n, own(s)))
PTSZ(cuMemcpyPeerAsync, (CUdeviceptr to, CUcontext a, CUdeviceptr from, CUcontext b, size_t n, CUstream s),
     (to, a, from, b, n, own(s)))
PTSZ(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *p, CUstream s), (p, own(s)))
PTSZ(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *p, CUstream s), (p, own(s)))
PTSZ(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *p, CUstream s), (p, own(s)))
PTSZ(cuMemcpyBatchAsync,
     (CUdeviceptr * to, CUdeviceptr *from, size_t *n, size_t count, CUmemcpyAttributes *a, size_t *first, size_t na,
      size_t *failed, CUstream s),
     (to, from, n, count, a, first, na, failed, own(s)))
PTSZ(cuMemcpyBatchAsync_v2,
     (CUdeviceptr * to, CUdeviceptr *from, size_t *n, size_t count, CUmemcpyAttributes *a, size_t *first, size_t na,
      CUstream s),
     (to, from, n, count, a, first, na, own(s)))
PTSZ(cuMemcpy3DBatchAsync,
     (size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed, unsigned long long flags, CUstream s),
     (count, list, failed, flags, own(s)))
PTSZ(cuMemcpy3DBatchAsync_v2, (size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream s),
     (count, list, flags, own(s)))
PTSZ(cuMemAllocAsync, (CUdeviceptr * p, size_t n, CUstream s), (p, n, own(s)))
PTSZ(cuMemAllocFromPoolAsync, (CUdeviceptr * p, size_t n, CUmemoryPool pool, CUstream s), (p, n, pool, own(s)))
PTSZ(cuMemFreeAsync, (CUdeviceptr p, CUstream s), (p, own(s)))
PTSZ(cuMemsetD8Async, (CUdeviceptr p, unsigned char value, size_t n, CUstream s), (p, value, n, own(s)))
PTSZ(cuMemsetD2D8Async, (CUdeviceptr p, size_t pitch, unsigned char value, size_t w, size_t h, CUstream s),
     (p, pitch, value, w, h, own(s)))
PTSZ(cuMemsetD16Async, (CUdeviceptr p, unsigned short value, size_t n, CUstream s), (p, value, n, own(s)))
PTSZ(cuMemsetD2D16Async, (CUdeviceptr p, size_t pitch, unsigned short value, size_t w, size_t h, CUstream s),
     (p, pitch, value, w, h, own(s)))
PTSZ(cuMemsetD32Async, (CUdeviceptr p, unsigned value, size_t n, CUstream s), (p, value, n, own(s)))
PTSZ(cuMemsetD2D32Async, (CUdeviceptr p, size_t pitch, unsigned value, size_t w, size_t h, CUstream s),
     (p, pitch, value, w, h, own(s)))

PTSZ(cuMemPrefetchAsync, (CUdeviceptr p, size_t n, CUdevice device, CUstream s), (p, n, device, own(s)))
PTSZ(cuMemPrefetchAsync_v2, (CUdeviceptr p, size_t n, CUmemLocation where, unsigned flags, CUstream s),
     (p, n, where, flags, own(s)))
PTSZ(cuStreamAttachMemAsync, (CUstream s, CUdeviceptr p, size_t n, unsigned flags), (own(s), p, n, flags))

/* ---- streams, events, values ---- */

PTSZ(cuStreamAddCallback, (CUstream s, CUstreamCallback callback, void *argument, unsigned flags),
     (own(s), callback, argument, flags))
PTSZ(cuStreamCopyAttributes, (CUstream to, CUstream from), (own(to), own(from)))
PTSZ(cuStreamGetAttribute, (CUstream s, CUstreamAttrID attribute, CUstreamAttrValue *value), (own(s), attribute, value))
PTSZ(cuStreamSetAttribute, (CUstream s, CUstreamAttrID attribute, const CUstreamAttrValue *value),
     (own(s), attribute, value))

PTSZ(cuStreamGetPriority, (CUstream s, int *priority), (own(s), priority))
PTSZ(cuStreamGetFlags, (CUstream s, unsigned *flags), (own(s), flags))
PTSZ(cuStreamGetId, (CUstream s, unsigned long long *id), (own(s), id))
PTSZ(cuStreamGetDevice, (CUstream s, CUdevice *device), (own(s), device))
PTSZ(cuStreamGetCtx, (CUstream s, CUcontext *context), (own(s), context))
PTSZ(cuStreamIsCapturing, (CUstream s, CUstreamCaptureStatus *status), (own(s), status))
PTSZ(cuStreamQuery, (CUstream s), (own(s)))
PTSZ(cuStreamSynchronize, (CUstream s), (own(s)))
PTSZ(cuStreamWaitEvent, (CUstream s, CUevent event, unsigned flags), (own(s), event, flags))
PTSZ(cuEventRecord, (CUevent event, CUstream s), (event, own(s)))
PTSZ(cuLaunchHostFunc, (CUstream s, CUhostFn f, void *argument), (own(s), f, argument))
PTSZ(cuStreamBatchMemOp_v2, (CUstream s, unsigned n, CUstreamBatchMemOpParams *list, unsigned flags),
     (own(s), n, list, flags))
PTSZ(cuStreamWaitValue32, (CUstream s, CUdeviceptr p, cuuint32_t value, unsigned flags), (own(s), p, value, flags))
PTSZ(cuStreamWaitValue32_v2, (CUstream s, CUdeviceptr p, cuuint32_t value, unsigned flags), (own(s), p, value, flags))
PTSZ(cuStreamWaitValue64, (CUstream s, CUdeviceptr p, cuuint64_t value, unsigned flags), (own(s), p, value, flags))
PTSZ(cuStreamWaitValue64_v2, (CUstream s, CUdeviceptr p, cuuint64_t value, unsigned flags), (own(s), p, value, flags))
PTSZ(cuStreamWriteValue32, (CUstream s, CUdeviceptr p, cuuint32_t value, unsigned flags), (own(s), p, value, flags))
PTSZ(cuStreamWriteValue32_v2, (CUstream s, CUdeviceptr p, cuuint32_t value, unsigned flags), (own(s), p, value, flags))
PTSZ(cuStreamWriteValue64, (CUstream s, CUdeviceptr p, cuuint64_t value, unsigned flags), (own(s), p, value, flags))
PTSZ(cuStreamWriteValue64_v2, (CUstream s, CUdeviceptr p, cuuint64_t value, unsigned flags), (own(s), p, value, flags))

/* ---- captures, graphs ---- */

PTSZ(cuStreamBeginCapture, (CUstream s), (own(s)))
PTSZ(cuStreamBeginCapture_v2, (CUstream s, CUstreamCaptureMode mode), (own(s), mode))
PTSZ(cuStreamBeginCaptureToGraph,
     (CUstream s, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t n,
      CUstreamCaptureMode mode),
     (own(s), graph, after, edges, n, mode))
PTSZ(cuStreamEndCapture, (CUstream s, CUgraph *graph), (own(s), graph))
PTSZ(cuStreamGetCaptureInfo, (CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id), (own(s), status, id))
PTSZ(cuStreamGetCaptureInfo_v2,
     (CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **after, size_t *n),
     (own(s), status, id, graph, after, n))
PTSZ(cuStreamGetCaptureInfo_v3,
     (CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **after,
      const CUgraphEdgeData **edges, size_t *n),
     (own(s), status, id, graph, after, edges, n))
PTSZ(cuGraphInstantiateWithParams, (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *p),
     (exec, graph, p))
PTSZ(cuGraphLaunch, (CUgraphExec exec, CUstream s), (exec, own(s)))
PTSZ(cuGraphUpload, (CUgraphExec exec, CUstream s), (exec, own(s)))
PTSZ(cuEventRecordWithFlags, (CUevent event, CUstream s, unsigned flags), (event, own(s), flags))

/* ---- kernels ---- */

PTSZ(cuLaunchKernel,
     (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
      CUstream s, void **arguments, void **extra),
     (f, gx, gy, gz, bx, by, bz, shared, own(s), arguments, extra))
PTSZ(cuLaunchCooperativeKernel,
     (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
      CUstream s, void **arguments),
     (f, gx, gy, gz, bx, by, bz, shared, own(s), arguments))

__attribute__((visibility("default"))) CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f,
                                                                      void **arguments, void **extra);
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **arguments, void **extra)
{
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    CUlaunchConfig c = *config;
    c.hStream = own(c.hStream);
    return cuLaunchKernelEx(&c, f, arguments, extra);
}
