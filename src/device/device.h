/* SPDX-License-Identifier: Apache-2.0 */
/**
 * device.h - a kind of device as a table of functions: CPUs that emulate GPUs, or others. A new kind is a folder and a
 * line in kl_device_kinds.
 *
 * A stream is a queue of resumable work that CPU threads run (host/stream.h), for every kind: the engine polls,
 * withdraws and fails queued work without the table. A kind decides which queue a user's handle names, how work is
 * ordered against the device's other work, and how a thread waits for it.
 *
 * Only host devices have streams, events and copies here (kolo.h). Programs on CUDA devices use CUDA's, and the
 * functions are NULL (cuda/cuda.c, coll/gpu/team.h).
 *
 * Ranges:   a pinned range stays mapped, even if it is freed, until it is unpinned as often as it was pinned. An
 *           exported one is pinned, and any process of this user and host with its handle may import it until it is
 *           unexported. An imported range stays mapped until it is unimported, also after its exporter has ended.
 *           Importing grants access to the whole allocation, as CUDA's handles do.
 * Errors:   ncclInvalidArgument for an invalid object: a pointer that was not allocated, or was freed, a range that is
 *           not within one allocation, an unknown pin, export handle or stream. ncclRemoteError when an exporter is gone, has
 *           unexported, or is silent. ncclSystemError when memory or descriptors are short.
 * Threads:  any, except for streams and events (host/stream.h, host/event.h) and struct kl_import.
 * Fork:     a child has its parent's allocations, pins, exports and imports; shareable memory is the same memory in
 *           both.
 * Source:   the architecture page, 4 to 6.
 */
#ifndef KL_DEVICE_DEVICE_H
#define KL_DEVICE_DEVICE_H

#include "device/config.h"
#include "device/host/user_stream.h"
#include "device/memory.h"
#include "include/nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kl_event;

/** The number of devices by settings and files; 0: not given. */
struct kl_device_hints {
    int setting;   /* KOLO_HOST_DEVICES */
    int file_gpus; /* of the topology file */
};

struct kl_device_kind {
    const char *name;
    bool mappable; /* can other processes map all memory of a device, or only shareable memory? */

    /* ---- devices. The current one is per thread ---- */

    int (*count)(const struct kl_device_hints *hints);

    /** NUMA node of a device: one of `nnodes` nodes, over which `count` devices are spread. */
    int (*node)(int device, int count, const int *nodes, int nnodes);

    /** Make `device` the current one. The caller has checked it against the count. */
    void (*select)(int device);

    /** The current device; if none was chosen, the one of the process's first communicator, or 0. */
    int (*current)(void);

    /** The device that the thread has selected, or else, unless `selected_only`, the one it adopted; -1 if there is none. */
    int (*chosen)(bool selected_only);

    /** A communicator of this thread uses `device` without the thread having chosen: make it the current one. */
    void (*adopt)(int device);

    /* ---- streams. Created on the current device; the flags are those of koloStreamCreate ---- */

    ncclResult_t (*stream_create)(unsigned flags, struct kl_stream **stream);

    /** Run queued work, then free the stream. Returns the first failure of its work. */
    ncclResult_t (*stream_destroy)(struct kl_stream *stream);

    /** The same without waiting for the work. */
    void (*stream_release)(struct kl_stream *stream);

    /** The stream that a user's handle names; NULL is the default stream of `device`. */
    ncclResult_t (*stream_of)(cudaStream_t handle, int device, struct kl_stream **stream);

    /** Queue a copy of `work` after all earlier work of the stream; returns its ticket. */
    uint64_t (*stream_push)(struct kl_stream *stream, const struct kl_work *work);

    /**
     * Wait until all work queued before this call is finished, running it where possible. Returns its first failure.
     */
    ncclResult_t (*stream_synchronize)(struct kl_stream *stream);

    /** ncclInProgress, or the result of the work so far. Advances it. */
    ncclResult_t (*stream_query)(struct kl_stream *stream);

    /** Wait for all streams of a device. Returns the first failure. */
    ncclResult_t (*synchronize)(int device);

    /** Queue a call of `fn(arg)`, which may block. */
    ncclResult_t (*stream_call)(struct kl_stream *stream, kl_function fn, void *arg);

    /* ---- events: see host/event.h ---- */

    ncclResult_t (*event_create)(unsigned flags, struct kl_event **event);
    void (*event_destroy)(struct kl_event *event);
    ncclResult_t (*event_record)(struct kl_event *event, struct kl_stream *stream);
    ncclResult_t (*event_order)(struct kl_event *event, struct kl_stream *stream);
    /** The same; while the stream captures they are nodes of the graph, for an event outside of it. */
    ncclResult_t (*event_record_outside)(struct kl_event *event, struct kl_stream *stream);
    ncclResult_t (*event_order_outside)(struct kl_event *event, struct kl_stream *stream);
    ncclResult_t (*event_elapsed)(struct kl_event *start, struct kl_event *end, int64_t *ns);
    ncclResult_t (*event_query)(struct kl_event *event);
    ncclResult_t (*event_synchronize)(struct kl_event *event);

