/* SPDX-License-Identifier: Apache-2.0 */
/**
 * recording.h - what was captured from streams, to be run again: nodes in the order in which they were captured, on lanes.
 *
 * A lane stands for a stream of the capture, 0 for the one where it began. A node runs after the one before it on its lane, and a
 * wait also after a node of another lane; so a graph is replayed by queueing its nodes, in their order, on one stream for each
 * lane (replay.h), as the program did that was captured, without what that checked and chose. Nothing of a graph changes once
 * the capture has ended. It lives as long as somebody holds it: the program, its replays, what of them is queued.
 *
 * Threads: building by one at a time, under the lock of captures; holding and dropping by any.
 */
#ifndef KL_DEVICE_HOST_RECORDING_H
#define KL_DEVICE_HOST_RECORDING_H

#include "base/atomic.h"
#include "device/host/work.h"
#include "device/host/workers.h"
#include "include/nccl.h"

#include <pthread.h>
#include <stdbool.h>

/** A node that is more than a piece of work, made by who knows what it is. */
struct kl_recorded_kind {
    /** What is wrong with it is found for all nodes before any is launched. */
    ncclResult_t (*check)(void *node);
    /** Queue it; `lanes` are the streams. Under the graph's lock. */
    ncclResult_t (*launch)(void *node, struct kl_stream *const *lanes);
    /** May one take the place of the other in a replay? Both are of this kind. */
    bool (*alike)(const void *node, const void *other);
    void (*free)(void *node);
};

enum kl_recorded_type { KL_RECORDED_WORK, KL_RECORDED_WAIT, KL_RECORDED_OTHER };

struct kl_recorded {
    enum kl_recorded_type type;
    uint32_t lane;
    union {
        struct kl_work work;
        uint32_t after; /* the number of a node */
        struct {
            const struct kl_recorded_kind *kind;
            void *data; /* the graph's */
        } other;
    };
};

/** An object that the program keeps until the graph is gone. */
struct kl_kept;

struct kl_recording {
    pthread_mutex_t lock; /* for a launch: nodes have room for the streams of one */
    _Atomic uint32_t holders;
    uint32_t n, room, lanes;
    struct kl_recorded *node;
    struct kl_kept *kept;
    struct kl_worker_errand freeing;
};

ncclResult_t kl_recording_create(struct kl_recording **graph);

/** A copy of `node` is the last one. On failure what `other.data` is stays the caller's. */
ncclResult_t kl_recording_add(struct kl_recording *graph, const struct kl_recorded *node);

/** `release(object)` is called when the graph is gone. */
ncclResult_t kl_recording_keep(struct kl_recording *graph, void (*release)(void *object), void *object);

struct kl_recording *kl_recording_hold(struct kl_recording *graph);

/** The last one frees it. NULL is fine. */
void kl_recording_drop(struct kl_recording *graph);

/** The same where functions of the program cannot run, as in a progress function: the last one has a worker free it. */
void kl_recording_drop_apart(struct kl_recording *graph);

#endif
