/* SPDX-License-Identifier: Apache-2.0 */
/** work.h - a piece of resumable work, as streams queue and run it (stream.h). */
#ifndef KL_DEVICE_HOST_WORK_H
#define KL_DEVICE_HOST_WORK_H

#include <stdint.h>

enum kl_progress { KL_STALLED, KL_MOVED, KL_DONE };

struct kl_stream;

/** One piece of work; copied into the queue. */
struct kl_work {
    /**
     * Advance the work as far as possible. Never blocks. A failure is recorded by kl_stream_fail, and then the work is
     * DONE.
     */
    enum kl_progress (*progress)(struct kl_stream *stream, struct kl_work *work);
    void *owner;        /* to which failures belong, until kl_streams_end_owner */
    const void *clique; /* consecutive works of one clique may need each other to finish; NULL: none */
    uint64_t arg[3];
};

#endif
