/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/state.h"

#include "base/atomic.h"

#include <pthread.h>

enum { DEPTH = 64, UNKNOWN = -1 };

static struct kl_cuda_context primary[KL_CUDA_DEVICES];
static _Atomic int failure[KL_CUDA_DEVICES];

static _Thread_local struct {
    struct kl_cuda_context *stack[DEPTH];
    int depth;
    int told;   /* the device that was set in kolo, plus 1 */
    int inside; /* functions of streams, one within the other */
} thread;

/* ---- the thread's context ---- */

struct kl_cuda_context *kl_cuda_context(void)
{
    return thread.depth ? thread.stack[thread.depth - 1] : NULL;
}

static void number_primary(void)
{
    for (int i = 0; i < KL_CUDA_DEVICES; i++) primary[i] = (struct kl_cuda_context){.device = i, .primary = true};
}

struct kl_cuda_context *kl_cuda_primary(int device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, number_primary);
    return &primary[device];
}

int kl_cuda_current(void)
{
    const struct kl_cuda_context *context = kl_cuda_context();

    return context ? context->device : 0;
}

/* Kolo's current device is the same: collectives without a stream, and new communicators, look there. */
static cudaError_t tell_kolo(void)
{
    int device = kl_cuda_current();

    if (thread.told == device + 1) return cudaSuccess;
    if (koloSetDevice(device)) return cudaErrorInvalidDevice;
    thread.told = device + 1;
    return cudaSuccess;
}

void kl_cuda_context_set(struct kl_cuda_context *context)
{
    if (!context) {
        if (thread.depth) thread.depth--;
    } else if (thread.depth) {
        thread.stack[thread.depth - 1] = context;
    } else {
        thread.stack[thread.depth++] = context;
    }
    tell_kolo();
}

cudaError_t kl_cuda_context_push(struct kl_cuda_context *context)
{
    if (thread.depth == DEPTH) return cudaErrorInvalidValue;
    thread.stack[thread.depth++] = context;
    return tell_kolo();
}

struct kl_cuda_context *kl_cuda_context_pop(void)
{
    struct kl_cuda_context *top = kl_cuda_context();

    if (top) {
        thread.depth--;
        tell_kolo();
    }
    return top;
}

void kl_cuda_activate(int device)
{
    struct kl_cuda_context *context = kl_cuda_primary(device);

    if (!__atomic_load_n(&context->alive, __ATOMIC_RELAXED)) __atomic_store_n(&context->alive, true, __ATOMIC_RELAXED);
}

static void use_primary(int device)
{
    kl_cuda_activate(device);
    kl_cuda_context_set(kl_cuda_primary(device));
}

void kl_cuda_set_in_callback(bool inside)
{
    thread.inside += inside ? 1 : -1;
}

cudaError_t kl_cuda_enter(void)
{
    if (thread.inside) return cudaErrorNotPermitted;
    KL_CUDA_TRY(kl_cuda_ready());
    if (!thread.depth) use_primary(0);
    if (!thread.told) KL_CUDA_TRY(tell_kolo());
    return kl_cuda_failure(kl_cuda_current());
}

cudaError_t kl_cuda_select(int device)
{
    int count;

    KL_CUDA_TRY(kl_cuda_ready());
    KL_CUDA_TRY(kl_cuda_device_count(&count));
    if (device < 0 || device >= count) return cudaErrorInvalidDevice;
    use_primary(device);
    return kl_cuda_failure(device);
}

/* ---- failures ---- */

void kl_cuda_fail_device(int device, cudaError_t code)
{
    int none = cudaSuccess;

    if (device >= 0 && device < KL_CUDA_DEVICES)
        atomic_compare_exchange_strong_explicit(&failure[device], &none, (int)code, memory_order_release,
                                                memory_order_relaxed);
}

cudaError_t kl_cuda_failure(int device)
{
    return (cudaError_t)kl_load_acquire(&failure[device]);
}

static cudaError_t from_reason(void)
{
    static const cudaError_t codes[] = {
        [koloReasonNone] = cudaErrorInvalidValue,
        [koloReasonCaptureUnsupported] = cudaErrorStreamCaptureUnsupported,
        [koloReasonCaptureInvalidated] = cudaErrorStreamCaptureInvalidated,
        [koloReasonCaptureMerge] = cudaErrorStreamCaptureMerge,
        [koloReasonCaptureUnmatched] = cudaErrorStreamCaptureUnmatched,
        [koloReasonCaptureUnjoined] = cudaErrorStreamCaptureUnjoined,
        [koloReasonCaptureIsolation] = cudaErrorStreamCaptureIsolation,
        [koloReasonCaptureImplicit] = cudaErrorStreamCaptureImplicit,
        [koloReasonCapturedEvent] = cudaErrorCapturedEvent,
        [koloReasonCaptureWrongThread] = cudaErrorStreamCaptureWrongThread,
        [koloReasonCaptureState] = cudaErrorIllegalState,
        [koloReasonGraphUpdate] = cudaErrorGraphExecUpdateFailure,
        [koloReasonEventTime] = cudaErrorInvalidResourceHandle,
    };
    koloReason_t reason = koloGetLastReason();

    return (size_t)reason < sizeof codes / sizeof codes[0] ? codes[reason] : cudaErrorUnknown;
}

cudaError_t kl_cuda_from_kolo(ncclResult_t rc, cudaError_t invalid)
{
    switch (rc) {
    case ncclSuccess:
        return cudaSuccess;
    case ncclInProgress:
        return cudaErrorNotReady;
    case ncclInvalidArgument:
        return invalid;
    case ncclInvalidUsage:
        return from_reason();
    case ncclSystemError:
        return cudaErrorMemoryAllocation;
    default:
        return cudaErrorUnknown;
    }
}

cudaError_t kl_cuda_from_wait(ncclResult_t rc)
{
    if (rc == ncclInProgress) return cudaErrorNotReady;
    if (rc != ncclInvalidUsage) return cudaSuccess;
    cudaError_t code = from_reason();
    return code == cudaErrorInvalidValue ? cudaSuccess : code; /* no reason: a collective left it */
}

cudaError_t kl_cuda_unsafe(void)
{
    return kl_cuda_from_kolo(koloCaptureUnsafeCall(), cudaErrorUnknown);
}
