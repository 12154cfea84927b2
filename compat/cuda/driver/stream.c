/* SPDX-License-Identifier: Apache-2.0 */
/** stream.c - streams, events, and values that streams write and wait for. */
#include "compat/cuda/core/stream.h"

#include "compat/cuda/core/event.h"
#include "compat/cuda/core/ranges.h"
#include "compat/cuda/driver/driver.h"

#include <stdlib.h>
#include <time.h>

/* ---- streams ---- */

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_stream_create(stream, flags, priority);
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy(CUstream stream)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_stream_destroy(stream);
}

CUresult cuStreamQuery(CUstream stream)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_stream_query(stream);
}

CUresult cuStreamSynchronize(CUstream stream)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_stream_synchronize(stream);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_event_order(stream, event, flags);
}

static CUresult info_of(CUstream stream, const void *result, struct kl_cuda_stream_info *info)
{
    if (!result) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_stream_info(stream, info);
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    struct kl_cuda_stream_info info;

    KL_CU_TRY(info_of(stream, priority, &info));
    *priority = info.priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
    struct kl_cuda_stream_info info;

    KL_CU_TRY(info_of(stream, flags, &info));
    *flags = info.flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
    struct kl_cuda_stream_info info;

    KL_CU_TRY(info_of(stream, id, &info));
    *id = info.id;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice *device)
{
    struct kl_cuda_stream_info info;

    KL_CU_TRY(info_of(stream, device, &info));
    *device = info.device;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    koloCaptureStatus_t now;

    KL_CU_TRY(kl_cu_enter());
    if (!status) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cuda_from_kolo(koloStreamGetCaptureInfo(stream, &now, NULL), cudaErrorInvalidResourceHandle));
    *status = (CUstreamCaptureStatus)now;
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    koloCaptureMode_t swapped;

    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    swapped = (koloCaptureMode_t)*mode;
    KL_CU_TRY(kl_cuda_from_kolo(koloThreadExchangeCaptureMode(&swapped), cudaErrorInvalidValue));
    *mode = (CUstreamCaptureMode)swapped;
    return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *argument)
{
    KL_CU_TRY(kl_cu_enter());
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    return (CUresult)kl_cuda_stream_call(stream, function, NULL, argument);
}

/* ---- values ---- */

struct operation {
    void *address;
    uint64_t value;
    bool wide;
    unsigned condition;
    int device;
};

static void write_value(void *data)
{
    const struct operation *o = data;

    if (o->wide)
        __atomic_store_n((uint64_t *)o->address, o->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)o->address, (uint32_t)o->value, __ATOMIC_RELEASE);
}

static bool is_met(const struct operation *o)
{
    uint64_t now = o->wide ? __atomic_load_n((const uint64_t *)o->address, __ATOMIC_ACQUIRE)
                           : __atomic_load_n((const uint32_t *)o->address, __ATOMIC_ACQUIRE);

    switch (o->condition) {
    case CU_STREAM_WAIT_VALUE_GEQ: /* in a circle */
        return o->wide ? (int64_t)(now - o->value) >= 0 : (int32_t)((uint32_t)now - (uint32_t)o->value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == o->value;
    case CU_STREAM_WAIT_VALUE_AND:
        return now & o->value;
    default:
        return ~(now | o->value) & (o->wide ? UINT64_MAX : UINT32_MAX);
    }
}

/* The program's to bring about; it ends, too, when the device has failed. */
static void wait_value(void *data)
{
    const struct operation *o = data;
    struct timespec pause = {.tv_nsec = 10000};

    while (!is_met(o) && !kl_cuda_failure(o->device)) nanosleep(&pause, NULL);
}

/* A multicast object is for kernels alone. */
static bool is_multicast(const void *address)
{
    struct kl_cuda_range range;

    return kl_cuda_ranges_find(address, &range) && range.kind == KL_CUDA_MEMORY_MULTICAST;
}

static CUresult queue(CUstream stream, struct operation operation, void (*run)(void *))
{
    KL_CU_TRY(kl_cu_enter());
    if (!operation.address || (uintptr_t)operation.address % (operation.wide ? 8 : 4) ||
        operation.condition > CU_STREAM_WAIT_VALUE_NOR || is_multicast(operation.address))
        return CUDA_ERROR_INVALID_VALUE;
    struct operation *o = malloc(sizeof *o);
    if (!o) return CUDA_ERROR_OUT_OF_MEMORY;
    *o = operation;
    o->device = kl_cuda_current();
    return (CUresult)kl_cuda_stream_call(stream, run, free, o);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr ptr, cuuint32_t value, unsigned int flags)
{
    if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
    return queue(stream, (struct operation){.address = kl_cu_address(ptr), .value = value}, write_value);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr ptr, cuuint64_t value, unsigned int flags)
{
    if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
    return queue(stream, (struct operation){.address = kl_cu_address(ptr), .value = value, .wide = true}, write_value);
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr ptr, cuuint32_t value, unsigned int flags)
{
    return queue(stream,
                 (struct operation){.address = kl_cu_address(ptr),
                                    .value = value,
                                    .condition = flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH},
                 wait_value);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr ptr, cuuint64_t value, unsigned int flags)
{
    return queue(stream,
                 (struct operation){.address = kl_cu_address(ptr),
                                    .value = value,
                                    .wide = true,
                                    .condition = flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH},
                 wait_value);
}

static CUresult queue_one(CUstream stream, const CUstreamBatchMemOpParams *p)
{
    CUdeviceptr at = p->waitValue.address;

    switch (p->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        return cuStreamWaitValue32(stream, at, p->waitValue.value, p->waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return cuStreamWaitValue64(stream, at, p->waitValue.value64, p->waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return cuStreamWriteValue32(stream, at, p->writeValue.value, p->writeValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return cuStreamWriteValue64(stream, at, p->writeValue.value64, p->writeValue.flags);
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return CUDA_SUCCESS; /* later work sees earlier writes anyway */
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *list, unsigned int flags)
{
    enum { MOST = 256 };

    if (!list || !count || count > MOST || flags) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cu_enter());
    for (unsigned i = 0; i < count; i++) KL_CU_TRY(queue_one(stream, &list[i]));
    return CUDA_SUCCESS;
}

/* ---- events ---- */

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_event_create(event, flags);
}

CUresult cuEventDestroy(CUevent event)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_event_destroy(event);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_event_record(event, stream, flags);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return cuEventRecordWithFlags(event, stream, 0);
}

CUresult cuEventQuery(CUevent event)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_event_query(event);
}

CUresult cuEventSynchronize(CUevent event)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_event_synchronize(event);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    KL_CU_TRY(kl_cu_ready());
    return (CUresult)kl_cuda_event_elapsed(milliseconds, start, end);
}
