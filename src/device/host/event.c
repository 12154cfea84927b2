/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/event.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fork_lock.h"
#include "device/host/stream_order.h"
#include "device/host/legacy.h"
#include "device/host/refuse.h"

#include <pthread.h>
#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    struct kl_event *spare; /* under lock */
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

KL_FORK_LOCK(registry.lock, (void)0);

ncclResult_t kl_event_create(unsigned flags, struct kl_event **event)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (flags & ~(KOLO_EVENT_BLOCKING_SYNC | KOLO_EVENT_DISABLE_TIMING))
        return KL_FAIL(ncclInvalidArgument, "unknown event flags 0x%x", flags);
    pthread_once(&once, install_fork_handlers);
    pthread_mutex_lock(&registry.lock);
    struct kl_event *e = registry.spare;
    if (e) registry.spare = e->next;
    pthread_mutex_unlock(&registry.lock);

    if (!e) e = calloc(1, sizeof *e);
    if (!e) return KL_NOMEM("an event");
    kl_store_relaxed(&e->done, kl_load_relaxed(&e->recorded)); /* an event never recorded is done */
    e->stream = NULL;
    e->mark = (struct kl_mark){.capture = 0};
    kl_store_relaxed(&e->flags, flags);
    kl_store_relaxed(&e->holders, 1);
    *event = e;
    return ncclSuccess;
}

void kl_event_ref(struct kl_event *event)
{
    kl_fetch_add_relaxed(&event->holders, 1);
}

void kl_event_destroy(struct kl_event *event)
{
    if (kl_fetch_sub_acq_rel(&event->holders, 1) != 1) return;
    pthread_mutex_lock(&registry.lock);
    event->next = registry.spare;
    registry.spare = event;
    pthread_mutex_unlock(&registry.lock);
}

static void store_with_time(struct kl_event *e, uint64_t number)
{
    pthread_mutex_lock(&registry.lock);
    if (kl_load_relaxed(&e->done) < number) {
        e->time = kl_now_ns();
        kl_store_release(&e->done, number); /* pairs with is_done */
    }
    pthread_mutex_unlock(&registry.lock);
}

/* Of records on several streams an older one may come later. */
static enum kl_progress store_done(struct kl_stream *stream, struct kl_work *work)
{
    struct kl_event *e = work->owner;
    uint64_t before = kl_load_relaxed(&e->done);

    (void)stream;
    if (!(kl_load_relaxed(&e->flags) & KOLO_EVENT_DISABLE_TIMING)) store_with_time(e, work->arg[0]);
    while (before < work->arg[0] && !kl_cas_acq_rel(&e->done, &before, work->arg[0])) continue;
    return KL_DONE;
}

/* If no work is before it, its time is now, not when a thread happens to run the stream. */
static void run_first(struct kl_event *event, struct kl_stream *stream, uint64_t ticket)
{
    if (!(kl_load_relaxed(&event->flags) & KOLO_EVENT_DISABLE_TIMING) && kl_stream_reached(stream, ticket))
        kl_stream_run(stream);
}

static ncclResult_t record_in_capture(struct kl_event *event, struct kl_stream *stream)
{
    struct kl_mark mark;

    KL_TRY(kl_capture_mark(stream, &mark));
    pthread_mutex_lock(&registry.lock);
    event->mark = mark;
    pthread_mutex_unlock(&registry.lock);
    return ncclSuccess;
}

uint64_t kl_event_queue(struct kl_event *event, struct kl_stream *stream)
{
    uint64_t number = kl_load_relaxed(&event->recorded) + 1;
    struct kl_work work = {.progress = store_done, .owner = event, .arg = {number}};
    uint64_t ticket = kl_stream_push(stream, &work);

    pthread_mutex_lock(&registry.lock);
    event->stream = stream;
    event->ticket = ticket + 1;
    event->mark.capture = 0;
    kl_store_relaxed(&event->recorded, number); /* only from here on do other threads ask for this record */
    pthread_mutex_unlock(&registry.lock);
    return ticket;
}

ncclResult_t kl_event_record(struct kl_event *event, struct kl_stream *stream)
{
    if (kl_capturing(stream)) return record_in_capture(event, stream);
    KL_TRY(kl_legacy_order(stream));
    run_first(event, stream, kl_event_queue(event, stream));
    return ncclSuccess;
}

