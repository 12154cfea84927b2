/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/memory.h"

#include "base/atomic.h"
#include "compat/cuda/core/arena.h"
#include "compat/cuda/core/device.h"
#include "compat/cuda/core/ledger.h"
#include "compat/cuda/core/stream.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };
#define KIND(kind) (1u << KL_CUDA_MEMORY_##kind)

/* ---- allocated device memory: of the job's processes, or, without a job, of this one ---- */

static _Atomic int64_t given[KL_CUDA_DEVICES];

static bool count_here(int device, int64_t bytes, uint64_t limit)
{
    int64_t before = kl_load_relaxed(&given[device]);

    do {
        if (bytes > 0 && (uint64_t)before + (uint64_t)bytes > limit) return false;
    } while (!atomic_compare_exchange_weak_explicit(&given[device], &before, before + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

bool kl_cuda_count(int device, int64_t bytes)
{
    const struct kl_cuda_device *d;

    if (kl_cuda_device(device, &d)) return false;
    return kl_cuda_ledger_has(d->ordinal) ? kl_cuda_ledger_count(d->ordinal, bytes, d->memory)
                                          : count_here(device, bytes, d->memory);
}

size_t kl_cuda_memory_of_process(int device)
{
    const struct kl_cuda_device *d;

    if (kl_cuda_device(device, &d)) return 0;
    return kl_cuda_ledger_has(d->ordinal) ? kl_cuda_ledger_used_by(d->ordinal, getpid())
                                          : (size_t)kl_load_relaxed(&given[device]);
}

size_t kl_cuda_memory_free_bytes(const struct kl_cuda_device *d, int device)
{
    size_t used = 0;

    if (kl_cuda_ledger_has(d->ordinal))
        used = kl_cuda_ledger_used(d->ordinal);
    else if (device >= 0)
        used = (size_t)kl_load_relaxed(&given[device]);
    return used < d->memory ? d->memory - used : 0; /* another process may have a larger limit */
}

cudaError_t kl_cuda_memory_info(int device, size_t *free_bytes, size_t *total_bytes)
{
    const struct kl_cuda_device *d;

    KL_CUDA_TRY(kl_cuda_device(device, &d));
    if (free_bytes) *free_bytes = kl_cuda_memory_free_bytes(d, device);
    if (total_bytes) *total_bytes = d->memory;
    return cudaSuccess;
}

static size_t rounded(size_t bytes)
{
    return (bytes + KL_CUDA_PIECE - 1) / KL_CUDA_PIECE * KL_CUDA_PIECE;
}

/* ---- arenas ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kl_cuda_arena *arenas[KL_CUDA_DEVICES];

void kl_cuda_segment_link(const struct kl_cuda_device *d, char link[KL_CUDA_SEGMENT_LINK_TEXT])
{
    char uuid[41];

    kl_cuda_uuid_text(d->uuid, uuid);
    snprintf(link, KL_CUDA_SEGMENT_LINK_TEXT, KL_CUDA_SEGMENT_LINK "%s", uuid);
}

static struct kl_cuda_arena *create_arena(const struct kl_cuda_device *d)
{
    char link[KL_CUDA_SEGMENT_LINK_TEXT];

    kl_cuda_segment_link(d, link);
    return kl_cuda_arena_create(2 * d->memory, link + sizeof "/memfd:" - 1);
}

/* Twice the memory of the device, as room between pieces costs nothing. */
static struct kl_cuda_arena *arena_of(int device)
{
    const struct kl_cuda_device *d;

    pthread_mutex_lock(&lock);
    if (!arenas[device] && !kl_cuda_device(device, &d)) arenas[device] = create_arena(d);
    struct kl_cuda_arena *arena = arenas[device];
    pthread_mutex_unlock(&lock);
    return arena;
}

cudaError_t kl_cuda_alloc(int device, enum kl_cuda_memory kind, size_t bytes, unsigned flags, void *owner, void **ptr)
{
    struct kl_cuda_range range = {.bytes = bytes, .kind = kind, .device = device, .flags = flags, .owner = owner};

    if (!ptr) return cudaErrorInvalidValue;
    if (!bytes) {
        *ptr = NULL;
        return cudaSuccess;
    }
    if (bytes > INT64_MAX / 2 || !kl_cuda_count(device, (int64_t)rounded(bytes))) return cudaErrorMemoryAllocation;
    struct kl_cuda_arena *arena = arena_of(device);
    range.base = arena ? kl_cuda_arena_alloc(arena, bytes, KL_CUDA_PIECE) : NULL;
    if (range.base && kl_cuda_ranges_add(&range)) {
        *ptr = range.base;
        return cudaSuccess;
    }
    if (range.base) kl_cuda_arena_free(arena, range.base);
    kl_cuda_count(device, -(int64_t)rounded(bytes));
    return cudaErrorMemoryAllocation;
}

int kl_cuda_memory_segment(int device)
{
    const struct kl_cuda_arena *arena = arena_of(device);

    return arena ? kl_cuda_arena_fd(arena) : -1;
}

size_t kl_cuda_memory_offset(const struct kl_cuda_range *range)
{
    return kl_cuda_arena_offset(arena_of(range->device), range->base);
}

void kl_cuda_release(const struct kl_cuda_range *range)
{
    switch (range->kind) {
    case KL_CUDA_MEMORY_DEVICE:
    case KL_CUDA_MEMORY_MANAGED:
    case KL_CUDA_MEMORY_POOL:
        kl_cuda_arena_free(arena_of(range->device), range->base);
        kl_cuda_count(range->device, -(int64_t)rounded(range->bytes));
        break;
    case KL_CUDA_MEMORY_PINNED:
        munmap(range->base, (range->bytes + PAGE - 1) / PAGE * PAGE);
        break;
    case KL_CUDA_MEMORY_REGISTERED:
    case KL_CUDA_MEMORY_IMPORTED:
    case KL_CUDA_MEMORY_MAPPED:
    case KL_CUDA_MEMORY_MULTICAST:
        break; /* another's */
    }
}

/* ---- of the host ---- */

cudaError_t kl_cuda_host_alloc(size_t bytes, unsigned flags, void **ptr)
{
    struct kl_cuda_range range = {.bytes = bytes, .kind = KL_CUDA_MEMORY_PINNED, .flags = flags};

    if (!ptr || flags & ~7u) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(kl_cuda_unsafe());
    if (!bytes) {
        *ptr = NULL;
        return cudaSuccess;
    }
    if (bytes > SIZE_MAX / 2) return cudaErrorMemoryAllocation;
    range.device = kl_cuda_current();
    range.base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (range.base == MAP_FAILED) return cudaErrorMemoryAllocation;
    if (!kl_cuda_ranges_add(&range)) {
        munmap(range.base, bytes);
        return cudaErrorMemoryAllocation;
    }
    *ptr = range.base;
    return cudaSuccess;
}

cudaError_t kl_cuda_host_free(void *ptr)
{
    struct kl_cuda_range range;

    KL_CUDA_TRY(kl_cuda_enter());
    if (!ptr) return cudaSuccess;
    KL_CUDA_TRY(kl_cuda_unsafe());
    if (!kl_cuda_ranges_find(ptr, &range) || range.base != ptr || range.kind != KL_CUDA_MEMORY_PINNED)
        return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_device_wait(range.device));
    if (!kl_cuda_ranges_remove(ptr, KIND(PINNED), &range)) return cudaErrorInvalidValue;
    kl_cuda_release(&range);
    return cudaSuccess;
}

cudaError_t kl_cuda_host_register(void *ptr, size_t bytes, unsigned flags)
{
    struct kl_cuda_range range = {.base = ptr, .bytes = bytes, .kind = KL_CUDA_MEMORY_REGISTERED, .flags = flags};

    if (!ptr || !bytes || flags & ~15u) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(kl_cuda_unsafe());
    range.device = kl_cuda_current();
    if (kl_cuda_ranges_overlap(ptr, bytes)) return cudaErrorHostMemoryAlreadyRegistered;
    return kl_cuda_ranges_add(&range) ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t kl_cuda_host_unregister(void *ptr)
{
    struct kl_cuda_range range;

    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(kl_cuda_unsafe());
    if (!ptr) return cudaErrorInvalidValue;
    if (!kl_cuda_ranges_remove(ptr, KIND(REGISTERED), &range)) return cudaErrorHostMemoryNotRegistered;
    return cudaSuccess;
}
