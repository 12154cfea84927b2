/* SPDX-License-Identifier: Apache-2.0 */
/** event.c - events. */
#include "compat/cuda/core/event.h"

#include "compat/cuda/engine/engine.h"
#include "compat/cuda/runtime/entry.h"

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return kl_cudart_done(kl_cuda_event_create(event, cudaEventDefault));
}
KL_CUDART_ENTRY(cudaEventCreate);

/* Events of a kernel's own: its launches run in the order in which they were made, so there is nothing to wait for. */
#define OF_KERNEL ((cudaEvent_t)0x5)

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    if (kl_engine_inside()) {
        if (event) *event = OF_KERNEL;
        return kl_cudart_done(event && flags == cudaEventDisableTiming ? cudaSuccess : cudaErrorInvalidValue);
    }
    return kl_cudart_done(kl_cuda_event_create(event, flags));
}
KL_CUDART_ENTRY(cudaEventCreateWithFlags);

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (kl_engine_inside()) return kl_cudart_done(event == OF_KERNEL ? cudaSuccess : cudaErrorInvalidResourceHandle);
    return kl_cudart_done(kl_cuda_event_destroy(event));
}
KL_CUDART_ENTRY(cudaEventDestroy);

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (kl_engine_inside()) return kl_cudart_done(event == OF_KERNEL ? cudaSuccess : cudaErrorInvalidResourceHandle);
    return kl_cudart_done(kl_cuda_event_record(event, stream, 0));
}
KL_CUDART_ENTRY(cudaEventRecord);

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    return kl_cudart_done(kl_cuda_event_record(event, stream, flags));
}
KL_CUDART_ENTRY(cudaEventRecordWithFlags);

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return kl_cudart_done(kl_cuda_event_query(event));
}
KL_CUDART_ENTRY(cudaEventQuery);

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (kl_engine_inside()) return kl_cudart_done(cudaErrorNotPermitted);
    return kl_cudart_done(kl_cuda_event_synchronize(event));
}
KL_CUDART_ENTRY(cudaEventSynchronize);

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    return kl_cudart_done(kl_cuda_event_elapsed(milliseconds, start, end));
}
KL_CUDART_ENTRY(cudaEventElapsedTime);
KL_CUDART_ENTRY_12(cudaEventElapsedTime_v2, cudaEventElapsedTime);
