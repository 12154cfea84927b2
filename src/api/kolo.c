/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kolo.c - devices, their memory, streams and events.
 */
#include "api/api.h"
#include "api/check.h"
#include "base/error.h"
#include "comm/setup/devices.h"
#include "device/device.h"
#include "include/kolo.h"

/* ---- devices and memory ---- */

ncclResult_t koloGetDeviceCount(int *count)
{
    if (!count) return KL_FAIL(ncclInvalidArgument, "koloGetDeviceCount: the result pointer is NULL");
    return kl_devices_count_now(count);
}

ncclResult_t koloGetHostDeviceCount(int *count)
{
    if (!count) return KL_FAIL(ncclInvalidArgument, "koloGetHostDeviceCount: the result pointer is NULL");
    return kl_devices_count_of_host(count);
}

ncclResult_t koloSetDevice(int device)
{
    int count;

    KL_TRY(kl_devices_count_now(&count));
    if (device < 0 || device >= count)
        return KL_FAIL(ncclInvalidArgument, "koloSetDevice: device %d; there are %d (KOLO_HOST_DEVICES)", device,
                       count);
    kl_host_devices.select(device);
    return ncclSuccess;
}

ncclResult_t koloGetDeviceUuid(int device, unsigned char uuid[16])
{
    if (!uuid) return KL_FAIL(ncclInvalidArgument, "koloGetDeviceUuid: the result pointer is NULL");
    return kl_devices_uuid(device, uuid);
}

ncclResult_t koloGetDeviceOrdinal(int device, int *ordinal)
{
    if (!ordinal) return KL_FAIL(ncclInvalidArgument, "koloGetDeviceOrdinal: the result pointer is NULL");
    return kl_devices_ordinal(device, ordinal);
}

ncclResult_t koloGetDevice(int *device)
{
    if (!device) return KL_FAIL(ncclInvalidArgument, "koloGetDevice: the result pointer is NULL");
    *device = kl_host_devices.current();
    return ncclSuccess;
}

ncclResult_t koloMalloc(void **ptr, size_t bytes)
{
    if (!ptr) return KL_FAIL(ncclInvalidArgument, "koloMalloc: the result pointer is NULL");
    return kl_host_devices.alloc(kl_host_devices.current(), KL_MEMORY_PRIVATE, bytes, ptr);
}

ncclResult_t koloFree(void *ptr)
{
    return kl_host_devices.free(ptr);
}

KL_PNCCL(ncclMemAlloc);
ncclResult_t ncclMemAlloc(void **ptr, size_t size)
{
    const struct kl_device_kind *devices;

    if (!ptr) return KL_FAIL(ncclInvalidArgument, "ncclMemAlloc: the result pointer is NULL");
    KL_TRY(kl_devices(&devices));
    return devices->alloc(devices->current(), KL_MEMORY_SHAREABLE, size, ptr);
}

KL_PNCCL(ncclMemFree);
ncclResult_t ncclMemFree(void *ptr)
{
    const struct kl_device_kind *devices;

    KL_TRY(kl_devices(&devices));
    return devices->free(ptr);
}

/* ---- streams ---- */

static ncclResult_t find_to_end(koloStream_t handle, struct kl_stream **stream, const char *function)
{
    if (kl_user_stream_is_devices(handle))
        return KL_FAIL(ncclInvalidArgument, "%s: the default stream, and those of threads, stay", function);
    return kl_api_stream(handle, stream);
}

ncclResult_t koloStreamCreate(koloStream_t *stream, unsigned flags)
{
    struct kl_stream *s;

    if (!stream) return KL_FAIL(ncclInvalidArgument, "koloStreamCreate: the result pointer is NULL");
    KL_TRY(kl_host_devices.stream_create(flags, &s));
    *stream = (koloStream_t)(void *)kl_user_stream_handle(s);
    return ncclSuccess;
}

ncclResult_t koloStreamSynchronize(koloStream_t stream)
{
    struct kl_stream *s;

    KL_TRY(kl_api_stream(stream, &s));
    return kl_device_synchronize(&kl_host_devices, s);
}

ncclResult_t koloStreamQuery(koloStream_t stream)
{
    struct kl_stream *s;

    KL_TRY(kl_api_stream(stream, &s));
    return kl_host_devices.stream_query(s);
}

ncclResult_t koloStreamDestroy(koloStream_t stream)
{
    struct kl_stream *s;

    KL_TRY(find_to_end(stream, &s, "koloStreamDestroy"));
    return kl_host_devices.stream_destroy(s);
}

ncclResult_t koloStreamRelease(koloStream_t stream)
{
    struct kl_stream *s;

    KL_TRY(find_to_end(stream, &s, "koloStreamRelease"));
    kl_host_devices.stream_release(s);
    return ncclSuccess;
}

ncclResult_t koloDeviceSynchronize(void)
{
    return kl_host_devices.synchronize(kl_host_devices.current());
}

ncclResult_t koloStreamGetInfo(koloStream_t stream, int *device, unsigned *flags)
{
    struct kl_stream *s;

    KL_TRY(kl_api_stream(stream, &s));
    if (device) *device = kl_stream_device(s);
    if (flags) *flags = kl_load_relaxed(&s->flags) & (KOLO_STREAM_INLINE | KOLO_STREAM_BLOCKING);
    return ncclSuccess;
}

