/* SPDX-License-Identifier: Apache-2.0 */
/** context.c - contexts: a primary one for each device, which the runtime uses, and others. */
#include "compat/cuda/core/device.h"
#include "compat/cuda/core/peer.h"
#include "compat/cuda/core/reset.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/driver/driver.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- handles: of primary contexts the record itself, of others one of a list that only grows ---- */

struct made {
    struct kl_cuda_context context;
    struct made *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct made *all;

static CUcontext handle_of(struct kl_cuda_context *context)
{
    return (CUcontext)(void *)context;
}

static bool is_primary(const struct kl_cuda_context *context)
{
    for (int i = 0; i < KL_CUDA_DEVICES; i++)
        if (context == kl_cuda_primary(i)) return true;
    return false;
}

static CUresult find(CUcontext handle, struct kl_cuda_context **context)
{
    struct kl_cuda_context *wanted = (void *)handle;
    bool there = wanted && is_primary(wanted);

    pthread_mutex_lock(&lock);
    for (struct made *m = all; m && !there; m = m->next) there = &m->context == wanted && m->context.alive;
    pthread_mutex_unlock(&lock);
    *context = wanted;
    return there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* ---- primary contexts ---- */

static CUresult find_primary(CUdevice device, struct kl_cuda_context **context)
{
    const struct kl_cuda_device *d;

    KL_CU_TRY(kl_cu_ready());
    KL_CU_TRY(kl_cuda_device(device, &d));
    *context = kl_cuda_primary(device);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    struct kl_cuda_context *c;

    KL_CU_TRY(find_primary(device, &c));
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    __atomic_fetch_add(&c->count, 1, __ATOMIC_RELAXED);
    *context = handle_of(c);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    struct kl_cuda_context *c;
    CUresult rc = CUDA_ERROR_INVALID_CONTEXT;

    KL_CU_TRY(find_primary(device, &c));
    pthread_mutex_lock(&lock);
    if (c->count) {
        __atomic_fetch_sub(&c->count, 1, __ATOMIC_RELAXED);
        rc = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    struct kl_cuda_context *c;

    KL_CU_TRY(find_primary(device, &c));
    return (CUresult)kl_cuda_reset(device);
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags)
{
    struct kl_cuda_context *c;

    KL_CU_TRY(find_primary(device, &c));
    c->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    struct kl_cuda_context *c;

    KL_CU_TRY(find_primary(device, &c));
    if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
    *flags = c->flags;
    *active = __atomic_load_n(&c->alive, __ATOMIC_RELAXED) || __atomic_load_n(&c->count, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

/* ---- others ---- */

__attribute__((visibility("default"))) CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
__attribute__((visibility("default"))) CUresult cuCtxCreate_v3(CUcontext *context, void *parameters, int count,
                                                               unsigned int flags, CUdevice device);

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    struct kl_cuda_context *primary;

    KL_CU_TRY(find_primary(device, &primary));
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    struct made *m = calloc(1, sizeof *m);
    if (!m) return CUDA_ERROR_OUT_OF_MEMORY;
    m->context = (struct kl_cuda_context){.device = device, .alive = true, .flags = flags};
    pthread_mutex_lock(&lock);
    m->next = all;
    all = m;
    pthread_mutex_unlock(&lock);
    *context = handle_of(&m->context);
    return (CUresult)kl_cuda_context_push(&m->context);
}

CUresult cuCtxCreate_v3(CUcontext *context, void *parameters, int count, unsigned int flags, CUdevice device)
{
    return parameters || count ? CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned int flags, CUdevice device)
{
    return parameters ? CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxDestroy(CUcontext context)
{
    struct kl_cuda_context *c;

    KL_CU_TRY(kl_cu_ready());
    KL_CU_TRY(find(context, &c));
    if (c->primary) return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    c->alive = false;
    pthread_mutex_unlock(&lock);
    if (kl_cuda_context() == c) kl_cuda_context_pop();
    return CUDA_SUCCESS;
}

/* ---- the thread's ---- */

CUresult cuCtxGetCurrent(CUcontext *context)
{
    KL_CU_TRY(kl_cu_ready());
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    *context = handle_of(kl_cuda_context());
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    struct kl_cuda_context *c = NULL;

    KL_CU_TRY(kl_cu_ready());
    if (context) KL_CU_TRY(find(context, &c));
    kl_cuda_context_set(c);
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    struct kl_cuda_context *c;

    KL_CU_TRY(kl_cu_ready());
    KL_CU_TRY(find(context, &c));
    return (CUresult)kl_cuda_context_push(c);
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    KL_CU_TRY(kl_cu_enter());
    CUcontext top = handle_of(kl_cuda_context_pop());
    if (context) *context = top;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    KL_CU_TRY(kl_cu_enter());
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *device = kl_cuda_current();
    return CUDA_SUCCESS;
}

/* Of a context, or of the thread's own. */
CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    struct kl_cuda_context *c;

    if (!context) return cuCtxGetDevice(device);
    KL_CU_TRY(kl_cu_ready());
    KL_CU_TRY(find(context, &c));
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *device = c->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    KL_CU_TRY(kl_cu_enter());
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = kl_cuda_context()->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
    struct kl_cuda_context *c;

    KL_CU_TRY(kl_cu_ready());
    if (context) KL_CU_TRY(find(context, &c));
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = 3020;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    KL_CU_TRY(kl_cu_enter());
    return (CUresult)kl_cuda_device_synchronize();
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
    struct kl_cuda_context *c;

    if (!context) return cuCtxSynchronize();
    KL_CU_TRY(kl_cu_ready());
    KL_CU_TRY(find(context, &c));
    return (CUresult)kl_cuda_device_wait(c->device);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    struct kl_cuda_context *c;

    KL_CU_TRY(kl_cu_enter());
    KL_CU_TRY(find(peer, &c));
    return (CUresult)kl_cuda_peer_enable(kl_cuda_current(), c->device, flags);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    struct kl_cuda_context *c;

    KL_CU_TRY(kl_cu_enter());
    KL_CU_TRY(find(peer, &c));
    return (CUresult)kl_cuda_peer_disable(kl_cuda_current(), c->device);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    KL_CU_TRY(kl_cu_enter());
    if (least) *least = KL_CUDA_PRIORITY_LEAST;
    if (greatest) *greatest = KL_CUDA_PRIORITY_GREATEST;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    struct kl_cuda_stream_info info;

    KL_CU_TRY(kl_cu_enter());
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cuda_stream_info(stream, &info));
    struct kl_cuda_context *current = kl_cuda_context();
    *context = handle_of(current->device == info.device ? current : kl_cuda_primary(info.device));
    return CUDA_SUCCESS;
}
