/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/stream.h"

#include "compat/cuda/core/device.h"
#include "compat/cuda/core/strict.h"

#include "base/atomic.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- the streams that programs made ---- */

struct entry {
    cudaStream_t stream;
    int device, priority;
    bool blocking;
    unsigned long long id;
    unsigned queue;
    struct kl_cuda_stream_hints hints;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;
static size_t count, room;
static unsigned long long last_id = 2; /* the built-in streams have the ids before */
static unsigned last_queue[KL_CUDA_DEVICES];

static bool enter_table(struct entry e)
{
    bool fits = true;

    pthread_mutex_lock(&lock);
    if (count == room) {
        struct entry *grown = realloc(entries, (room ? 2 * room : 64) * sizeof *grown);

        fits = grown != NULL;
        if (grown) {
            entries = grown;
            room = room ? 2 * room : 64;
        }
    }
    if (fits) {
        e.id = ++last_id;
        e.queue = ++last_queue[e.device];
        entries[count++] = e;
    }
    pthread_mutex_unlock(&lock);
    return fits;
}

static bool find(cudaStream_t stream, struct entry *found, bool take)
{
    bool there = false;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && !there; i++) {
        if (entries[i].stream != stream) continue;
        there = true;
        *found = entries[i];
        if (take) entries[i] = entries[--count];
    }
    pthread_mutex_unlock(&lock);
    return there;
}

/* The streams of a device, to be freed; NULL when there are none. */
static struct entry *list_of(int device, size_t *n)
{
    struct entry *list;

    *n = 0;
    pthread_mutex_lock(&lock);
    list = count ? malloc(count * sizeof *list) : NULL;
    for (size_t i = 0; list && i < count; i++)
        if (entries[i].device == device) list[(*n)++] = entries[i];
    pthread_mutex_unlock(&lock);
    return list;
}

/* ---- life ---- */

cudaError_t kl_cuda_stream_create(cudaStream_t *stream, unsigned flags, int priority)
{
    struct entry e = {.blocking = flags == cudaStreamDefault, .hints.policy = cudaSyncPolicyAuto};

    if (!stream || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    e.device = kl_cuda_current();
    e.priority = priority > KL_CUDA_PRIORITY_LEAST      ? KL_CUDA_PRIORITY_LEAST
                 : priority < KL_CUDA_PRIORITY_GREATEST ? KL_CUDA_PRIORITY_GREATEST
                                                        : priority;
    ncclResult_t rc = koloStreamCreate(&e.stream, e.blocking ? KOLO_STREAM_BLOCKING : KOLO_STREAM_DEFAULT);
    if (rc) return kl_cuda_from_kolo(rc, cudaErrorInvalidValue);
    if (!enter_table(e)) {
        koloStreamRelease(e.stream);
        return cudaErrorMemoryAllocation;
    }
    *stream = e.stream;
    return cudaSuccess;
}

cudaError_t kl_cuda_stream_destroy(cudaStream_t stream)
{
    struct entry e;

    KL_CUDA_TRY(kl_cuda_ready());
    if (!find(stream, &e, true)) return cudaErrorInvalidResourceHandle;
    return kl_cuda_from_kolo(koloStreamRelease(stream), cudaErrorInvalidResourceHandle);
}

void kl_cuda_streams_reset(int device)
{
    size_t n;
    struct entry *list = list_of(device, &n);

    for (size_t i = 0; i < n; i++) kl_cuda_stream_destroy(list[i].stream);
    free(list);
}

cudaError_t kl_cuda_stream_info(cudaStream_t stream, struct kl_cuda_stream_info *info)
{
    unsigned flags;
    struct entry e;

    KL_CUDA_TRY(kl_cuda_enter());
    *info = (struct kl_cuda_stream_info){.id = (uintptr_t)stream <= 2 ? (uintptr_t)stream : 0};
    if (koloStreamGetInfo(stream, &info->device, &flags)) return cudaErrorInvalidResourceHandle;
    info->flags = (uintptr_t)stream > 2 && !(flags & KOLO_STREAM_BLOCKING) ? cudaStreamNonBlocking : cudaStreamDefault;
    if (stream == cudaStreamLegacy) info->id = 0;
    if (!find(stream, &e, false)) return cudaSuccess;
    info->priority = e.priority;
    info->id = e.id;
    info->queue = e.queue;
    return cudaSuccess;
}

void kl_cuda_stream_set_hints(cudaStream_t stream, const struct kl_cuda_stream_hints *hints)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++)
        if (entries[i].stream == stream) entries[i].hints = *hints;
    pthread_mutex_unlock(&lock);
}

struct kl_cuda_stream_hints kl_cuda_stream_hints(cudaStream_t stream)
{
    struct entry e = {.hints.policy = cudaSyncPolicyAuto};

    (void)find(stream, &e, false);
    return e.hints;
}

/* ---- waiting ---- */

