/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kolo.c - devices, memory, streams and events of the host.
 */
#include "base/error.h"
#include "comm/devices.h"
#include "device/host/device.h"
#include "device/host/event.h"
#include "device/host/stream.h"
#include "include/kolo.h"

#include <stdlib.h>
#include <unistd.h>

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
    kl_device_set(device);
    return ncclSuccess;
}

ncclResult_t koloGetDevice(int *device)
{
    if (!device) return KL_FAIL(ncclInvalidArgument, "koloGetDevice: the result pointer is NULL");
    *device = kl_device_current();
    return ncclSuccess;
}

ncclResult_t koloMalloc(void **ptr, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (!ptr) return KL_FAIL(ncclInvalidArgument, "koloMalloc: the result pointer is NULL");
    if (bytes > SIZE_MAX - page)
        return KL_FAIL(ncclInvalidArgument, "koloMalloc: %zu bytes exceed the address space", bytes);
    void *memory = bytes ? aligned_alloc(page, (bytes + page - 1) / page * page) : NULL;
    if (bytes && !memory) return KL_FAIL(ncclSystemError, "koloMalloc: no memory for %zu bytes", bytes);
    *ptr = memory;
    return ncclSuccess;
}

ncclResult_t koloFree(void *ptr)
{
    free(ptr);
    return ncclSuccess;
}

/* ---- streams ---- */

static ncclResult_t find_stream(koloStream_t handle, struct kl_stream **stream)
{
    return kl_stream_of(handle, kl_device_current(), stream);
}

ncclResult_t koloStreamCreate(koloStream_t *stream, unsigned flags)
{
    struct kl_stream *s;

    if (!stream) return KL_FAIL(ncclInvalidArgument, "koloStreamCreate: the result pointer is NULL");
    KL_TRY(kl_stream_create(flags, &s));
    *stream = (koloStream_t)(void *)s;
    return ncclSuccess;
}

ncclResult_t koloStreamSynchronize(koloStream_t stream)
{
    struct kl_stream *s;

    KL_TRY(find_stream(stream, &s));
    return kl_stream_synchronize(s, kl_stream_tail(s));
}

ncclResult_t koloStreamQuery(koloStream_t stream)
{
    struct kl_stream *s;

    KL_TRY(find_stream(stream, &s));
    uint64_t tail = kl_stream_tail(s);
    if (!kl_stream_reached(s, tail)) kl_stream_run(s);
    KL_TRY(kl_stream_failure(s, tail));
    return kl_stream_reached(s, tail) ? ncclSuccess : ncclInProgress;
}

ncclResult_t koloStreamDestroy(koloStream_t stream)
{
    struct kl_stream *s;

    if (!stream) return KL_FAIL(ncclInvalidArgument, "koloStreamDestroy: the default stream stays");
    KL_TRY(find_stream(stream, &s));
    return kl_stream_destroy(s);
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
    KL_TRY(kl_event_create(&e));
    *event = (koloEvent_t)(void *)e;
    return ncclSuccess;
}

ncclResult_t koloEventRecord(koloEvent_t event, koloStream_t stream)
{
    struct kl_stream *s;

    if (!event) return KL_FAIL(ncclInvalidArgument, "koloEventRecord: the event is NULL");
    KL_TRY(find_stream(stream, &s));
    kl_event_record(event_of(event), s);
    return ncclSuccess;
}

ncclResult_t koloEventQuery(koloEvent_t event)
{
    if (!event) return KL_FAIL(ncclInvalidArgument, "koloEventQuery: the event is NULL");
    return kl_event_query(event_of(event));
}

ncclResult_t koloEventSynchronize(koloEvent_t event)
{
    if (!event) return KL_FAIL(ncclInvalidArgument, "koloEventSynchronize: the event is NULL");
    return kl_event_synchronize(event_of(event));
}

ncclResult_t koloEventDestroy(koloEvent_t event)
{
    if (event) kl_event_destroy(event_of(event));
    return ncclSuccess;
}
