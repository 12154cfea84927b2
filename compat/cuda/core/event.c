/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/event.h"

#include "base/atomic.h"
#include "compat/cuda/core/handle.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/core/strict.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

_Static_assert((int)cudaEventRecordExternal == KOLO_EVENT_EXTERNAL, "the flag is handed on");
_Static_assert((int)cudaEventWaitExternal == KOLO_EVENT_EXTERNAL, "the flag is handed on");

/* The part of an event that processes share. The last recorder counts. */
struct shared {
    _Atomic uint64_t recorded, done;
    _Atomic pid_t recorder; /* if it is gone, its queued work is not waited for */
};

struct event {
    int device;
    unsigned flags;
    koloEvent_t own;       /* NULL: between processes */
    struct shared *shared; /* NULL: of this process */
    int fd;
};

static struct event *find(cudaEvent_t handle)
{
    return kl_cuda_handle_find(KL_CUDA_EVENT, handle);
}

/* ---- life ---- */

static void destroy(struct event *e)
{
    if (e->own) koloEventDestroy(e->own);
    if (e->shared) munmap(e->shared, sizeof *e->shared);
    if (e->fd >= 0) close(e->fd);
    free(e);
}

static bool map(struct event *e)
{
    void *p = mmap(NULL, sizeof *e->shared, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);

    if (p != MAP_FAILED) e->shared = p;
    return e->shared;
}

static bool make_shared(struct event *e)
{
    e->fd = memfd_create("kolo-cuda-event", MFD_CLOEXEC);
    return e->fd >= 0 && !ftruncate(e->fd, sizeof *e->shared) && map(e);
}

static cudaError_t publish(struct event *e, cudaEvent_t *event)
{
    *event = kl_cuda_handle_make(KL_CUDA_EVENT, e);
    if (*event) return cudaSuccess;
    destroy(e);
    return cudaErrorMemoryAllocation;
}

cudaError_t kl_cuda_event_create(cudaEvent_t *event, unsigned flags)
{
    const unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    struct event *e;

    if (!event || flags & ~known) return cudaErrorInvalidValue;
    if (flags & cudaEventInterprocess && !(flags & cudaEventDisableTiming)) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    e = calloc(1, sizeof *e);
    if (!e) return cudaErrorMemoryAllocation;
    *e = (struct event){.device = kl_cuda_current(), .flags = flags, .fd = -1};
    bool made = flags & cudaEventInterprocess
                    ? make_shared(e)
                    : !koloEventCreateWithFlags(&e->own, flags & (cudaEventBlockingSync | cudaEventDisableTiming));
    if (made) return publish(e, event);
    destroy(e);
    return cudaErrorMemoryAllocation;
}

cudaError_t kl_cuda_event_open(cudaEvent_t *event, int fd)
{
    struct event *e = calloc(1, sizeof *e);

    if (!e) {
        close(fd);
        return cudaErrorMemoryAllocation;
    }
    *e = (struct event){.device = kl_cuda_current(), .flags = cudaEventInterprocess | cudaEventDisableTiming, .fd = fd};
    if (lseek(fd, 0, SEEK_END) == sizeof *e->shared && map(e)) return publish(e, event);
    destroy(e);
    return cudaErrorInvalidValue;
}

cudaError_t kl_cuda_event_segment(cudaEvent_t event, int *fd)
{
    const struct event *e = find(event);

    if (!e) return cudaErrorInvalidResourceHandle;
    if (!e->shared) return cudaErrorInvalidValue;
    *fd = e->fd;
    return cudaSuccess;
}

bool kl_cuda_event_known(cudaEvent_t event)
{
    return find(event);
}

cudaError_t kl_cuda_event_destroy(cudaEvent_t event)
{
    KL_CUDA_TRY(kl_cuda_ready());
    struct event *e = kl_cuda_handle_take(KL_CUDA_EVENT, event);
    if (!e) return cudaErrorInvalidResourceHandle;
    destroy(e);
    return cudaSuccess;
}

struct search {
    int device;
    void *found;
};

static bool of_device(void *ctx, void *handle, void *object)
{
    struct search *s = ctx;

    if (((struct event *)object)->device == s->device) s->found = handle;
    return s->found;
}

void kl_cuda_events_reset(int device)
{
    for (;;) {
        struct search s = {.device = device};

        kl_cuda_handle_each(KL_CUDA_EVENT, of_device, &s);
        if (!s.found) return;
        kl_cuda_event_destroy(s.found);
    }
}

/* ---- between processes ---- */

/* A record or a wait under way maps the segment by itself: the event may be destroyed meanwhile. */
struct passage {
    struct shared *shared;
    uint64_t number;
};

static bool passed(const struct shared *s, uint64_t number)
{
    if (kl_load_acquire(&s->done) >= number) return true;
    if (kl_load_acquire(&s->recorded) < number) return true; /* it was revoked */
    pid_t recorder = kl_load_relaxed(&s->recorder);
    return recorder && kill(recorder, 0) && errno == ESRCH;
}

/* Another process may be doing the same, with another number. */
static void reach(struct shared *s, uint64_t number)
{
    uint64_t before = kl_load_relaxed(&s->done);

    while (before < number && !atomic_compare_exchange_weak_explicit(&s->done, &before, number, memory_order_release,
                                                                     memory_order_relaxed)) {
    }
}

static void pass(void *data)
{
    struct passage *p = data;

    reach(p->shared, p->number);
}

