/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kolo.c - devices, their memory, streams and events.
 */
#include "api/api.h"
#include "base/error.h"
#include "comm/devices.h"
#include "device/device.h"
#include "include/kolo.h"

/* ---- devices and memory ---- */

ncclResult_t koloGetDeviceCount(int *count)
{
    if (!count) return KL_FAIL(ncclInvalidArgument, "koloGetDeviceCount: the result pointer is NULL");
    return kl_devices_count_now(count);
}

ncclResult_t koloSetDevice(int device)
{
    int count;

    KL_TRY(kl_devices_count_now(&count));
    if (device < 0 || device >= count)
        return KL_FAIL(ncclInvalidArgument, "koloSetDevice: device %d; there are %d (KOLO_HOST_DEVICES)", device,
                       count);
    kl_devices()->select(device);
    return ncclSuccess;
}

ncclResult_t koloGetDevice(int *device)
{
    if (!device) return KL_FAIL(ncclInvalidArgument, "koloGetDevice: the result pointer is NULL");
    *device = kl_devices()->current();
    return ncclSuccess;
}

ncclResult_t koloMalloc(void **ptr, size_t bytes)
{
    if (!ptr) return KL_FAIL(ncclInvalidArgument, "koloMalloc: the result pointer is NULL");
    return kl_devices()->alloc(kl_devices()->current(), KL_MEMORY_PRIVATE, bytes, ptr);
}

ncclResult_t koloFree(void *ptr)
{
    return kl_devices()->free(ptr);
}

KL_PNCCL(ncclMemAlloc);
ncclResult_t ncclMemAlloc(void **ptr, size_t size)
{
    if (!ptr) return KL_FAIL(ncclInvalidArgument, "ncclMemAlloc: the result pointer is NULL");
    return kl_devices()->alloc(kl_devices()->current(), KL_MEMORY_SHAREABLE, size, ptr);
}

KL_PNCCL(ncclMemFree);
ncclResult_t ncclMemFree(void *ptr)
{
    return kl_devices()->free(ptr);
}

/* ---- streams ---- */

static ncclResult_t find_stream(koloStream_t handle, struct kl_stream **stream)
{
    const struct kl_device_kind *devices = kl_devices();

    return kl_device_stream_of(devices, handle, handle ? 0 : devices->current(), stream); /* NULL is of a device */
}

ncclResult_t koloStreamCreate(koloStream_t *stream, unsigned flags)
{
    struct kl_stream *s;

    if (!stream) return KL_FAIL(ncclInvalidArgument, "koloStreamCreate: the result pointer is NULL");
    KL_TRY(kl_devices()->stream_create(flags, &s));
    *stream = (koloStream_t)(void *)s;
    return ncclSuccess;
}

ncclResult_t koloStreamSynchronize(koloStream_t stream)
{
    struct kl_stream *s;

    KL_TRY(find_stream(stream, &s));
    return kl_device_synchronize(kl_devices(), s, kl_stream_tail(s));
}

ncclResult_t koloStreamQuery(koloStream_t stream)
{
    struct kl_stream *s;

    KL_TRY(find_stream(stream, &s));
    return kl_devices()->stream_query(s);
}

ncclResult_t koloStreamDestroy(koloStream_t stream)
{
    struct kl_stream *s;

    if (!stream) return KL_FAIL(ncclInvalidArgument, "koloStreamDestroy: the default stream stays");
    KL_TRY(find_stream(stream, &s));
    return kl_devices()->stream_destroy(s);
}

/* ---- events ---- */

static struct kl_event *event_of(koloEvent_t handle)
{
    return (struct kl_event *)(void *)handle;
}

ncclResult_t koloEventCreate(koloEvent_t *event)
{
    struct kl_event *e;

    if (!event) return KL_FAIL(ncclInvalidArgument, "koloEventCreate: the result pointer is NULL");
    KL_TRY(kl_devices()->event_create(&e));
    *event = (koloEvent_t)(void *)e;
    return ncclSuccess;
}

ncclResult_t koloEventRecord(koloEvent_t event, koloStream_t stream)
{
    struct kl_stream *s;

    if (!event) return KL_FAIL(ncclInvalidArgument, "koloEventRecord: the event is NULL");
    KL_TRY(find_stream(stream, &s));
    kl_devices()->event_record(event_of(event), s);
    return ncclSuccess;
}

ncclResult_t koloEventQuery(koloEvent_t event)
{
    if (!event) return KL_FAIL(ncclInvalidArgument, "koloEventQuery: the event is NULL");
    return kl_devices()->event_query(event_of(event));
}

ncclResult_t koloEventSynchronize(koloEvent_t event)
{
    if (!event) return KL_FAIL(ncclInvalidArgument, "koloEventSynchronize: the event is NULL");
    return kl_devices()->event_synchronize(event_of(event));
}

ncclResult_t koloEventDestroy(koloEvent_t event)
{
    if (event) kl_devices()->event_destroy(event_of(event));
    return ncclSuccess;
}
