/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/pool.h"

#include "base/atomic.h"
#include "compat/cuda/core/device.h"
#include "compat/cuda/core/handle.h"
#include "compat/cuda/core/memory.h"
#include "compat/cuda/core/pool_blocks.h"
#include "compat/cuda/core/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kl_cuda_pool
    *all_pools; /* under lock, as all that is in pools; also those that are destroyed and have blocks */
static struct kl_cuda_pool *default_pool[KL_CUDA_DEVICES];
static cudaMemPool_t current_pool[KL_CUDA_DEVICES];

static struct kl_cuda_pool *find(cudaMemPool_t pool)
{
    return kl_cuda_handle_find(KL_CUDA_POOL, pool);
}

cudaError_t kl_cuda_pool_ref(cudaMemPool_t handle, struct kl_cuda_pool **pool)
{
    KL_CUDA_TRY(kl_cuda_enter());
    pthread_mutex_lock(&lock);
    *pool = find(handle);
    if (*pool) return cudaSuccess;
    pthread_mutex_unlock(&lock);
    return cudaErrorInvalidValue;
}

cudaError_t kl_cuda_pool_unref(cudaError_t rc)
{
    pthread_mutex_unlock(&lock);
    return rc;
}

/* ---- lanes: work in order. 0: not known ---- */

/* Handles do not identify lanes: a thread's stream differs from thread to thread, and addresses are reused. */
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
static struct kl_cuda_pool *make(int device)
{
    struct kl_cuda_pool *p = calloc(1, sizeof *p);

