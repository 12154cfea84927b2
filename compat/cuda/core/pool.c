/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/pool.h"

#include "base/atomic.h"
#include "compat/cuda/core/device.h"
#include "compat/cuda/core/handle.h"
#include "compat/cuda/core/memory.h"
#include "compat/cuda/core/peer.h"
#include "compat/cuda/core/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum state { GIVEN, LEAVING, FREE }; /* leaving: the free is being queued */

struct block {
    struct pool *pool;
    void *ptr;
    size_t bytes;
    enum state state;
    bool graphs;        /* it belongs to a graph, whose end frees it */
    uint64_t lane;      /* that it was freed in */
    koloEvent_t freed;  /* when that has come to the free */
    struct block *next; /* of the pool's free ones */
};

struct pool {
    cudaMemPool_t handle;
    struct pool *next; /* of all */
    int device;
    bool alive;    /* not destroyed; its blocks may outlive it */
    size_t blocks; /* given and free */
    struct block *free;
    uint64_t threshold, used, used_high, reserved, reserved_high; /* bytes */
    uint64_t most;                                                /* that it was made with; 0: no limit */
    int reuse[4];                                                 /* by attribute */
    uint8_t access[KL_CUDA_DEVICES];                              /* enum cudaMemAccessFlags */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool *all_pools; /* under lock, as all that is in pools; also those that are destroyed and have blocks */
static struct pool *default_pool[KL_CUDA_DEVICES];
static cudaMemPool_t current_pool[KL_CUDA_DEVICES];

static struct pool *find(cudaMemPool_t pool)
{
    return kl_cuda_handle_find(KL_CUDA_POOL, pool);
}

/* The pool, with the lock, which give_up releases in any case. */
static cudaError_t take_hold(cudaMemPool_t handle, struct pool **pool)
{
    KL_CUDA_TRY(kl_cuda_enter());
    pthread_mutex_lock(&lock);
    *pool = find(handle);
    if (*pool) return cudaSuccess;
    pthread_mutex_unlock(&lock);
    return cudaErrorInvalidValue;
}

static cudaError_t give_up(cudaError_t rc)
{
    pthread_mutex_unlock(&lock);
    return rc;
}

/* ---- lanes: what is done one after the other. 0: not known ---- */

/* Handles do not tell: a thread's stream is another one in each thread, and an address is used again. */
static cudaError_t lane_of(cudaStream_t stream, int *device, uint64_t *lane)
{
    static _Atomic uint64_t threads;
    static _Thread_local uint64_t this_thread;
    struct kl_cuda_stream_info info;

    KL_CUDA_TRY(kl_cuda_stream_info(stream, &info));
    *device = info.device;
    *lane = info.id << 8;
    if (!this_thread) this_thread = kl_fetch_add_relaxed(&threads, 1) + 1;
    if (stream == cudaStreamPerThread) *lane = (uint64_t)1 << 63 | this_thread << 8 | (uint64_t)info.device;
    if (!stream || stream == cudaStreamLegacy) *lane = (uint64_t)1 << 62 | (uint64_t)info.device;
    return cudaSuccess;
}

/* ---- life ---- */

/* With the lock. */
static struct pool *make(int device)
{
    struct pool *p = calloc(1, sizeof *p);

