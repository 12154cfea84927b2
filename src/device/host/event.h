/* SPDX-License-Identifier: Apache-2.0 */
/**
 * event.h - a point in a stream: can be queried, waited for by threads and streams, and has a time.
 *
 * Record k of an event queues work that stores k, and before it the time; the event is done when the last record's
 * number is stored. Events are reused, never freed, so that work queued before a destroy may still store into them.
 *
 * Memory order: done is stored with release after the work before it, loaded with acquire: the results are visible.
 * Threads: any; one thread at a time records a given event. Queries and waits at the same time refer to that record or
 *          the previous one.
 */
#ifndef KL_DEVICE_HOST_EVENT_H
#define KL_DEVICE_HOST_EVENT_H

#include "device/host/capture.h"
#include "device/host/stream.h"

struct kl_event {
    _Atomic uint64_t recorded; /* number of the last record */
    _Atomic uint64_t done;     /* highest number stored */
    _Atomic uint32_t holders;  /* references: the program, and graphs */
    _Atomic uint32_t flags;    /* KOLO_EVENT_*; work of the event's previous use may still read them */
    /* protected by the lock of events: */
    uint64_t time;            /* of the record `done`, ns of base/clock.h */
    struct kl_stream *stream; /* of the last record, NULL if there is none */
    uint64_t ticket;          /* of the last record in its stream */
    struct kl_mark mark;      /* the last record, if that was in a capture */
    struct kl_event *next;    /* in the list of free events */
};

ncclResult_t kl_event_create(unsigned flags, struct kl_event **event);

/** Drop a reference; the last one frees the event. */
void kl_event_destroy(struct kl_event *event);
void kl_event_hold(struct kl_event *event);
ncclResult_t kl_event_record(struct kl_event *event, struct kl_stream *stream);

/**
 * The same, for a stream that does not capture and is in order with the default one. Returns the ticket of the record.
 */
uint64_t kl_event_queue(struct kl_event *event, struct kl_stream *stream);

/** Work queued on `stream` from now on runs after the last record so far; no effect if there is none. */
ncclResult_t kl_event_order(struct kl_event *event, struct kl_stream *stream);

/** The same, for a stream as in kl_event_queue, and an event that is not a mark. */
void kl_event_follow(struct kl_event *event, struct kl_stream *stream);

/** Fail for an event whose last record is a mark in a capture. */
ncclResult_t kl_event_refuse_mark(struct kl_event *event, const char *function);

/**
 * Time from the record of `start` to the record of `end`, ns. Not recorded, or without time: ncclInvalidUsage; not
 * done: ncclInProgress.
 */
ncclResult_t kl_event_elapsed(struct kl_event *start, struct kl_event *end, int64_t *ns);

/**
 * ncclInProgress, or the result of the work before it: ncclSuccess or its failure (stream_failures.h). Advances the
 * stream. An event that was never recorded is done.
 */
ncclResult_t kl_event_query(struct kl_event *event);

/** Run its stream until it is done; then as kl_event_query. */
ncclResult_t kl_event_synchronize(struct kl_event *event);

#endif
