/* SPDX-License-Identifier: Apache-2.0 */
/**
 * capture.h - streams whose work is recorded as a graph instead of being run.
 *
 * A capture begins on one stream and ends there. A stream that waits for an event recorded in it joins, and must have
 * been waited for, by the same means, before the end. A capturing stream has the flag KL_STREAM_CAPTURING: code that
 * queues work checks it, and calls the functions here. An operation that is not possible (koloReason_t) invalidates the
 * capture: then it can only be ended.
 *
 * Order:    each lane knows, for each other one, the last node that it runs after. A wait takes over the knowledge of
 *           the event's lane at the time of the record; at the end lane 0 has to know all.
 * Threads:  any; one lock for all captures of the process, as none of this is on the path of operations.
 * Fork:     a child has none of its parent's captures: its streams do not capture.
 */
#ifndef KL_DEVICE_HOST_CAPTURE_H
#define KL_DEVICE_HOST_CAPTURE_H

#include "device/host/recording.h"
#include "device/host/stream.h"

/** An event recorded in a capture; `capture` 0: none. */
struct kl_mark {
    uint64_t capture;
    uint32_t number;
};

static inline bool kl_capturing(struct kl_stream *stream)
{
    return kl_load_relaxed(&stream->flags) & KL_STREAM_CAPTURING;
}

/* ---- begin and end: see kolo.h ---- */

ncclResult_t kl_capture_begin(struct kl_stream *stream, koloCaptureMode_t mode);
ncclResult_t kl_capture_end(struct kl_stream *stream, struct kl_recording **graph);
koloCaptureStatus_t kl_capture_status(struct kl_stream *stream, uint64_t *id);
ncclResult_t kl_capture_keep(struct kl_stream *stream, void (*release)(void *object), void *object);

/* ---- capturing streams ---- */

/** Record a copy of a piece of work. */
ncclResult_t kl_capture_work(struct kl_stream *stream, const struct kl_work *work);

/**
 * Record a node that runs on all of `streams`, which capture; it is launched on the last one. `lanes` gets their lanes.
 * On failure `data` stays the caller's. Not all of one capture: ncclInvalidUsage.
 */
ncclResult_t kl_capture_other(struct kl_stream *const *streams, size_t n, const struct kl_recorded_kind *kind,
                              void *data, uint32_t *lanes);

/** Do both capture into the same graph, or neither at all? */
bool kl_capture_same(struct kl_stream *a, struct kl_stream *b);

/** Can the stream record more? ncclInvalidUsage: its capture was invalidated, or has ended. */
ncclResult_t kl_capture_check(struct kl_stream *stream);

ncclResult_t kl_capture_mark(struct kl_stream *stream, struct kl_mark *mark);

/** Order later work of the stream, which may capture or not, after the mark. */
ncclResult_t kl_capture_join(struct kl_stream *stream, const struct kl_mark *mark);

/** Part of an operation could not be recorded: invalidate the capture. */
void kl_capture_invalidate(struct kl_stream *stream);

/* ---- refusals: none returns ncclSuccess ---- */

/** `function` waits for a capturing stream, or queries it. */
ncclResult_t kl_capture_refuse_wait(struct kl_stream *stream, const char *function);

/** `function` gives a capturing stream work that a graph cannot contain. */
ncclResult_t kl_capture_refuse_unsupported(struct kl_stream *stream, const char *function);

/** A capturing stream was told to wait for an event that is in no capture. */
ncclResult_t kl_capture_refuse_event(struct kl_stream *stream);

/** `function` waits for an event that is a mark. */
ncclResult_t kl_capture_refuse_mark(const struct kl_mark *mark, const char *function);

/** The default stream would have to wait for a capturing stream. */
ncclResult_t kl_capture_refuse_implicit(struct kl_stream *stream);

/* ---- other calls ---- */

/** The stream is destroyed: its capture is, too, or, if the stream only joined, invalidated. */
void kl_capture_leave(struct kl_stream *stream);

void kl_capture_exchange_mode(koloCaptureMode_t *mode);
ncclResult_t kl_capture_unsafe(void);

#endif