bool kl_cuda_stream_captures(cudaStream_t stream)
{
    koloCaptureStatus_t status = koloCaptureStatusNone;

    return !koloStreamGetCaptureInfo(stream, &status, NULL) && status != koloCaptureStatusNone;
}

static cudaError_t wait_or_ask(cudaStream_t stream, ncclResult_t (*call)(koloStream_t))
{
    int device;

    KL_CUDA_TRY(kl_cuda_enter());
    if (koloStreamGetInfo(stream, &device, NULL)) return cudaErrorInvalidResourceHandle;
    koloGetLastReason(); /* earlier refusals do not count */
    KL_CUDA_TRY(kl_cuda_from_wait(call(stream)));
    return kl_cuda_failure(device);
}

cudaError_t kl_cuda_stream_synchronize(cudaStream_t stream)
{
    return wait_or_ask(stream, koloStreamSynchronize);
}

cudaError_t kl_cuda_stream_query(cudaStream_t stream)
{
    return wait_or_ask(stream, koloStreamQuery);
}

cudaError_t kl_cuda_device_wait(int device)
{
    size_t n;
    int current = kl_cuda_current();
    bool legacy = true;
    struct entry *list = list_of(device, &n);

    for (size_t i = 0; i < n; i++)
        if (!kl_cuda_stream_captures(list[i].stream))
            koloStreamSynchronize(list[i].stream);
        else if (list[i].blocking)
            legacy = false;
    free(list);
    if (!legacy) return kl_cuda_failure(device); /* to wait for the default stream would end that capture */
    if (device != current) koloSetDevice(device);
    koloStreamSynchronize(NULL);
    if (device != current) koloSetDevice(current);
    return kl_cuda_failure(device);
}

cudaError_t kl_cuda_device_synchronize(void)
{
    KL_CUDA_TRY(kl_cuda_enter());
    koloGetLastReason();
    KL_CUDA_TRY(kl_cuda_from_wait(koloDeviceSynchronize()));
    return kl_cuda_failure(kl_cuda_current());
}

/* ---- calls ---- */

struct call {
    void (*run)(void *data);
    void (*drop)(void *data);
    void *data;
    int device; /* of its stream, and the stream's queue: in strict mode */
    unsigned queue;
    struct kl_cuda_turn turn;
};

static void run_call(const struct call *c)
{
    kl_cuda_set_in_callback(true);
    c->run(c->data);
    kl_cuda_set_in_callback(false);
}

/* Part of a graph: its place in the queue is the one that it comes to. */
static void run_often(void *arg)
{
    const struct call *c = arg;
    struct kl_cuda_turn turn = {0};

    if (kl_cuda_strict()) {
        kl_cuda_turn_take(&turn, c->device, c->queue);
        kl_cuda_turn_wait(&turn);
    }
    run_call(c);
    kl_cuda_turn_pass(&turn);
}

static void drop(void *arg)
{
    struct call *c = arg;

    kl_cuda_turn_pass(&c->turn);
    if (c->drop) c->drop(c->data);
    free(c);
}

static void run_once(void *arg)
{
    struct call *c = arg;

    kl_cuda_turn_wait(&c->turn);
    run_call(c);
    drop(arg);
}

/* The order of turns is the order in the stream. */
static ncclResult_t launch_in_turn(cudaStream_t stream, struct call *c, bool captures)
{
    static pthread_mutex_t submit[64] = {[0 ... 63] = PTHREAD_MUTEX_INITIALIZER};
    pthread_mutex_t *mutex = &submit[(uintptr_t)stream % 61];
    struct kl_cuda_stream_info info;

    if (kl_cuda_stream_info(stream, &info)) return ncclInvalidArgument;
    c->device = info.device;
    c->queue = info.queue;
    if (captures) return koloStreamLaunch(stream, run_often, c);
    pthread_mutex_lock(mutex);
    kl_cuda_turn_take(&c->turn, c->device, c->queue);
    ncclResult_t rc = koloStreamLaunch(stream, run_once, c);
    pthread_mutex_unlock(mutex);
    return rc;
}

cudaError_t kl_cuda_stream_call(cudaStream_t stream, void (*run)(void *data), void (*drop_data)(void *data), void *data)
{
    struct call *c = calloc(1, sizeof *c);

    if (!c) {
        if (drop_data) drop_data(data);
        return cudaErrorMemoryAllocation;
    }
    *c = (struct call){.run = run, .drop = drop_data, .data = data};
    bool captures = kl_cuda_stream_captures(stream);
    ncclResult_t rc = kl_cuda_strict() ? launch_in_turn(stream, c, captures)
                                       : koloStreamLaunch(stream, captures ? run_often : run_once, c);
    if (!rc && captures) rc = koloStreamCaptureKeep(stream, drop, c);
    if (!rc) return cudaSuccess;
    drop(c);
    return kl_cuda_from_kolo(rc, cudaErrorInvalidResourceHandle);
}
