/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/pool.h"

#include "compat/cuda/core/device.h"
#include "compat/cuda/core/handle.h"
#include "compat/cuda/core/memory.h"
#include "compat/cuda/core/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct block {
    struct pool *pool;
    void *ptr;
    size_t bytes;
    bool graphs;         /* it belongs to a graph, whose end frees it */
    cudaStream_t stream; /* that it was freed in */
    koloEvent_t freed;   /* when that has come to the free */
    struct block *next;  /* of the pool's free ones */
};

struct pool {
    cudaMemPool_t handle;
    int device;
    bool alive;    /* not destroyed; its blocks may outlive it */
    size_t blocks; /* given and free */
    struct block *free;
    uint64_t threshold, used, used_high, reserved, reserved_high,
        most;     /* bytes; most: 0, or the limit it was made with */
    int reuse[4]; /* by attribute */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool *default_pool[KL_CUDA_DEVICES];
static cudaMemPool_t current_pool[KL_CUDA_DEVICES];

static struct pool *find(cudaMemPool_t pool)
{
    return kl_cuda_handle_find(KL_CUDA_POOL, pool);
}

/* ---- life ---- */

static struct pool *make(int device)
{
    struct pool *p = calloc(1, sizeof *p);

    if (!p) return NULL;
    *p = (struct pool){.device = device, .alive = true, .reuse = {0, 1, 1, 1}};
    p->handle = kl_cuda_handle_make(KL_CUDA_POOL, p);
    if (p->handle) return p;
    free(p);
    return NULL;
}

static cudaError_t check_device(int device)
{
    const struct kl_cuda_device *d;

    KL_CUDA_TRY(kl_cuda_enter());
    return kl_cuda_device(device, &d);
}

cudaError_t kl_cuda_pool_default(cudaMemPool_t *pool, int device)
{
    if (!pool) return cudaErrorInvalidValue;
    KL_CUDA_TRY(check_device(device));
    pthread_mutex_lock(&lock);
    if (!default_pool[device]) default_pool[device] = make(device);
    struct pool *p = default_pool[device];
    pthread_mutex_unlock(&lock);
    if (!p) return cudaErrorMemoryAllocation;
    *pool = p->handle;
    return cudaSuccess;
}

cudaError_t kl_cuda_pool_current(cudaMemPool_t *pool, int device)
{
    if (!pool) return cudaErrorInvalidValue;
    KL_CUDA_TRY(check_device(device));
    pthread_mutex_lock(&lock);
    cudaMemPool_t chosen = current_pool[device];
    pthread_mutex_unlock(&lock);
    if (!chosen || !find(chosen)) return kl_cuda_pool_default(pool, device);
    *pool = chosen;
    return cudaSuccess;
}

cudaError_t kl_cuda_pool_choose(int device, cudaMemPool_t pool)
{
    KL_CUDA_TRY(check_device(device));
    struct pool *p = find(pool);
    if (!p || p->device != device) return cudaErrorInvalidValue;
    pthread_mutex_lock(&lock);
    current_pool[device] = pool;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t kl_cuda_pool_create(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
    if (!pool || !properties || properties->allocType != cudaMemAllocationTypePinned ||
        properties->location.type != cudaMemLocationTypeDevice)
        return cudaErrorInvalidValue;
    if (properties->handleTypes) return cudaErrorNotSupported;
    KL_CUDA_TRY(check_device(properties->location.id));
    struct pool *p = make(properties->location.id);
    if (!p) return cudaErrorMemoryAllocation;
    p->most = properties->maxSize;
    *pool = p->handle;
    return cudaSuccess;
}

/* ---- blocks; all with the lock held ---- */

static void forget(struct pool *p, struct block *b)
{
    struct kl_cuda_range range;

    if (kl_cuda_book_take(b->ptr, 1u << KL_CUDA_MEMORY_POOL, &range)) kl_cuda_release(&range);
    if (b->freed) koloEventDestroy(b->freed);
    p->reserved -= b->bytes;
    p->blocks--;
    free(b);
    if (p->alive || p->blocks) return;
    free(p);
}

static bool is_ready(const struct block *b)
{
    return !b->freed || koloEventQuery(b->freed) != ncclInProgress;
}

/* Give back free blocks until the pool holds no more than `keep`. */
static void shrink(struct pool *p, uint64_t keep)
{
    for (struct block **at = &p->free; *at && p->reserved > keep;) {
        struct block *b = *at;

        if (!is_ready(b)) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        bool last = !p->alive && p->blocks == 1;
        forget(p, b);
        if (last) return;
    }
}

/* A free block that fits, without being much too large. */
static struct block *reuse(struct pool *p, size_t bytes, cudaStream_t stream)
{
    for (struct block **at = &p->free; *at; at = &(*at)->next) {
        struct block *b = *at;

        if (b->bytes < bytes || b->bytes > 2 * bytes || (b->stream != stream && !is_ready(b))) continue;
        *at = b->next;
        return b;
    }
    return NULL;
}

static struct block *grow(struct pool *p, size_t bytes)
{
    struct block *b = p->most && p->reserved + bytes > p->most ? NULL : calloc(1, sizeof *b);

    if (!b) return NULL;
    *b = (struct block){.pool = p, .bytes = bytes};
    cudaError_t rc = kl_cuda_alloc(p->device, KL_CUDA_MEMORY_POOL, bytes, 0, b, &b->ptr);
    if (rc) {
        shrink(p, 0);
        rc = kl_cuda_alloc(p->device, KL_CUDA_MEMORY_POOL, bytes, 0, b, &b->ptr);
    }
    if (rc) {
        free(b);
        return NULL;
    }
    p->blocks++;
    p->reserved += bytes;
    if (p->reserved > p->reserved_high) p->reserved_high = p->reserved;
    return b;
}

static struct block *take(struct pool *p, size_t bytes, cudaStream_t stream)
{
    struct block *b = reuse(p, bytes, stream);

    if (!b) b = grow(p, bytes);
    if (!b) return NULL;
    p->used += b->bytes;
    if (p->used > p->used_high) p->used_high = p->used;
    return b;
}

static void put(struct block *b, cudaStream_t stream)
{
    struct pool *p = b->pool;

    p->used -= b->bytes;
    b->stream = stream;
    b->next = p->free;
    p->free = b;
    if (!p->alive) shrink(p, 0);
}

/* ---- memory ---- */

static void end_of_graph(void *data)
{
    struct block *b = data;

    pthread_mutex_lock(&lock);
    b->pool->used -= b->bytes;
    forget(b->pool, b);
    pthread_mutex_unlock(&lock);
}

static cudaError_t pool_of(cudaMemPool_t handle, cudaStream_t stream, struct pool **pool)
{
    int device;

    if (koloStreamGetInfo(stream, &device, NULL)) return cudaErrorInvalidResourceHandle;
    if (!handle) KL_CUDA_TRY(kl_cuda_pool_current(&handle, device));
    *pool = find(handle);
    return *pool ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t kl_cuda_pool_alloc(cudaMemPool_t handle, void **ptr, size_t bytes, cudaStream_t stream)
{
    const size_t unit = 512;
    struct pool *p;

    if (!ptr) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(pool_of(handle, stream, &p));
    if (!bytes) {
        *ptr = NULL;
        return cudaSuccess;
    }
    if (bytes > SIZE_MAX / 4) return cudaErrorMemoryAllocation;
    bool captures = kl_cuda_stream_captures(stream);
    pthread_mutex_lock(&lock);
    struct block *b = take(p, (bytes + unit - 1) / unit * unit, stream);
    if (b) b->graphs = captures;
    pthread_mutex_unlock(&lock);
    if (!b) return cudaErrorMemoryAllocation;
    if (captures) {
        ncclResult_t rc = koloStreamCaptureKeep(stream, end_of_graph, b);

        if (rc) {
            end_of_graph(b);
            return kl_cuda_from_kolo(rc, cudaErrorInvalidResourceHandle);
        }
    }
    *ptr = b->ptr;
    return cudaSuccess;
}

static struct block *block_of(const void *ptr)
{
    struct kl_cuda_range range;

    return kl_cuda_book_find(ptr, &range) && range.base == ptr && range.kind == KL_CUDA_MEMORY_POOL ? range.owner
                                                                                                    : NULL;
}

static bool is_free(const struct block *b)
{
    for (const struct block *f = b->pool->free; f; f = f->next)
        if (f == b) return true;
    return false;
}

/* Of cudaMalloc, in stream order. */
static void free_device_memory(void *data)
{
    struct kl_cuda_range range;

    if (kl_cuda_book_take(data, 1u << KL_CUDA_MEMORY_DEVICE, &range)) kl_cuda_release(&range);
}

cudaError_t kl_cuda_pool_free(void *ptr, cudaStream_t stream)
{
    struct kl_cuda_range range;
    cudaError_t rc = cudaSuccess;

    KL_CUDA_TRY(kl_cuda_enter());
    if (!ptr) return cudaSuccess;
    if (koloStreamGetInfo(stream, NULL, NULL)) return cudaErrorInvalidResourceHandle;
    if (kl_cuda_book_find(ptr, &range) && range.base == ptr && range.kind == KL_CUDA_MEMORY_DEVICE)
        return kl_cuda_stream_call(stream, free_device_memory, NULL, ptr);
    pthread_mutex_lock(&lock);
    struct block *b = block_of(ptr);
    if (!b || (!b->graphs && is_free(b)))
        rc = cudaErrorInvalidValue;
    else if (!b->graphs && kl_cuda_stream_captures(stream))
        rc = cudaErrorStreamCaptureUnsupported;
    else if (!b->graphs) {
        if (!b->freed && koloEventCreateWithFlags(&b->freed, KOLO_EVENT_DISABLE_TIMING)) b->freed = NULL;
        if (b->freed && koloEventRecord(b->freed, stream))
            rc = cudaErrorInvalidResourceHandle;
        else
            put(b, stream);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

cudaError_t kl_cuda_pool_free_now(void *ptr)
{
    cudaError_t rc = cudaSuccess;

    pthread_mutex_lock(&lock);
    struct block *b = block_of(ptr);
    if (!b || (!b->graphs && is_free(b))) {
        rc = cudaErrorInvalidValue;
    } else if (!b->graphs) {
        if (b->freed) koloEventDestroy(b->freed);
        b->freed = NULL;
        struct pool *p = b->pool;
        bool alive = p->alive;
        put(b, NULL);
        if (alive) shrink(p, p->threshold);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

/* ---- pools ---- */

cudaError_t kl_cuda_pool_destroy(cudaMemPool_t handle)
{
    KL_CUDA_TRY(kl_cuda_enter());
    struct pool *p = find(handle);
    if (!p || p == default_pool[p->device]) return cudaErrorInvalidValue;
    pthread_mutex_lock(&lock);
    kl_cuda_handle_take(KL_CUDA_POOL, handle);
    p->alive = false;
    p->handle = NULL;
    if (!p->blocks)
        free(p);
    else
        shrink(p, 0);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t kl_cuda_pool_trim(cudaMemPool_t handle, size_t keep_bytes)
{
    KL_CUDA_TRY(kl_cuda_enter());
    struct pool *p = find(handle);
    if (!p) return cudaErrorInvalidValue;
    pthread_mutex_lock(&lock);
    shrink(p, keep_bytes);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t kl_cuda_pool_device(cudaMemPool_t handle, int *device)
{
    KL_CUDA_TRY(kl_cuda_enter());
    struct pool *p = find(handle);
    if (!p) return cudaErrorInvalidValue;
    *device = p->device;
    return cudaSuccess;
}

static cudaError_t set_locked(struct pool *p, int attribute, const void *value)
{
    uint64_t number = 0;

    if (attribute >= cudaMemPoolReuseFollowEventDependencies &&
        attribute <= cudaMemPoolReuseAllowInternalDependencies) {
        memcpy(&p->reuse[attribute], value, sizeof(int));
        return cudaSuccess;
    }
    memcpy(&number, value, sizeof number);
    switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
        p->threshold = number;
        return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh: /* only reset */
        if (number) return cudaErrorInvalidValue;
        p->reserved_high = p->reserved;
        return cudaSuccess;
    case cudaMemPoolAttrUsedMemHigh:
        if (number) return cudaErrorInvalidValue;
        p->used_high = p->used;
        return cudaSuccess;
    default:
        return cudaErrorInvalidValue;
    }
}

static cudaError_t get_locked(const struct pool *p, int attribute, void *value)
{
    const uint64_t number[] = {[cudaMemPoolAttrReleaseThreshold] = p->threshold,
                               [cudaMemPoolAttrReservedMemCurrent] = p->reserved,
                               [cudaMemPoolAttrReservedMemHigh] = p->reserved_high,
                               [cudaMemPoolAttrUsedMemCurrent] = p->used,
                               [cudaMemPoolAttrUsedMemHigh] = p->used_high};

    if (attribute < cudaMemPoolReuseFollowEventDependencies || attribute > cudaMemPoolAttrUsedMemHigh)
        return cudaErrorInvalidValue;
    if (attribute < cudaMemPoolAttrReleaseThreshold)
        memcpy(value, &p->reuse[attribute], sizeof(int));
    else
        memcpy(value, &number[attribute], sizeof number[0]);
    return cudaSuccess;
}

cudaError_t kl_cuda_pool_set(cudaMemPool_t handle, int attribute, const void *value)
{
    KL_CUDA_TRY(kl_cuda_enter());
    struct pool *p = find(handle);
    if (!p || !value) return cudaErrorInvalidValue;
    pthread_mutex_lock(&lock);
    cudaError_t rc = set_locked(p, attribute, value);
    pthread_mutex_unlock(&lock);
    return rc;
}

cudaError_t kl_cuda_pool_get(cudaMemPool_t handle, int attribute, void *value)
{
    KL_CUDA_TRY(kl_cuda_enter());
    struct pool *p = find(handle);
    if (!p || !value) return cudaErrorInvalidValue;
    pthread_mutex_lock(&lock);
    cudaError_t rc = get_locked(p, attribute, value);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* ---- of a device ---- */

struct visit {
    int device;
    bool reset;
};

static bool visit(void *ctx, void *handle, void *object)
{
    const struct visit *v = ctx;
    struct pool *p = object;

    (void)handle;
    if (p->device == v->device) shrink(p, v->reset ? 0 : p->threshold);
    return false;
}

static void visit_pools(struct visit v)
{
    pthread_mutex_lock(&lock);
    kl_cuda_handle_each(KL_CUDA_POOL, visit, &v);
    pthread_mutex_unlock(&lock);
}

void kl_cuda_pool_relax(int device)
{
    visit_pools((struct visit){.device = device});
}

void kl_cuda_pools_reset(int device)
{
    visit_pools((struct visit){.device = device, .reset = true});
}