static void wait_until_passed(const struct shared *s, uint64_t number)
{
    struct timespec pause = {.tv_nsec = 20000};

    while (!passed(s, number)) nanosleep(&pause, NULL);
}

static void wait_for(void *data)
{
    const struct passage *p = data;

    wait_until_passed(p->shared, p->number);
}

static void drop(void *data)
{
    struct passage *p = data;

    munmap(p->shared, sizeof *p->shared);
    free(p);
}

static struct passage *make_passage(const struct event *e)
{
    struct passage *p = malloc(sizeof *p);
    void *shared = p ? mmap(NULL, sizeof *e->shared, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0) : MAP_FAILED;

    if (shared == MAP_FAILED) {
        free(p);
        return NULL;
    }
    p->shared = shared;
    return p;
}

/* Undo a failed record, unless a later one counts. */
static void take_back(struct shared *s, uint64_t number, pid_t recorder_before)
{
    if (atomic_compare_exchange_strong_explicit(&s->recorded, &number, number - 1, memory_order_acq_rel,
                                                memory_order_relaxed))
        kl_store_relaxed(&s->recorder, recorder_before);
}

static cudaError_t record_shared(const struct event *e, cudaStream_t stream)
{
    struct passage *p = make_passage(e);

    if (!p) return cudaErrorMemoryAllocation;
    pid_t before = atomic_exchange_explicit(&e->shared->recorder, getpid(), memory_order_relaxed);
    uint64_t number = atomic_fetch_add_explicit(&e->shared->recorded, 1, memory_order_acq_rel) + 1;
    p->number = number;
    cudaError_t rc = kl_cuda_stream_call(stream, pass, drop, p);
    if (rc) take_back(e->shared, number, before);
    return rc;
}

static cudaError_t wait_shared(const struct event *e, cudaStream_t stream)
{
    struct passage *p = make_passage(e);

    if (!p) return cudaErrorMemoryAllocation;
    p->number = kl_load_acquire(&e->shared->recorded);
    return kl_cuda_stream_call(stream, wait_for, drop, p);
}

/* ---- in streams ---- */

static cudaError_t same_device(const struct event *e, cudaStream_t stream)
{
    int device;

    if (koloStreamGetInfo(stream, &device, NULL)) return cudaErrorInvalidResourceHandle;
    return device == e->device ? kl_cuda_failure(device) : cudaErrorInvalidResourceHandle;
}

cudaError_t kl_cuda_event_record(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    if (flags > cudaEventRecordExternal) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    struct event *e = find(event);
    if (!e) return cudaErrorInvalidResourceHandle;
    KL_CUDA_TRY(same_device(e, stream));
    if (e->own)
        return kl_cuda_from_kolo(koloEventRecordWithFlags(e->own, stream, flags), cudaErrorInvalidResourceHandle);
    if (kl_cuda_stream_captures(stream)) return cudaErrorStreamCaptureUnsupported;
    return record_shared(e, stream);
}

/* In strict mode, it takes a turn that passes when the event has come. */
static void nothing(void *data)
{
    (void)data;
}

cudaError_t kl_cuda_event_order(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    if (flags > cudaEventWaitExternal) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    struct event *e = find(event);
    if (!e || koloStreamGetInfo(stream, NULL, NULL)) return cudaErrorInvalidResourceHandle;
    if (!e->own) return wait_shared(e, stream);
    KL_CUDA_TRY(kl_cuda_from_kolo(koloStreamWaitEvent(stream, e->own, flags), cudaErrorInvalidResourceHandle));
    return kl_cuda_strict() && !kl_cuda_stream_captures(stream) ? kl_cuda_stream_call(stream, nothing, NULL, NULL)
                                                                : cudaSuccess;
}

/* ---- queries and waits ---- */

static cudaError_t wait_or_ask(cudaEvent_t event, ncclResult_t (*call)(koloEvent_t))
{
    struct event *e = find(event);

    if (!e) return cudaErrorInvalidResourceHandle;
    koloGetLastReason();
    if (e->own) KL_CUDA_TRY(kl_cuda_from_wait(call(e->own)));
    return kl_cuda_failure(e->device);
}

cudaError_t kl_cuda_event_query(cudaEvent_t event)
{
    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(kl_cuda_unsafe());
    struct event *e = find(event);
    if (e && e->shared && !passed(e->shared, kl_load_acquire(&e->shared->recorded))) return cudaErrorNotReady;
    return wait_or_ask(event, koloEventQuery);
}

cudaError_t kl_cuda_event_synchronize(cudaEvent_t event)
{
    KL_CUDA_TRY(kl_cuda_enter());
    struct event *e = find(event);
    if (e && e->shared) wait_until_passed(e->shared, kl_load_acquire(&e->shared->recorded));
    return wait_or_ask(event, koloEventSynchronize);
}

cudaError_t kl_cuda_event_elapsed(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    int64_t ns;

    if (!ms) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    struct event *a = find(start), *b = find(end);
    if (!a || !b || !a->own || !b->own) return cudaErrorInvalidResourceHandle;
    if (a->device != b->device) return cudaErrorInvalidResourceHandle;
    KL_CUDA_TRY(kl_cuda_from_kolo(koloEventElapsedTime(&ns, a->own, b->own), cudaErrorInvalidResourceHandle));
    *ms = (float)((double)ns / 1e6);
    return cudaSuccess;
}
