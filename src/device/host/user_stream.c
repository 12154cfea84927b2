/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/user_stream.h"

#include "base/error.h"
#include "base/threadlocal.h"
#include "device/host/capture.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- the streams of threads ---- */

struct own {
    struct own *next;
    struct kl_stream *stream;
    int device;
};

static KL_THREAD_LOCAL struct own *owned; /* by the thread */
static pthread_key_t at_thread_end;

/* If other code of this thread uses its stream after this, it gets a new one. */
static void release_owned(void *unused)
{
    (void)unused;
    for (struct own *o; (o = owned);) {
        owned = o->next;
        kl_user_stream_release(o->stream);
        free(o);
    }
}

static void make_key(void)
{
    pthread_key_create(&at_thread_end, release_owned);
}

static ncclResult_t add_owned(int device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct own *o = malloc(sizeof *o);

    if (!o) return KL_NOMEM("a thread's stream");
    *o = (struct own){.next = owned, .device = device};
    ncclResult_t rc = kl_stream_create_on(device, KOLO_STREAM_BLOCKING, &o->stream);
    if (rc) {
        free(o);
        return rc;
    }
    owned = o;
    pthread_once(&once, make_key);
    pthread_setspecific(at_thread_end, o);
    return ncclSuccess;
}

static ncclResult_t own_stream(int device, struct kl_stream **stream)
{
    struct own *o = owned;

    while (o && o->device != device) o = o->next;
    if (!o) {
        KL_TRY(add_owned(device));
        o = owned;
    }
    *stream = o->stream;
    return ncclSuccess;
}

/* ---- handles ---- */

/* Out of line: kl_user_stream_of's fast path is on the path of every operation. */
static __attribute__((noinline)) ncclResult_t stream_of_device(cudaStream_t handle, int device,
                                                               struct kl_stream **stream)
{
    return handle == koloStreamPerThread ? own_stream(device, stream) : kl_stream_default(device, stream);
}

/* A handle is looked up, never dereferenced: it may be arbitrary. The last one found is cached. */
static struct kl_stream *find_stream(cudaStream_t handle)
{
    static KL_THREAD_LOCAL struct kl_stream *last;

    if (!last || kl_user_stream_handle(last) != handle)
        for (last = kl_streams_first(); last && kl_user_stream_handle(last) != handle;) last = last->next;
    return last && kl_load_relaxed(&last->live) == KL_STREAM_LIVE ? last : NULL;
}

ncclResult_t kl_user_stream_of(cudaStream_t handle, int device, struct kl_stream **stream)
{
    if (kl_user_stream_is_devices(handle)) return stream_of_device(handle, device, stream);
    struct kl_stream *s = find_stream(handle);
    if (s) {
        *stream = s;
        return ncclSuccess;
    }
    return KL_FAIL(ncclInvalidArgument,
                   "stream %p is not a host stream, or was destroyed: make one with koloStreamCreate, or pass NULL",
                   (void *)handle);
}

/* ---- destruction ---- */

ncclResult_t kl_user_stream_destroy(struct kl_stream *s)
{
    kl_capture_remove_stream(s);
    return kl_stream_destroy(s);
}

void kl_user_stream_release(struct kl_stream *s)
{
    kl_capture_remove_stream(s);
    kl_stream_release(s);
}

/* ---- several streams: all of a device that are a program's, or those with any of `flags` ---- */

static bool is_wanted(struct kl_stream *s, uint32_t flags)
{
    const uint32_t has = kl_load_relaxed(&s->flags);

    return !(has & KL_STREAM_IS_INTERNAL) && (!flags || has & flags);
}

static struct kl_stream *next_of(int device, uint32_t flags, struct kl_stream *s)
{
    do {
        s = kl_streams_next_of(device, s);
    } while (s && !is_wanted(s, flags));
    return s;
}

/* The ticket to wait for. Work queued later is not included. */
struct goal {
    struct kl_stream *stream;
    uint64_t ticket, ended;
};

/* Streams from `first` on; later additions to the list are before it. */
static size_t count_from(const struct kl_stream *first)
{
    size_t n = 0;

    for (const struct kl_stream *s = first; s; s = s->next) n++;
    return n;
}

static ncclResult_t reach(const struct goal *goal, size_t n)
{
    ncclResult_t rc = ncclSuccess;

    for (size_t i = 0; i < n; i++) kl_stream_wait(goal[i].stream, goal[i].ticket);
    for (size_t i = 0; i < n && !rc; i++)
        rc = kl_failures_query(&goal[i].stream->failures, goal[i].ticket, goal[i].ended);
    return rc;
}

static ncclResult_t synchronize_several(int device, uint32_t flags)
{
    struct kl_stream *first = next_of(device, flags, NULL);
    struct goal *goal = malloc((count_from(first) + 1) * sizeof *goal);
    size_t n = 0;

    if (!goal) return KL_NOMEM("a wait for several streams");
    for (struct kl_stream *s = first; s; s = next_of(device, flags, s))
        goal[n++] = (struct goal){.stream = s, .ticket = kl_stream_tail(s), .ended = kl_failures_ended(&s->failures)};
    ncclResult_t rc = reach(goal, n);
    free(goal);
    return rc;
}

static ncclResult_t query_several(int device, uint32_t flags)
{
    ncclResult_t all = ncclSuccess;

    for (struct kl_stream *s = next_of(device, flags, NULL); s; s = next_of(device, flags, s)) {
        ncclResult_t rc = kl_stream_query(s);
        if (rc && rc != ncclInProgress) return rc;
        if (rc) all = rc;
    }
    return all;
}

/* ---- waiting ---- */

enum { IN_ORDER = KL_STREAM_IS_DEFAULT | KOLO_STREAM_BLOCKING };

/* Is it a default stream that blocking ones are in order with? */
static bool has_blocking(struct kl_stream *s)
{
    const uint32_t both = KL_STREAM_IS_DEFAULT | KL_STREAM_ORDERED;

    return (kl_load_relaxed(&s->flags) & both) == both;
}

static ncclResult_t check_blocking(int device)
{
    for (struct kl_stream *s = next_of(device, IN_ORDER, NULL); s; s = next_of(device, IN_ORDER, s))
        if (kl_capturing(s)) return kl_capture_refuse_implicit(s);
    return ncclSuccess;
}

ncclResult_t kl_user_stream_synchronize(struct kl_stream *s)
{
    if (kl_capturing(s)) return kl_capture_refuse_wait(s, "koloStreamSynchronize");
    if (!has_blocking(s)) return kl_stream_synchronize(s, kl_stream_tail(s));
    KL_TRY(check_blocking(kl_stream_device(s)));
    return synchronize_several(kl_stream_device(s), IN_ORDER);
}

ncclResult_t kl_user_stream_query(struct kl_stream *s)
{
    if (kl_capturing(s)) return kl_capture_refuse_wait(s, "koloStreamQuery");
    if (!has_blocking(s)) return kl_stream_query(s);
    KL_TRY(check_blocking(kl_stream_device(s)));
    return query_several(kl_stream_device(s), IN_ORDER);
}

ncclResult_t kl_user_stream_synchronize_all(int device)
{
    for (struct kl_stream *s = next_of(device, 0, NULL); s; s = next_of(device, 0, s))
        if (kl_capturing(s)) return kl_capture_refuse_wait(s, "koloDeviceSynchronize");
    return synchronize_several(device, 0);
}
