/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/ipc.h"

#include "compat/cuda/core/device.h"
#include "compat/cuda/core/event.h"
#include "compat/cuda/core/memory.h"
#include "compat/cuda/core/peer.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/core/window.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEMORY = 0x4b4f4c4d, EVENT = 0x4b4f4c45 };

/* The layout of a handle. */
struct handle {
    uint32_t magic;
    int32_t pid, fd;
    int32_t ordinal; /* of memory: its device, on the host */
    uint64_t offset, bytes, id;
    uint64_t inode; /* of the segment: a descriptor may be another one by now */
    uint64_t zero[2];
};
_Static_assert(sizeof(struct handle) == sizeof(cudaIpcMemHandle_t), "both are CUDA's");
_Static_assert(sizeof(struct handle) == sizeof(cudaIpcEventHandle_t), "both are CUDA's");

/* The descriptor of a handle; -1: the process has closed it. */
static int open_segment(const struct handle *h)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd/%d", h->pid, h->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && kl_cuda_segment_number(fd) != h->inode) {
        close(fd);
        return -1;
    }
    return fd;
}

/* ---- memory ---- */

cudaError_t kl_cuda_ipc_memory_handle(cudaIpcMemHandle_t *handle, const void *ptr)
{
    struct kl_cuda_range r;
    struct handle h = {.magic = MEMORY, .pid = getpid()};

    if (!handle) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    if (!kl_cuda_ranges_find(ptr, &r) || r.kind != KL_CUDA_MEMORY_DEVICE) return cudaErrorInvalidValue;
    h.fd = kl_cuda_memory_segment(r.device);
    h.offset = kl_cuda_memory_offset(&r);
    h.ordinal = kl_cuda_ordinal(r.device);
    h.bytes = r.bytes;
    h.id = r.id;
    h.inode = kl_cuda_segment_number(h.fd);
    memcpy(handle, &h, sizeof h);
    return cudaSuccess;
}

/* An open handle: by its creator and the creator's number. */
struct opened {
    int32_t pid;
    uint64_t id, inode;
    unsigned count;
    struct kl_cuda_window window;
    struct opened *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened *all;

static cudaError_t map(const struct handle *h, struct opened *o)
{
    int fd = open_segment(h);

    if (fd < 0) return cudaErrorInvalidValue;
    bool mapped = kl_cuda_window_open(&o->window, fd, h->offset, h->bytes);
    close(fd);
    return mapped ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t open_new(const struct handle *h, struct opened **out)
{
    struct kl_cuda_range range = {
        .bytes = h->bytes, .kind = KL_CUDA_MEMORY_IMPORTED, .device = kl_cuda_current(), .flags = (unsigned)h->ordinal};
    struct opened *o = calloc(1, sizeof *o);

    if (!o) return cudaErrorMemoryAllocation;
    cudaError_t rc = map(h, o);
    range.base = o->window.ptr;
    if (!rc && !kl_cuda_ranges_add(&range)) {
        kl_cuda_window_close(&o->window);
        rc = cudaErrorMemoryAllocation;
    }
    if (rc) {
        free(o);
        return rc;
    }
    o->pid = h->pid;
    o->id = h->id;
    o->inode = h->inode;
    o->next = all;
    *out = all = o;
    return cudaSuccess;
}

cudaError_t kl_cuda_ipc_memory_open(void **ptr, const cudaIpcMemHandle_t *handle, unsigned flags)
{
    struct handle h;
    struct opened *o;
    cudaError_t rc = cudaSuccess;

    memcpy(&h, handle, sizeof h);
    if (!ptr || flags != cudaIpcMemLazyEnablePeerAccess || h.magic != MEMORY || !h.bytes) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(kl_cuda_unsafe());
    if (h.pid == getpid()) return cudaErrorDeviceUninitialized;
    KL_CUDA_TRY(kl_cuda_peer_import(kl_cuda_current(), h.ordinal));
    pthread_mutex_lock(&lock);
    for (o = all; o && (o->pid != h.pid || o->id != h.id || o->inode != h.inode);) o = o->next;
    if (!o) rc = open_new(&h, &o);
    if (!rc) {
        o->count++;
        *ptr = o->window.ptr;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

static cudaError_t close_locked(const void *ptr)
{
    struct kl_cuda_range range;

    for (struct opened **at = &all; *at; at = &(*at)->next) {
        struct opened *o = *at;

        if (o->window.ptr != ptr) continue;
        if (--o->count) return cudaSuccess;
        *at = o->next;
        kl_cuda_ranges_remove(ptr, 1u << KL_CUDA_MEMORY_IMPORTED, &range);
        kl_cuda_window_close(&o->window);
        free(o);
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
}

cudaError_t kl_cuda_ipc_memory_close(void *ptr)
{
    struct kl_cuda_range range;

    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(kl_cuda_unsafe());
    if (!kl_cuda_ranges_find(ptr, &range)) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_device_wait(range.device));
    pthread_mutex_lock(&lock);
    cudaError_t rc = close_locked(ptr);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* ---- events ---- */

cudaError_t kl_cuda_ipc_event_handle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    struct handle h = {.magic = EVENT, .pid = getpid()};

    if (!handle) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(kl_cuda_event_segment(event, &h.fd));
    h.inode = kl_cuda_segment_number(h.fd);
    memcpy(handle, &h, sizeof h);
    return cudaSuccess;
}

cudaError_t kl_cuda_ipc_event_open(cudaEvent_t *event, const cudaIpcEventHandle_t *handle)
{
    struct handle h;

    memcpy(&h, handle, sizeof h);
    if (!event || h.magic != EVENT) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    if (h.pid == getpid()) return cudaErrorDeviceUninitialized;
    int fd = open_segment(&h);
    return fd < 0 ? cudaErrorInvalidValue : kl_cuda_event_open(event, fd);
}
