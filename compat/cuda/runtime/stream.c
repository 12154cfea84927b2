/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stream.c - streams, and functions of the host in them.
 */
#include "compat/cuda/core/stream.h"

#include "compat/cuda/core/event.h"
#include "compat/cuda/core/pool.h"
#include "compat/cuda/engine/engine.h"
#include "compat/cuda/runtime/entry.h"

#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return kl_cudart_done(kl_cuda_stream_create(stream, cudaStreamDefault, 0));
}
KL_CUDART_ENTRY(cudaStreamCreate);

/* Streams of a kernel's own: its launches run in the order in which they were made, whatever stream they are in. */
#define OF_KERNEL ((cudaStream_t)0x5)

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    if (kl_engine_inside()) {
        if (stream) *stream = OF_KERNEL;
        return kl_cudart_done(stream && flags == cudaStreamNonBlocking ? cudaSuccess : cudaErrorInvalidValue);
    }
    return kl_cudart_done(kl_cuda_stream_create(stream, flags, 0));
}
KL_CUDART_ENTRY(cudaStreamCreateWithFlags);

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    return kl_cudart_done(kl_cuda_stream_create(stream, flags, priority));
}
KL_CUDART_ENTRY(cudaStreamCreateWithPriority);

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (kl_engine_inside()) return kl_cudart_done(stream == OF_KERNEL ? cudaSuccess : cudaErrorInvalidResourceHandle);
    return kl_cudart_done(kl_cuda_stream_destroy(stream));
}
KL_CUDART_ENTRY(cudaStreamDestroy);

/* ---- waiting ---- */

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    int device;
    cudaError_t rc = kl_engine_inside() ? cudaErrorNotPermitted : kl_cuda_stream_synchronize(stream);

    if (!rc && !koloStreamGetInfo(stream, &device, NULL)) kl_cuda_pool_trim_to_threshold(device);
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaStreamSynchronize);

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return kl_cudart_done(kl_cuda_stream_query(stream));
}
KL_CUDART_ENTRY(cudaStreamQuery);

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    if (kl_engine_inside()) return cudaSuccess; /* behind all launches that were made before */
    return kl_cudart_done(kl_cuda_event_order(stream, event, flags));
}
KL_CUDART_ENTRY(cudaStreamWaitEvent);

/* ---- attributes ---- */

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    struct kl_cuda_stream_info info;
    cudaError_t rc = priority ? kl_cuda_stream_info(stream, &info) : cudaErrorInvalidValue;

    if (!rc) *priority = info.priority;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaStreamGetPriority);

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
    struct kl_cuda_stream_info info;
    cudaError_t rc = flags ? kl_cuda_stream_info(stream, &info) : cudaErrorInvalidValue;

    if (!rc) *flags = info.flags;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaStreamGetFlags);

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    struct kl_cuda_stream_info info;
    cudaError_t rc = id ? kl_cuda_stream_info(stream, &info) : cudaErrorInvalidValue;

    if (!rc) *id = info.id;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaStreamGetId);

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    struct kl_cuda_stream_info info;
    cudaError_t rc = device ? kl_cuda_stream_info(stream, &info) : cudaErrorInvalidValue;

    if (!rc) *device = info.device;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaStreamGetDevice);

static cudaError_t check_stream(cudaStream_t stream)
{
    struct kl_cuda_stream_info info;

    return kl_cuda_stream_info(stream, &info);
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from)
{
    struct kl_cuda_stream_hints hints;
    cudaError_t rc = check_stream(to);

    if (!rc) rc = check_stream(from);
    if (rc) return kl_cudart_done(rc);
    hints = kl_cuda_stream_hints(from);
    kl_cuda_stream_set_hints(to, &hints);
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaStreamCopyAttributes);

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue *value)
{
    struct kl_cuda_stream_info info;
    cudaError_t rc = value ? kl_cuda_stream_info(stream, &info) : cudaErrorInvalidValue;

    if (rc) return kl_cudart_done(rc);
    memset(value, 0, sizeof *value);
    if (attribute == cudaLaunchAttributePriority) value->priority = info.priority;
    if (attribute == cudaLaunchAttributeAccessPolicyWindow)
        value->accessPolicyWindow = kl_cuda_stream_hints(stream).window;
    if (attribute == cudaLaunchAttributeSynchronizationPolicy) value->syncPolicy = kl_cuda_stream_hints(stream).policy;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaStreamGetAttribute);

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue *value)
{
    struct kl_cuda_stream_hints hints;
    cudaError_t rc = value ? check_stream(stream) : cudaErrorInvalidValue;

    if (rc) return kl_cudart_done(rc);
    hints = kl_cuda_stream_hints(stream);
    if (attribute == cudaLaunchAttributeAccessPolicyWindow) {
        if (!(value->accessPolicyWindow.hitRatio >= 0 && value->accessPolicyWindow.hitRatio <= 1))
            return kl_cudart_done(cudaErrorInvalidValue);
        hints.window = value->accessPolicyWindow;
    }
    if (attribute == cudaLaunchAttributeSynchronizationPolicy) hints.policy = value->syncPolicy;
    kl_cuda_stream_set_hints(stream, &hints);
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaStreamSetAttribute);

/* ---- functions of the host ---- */

struct host_call {
    cudaHostFn_t function;         /* not called after a failure of the device; */
    cudaStreamCallback_t callback; /* this is, with the failure */
    void *argument;
    cudaStream_t stream;
    int device;
};

static void call_host(void *data)
{
    const struct host_call *c = data;
    cudaError_t failure = kl_cuda_failure(c->device);

    if (c->callback)
        c->callback(c->stream, failure, c->argument);
    else if (!failure)
        c->function(c->argument);
}

static cudaError_t queue_host(struct host_call call)
{
    KL_CUDA_TRY(kl_cuda_enter());
    if (koloStreamGetInfo(call.stream, &call.device, NULL)) return cudaErrorInvalidResourceHandle;
    if (!call.callback) KL_CUDA_TRY(kl_cuda_failure(call.device));
    struct host_call *c = malloc(sizeof *c);
    if (!c) return cudaErrorMemoryAllocation;
    *c = call;
    return kl_cuda_stream_call(call.stream, call_host, free, c);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    if (!function) return kl_cudart_done(cudaErrorInvalidValue);
    return kl_cudart_done(queue_host((struct host_call){.function = function, .argument = argument, .stream = stream}));
}
KL_CUDART_ENTRY(cudaLaunchHostFunc);

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *argument,
                                  unsigned int flags)
{
    if (!callback || flags) return kl_cudart_done(cudaErrorInvalidValue);
    if (kl_cuda_stream_captures(stream)) return kl_cudart_done(cudaErrorStreamCaptureUnsupported);
    return kl_cudart_done(queue_host((struct host_call){.callback = callback, .argument = argument, .stream = stream}));
}
KL_CUDART_ENTRY(cudaStreamAddCallback);