    if (!p) return NULL;
    *p = (struct pool){.device = device, .alive = true, .reuse = {0, 1, 1, 1}};
    p->access[device] = cudaMemAccessFlagsProtReadWrite;
    p->handle = kl_cuda_handle_make(KL_CUDA_POOL, p);
    if (!p->handle) {
        free(p);
        return NULL;
    }
    p->next = all_pools;
    all_pools = p;
    return p;
}

/* With the lock. */
static void end(struct pool *p)
{
    struct pool **at = &all_pools;

    while (*at != p) at = &(*at)->next;
    *at = p->next;
    free(p);
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
    struct pool *p;

    KL_CUDA_TRY(check_device(device));
    KL_CUDA_TRY(take_hold(pool, &p));
    if (p->device == device) current_pool[device] = pool;
    return give_up(p->device == device ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t kl_cuda_pool_create(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
    if (!pool || !properties || properties->allocType != cudaMemAllocationTypePinned ||
        properties->location.type != cudaMemLocationTypeDevice)
        return cudaErrorInvalidValue;
    if (properties->handleTypes) return cudaErrorNotSupported;
    KL_CUDA_TRY(check_device(properties->location.id));
    pthread_mutex_lock(&lock);
    struct pool *p = make(properties->location.id);
    if (!p) return give_up(cudaErrorMemoryAllocation);
    p->most = properties->maxSize;
    *pool = p->handle;
    return give_up(cudaSuccess);
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
    if (!p->alive && !p->blocks) end(p);
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

/* A free block that fits, without being much too large. In a lane it may be given before the free has come; 0: not. */
static struct block *reuse(struct pool *p, size_t bytes, uint64_t lane)
{
    for (struct block **at = &p->free; *at; at = &(*at)->next) {
        struct block *b = *at;
        bool in_order = lane && b->lane == lane;

        if (b->bytes < bytes || b->bytes > 2 * bytes || !(in_order || is_ready(b))) continue;
        *at = b->next;
        return b;
    }
    return NULL;
}

static struct block *grow(struct pool *p, size_t bytes)
{
    if (p->most && p->reserved + bytes > p->most) shrink(p, p->most > bytes ? p->most - bytes : 0);
    if (p->most && p->reserved + bytes > p->most) return NULL;
    struct block *b = calloc(1, sizeof *b);
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

static struct block *take(struct pool *p, size_t bytes, uint64_t lane)
{
    struct block *b = reuse(p, bytes, lane);

    if (!b) b = grow(p, bytes);
    if (!b) return NULL;
    b->state = GIVEN;
    p->used += b->bytes;
    if (p->used > p->used_high) p->used_high = p->used;
    return b;
}

static void put(struct block *b, uint64_t lane)
{
    struct pool *p = b->pool;

    p->used -= b->bytes;
    b->state = FREE;
    b->lane = lane;
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

/* A block that a graph gets must be ready: the graph runs in other streams. */
static cudaError_t take_block(cudaMemPool_t handle, size_t bytes, uint64_t lane, bool captures, struct block **block)
{
    const size_t unit = 512;
    struct pool *p;

    KL_CUDA_TRY(take_hold(handle, &p));
    *block = take(p, (bytes + unit - 1) / unit * unit, captures ? 0 : lane);
    if (!*block) return give_up(cudaErrorMemoryAllocation);
    (*block)->graphs = captures;
    return give_up(cudaSuccess);
}

cudaError_t kl_cuda_pool_alloc(cudaMemPool_t handle, void **ptr, size_t bytes, cudaStream_t stream)
{
    struct block *b;
    uint64_t lane;
    int device;

    if (!ptr) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(lane_of(stream, &device, &lane));
    if (!bytes) {
        *ptr = NULL;
        return cudaSuccess;
    }
    if (bytes > SIZE_MAX / 4) return cudaErrorMemoryAllocation;
    bool captures = kl_cuda_stream_captures(stream);
    if (!handle) KL_CUDA_TRY(kl_cuda_pool_current(&handle, device));
    KL_CUDA_TRY(take_block(handle, bytes, lane, captures, &b));
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

/* ---- frees ---- */

/* With the lock: one that is given. */
static struct block *given(const void *ptr)
{
    struct kl_cuda_range range;

    if (!kl_cuda_book_find(ptr, &range) || range.base != ptr || range.kind != KL_CUDA_MEMORY_POOL) return NULL;
    struct block *b = range.owner;
    return b->state == GIVEN ? b : NULL;
}

/* Of cudaMalloc, in stream order. */
static void free_device_memory(void *data)
{
    struct kl_cuda_range range;

    if (kl_cuda_book_take(data, 1u << KL_CUDA_MEMORY_DEVICE, &range)) kl_cuda_release(&range);
}

/* From here until put the block is the caller's alone. NULL: a graph's, which stays. */
static cudaError_t begin_free(void *ptr, bool captures, struct block **block)
{
    pthread_mutex_lock(&lock);
    struct block *b = given(ptr);
    *block = b && !b->graphs ? b : NULL;
    if (!b) return give_up(cudaErrorInvalidValue);
    if (*block && captures) return give_up(cudaErrorStreamCaptureUnsupported);
    if (*block) b->state = LEAVING;
    return give_up(cudaSuccess);
}

/* Without the lock: a stream that is full runs what it has, also functions of the program. */
static cudaError_t mark_free(struct block *b, cudaStream_t stream)
{
    if (!b->freed && koloEventCreateWithFlags(&b->freed, KOLO_EVENT_DISABLE_TIMING)) return cudaErrorMemoryAllocation;
    return kl_cuda_from_kolo(koloEventRecord(b->freed, stream), cudaErrorInvalidResourceHandle);
}

static cudaError_t free_block(void *ptr, cudaStream_t stream)
{
    struct block *b;
    uint64_t lane;
    int device;

    KL_CUDA_TRY(lane_of(stream, &device, &lane));
    KL_CUDA_TRY(begin_free(ptr, kl_cuda_stream_captures(stream), &b));
    if (!b) return cudaSuccess;
    cudaError_t rc = mark_free(b, stream);
    pthread_mutex_lock(&lock);
    if (rc)
        b->state = GIVEN;
    else
        put(b, lane);
    return give_up(rc);
}

cudaError_t kl_cuda_pool_free(void *ptr, cudaStream_t stream)
{
    struct kl_cuda_range range;

    KL_CUDA_TRY(kl_cuda_enter());
    if (!ptr) return cudaSuccess;
    if (koloStreamGetInfo(stream, NULL, NULL)) return cudaErrorInvalidResourceHandle;
    if (kl_cuda_book_find(ptr, &range) && range.base == ptr && range.kind == KL_CUDA_MEMORY_DEVICE)
        return kl_cuda_stream_call(stream, free_device_memory, NULL, ptr);
    return free_block(ptr, stream);
}

cudaError_t kl_cuda_pool_free_now(void *ptr)
{
    pthread_mutex_lock(&lock);
    struct block *b = given(ptr);
    if (!b || b->graphs) return give_up(b ? cudaSuccess : cudaErrorInvalidValue);
    if (b->freed) koloEventDestroy(b->freed);
    b->freed = NULL;
    struct pool *p = b->pool;
    bool alive = p->alive;
    put(b, 0);
    if (alive) shrink(p, p->threshold);
    return give_up(cudaSuccess);
}

/* ---- pools ---- */

cudaError_t kl_cuda_pool_destroy(cudaMemPool_t handle)
{
    struct pool *p;

    KL_CUDA_TRY(take_hold(handle, &p));
    if (p == default_pool[p->device]) return give_up(cudaErrorInvalidValue);
    kl_cuda_handle_take(KL_CUDA_POOL, handle);
    p->alive = false;
    p->handle = NULL;
    if (p->blocks)
        shrink(p, 0);
    else
        end(p);
    return give_up(cudaSuccess);
}

cudaError_t kl_cuda_pool_trim(cudaMemPool_t handle, size_t keep_bytes)
{
    struct pool *p;

    KL_CUDA_TRY(take_hold(handle, &p));
    shrink(p, keep_bytes);
    return give_up(cudaSuccess);
}

cudaError_t kl_cuda_pool_device(cudaMemPool_t handle, int *device)
{
    struct pool *p;

    KL_CUDA_TRY(take_hold(handle, &p));
    *device = p->device;
    return give_up(cudaSuccess);
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
    struct pool *p;

    if (!value) return cudaErrorInvalidValue;
    KL_CUDA_TRY(take_hold(handle, &p));
    return give_up(set_locked(p, attribute, value));
}

cudaError_t kl_cuda_pool_get(cudaMemPool_t handle, int attribute, void *value)
{
    struct pool *p;

    if (!value) return cudaErrorInvalidValue;
    KL_CUDA_TRY(take_hold(handle, &p));
    return give_up(get_locked(p, attribute, value));
}

/* ---- access: checked against the topology, kept and told. The memory itself can be accessed from everywhere here ---- */

static cudaError_t check_access(int own, const struct cudaMemAccessDesc *d)
{
    int can;

    if (d->location.type != cudaMemLocationTypeDevice ||
        (d->flags != cudaMemAccessFlagsProtNone && d->flags != cudaMemAccessFlagsProtRead &&
         d->flags != cudaMemAccessFlagsProtReadWrite))
        return cudaErrorInvalidValue;
    if (d->location.id == own)
        return d->flags == cudaMemAccessFlagsProtReadWrite ? cudaSuccess : cudaErrorInvalidDevice;
    KL_CUDA_TRY(kl_cuda_peer_can(&can, d->location.id, own));
    return can || d->flags == cudaMemAccessFlagsProtNone ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t kl_cuda_pool_set_access(cudaMemPool_t handle, const struct cudaMemAccessDesc *list, size_t count)
{
    struct pool *p;
    int own;

    if (count && !list) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_pool_device(handle, &own));
    for (size_t i = 0; i < count; i++) KL_CUDA_TRY(check_access(own, &list[i]));
    KL_CUDA_TRY(take_hold(handle, &p));
    for (size_t i = 0; i < count; i++) p->access[list[i].location.id] = (uint8_t)list[i].flags;
    return give_up(cudaSuccess);
}

cudaError_t kl_cuda_pool_get_access(enum cudaMemAccessFlags *flags, cudaMemPool_t handle,
                                    const struct cudaMemLocation *where)
{
    struct pool *p;

    if (!flags || !where || where->type != cudaMemLocationTypeDevice) return cudaErrorInvalidValue;
    KL_CUDA_TRY(check_device(where->id));
    KL_CUDA_TRY(take_hold(handle, &p));
    *flags = (enum cudaMemAccessFlags)p->access[where->id];
    return give_up(cudaSuccess);
}

/* ---- of a device ---- */

static void shrink_all(int device, bool reset)
{
    struct pool *next;

    pthread_mutex_lock(&lock);
    for (struct pool *p = all_pools; p; p = next) {
        next = p->next; /* shrinking may end it */
        if (p->device == device) shrink(p, reset || !p->alive ? 0 : p->threshold);
    }
    pthread_mutex_unlock(&lock);
}

void kl_cuda_pool_relax(int device)
{
    shrink_all(device, false);
}

void kl_cuda_pools_reset(int device)
{
    shrink_all(device, true);
}