/* The last record. Stream, ticket and mark belong together. */
struct record {
    struct kl_stream *stream;
    uint64_t ticket;
    struct kl_mark mark;
};

static struct record last_record(struct kl_event *event)
{
    pthread_mutex_lock(&registry.lock);
    struct record r = {.stream = event->stream, .ticket = event->ticket, .mark = event->mark};
    pthread_mutex_unlock(&registry.lock);
    return r;
}

static bool is_done(struct kl_event *event)
{
    return kl_load_acquire(&event->done) >= kl_load_relaxed(&event->recorded); /* pairs with store_done */
}

/* Work that the stream has passed is done; in a forked child, whose streams are empty, also work that was never run. */
ncclResult_t kl_event_query(struct kl_event *event)
{
    const struct record r = last_record(event);

    if (r.mark.capture) return kl_capture_refuse_mark(&r.mark, "koloEventQuery");
    if (!r.stream) return ncclSuccess;
    if (!is_done(event)) kl_stream_run(r.stream);
    return is_done(event) || kl_stream_reached(r.stream, r.ticket) ? kl_stream_failure(r.stream, r.ticket)
                                                                   : ncclInProgress;
}

ncclResult_t kl_event_synchronize(struct kl_event *event)
{
    const struct record r = last_record(event);

    if (r.mark.capture) return kl_capture_refuse_mark(&r.mark, "koloEventSynchronize");
    return r.stream ? kl_stream_synchronize(r.stream, r.ticket) : ncclSuccess;
}

ncclResult_t kl_event_order(struct kl_event *event, struct kl_stream *stream)
{
    const struct record r = last_record(event);

    if (r.mark.capture) return kl_capture_join(stream, &r.mark);
    if (!r.stream) return ncclSuccess;
    if (kl_capturing(stream)) return kl_capture_refuse_event(stream);
    KL_TRY(kl_legacy_order(stream));
    kl_stream_order_after(stream, r.stream, r.ticket);
    return ncclSuccess;
}

void kl_event_order_after(struct kl_event *event, struct kl_stream *stream)
{
    const struct record r = last_record(event);

    if (r.stream) kl_stream_order_after(stream, r.stream, r.ticket);
}

ncclResult_t kl_event_refuse_mark(struct kl_event *event, const char *function)
{
    const struct record r = last_record(event);

    return r.mark.capture ? kl_capture_refuse_mark(&r.mark, function) : ncclSuccess;
}

/* ---- time ---- */

/* False: the last record was skipped without having run. */
static bool read_time(struct kl_event *event, uint64_t *ns)
{
    pthread_mutex_lock(&registry.lock);
    bool ran = is_done(event);
    *ns = event->time;
    pthread_mutex_unlock(&registry.lock);
    return ran;
}

static ncclResult_t time_of(struct kl_event *event, const char *which, uint64_t *ns)
{
    const struct record r = last_record(event);

    if (kl_load_relaxed(&event->flags) & KOLO_EVENT_DISABLE_TIMING)
        return KL_REFUSE(koloReasonEventTime, "the %s event was made with KOLO_EVENT_DISABLE_TIMING: it has no time",
                         which);
    if (r.mark.capture) return kl_capture_refuse_mark(&r.mark, "koloEventElapsedTime");
    if (!r.stream) return KL_REFUSE(koloReasonEventTime, "the %s event was never recorded", which);
    if (!is_done(event)) kl_stream_run(r.stream);
    if (!is_done(event) && !kl_stream_reached(r.stream, r.ticket)) return ncclInProgress;
    if (read_time(event, ns)) return ncclSuccess;
    return KL_REFUSE(koloReasonEventTime, "the %s event has no time: it was recorded before this process was forked",
                     which);
}

ncclResult_t kl_event_elapsed(struct kl_event *start, struct kl_event *end, int64_t *ns)
{
    uint64_t begun, ended;
    ncclResult_t first = time_of(start, "first", &begun), second = time_of(end, "second", &ended);

    if (first && first != ncclInProgress) return first;
    if (second) return second;
    KL_TRY(first);
    *ns = (int64_t)(ended - begun);
    return ncclSuccess;
}
