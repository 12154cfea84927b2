/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/context.h"

#include "device/cuda/image.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kl_cuda_context contexts[KL_CUDA_DEVICES]; /* under lock until they have functions */

ncclResult_t kl_cuda_enter(const struct kl_cuda_context *c)
{
    KL_CUDA_TRY(c->driver, cuCtxPushCurrent(c->handle), "device %d", c->device);
    return ncclSuccess;
}

void kl_cuda_leave(const struct kl_cuda_context *c)
{
    kl_cu_context popped;

    (void)c->driver->cuCtxPopCurrent(&popped);
}

static ncclResult_t find_kernels(const struct kl_cuda_context *c, kl_cu_library library, const char *const *names,
                                 int nnames, kl_cu_function *function)
{
    for (int i = 0; i < nnames; i++) {
        kl_cu_kernel kernel;
        KL_CUDA_TRY(c->driver, cuLibraryGetKernel(&kernel, library, names[i]), "kernel %s", names[i]);
        KL_CUDA_TRY(c->driver, cuKernelGetFunction(&function[i], kernel), "kernel %s on device %d", names[i],
                    c->device);
    }
    return ncclSuccess;
}

/* Now: where the driver loads lazily, a first launch may allocate, which waits for kernels that run. */
static ncclResult_t load_kernels(struct kl_cuda_context *c, const char *const *names, int nnames)
{
    kl_cu_function *function = calloc((size_t)nnames, sizeof(void *));
    kl_cu_library library;

    if (!function) return KL_NOMEM("the kernels of a device");
    ncclResult_t rc = kl_cuda_image_load(&library);
    if (!rc) rc = kl_cuda_enter(c);
    if (!rc) {
        rc = find_kernels(c, library, names, nnames, function);
        kl_cuda_leave(c);
    }
    if (rc)
        free(function);
    else
        c->function = function;
    return rc;
}

/* Under lock. */
static ncclResult_t create(struct kl_cuda_context *c, int device)
{
    int number;

    if (c->handle) return ncclSuccess;
    c->device = device;
    KL_TRY(kl_cuda_driver(&c->driver));
    if (device < 0 || device >= c->driver->devices)
        return KL_FAIL(ncclInvalidArgument, "device %d; CUDA has %d", device, c->driver->devices);
    KL_CUDA_TRY(c->driver, cuDeviceGet(&number, device), "device %d", device);
    KL_CUDA_TRY(c->driver, cuDeviceGetAttribute(&c->processors, KL_CU_PROCESSORS, number), "device %d", device);
    KL_CUDA_TRY(c->driver, cuDevicePrimaryCtxRetain(&c->handle, number), "device %d", device);
    return ncclSuccess;
}

ncclResult_t kl_cuda_context_of(int device, const char *const *names, int nnames, const struct kl_cuda_context **out)
{
    if (device < 0 || device >= KL_CUDA_DEVICES)
        return KL_FAIL(ncclInvalidArgument, "device %d; Kolo uses CUDA devices 0 to %d", device, KL_CUDA_DEVICES - 1);
    struct kl_cuda_context *c = &contexts[device];
    pthread_mutex_lock(&lock);
    ncclResult_t rc = create(c, device);
    if (!rc && nnames && !c->function) rc = load_kernels(c, names, nnames);
    pthread_mutex_unlock(&lock);
    *out = c;
    return rc;
}

int kl_cuda_current(void)
{
    const struct kl_cuda_driver *driver;
    kl_cu_context context = NULL;
    int device = 0;

    if (kl_cuda_driver(&driver) || driver->cuCtxGetCurrent(&context) || !context) return 0;
    return driver->cuCtxGetDevice(&device) ? 0 : device;
}

static ncclResult_t enable(const struct kl_cuda_context *c, const struct kl_cuda_context *peer, bool *possible)
{
    int can = 0;

    KL_CUDA_TRY(c->driver, cuDeviceCanAccessPeer(&can, c->device, peer->device), "devices %d and %d", c->device,
                peer->device);
    if (!can) return ncclSuccess;
    int rc = c->driver->cuCtxEnablePeerAccess(peer->handle, 0);
    *possible = !rc || rc == KL_CU_PEER_ACCESS_ALREADY;
    if (*possible || rc == KL_CU_PEER_ACCESS_UNSUPPORTED || rc == KL_CU_TOO_MANY_PEERS) return ncclSuccess;
    return KL_FAIL(ncclUnhandledCudaError, "access of device %d to memory of device %d failed with %s (%d)", c->device,
                   peer->device, kl_cuda_error_name(c->driver, rc), rc);
}

ncclResult_t kl_cuda_enable_peer(const struct kl_cuda_context *c, const struct kl_cuda_context *peer, bool *possible)
{
    *possible = false;
    KL_TRY(kl_cuda_enter(c));
    ncclResult_t rc = enable(c, peer, possible);
    kl_cuda_leave(c);
    return rc;
}

/* An error: the context is broken, and runs nothing any more. */
bool kl_cuda_stream_is_idle(const struct kl_cuda_context *c, kl_cu_stream stream)
{
    int capturing = 0, rc = 0;
    uint64_t capture;

    if (!c || !stream || kl_cuda_enter(c)) return true;
    if (!c->driver->cuStreamGetCaptureInfo(stream, &capturing, &capture, NULL, NULL, NULL) && !capturing)
        rc = c->driver->cuStreamQuery(stream);
    kl_cuda_leave(c);
    return rc != KL_CU_NOT_READY;
}
