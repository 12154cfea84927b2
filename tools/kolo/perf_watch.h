/* SPDX-License-Identifier: Apache-2.0 */
/**
 * perf_watch.h - detect stuck ranks, and name them and their operation.
 *
 * Every rank has a slot in memory shared with the watcher (the launcher, or a thread of the process). All ranks go
 * through the same steps in the same order; a slot counts the steps its rank has begun and ended.
 *
 *      ended <= begun <= ended + 1;   equal: between two steps, unequal: inside one
 *
 * Threads:      a slot has one writer, its rank; any number of readers.
 * Memory order: `begun` is stored with release after the step's description, and read with acquire before it. A reader
 *               that comes while the next step begins may mix the two: it only describes.
 */
#ifndef KOLO_TOOL_PERF_WATCH_H
#define KOLO_TOOL_PERF_WATCH_H

#include "base/atomic.h"
#include "include/nccl.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kl_watch_phase { KL_PHASE_JOIN, KL_PHASE_WARMUP, KL_PHASE_TIMING, KL_PHASE_CHECK, KL_PHASE_AGREE };

struct kl_watch_slot {
    alignas(KL_LINE) _Atomic uint64_t begun;
    _Atomic uint64_t ended;
    _Atomic uint64_t since_ns; /* when the step began */
    _Atomic uint64_t bytes;
    _Atomic int32_t phase, type, in_place;
};
_Static_assert(sizeof(struct kl_watch_slot) == KL_LINE, "shared between processes");

struct kl_watch_step {
    enum kl_watch_phase phase;
    uint64_t bytes;
    ncclDataType_t type;
    bool in_place;
};

void kl_watch_begin(struct kl_watch_slot *slot, const struct kl_watch_step *step);
void kl_watch_end(struct kl_watch_slot *slot);

/** "all_reduce of 1024 bytes of float, out-of-place": the step that the rank of this slot is in, or was in last. */
void kl_watch_describe(const struct kl_watch_slot *slot, const char *operation, char *text, size_t size);

/**
 * Is a rank of `slots[0 .. nranks)` in its step for more than `timeout_ms`? Then `text` names the step and the ranks that
 * have not finished it; ranks are numbered from `first_rank`.
 */
bool kl_watch_stuck(const struct kl_watch_slot *slots, int nranks, int first_rank, uint64_t now_ns, uint64_t timeout_ms,
                    const char *operation, char *text, size_t size);

#endif
