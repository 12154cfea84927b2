/* SPDX-License-Identifier: Apache-2.0 */
/**
 * event.h - a mark in a stream that can be asked for, and waited on.
 *
 * Record k of an event queues work that stores k; the event is done when the last record's number is stored. Events are
 * reused, never freed, so that work queued before a destroy may still store into them.
 *
 * Threads: any; one thread at a time records a given event.
 */
#ifndef KL_DEVICE_HOST_EVENT_H
#define KL_DEVICE_HOST_EVENT_H

#include "device/host/stream.h"

struct kl_event {
    _Atomic uint64_t recorded; /* number of the last record */
    _Atomic uint64_t done;     /* highest number stored */
    _Atomic(struct kl_stream *) stream;
    _Atomic uint64_t ticket; /* of the last record in its stream */
    struct kl_event *next;   /* in the list of free events; guarded by its lock */
};

ncclResult_t kl_event_create(struct kl_event **event);
void kl_event_destroy(struct kl_event *event);
void kl_event_record(struct kl_event *event, struct kl_stream *stream);

/** The stream of its last record; NULL if there is none. */
static inline struct kl_stream *kl_event_stream(struct kl_event *event)
{
    return kl_load_relaxed(&event->stream);
}

/** Whether it is done; advances its stream if not. */
bool kl_event_query(struct kl_event *event);
void kl_event_wait(struct kl_event *event);

#endif
