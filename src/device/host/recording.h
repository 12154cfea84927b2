/* SPDX-License-Identifier: Apache-2.0 */
/**
 * recording.h - work captured from streams, to be run again: nodes in the order of capture, on lanes.
 *
 * A lane stands for a stream of the capture, 0 for the one where it began. A node runs after the one before it on its
 * lane, and a wait also after a node of another lane; so a replay (replay.h) queues the nodes in order, on one stream
 * per lane, as the captured program did, but without its checks and choices. A graph is constant once the capture has
 * ended. It is reference-counted: by the program, its replays, and their queued work.
 *
 * Threads: building by one at a time, under the lock of captures; references by any.
 */
#ifndef KL_DEVICE_HOST_RECORDING_H
#define KL_DEVICE_HOST_RECORDING_H

#include "base/atomic.h"
#include "device/host/work.h"
#include "device/host/workers.h"
#include "include/nccl.h"

#include <pthread.h>
#include <stdbool.h>

/** Functions of a node that is more than a piece of work. */
struct kl_recorded_kind {
    /** Check the node; called for all nodes before any is launched. */
    ncclResult_t (*check)(void *node);
    /** Queue it; `lanes` are the streams. Under the graph's lock. */
    ncclResult_t (*launch)(void *node, struct kl_stream *const *lanes);
    /** May one replace the other in a replay? Both are of this kind. */
    bool (*alike)(const void *node, const void *other);
    void (*free)(void *node);
};

enum kl_recorded_type { KL_RECORDED_WORK, KL_RECORDED_WAIT, KL_RECORDED_OTHER };

struct kl_recorded {
    enum kl_recorded_type type;
    uint32_t lane;
    union {
        struct kl_work work;
        uint32_t after; /* index of a node */
        struct {
            const struct kl_recorded_kind *kind;
            void *data; /* owned by the graph */
        } other;
    };
};

/** An object that is kept until the graph is freed. */
struct kl_kept;

struct kl_recording {
    pthread_mutex_t lock; /* for a launch: nodes have working memory for one at a time */
    _Atomic uint32_t holders;
    uint32_t n, room, lanes;
    struct kl_recorded *node;
    struct kl_kept *kept;
    struct kl_worker_errand freeing;
};

ncclResult_t kl_recording_create(struct kl_recording **graph);

/** Append a copy of `node`. On failure `other.data` stays the caller's. */
ncclResult_t kl_recording_add(struct kl_recording *graph, const struct kl_recorded *node);

/** `release(object)` is called when the graph is freed. */
ncclResult_t kl_recording_keep(struct kl_recording *graph, void (*release)(void *object), void *object);

struct kl_recording *kl_recording_hold(struct kl_recording *graph);

/** Drop a reference; the last one frees it. NULL is fine. */
void kl_recording_drop(struct kl_recording *graph);

/** The same where functions of the program must not run, as in a progress function: freed by a worker. */
void kl_recording_drop_apart(struct kl_recording *graph);

#endif
