/* SPDX-License-Identifier: Apache-2.0 */
/**
 * compare.h - NCCL_CHECK_MODE: the calls of all ranks are compared before any data of them move.
 *
 * In step k a rank sends its call to the rank 2^k above and receives the call of the rank 2^k below. A rank that
 * receives another call than its own goes no further; a rank that reaches the end knows that all made the same call.
 * The exchange goes through the bootstrap: log2 n messages, tens of microseconds each. FIRST_USE makes it once for
 * every call that was not compared recently, whatever its number: a loop pays in its first iteration.
 *
 * Calls whose data pass through a network that reduces, which carries no signatures, are compared as with FIRST_USE in any case.
 *
 * A rank that has compared such a call before does not wait for a rank that makes another call; it receives signatures
 * that differ (coll/schedule/signature.h) and rejects the data.
 *
 * Threads: the runner's.
 */
#ifndef KL_COMM_QUEUE_COMPARE_H
#define KL_COMM_QUEUE_COMPARE_H

#include "device/host/stream.h"
#include "include/nccl.h"

#include <stdbool.h>
#include <stdint.h>

enum kl_check_mode { KL_CHECK_DEFAULT, KL_CHECK_DEBUG_LOCAL, KL_CHECK_DEBUG_GLOBAL, KL_CHECK_FIRST_USE };

enum { KL_COMPARED = 64 }; /* remembered calls */

struct kl_compare {
    bool on;         /* are calls to be compared? */
    bool all, each;  /* all calls, not only those without signatures; and each time, not only the first */
    uint64_t number; /* of the last collective that was compared */
    int step;
    bool posted;                    /* in this step */
    int awaited;                    /* rank; -1: none */
    uint64_t compared[KL_COMPARED]; /* signatures without number; 0: none */
};

struct ncclComm;
struct kl_task;

/** `collnet`: there may be calls whose data carry no signatures. */
void kl_compare_init(struct kl_compare *compare, enum kl_check_mode mode, bool collnet);

/** Compare a collective, if the mode demands it; repeat until DONE. *rc is set on failure, with DONE. */
enum kl_progress kl_compare_progress(struct ncclComm *comm, const struct kl_task *task, ncclResult_t *rc);

#endif
