/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pool_share.c - pools between processes: by a descriptor of the segment that the device's memory is in, which programs pass on, and for each
 * block by its place there.
 */
#include "compat/cuda/core/memory.h"
#include "compat/cuda/core/pool.h"
#include "compat/cuda/core/pool_blocks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAGIC = 0x4b4f4c50 };

/* The layout of an exported pointer. */
struct place {
    uint32_t magic, unused;
    uint64_t segment, offset, bytes;
    uint64_t zero[4];
};
_Static_assert(sizeof(struct place) == sizeof(struct cudaMemPoolPtrExportData), "both are CUDA's");

/* ---- pools ---- */

cudaError_t kl_cuda_pool_export(int *fd, cudaMemPool_t handle, int type, unsigned flags)
{
    struct kl_cuda_pool *p;

    if (!fd || flags) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_pool_hold(handle, &p));
    int device = p->device;
    bool shared = type == cudaMemHandleTypePosixFileDescriptor && p->shares & (unsigned)type;
    KL_CUDA_TRY(kl_cuda_pool_let_go(shared ? cudaSuccess : cudaErrorInvalidValue));
    int segment = kl_cuda_memory_segment(device);
    int copy = segment < 0 ? -1 : fcntl(segment, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return cudaErrorOperatingSystem;
    *fd = copy;
    return cudaSuccess;
}

/* Does the descriptor come from kl_cuda_pool_export? The kernel knows the name that the segment was made with. */
static bool is_exported(int fd)
{
    static const char name[] = KL_CUDA_SEGMENT_LINK;
    char link[64], path[sizeof name] = "";

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return readlink(link, path, sizeof path - 1) == sizeof path - 1 && !strcmp(path, name);
}

cudaError_t kl_cuda_pool_import(cudaMemPool_t *pool, int fd, int type, unsigned flags)
{
    if (!pool || flags || type != cudaMemHandleTypePosixFileDescriptor) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    if (!is_exported(fd)) return cudaErrorInvalidValue;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) return cudaErrorOperatingSystem;
    cudaMemPool_t made = kl_cuda_pool_adopt(kl_cuda_current(), own);
    if (!made) {
        close(own);
        return cudaErrorMemoryAllocation;
    }
    *pool = made;
    return cudaSuccess;
}

/* ---- pointers ---- */

cudaError_t kl_cuda_pool_export_pointer(struct cudaMemPoolPtrExportData *out, const void *ptr)
{
    struct kl_cuda_range range;

    if (!out || !ptr) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(kl_cuda_pool_shared(ptr, &range));
    const struct place place = {.magic = MAGIC,
                                .segment = kl_cuda_segment_number(kl_cuda_memory_segment(range.device)),
                                .offset = kl_cuda_memory_offset(&range),
                                .bytes = range.bytes};
    memcpy(out, &place, sizeof place);
    return cudaSuccess;
}

/* With the lock. */
static cudaError_t add_block(struct kl_cuda_pool *p, const struct place *place, void **ptr)
{
    struct kl_cuda_block *b = calloc(1, sizeof *b);

    if (!b) return cudaErrorMemoryAllocation;
    *b = (struct kl_cuda_block){.pool = p, .bytes = place->bytes};
    if (!kl_cuda_window_open(&b->window, p->imported, place->offset, place->bytes)) {
        free(b);
        return cudaErrorInvalidValue;
    }
    b->ptr = b->window.ptr;
    struct kl_cuda_range range = {
        .base = b->ptr, .bytes = b->bytes, .kind = KL_CUDA_MEMORY_POOL, .device = p->device, .owner = b};
    if (!kl_cuda_book_add(&range)) {
        kl_cuda_window_close(&b->window);
        free(b);
        return cudaErrorMemoryAllocation;
    }
    p->blocks++;
    p->used += b->bytes;
    p->reserved += b->bytes;
    *ptr = b->ptr;
    return cudaSuccess;
}

cudaError_t kl_cuda_pool_import_pointer(void **ptr, cudaMemPool_t handle, const struct cudaMemPoolPtrExportData *in)
{
    struct kl_cuda_pool *p;
    struct place place;

    if (!ptr || !in) return cudaErrorInvalidValue;
    memcpy(&place, in, sizeof place);
    if (place.magic != MAGIC || !place.bytes) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_pool_hold(handle, &p));
    bool fits = p->imported >= 0 && kl_cuda_segment_number(p->imported) == place.segment;
    return kl_cuda_pool_let_go(fits ? add_block(p, &place, ptr) : cudaErrorInvalidValue);
}