    /* ---- memory ---- */

    /** Page-aligned memory of a device. bytes 0: *ptr = NULL. More than the machine's memory: ncclInvalidArgument. */
    ncclResult_t (*alloc)(int device, enum kl_memory_kind kind, size_t bytes, void **ptr);

    /** Free memory of alloc; NULL is fine. */
    ncclResult_t (*free)(void *ptr);

    /** Describe the allocation of a pointer: any address is allowed. */
    void (*lookup)(const void *ptr, struct kl_memory *memory);

    /** Copy between devices of this kind, now or in stream order. */
    ncclResult_t (*copy)(void *to, const void *from, size_t bytes);
    ncclResult_t (*copy_on)(struct kl_stream *stream, void *to, const void *from, size_t bytes);

    /** Set all bytes to `value`, in stream order. */
    ncclResult_t (*fill_on)(struct kl_stream *stream, void *to, int value, size_t bytes);

    /* ---- ranges, never empty ---- */

    /**
     * Pin a range. Pinning the same range again returns the same pin, counted. Pinned foreign memory must be kept by
     * the user.
     */
    ncclResult_t (*pin)(const void *ptr, size_t bytes, uint64_t *pin);
    ncclResult_t (*unpin)(uint64_t pin);

    /** Let other processes map a range of shareable memory. Each call makes its own export handle. */
    ncclResult_t (*export_range)(const void *ptr, size_t bytes, struct kl_range_export_handle *handle);
    ncclResult_t (*unexport)(const struct kl_range_export_handle *handle);

    /**
     * Map an exported range; in its own process that is the range itself. *import is NULL at first; ncclInProgress:
     * call again; the first `deadline` counts. On failure *import is NULL. Never blocks. A handle may come from an
     * untrusted source.
     */
    ncclResult_t (*import)(const struct kl_range_export_handle *handle, uint64_t deadline, struct kl_import **import,
                           void **ptr);

    /** Unmap it, or cancel the import. NULL is fine. */
    void (*unimport)(struct kl_import *import);
};

extern const struct kl_device_kind kl_host_devices; /* CPUs that emulate GPUs */
extern const struct kl_device_kind kl_cuda_devices; /* GPUs of CUDA */

/** All kinds; NULL ends them. */
extern const struct kl_device_kind *const kl_device_kinds[];

/**
 * The kind of this process's communicators and of ncclMemAlloc's memory: KOLO_DEVICES when it was first needed. A kind
 * that is wanted and cannot be used: ncclUnhandledCudaError or ncclSystemError, and the next call tries again.
 */
ncclResult_t kl_devices(const struct kl_device_kind **kind);

/**
 * The number of host devices of this process; `file_gpus` of its topology file, 0 without one. The only place that
 * decides it.
 */
static inline int kl_device_count(const struct kl_device_config *config, int file_gpus)
{
    struct kl_device_hints hints = {.setting = (int)config->host_devices, .file_gpus = file_gpus};

    return kl_host_devices.count(&hints);
}

/* ---- on the path of every operation ---- */

/* Small operations take a quarter of a microsecond. For host devices these call the row's functions directly: a
 * well-predicted comparison instead of an indirect call. */

static inline uint64_t kl_device_push(const struct kl_device_kind *kind, struct kl_stream *stream,
                                      const struct kl_work *work)
{
    return kind == &kl_host_devices ? kl_stream_push(stream, work) : kind->stream_push(stream, work);
}

/** Run queued work, if all of it is that owner's, where threads of this process run it. DONE: none is left. */
static inline enum kl_progress kl_device_run_own(const struct kl_device_kind *kind, struct kl_stream *stream,
                                                 const void *owner)
{
    return kind == &kl_host_devices && kl_stream_is_of(stream, owner) ? kl_stream_run(stream) : KL_STALLED;
}

/** kl_stream_acquire_if_idle, for kinds whose queue holds all of the device's earlier work. */
static inline bool kl_device_acquire_if_idle(const struct kl_device_kind *kind, struct kl_stream *stream)
{
    return kind == &kl_host_devices && kl_stream_acquire_if_idle(stream);
}

static inline ncclResult_t kl_device_synchronize(const struct kl_device_kind *kind, struct kl_stream *stream)
{
    return kind == &kl_host_devices ? kl_user_stream_synchronize(stream) : kind->stream_synchronize(stream);
}

#endif
