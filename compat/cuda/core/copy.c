/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/copy.h"

#include "compat/cuda/core/peer.h"
#include "compat/cuda/core/ranges.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/core/strict.h"

#include <stdlib.h>
#include <string.h>

enum {
    EARLY_BYTES = 64 << 10
}; /* up to here a synchronous copy from pageable memory returns when the source has been read */

/* ---- kinds of memory ---- */

/* Memory is pageable if the book has it as the host's alone, or not at all. A kind of "device" is trusted: memory of
 * ncclMemAlloc is not in the book. */
static bool pageable(const void *ptr, bool device_by_kind)
{
    struct kl_cuda_range range;

    return !device_by_kind && !kl_cuda_ranges_find(ptr, &range);
}

static bool to_host_memory(int kind)
{
    return kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDefault;
}

static bool from_host_memory(int kind)
{
    return kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDefault;
}

static size_t extent(const struct kl_cuda_box *b, size_t pitch, size_t slice)
{
    return (b->depth - 1) * slice + (b->height - 1) * pitch + b->width;
}

/* Does the range leave the allocation that it begins in? Mapped ranges may continue in a neighbour; multicast is for kernels. */
static bool leaves(const void *ptr, size_t bytes)
{
    struct kl_cuda_range r;

    if (!kl_cuda_ranges_find(ptr, &r) || r.kind == KL_CUDA_MEMORY_MAPPED || r.kind == KL_CUDA_MEMORY_REGISTERED)
        return false;
    return r.kind == KL_CUDA_MEMORY_MULTICAST || bytes > r.bytes - (size_t)((const char *)ptr - r.base);
}

static bool empty(const struct kl_cuda_box *b)
{
    return !b->width || !b->height || !b->depth;
}

static cudaError_t check(const struct kl_cuda_box *b, bool copies)
{
    const size_t most = SIZE_MAX / 4;

    if ((b->height > 1 && (b->width > b->to_pitch || (copies && b->width > b->from_pitch))))
        return cudaErrorInvalidPitchValue;
    if (b->width > most || (b->height > 1 && b->height > most / (b->to_pitch | b->from_pitch)) ||
        (b->depth > 1 && b->depth > most / ((b->to_slice | b->from_slice) + 1)))
        return cudaErrorInvalidValue;
    if (!b->to || (copies && !b->from)) return cudaErrorInvalidValue;
    if (leaves(b->to, extent(b, b->to_pitch, b->to_slice))) return cudaErrorInvalidValue;
    if (copies && leaves(b->from, extent(b, b->from_pitch, b->from_slice))) return cudaErrorInvalidValue;
    return cudaSuccess;
}

/* ---- boxes ---- */

cudaError_t kl_cuda_corner(const struct kl_cuda_volume *v, const struct kl_cuda_box *box, char **corner, size_t *slice)
{
    if (v->x > v->pitch || box->width > v->pitch - v->x) return cudaErrorInvalidPitchValue;
    if ((box->depth > 1 || v->z) && (v->y > v->height || box->height > v->height - v->y)) return cudaErrorInvalidValue;
    *slice = v->pitch * v->height;
    *corner = v->base + v->z * *slice + v->y * v->pitch + v->x;
    return cudaSuccess;
}

struct job {
    struct kl_cuda_box box;
    unsigned value;
    int element_bytes;
    char staged[]; /* the source, read early */
};

static void copy_box(const struct kl_cuda_box *b)
{
    for (size_t z = 0; z < b->depth; z++)
        for (size_t y = 0; y < b->height; y++)
            memmove((char *)b->to + z * b->to_slice + y * b->to_pitch,
                    (const char *)b->from + z * b->from_slice + y * b->from_pitch, b->width);
}

static void fill_row(char *row, const struct job *j)
{
    switch (j->element_bytes) {
    case 1:
        memset(row, (int)j->value, j->box.width);
        break;
    default:
        for (size_t x = 0; x + (size_t)j->element_bytes <= j->box.width; x += (size_t)j->element_bytes)
            memcpy(row + x, &j->value, (size_t)j->element_bytes); /* little-endian, here and on GPUs */
    }
}

static void run_copy(void *data)
{
    kl_cuda_turn_begun();
    copy_box(&((struct job *)data)->box);
}

static void run_fill(void *data)
{
    const struct job *j = data;

    kl_cuda_turn_begun();
    for (size_t z = 0; z < j->box.depth; z++)
        for (size_t y = 0; y < j->box.height; y++)
            fill_row((char *)j->box.to + z * j->box.to_slice + y * j->box.to_pitch, j);
}

static struct job *make_job(const struct kl_cuda_box *box, size_t staged_bytes)
{
    struct job *j = malloc(sizeof *j + staged_bytes);

    if (j) *j = (struct job){.box = *box};
    return j;
}

/* Read the source into the job, without gaps. */
static void stage(struct job *j)
{
    struct kl_cuda_box pack = j->box;

    pack.to = j->staged;
    pack.to_pitch = j->box.width;
    pack.to_slice = j->box.width * j->box.height;
    copy_box(&pack);
    j->box.from = j->staged;
    j->box.from_pitch = pack.to_pitch;
    j->box.from_slice = pack.to_slice;
}