/* ---- their work ---- */

ncclResult_t koloStreamLaunch(koloStream_t stream, void (*fn)(void *arg), void *arg)
{
    struct kl_stream *s;

    if (!fn) return KL_FAIL(ncclInvalidArgument, "koloStreamLaunch: the function is NULL");
    KL_TRY(kl_api_stream(stream, &s));
    return kl_host_devices.stream_call(s, fn, arg);
}

ncclResult_t koloMemcpyAsync(void *dst, const void *src, size_t bytes, koloStream_t stream)
{
    struct kl_stream *s;

    if (bytes && (!dst || !src))
        return KL_FAIL(ncclInvalidArgument, "koloMemcpyAsync: the %s is NULL", dst ? "source" : "destination");
    KL_TRY(kl_check_reach("koloMemcpyAsync", "bytes", "source", src, bytes, 1, 1));
    KL_TRY(kl_check_reach("koloMemcpyAsync", "bytes", "destination", dst, bytes, 1, 1));
    KL_TRY(kl_api_stream(stream, &s));
    return kl_host_devices.copy_on(s, dst, src, bytes);
}

ncclResult_t koloMemsetAsync(void *dst, int value, size_t bytes, koloStream_t stream)
{
    struct kl_stream *s;

    if (bytes && !dst) return KL_FAIL(ncclInvalidArgument, "koloMemsetAsync: the destination is NULL");
    KL_TRY(kl_check_reach("koloMemsetAsync", "bytes", "destination", dst, bytes, 1, 1));
    KL_TRY(kl_api_stream(stream, &s));
    return kl_host_devices.fill_on(s, dst, value, bytes);
}

/* ---- events ---- */

static struct kl_event *event_of(koloEvent_t handle)
{
    return (struct kl_event *)(void *)handle;
}

ncclResult_t koloEventCreate(koloEvent_t *event)
{
    return koloEventCreateWithFlags(event, KOLO_EVENT_DEFAULT);
}

ncclResult_t koloEventCreateWithFlags(koloEvent_t *event, unsigned flags)
{
    struct kl_event *e;

    if (!event) return KL_FAIL(ncclInvalidArgument, "koloEventCreate: the result pointer is NULL");
    KL_TRY(kl_host_devices.event_create(flags, &e));
    *event = (koloEvent_t)(void *)e;
    return ncclSuccess;
}

static ncclResult_t check_flags(const char *function, unsigned flags)
{
    if (!(flags & ~KOLO_EVENT_EXTERNAL)) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument, "%s: flags 0x%x; there is KOLO_EVENT_EXTERNAL (%u)", function, flags,
                   KOLO_EVENT_EXTERNAL);
}

ncclResult_t koloEventRecord(koloEvent_t event, koloStream_t stream)
{
    struct kl_stream *s;

    if (!event) return KL_FAIL(ncclInvalidArgument, "koloEventRecord: the event is NULL");
    KL_TRY(kl_api_stream(stream, &s));
    return kl_host_devices.event_record(event_of(event), s);
}

ncclResult_t koloEventRecordWithFlags(koloEvent_t event, koloStream_t stream, unsigned flags)
{
    struct kl_stream *s;

    if (!flags) return koloEventRecord(event, stream);
    if (!event) return KL_FAIL(ncclInvalidArgument, "koloEventRecordWithFlags: the event is NULL");
    KL_TRY(check_flags("koloEventRecordWithFlags", flags));
    KL_TRY(kl_api_stream(stream, &s));
    return kl_host_devices.event_record_outside(event_of(event), s);
}

ncclResult_t koloStreamWaitEvent(koloStream_t stream, koloEvent_t event, unsigned flags)
{
    struct kl_stream *s;

    if (!event) return KL_FAIL(ncclInvalidArgument, "koloStreamWaitEvent: the event is NULL");
    KL_TRY(check_flags("koloStreamWaitEvent", flags));
    KL_TRY(kl_api_stream(stream, &s));
    return flags ? kl_host_devices.event_order_outside(event_of(event), s)
                 : kl_host_devices.event_order(event_of(event), s);
}

ncclResult_t koloEventElapsedTime(int64_t *ns, koloEvent_t start, koloEvent_t end)
{
    if (!ns) return KL_FAIL(ncclInvalidArgument, "koloEventElapsedTime: the result pointer is NULL");
    if (!start || !end) return KL_FAIL(ncclInvalidArgument, "koloEventElapsedTime: an event is NULL");
    return kl_host_devices.event_elapsed(event_of(start), event_of(end), ns);
}

ncclResult_t koloEventQuery(koloEvent_t event)
{
    if (!event) return KL_FAIL(ncclInvalidArgument, "koloEventQuery: the event is NULL");
    return kl_host_devices.event_query(event_of(event));
}

ncclResult_t koloEventSynchronize(koloEvent_t event)
{
    if (!event) return KL_FAIL(ncclInvalidArgument, "koloEventSynchronize: the event is NULL");
    return kl_host_devices.event_synchronize(event_of(event));
}

ncclResult_t koloEventDestroy(koloEvent_t event)
{
    if (event) kl_host_devices.event_destroy(event_of(event));
    return ncclSuccess;
}