    if (!p) return NULL;
    *p = (struct kl_cuda_pool){.device = device, .alive = true, .imported = -1, .reuse = {0, 1, 1, 1}};
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
static void end(struct kl_cuda_pool *p)
{
    struct kl_cuda_pool **at = &all_pools;

    while (*at != p) at = &(*at)->next;
    *at = p->next;
    if (p->imported >= 0) close(p->imported);
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
    struct kl_cuda_pool *p = default_pool[device];
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
    struct kl_cuda_pool *p;

    KL_CUDA_TRY(check_device(device));
    KL_CUDA_TRY(kl_cuda_pool_ref(pool, &p));
    bool fits = p->device == device && p->imported < 0;
    if (fits) current_pool[device] = pool;
    return kl_cuda_pool_unref(fits ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t kl_cuda_pool_create(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
    if (!pool || !properties || properties->allocType != cudaMemAllocationTypePinned ||
        properties->location.type != cudaMemLocationTypeDevice)
        return cudaErrorInvalidValue;
    if (properties->handleTypes & ~cudaMemHandleTypePosixFileDescriptor) return cudaErrorNotSupported;
    KL_CUDA_TRY(check_device(properties->location.id));
    pthread_mutex_lock(&lock);
    struct kl_cuda_pool *p = make(properties->location.id);
    if (!p) return kl_cuda_pool_unref(cudaErrorMemoryAllocation);
    p->most = properties->maxSize;
    p->shares = properties->handleTypes;
    *pool = p->handle;
    return kl_cuda_pool_unref(cudaSuccess);
}

/* ---- blocks; all with the lock held ---- */

static void forget(struct kl_cuda_pool *p, struct kl_cuda_block *b)
{
    struct kl_cuda_range range;

    bool known = kl_cuda_ranges_remove(b->ptr, 1u << KL_CUDA_MEMORY_POOL, &range);
    if (b->window.map)
        kl_cuda_window_close(&b->window);
    else if (known)
        kl_cuda_release(&range);
    if (b->freed) koloEventDestroy(b->freed);
    p->reserved -= b->bytes;
    p->blocks--;
    free(b);
    if (!p->alive && !p->blocks) end(p);
}

static bool is_ready(const struct kl_cuda_block *b)
{
    return !b->freed || koloEventQuery(b->freed) != ncclInProgress;
}

/* Give back free blocks until the pool holds no more than `keep`. */
static void shrink(struct kl_cuda_pool *p, uint64_t keep)
{
    if (p->imported >= 0) keep = 0; /* it is never reused */
    for (struct kl_cuda_block **at = &p->free; *at && p->reserved > keep;) {
        struct kl_cuda_block *b = *at;

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
static struct kl_cuda_block *reuse(struct kl_cuda_pool *p, size_t bytes, uint64_t lane)
{
    for (struct kl_cuda_block **at = &p->free; *at; at = &(*at)->next) {
        struct kl_cuda_block *b = *at;
        bool in_order = lane && b->lane == lane;

        if (b->bytes < bytes || b->bytes > 2 * bytes || !(in_order || is_ready(b))) continue;
        *at = b->next;
        return b;
    }
    return NULL;
}

static struct kl_cuda_block *grow(struct kl_cuda_pool *p, size_t bytes)
{
    if (p->most && p->reserved + bytes > p->most) shrink(p, p->most > bytes ? p->most - bytes : 0);
    if (p->most && p->reserved + bytes > p->most) return NULL;
    struct kl_cuda_block *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    *b = (struct kl_cuda_block){.pool = p, .bytes = bytes};
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

static struct kl_cuda_block *take(struct kl_cuda_pool *p, size_t bytes, uint64_t lane)
{
    struct kl_cuda_block *b = reuse(p, bytes, lane);

    if (!b) b = grow(p, bytes);
    if (!b) return NULL;
    b->state = KL_CUDA_BLOCK_GIVEN;
    p->used += b->bytes;
    if (p->used > p->used_high) p->used_high = p->used;
    return b;
}

static void put(struct kl_cuda_block *b, uint64_t lane)
{
    struct kl_cuda_pool *p = b->pool;

    p->used -= b->bytes;
    b->state = KL_CUDA_BLOCK_FREE;
    b->lane = lane;
    b->next = p->free;
    p->free = b;
    if (!p->alive) shrink(p, 0);
}

/* ---- memory of graphs ---- */

static uint64_t graph_bytes[KL_CUDA_DEVICES], graph_bytes_high[KL_CUDA_DEVICES]; /* with the lock */

static void count_graph(int device, size_t bytes)
{
    graph_bytes[device] += bytes;
    if (graph_bytes[device] > graph_bytes_high[device]) graph_bytes_high[device] = graph_bytes[device];
}

void kl_cuda_pool_of_graphs(int device, uint64_t *now, uint64_t *most)
{
    pthread_mutex_lock(&lock);
    if (now) *now = graph_bytes[device];
    if (most) *most = graph_bytes_high[device];
    pthread_mutex_unlock(&lock);
}

void kl_cuda_pool_reset_of_graphs(int device)
{
    pthread_mutex_lock(&lock);
    graph_bytes_high[device] = graph_bytes[device];
    pthread_mutex_unlock(&lock);
}

/* ---- memory ---- */

void kl_cuda_pool_end_of_graph(void *data)
{
    struct kl_cuda_block *b = data;

    pthread_mutex_lock(&lock);
    b->pool->used -= b->bytes;
    graph_bytes[b->pool->device] -= b->bytes;
    forget(b->pool, b);
    pthread_mutex_unlock(&lock);
}

/* A block for a graph must be ready: the graph runs in other streams. */
static cudaError_t take_block(cudaMemPool_t handle, size_t bytes, uint64_t lane, bool captures,
                              struct kl_cuda_block **block)
{
    const size_t unit = 512;
    struct kl_cuda_pool *p;

    KL_CUDA_TRY(kl_cuda_pool_ref(handle, &p));
    if (p->imported >= 0) return kl_cuda_pool_unref(cudaErrorInvalidValue);
    *block = take(p, (bytes + unit - 1) / unit * unit, captures ? 0 : lane);
    if (!*block) return kl_cuda_pool_unref(cudaErrorMemoryAllocation);
    (*block)->graphs = captures;
    if (captures) count_graph(p->device, (*block)->bytes);
    return kl_cuda_pool_unref(cudaSuccess);
}

cudaError_t kl_cuda_pool_alloc(cudaMemPool_t handle, void **ptr, size_t bytes, cudaStream_t stream)
{
    struct kl_cuda_block *b = NULL;
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
        ncclResult_t rc = koloStreamCaptureKeep(stream, kl_cuda_pool_end_of_graph, b);

        if (rc) {
            kl_cuda_pool_end_of_graph(b);
            return kl_cuda_from_kolo(rc, cudaErrorInvalidResourceHandle);
        }
    }
    *ptr = b->ptr;
    return cudaSuccess;
}

cudaError_t kl_cuda_pool_alloc_for_graph(int device, size_t bytes, void **ptr, void **block)
{
    struct kl_cuda_block *b = NULL;
    cudaMemPool_t pool;

    if (bytes > SIZE_MAX / 4) return cudaErrorMemoryAllocation;
    KL_CUDA_TRY(kl_cuda_pool_current(&pool, device));
    KL_CUDA_TRY(take_block(pool, bytes, 0, true, &b));
    *ptr = b->ptr;
    *block = b;
    return cudaSuccess;
}

/* ---- frees ---- */

/* With the lock: a block in use. */
static struct kl_cuda_block *given(const void *ptr)
{
    struct kl_cuda_range range;

    if (!kl_cuda_ranges_find(ptr, &range) || range.base != ptr || range.kind != KL_CUDA_MEMORY_POOL) return NULL;
    struct kl_cuda_block *b = range.owner;
    return b->state == KL_CUDA_BLOCK_GIVEN ? b : NULL;
}

cudaMemPool_t kl_cuda_pool_of(const void *ptr)
{
    struct kl_cuda_range range;

    if (!kl_cuda_ranges_find(ptr, &range)) return NULL;
    pthread_mutex_lock(&lock);
    const struct kl_cuda_block *b = given(range.base);
    cudaMemPool_t pool = b ? b->pool->handle : NULL;
    pthread_mutex_unlock(&lock);
    return pool;
}

bool kl_cuda_pool_is_graphs(const void *ptr)
{
    pthread_mutex_lock(&lock);
    const struct kl_cuda_block *b = given(ptr);
    bool is = b && b->graphs;
    pthread_mutex_unlock(&lock);
    return is;
}

/* Of cudaMalloc, in stream order. */
static void free_device_memory(void *data)
{
    struct kl_cuda_range range;

    if (kl_cuda_ranges_remove(data, 1u << KL_CUDA_MEMORY_DEVICE, &range)) kl_cuda_release(&range);
}

/* From here until put the block is the caller's alone. NULL: a graph's, which stays. */
static cudaError_t begin_free(void *ptr, bool captures, struct kl_cuda_block **block)
{
    pthread_mutex_lock(&lock);
    struct kl_cuda_block *b = given(ptr);
    *block = b && !b->graphs ? b : NULL;
    if (!b) return kl_cuda_pool_unref(cudaErrorInvalidValue);
    if (*block && captures) return kl_cuda_pool_unref(cudaErrorStreamCaptureUnsupported);
    if (*block) b->state = KL_CUDA_BLOCK_LEAVING;
    return kl_cuda_pool_unref(cudaSuccess);
}

/* Without the lock: a full stream runs its queue, with functions of the program. */
static cudaError_t mark_free(struct kl_cuda_block *b, cudaStream_t stream)
{
    if (!b->freed && koloEventCreateWithFlags(&b->freed, KOLO_EVENT_DISABLE_TIMING)) return cudaErrorMemoryAllocation;
    return kl_cuda_from_kolo(koloEventRecord(b->freed, stream), cudaErrorInvalidResourceHandle);
}

static cudaError_t free_block(void *ptr, cudaStream_t stream)
{
    struct kl_cuda_block *b;
    uint64_t lane;
    int device;

    KL_CUDA_TRY(lane_of(stream, &device, &lane));
    KL_CUDA_TRY(begin_free(ptr, kl_cuda_stream_captures(stream), &b));
    if (!b) return cudaSuccess;
    cudaError_t rc = mark_free(b, stream);
    pthread_mutex_lock(&lock);
    if (rc)
        b->state = KL_CUDA_BLOCK_GIVEN;
    else
        put(b, lane);
    return kl_cuda_pool_unref(rc);
}

cudaError_t kl_cuda_pool_free(void *ptr, cudaStream_t stream)
{
    struct kl_cuda_range range;

    KL_CUDA_TRY(kl_cuda_enter());
    if (!ptr) return cudaSuccess;
    if (koloStreamGetInfo(stream, NULL, NULL)) return cudaErrorInvalidResourceHandle;
    if (kl_cuda_ranges_find(ptr, &range) && range.base == ptr && range.kind == KL_CUDA_MEMORY_DEVICE)
        return kl_cuda_stream_call(stream, free_device_memory, NULL, ptr);
    return free_block(ptr, stream);
}

cudaError_t kl_cuda_pool_free_now(void *ptr)
{
    pthread_mutex_lock(&lock);
    struct kl_cuda_block *b = given(ptr);
    if (!b || b->graphs) return kl_cuda_pool_unref(b ? cudaSuccess : cudaErrorInvalidValue);
    if (b->freed) koloEventDestroy(b->freed);
    b->freed = NULL;
    struct kl_cuda_pool *p = b->pool;
    bool alive = p->alive;
    put(b, 0);
    if (alive) shrink(p, p->threshold);
    return kl_cuda_pool_unref(cudaSuccess);
}

/* ---- between processes ---- */

cudaMemPool_t kl_cuda_pool_adopt(int device, int segment)
{
    pthread_mutex_lock(&lock);
    struct kl_cuda_pool *p = make(device);
    cudaMemPool_t handle = p ? p->handle : NULL;
    if (p) p->imported = segment;
    pthread_mutex_unlock(&lock);
    return handle;
}

cudaError_t kl_cuda_pool_shared(const void *ptr, struct kl_cuda_range *range)
{
    pthread_mutex_lock(&lock);
    const struct kl_cuda_block *b = given(ptr);
    bool shared = b && b->pool->shares && kl_cuda_ranges_find(ptr, range);
    return kl_cuda_pool_unref(shared ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- pools ---- */

cudaError_t kl_cuda_pool_destroy(cudaMemPool_t handle)
{
    struct kl_cuda_pool *p;

    KL_CUDA_TRY(kl_cuda_pool_ref(handle, &p));
    if (p == default_pool[p->device]) return kl_cuda_pool_unref(cudaErrorInvalidValue);
    kl_cuda_handle_take(KL_CUDA_POOL, handle);
    p->alive = false;
    p->handle = NULL;
    if (p->blocks)
        shrink(p, 0);
    else
        end(p);
    return kl_cuda_pool_unref(cudaSuccess);
}

cudaError_t kl_cuda_pool_trim(cudaMemPool_t handle, size_t keep_bytes)
{
    struct kl_cuda_pool *p;

    KL_CUDA_TRY(kl_cuda_pool_ref(handle, &p));
    shrink(p, keep_bytes);
    return kl_cuda_pool_unref(cudaSuccess);
}

cudaError_t kl_cuda_pool_device(cudaMemPool_t handle, int *device)
{
    struct kl_cuda_pool *p;

    KL_CUDA_TRY(kl_cuda_pool_ref(handle, &p));
    *device = p->device;
    return kl_cuda_pool_unref(cudaSuccess);
}

/* ---- of a device ---- */

static void shrink_all(int device, bool reset)
{
    struct kl_cuda_pool *next;

    pthread_mutex_lock(&lock);
    for (struct kl_cuda_pool *p = all_pools; p; p = next) {
        next = p->next; /* shrinking may end it */
        if (p->device == device) shrink(p, reset || !p->alive ? 0 : p->threshold);
    }
    pthread_mutex_unlock(&lock);
}

void kl_cuda_pool_trim_to_threshold(int device)
{
    shrink_all(device, false);
}

void kl_cuda_pools_reset(int device)
{
    shrink_all(device, true);
}
