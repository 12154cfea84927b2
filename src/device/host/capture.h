/* SPDX-License-Identifier: Apache-2.0 */
/**
 * capture.h - streams whose work is not run but becomes a graph.
 *
 * A capture begins on one stream and ends there. A stream that waits for an event recorded in it joins, and must have been waited
 * for, by the same means, before the end. While a stream captures, KL_STREAM_CAPTURING is among its flags: whoever gives it work
 * looks there, and comes here. What is not possible (koloReason_t) invalidates the capture: it can only be ended.
 *
 * Order:    each lane knows, for each other one, the last node that it runs after. A wait takes over what the event's lane knew
 *           when it was recorded; at the end lane 0 has to know all.
 * Threads:  any; one lock for all captures of the process, as none of this is on the way of operations.
 * Fork:     a child has its parent's captures no more: its streams do not capture.
 */
#ifndef KL_DEVICE_HOST_CAPTURE_H
#define KL_DEVICE_HOST_CAPTURE_H

#include "device/host/recording.h"
#include "device/host/stream.h"

/** An event recorded in a capture; `capture` 0: it is none. */
struct kl_mark {
    uint64_t capture;
    uint32_t number;
};

static inline bool kl_capturing(struct kl_stream *stream)
{
    return kl_load_relaxed(&stream->flags) & KL_STREAM_CAPTURING;
}

/* ---- begin and end: kolo.h says what they do ---- */

ncclResult_t kl_capture_begin(struct kl_stream *stream, koloCaptureMode_t mode);
ncclResult_t kl_capture_end(struct kl_stream *stream, struct kl_recording **graph);
koloCaptureStatus_t kl_capture_status(struct kl_stream *stream, uint64_t *id);
ncclResult_t kl_capture_keep(struct kl_stream *stream, void (*release)(void *object), void *object);

/* ---- of streams that capture ---- */

/** A piece of work, copied. */
ncclResult_t kl_capture_work(struct kl_stream *stream, const struct kl_work *work);

/**
 * A node that runs on all of `streams`, which capture; it is launched on the last one. `lanes` gets their lanes. On failure
 * `data` stays the caller's. Not all of one capture: ncclInvalidUsage.
 */
ncclResult_t kl_capture_other(struct kl_stream *const *streams, size_t n, const struct kl_recorded_kind *kind,
                              void *data, uint32_t *lanes);

/** Do both capture into the same graph, or both not? */
bool kl_capture_same(struct kl_stream *a, struct kl_stream *b);

/** Can it still take something? ncclInvalidUsage: its capture was invalidated, or is none. */
ncclResult_t kl_capture_check(struct kl_stream *stream);

ncclResult_t kl_capture_mark(struct kl_stream *stream, struct kl_mark *mark);

/** The stream, which may capture or not, runs on after the mark. */
ncclResult_t kl_capture_join(struct kl_stream *stream, const struct kl_mark *mark);

/** What it was given was not taken as a whole. */
void kl_capture_invalidate(struct kl_stream *stream);

/* ---- refusals: none of them succeeds ---- */

/** `function` waits for a stream that captures, or asks what it has done. */
ncclResult_t kl_capture_refuse_wait(struct kl_stream *stream, const char *function);

/** `function` gives a stream that captures what no graph can have. */
ncclResult_t kl_capture_refuse_unsupported(struct kl_stream *stream, const char *function);

/** A stream that captures shall wait for an event that is in no capture. */
ncclResult_t kl_capture_refuse_event(struct kl_stream *stream);

/** `function` waits for an event that is a mark. */
ncclResult_t kl_capture_refuse_mark(const struct kl_mark *mark, const char *function);

/** The default stream would have to wait for a stream that captures. */
ncclResult_t kl_capture_refuse_implicit(struct kl_stream *stream);

/* ---- other calls ---- */

/** The stream goes, and its capture with it, or, where it only joined, is invalidated. */
void kl_capture_leave(struct kl_stream *stream);

void kl_capture_exchange_mode(koloCaptureMode_t *mode);
ncclResult_t kl_capture_unsafe(void);

#endif