/* ---- copies ---- */

static cudaError_t queue_copy(const struct kl_cuda_box *box, bool early, cudaStream_t stream)
{
    if (!early && box->height == 1 && box->depth == 1)
        return kl_cuda_from_kolo(koloMemcpyAsync(box->to, box->from, box->width, stream),
                                 cudaErrorInvalidResourceHandle);
    struct job *j = make_job(box, early ? box->width * box->height * box->depth : 0);
    if (!j) return cudaErrorMemoryAllocation;
    if (early) stage(j);
    return kl_cuda_stream_call(stream, run_copy, free, j);
}

static cudaError_t legal(cudaStream_t stream, enum kl_cuda_how how)
{
    int device;

    if (how == KL_CUDA_SYNC) KL_CUDA_TRY(kl_cuda_unsafe());
    if (koloStreamGetInfo(stream, &device, NULL)) return cudaErrorInvalidResourceHandle;
    return kl_cuda_failure(device);
}

/* By the stream's device. */
static cudaError_t check_reach(const struct kl_cuda_box *b, cudaStream_t stream, bool *lost)
{
    int device;

    if (koloStreamGetInfo(stream, &device, NULL)) return cudaErrorInvalidResourceHandle;
    const enum kl_cuda_reach to = kl_cuda_peer_reach(device, b->to), from = kl_cuda_peer_reach(device, b->from);
    *lost = to == KL_CUDA_REACH_LOST;
    return (to == KL_CUDA_REACH_NONE || from == KL_CUDA_REACH_NONE) && kl_cuda_strict() ? cudaErrorPeerAccessUnsupported
                                                                                        : cudaSuccess;
}

/*
 * Has a synchronous call nothing before it? Then it is waited for, even where CUDA lets it return before: GPUs begin such work at once, and programs
 * rely on it that go on in a non-blocking stream, which does not wait for the default one. Waiting for it cannot hang: no other rank is in between.
 */
static cudaError_t goes_first(cudaStream_t stream, enum kl_cuda_how how, bool *first)
{
    cudaError_t rc = how == KL_CUDA_SYNC ? kl_cuda_stream_query(stream) : cudaErrorNotReady;

    *first = rc == cudaSuccess;
    return rc == cudaErrorNotReady ? cudaSuccess : rc;
}

cudaError_t kl_cuda_copy(const struct kl_cuda_box *box, int kind, cudaStream_t stream, enum kl_cuda_how how)
{
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
    KL_CUDA_TRY(kl_cuda_enter());
    if (empty(box)) return cudaSuccess;
    KL_CUDA_TRY(check(box, true));
    KL_CUDA_TRY(legal(stream, how));
    bool captures = kl_cuda_stream_captures(stream), first, lost;
    KL_CUDA_TRY(check_reach(box, stream, &lost));
    if (lost) return cudaSuccess;
    KL_CUDA_TRY(goes_first(stream, how, &first));
    bool from_pageable = pageable(box->from, !from_host_memory(kind));
    bool to_pageable = pageable(box->to, !to_host_memory(kind));
    bool small = box->width * box->height * box->depth <= EARLY_BYTES;
    bool early = how == KL_CUDA_READ_AT_ONCE ||
                 (from_pageable && !captures && !first && (how == KL_CUDA_ASYNC || (small && !to_pageable)));
    bool waits =
        !captures && (to_pageable || first || (how == KL_CUDA_SYNC && !early && kind != cudaMemcpyDeviceToDevice));

    KL_CUDA_TRY(queue_copy(box, early, stream));
    return waits ? kl_cuda_stream_synchronize(stream) : cudaSuccess;
}

/* ---- fills ---- */

cudaError_t kl_cuda_fill(const struct kl_cuda_box *box, unsigned value, int element_bytes, cudaStream_t stream,
                         enum kl_cuda_how how)
{
    struct kl_cuda_range range;
    bool first;

    KL_CUDA_TRY(kl_cuda_enter());
    if (empty(box)) return cudaSuccess;
    KL_CUDA_TRY(check(box, false));
    if ((uintptr_t)box->to % (size_t)element_bytes) return cudaErrorInvalidValue;
    KL_CUDA_TRY(legal(stream, how));
    KL_CUDA_TRY(goes_first(stream, how, &first));
    if (box->height == 1 && box->depth == 1 && element_bytes == 1) {
        KL_CUDA_TRY(kl_cuda_from_kolo(koloMemsetAsync(box->to, (int)value, box->width, stream),
                                      cudaErrorInvalidResourceHandle));
    } else {
        struct job *j = make_job(box, 0);

        if (!j) return cudaErrorMemoryAllocation;
        j->value = value;
        j->element_bytes = element_bytes;
        KL_CUDA_TRY(kl_cuda_stream_call(stream, run_fill, free, j));
    }
    bool of_device = kl_cuda_ranges_find(box->to, &range) &&
                     (range.kind == KL_CUDA_MEMORY_DEVICE || range.kind == KL_CUDA_MEMORY_POOL);
    return first || (how == KL_CUDA_SYNC && !of_device) ? kl_cuda_stream_synchronize(stream) : cudaSuccess;
}
