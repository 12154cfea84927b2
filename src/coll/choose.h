/* SPDX-License-Identifier: Apache-2.0 */
/**
 * choose.h - algorithm, protocol and channels of a collective: what the plan's tuner says, remembered.
 *
 * The tuner weighs every candidate, which takes longer than a small operation. Programs repeat themselves, so the last choices
 * are kept, by what they depend on.
 *
 * Threads: one at a time: that of the calls.
 */
#ifndef KL_COLL_CHOOSE_H
#define KL_COLL_CHOOSE_H

#include "coll/algorithm.h"
#include "coll/task.h"
#include "graph/tuning.h"

enum { KL_CHOICES = 64 };

struct kl_chooser {
    const struct kl_tuning *tuning; /* outlives the chooser */
    enum kl_reach memory;           /* of the ranks */
    bool ordered;                   /* what depends on the order of a reduction is done in that of the ranks */
    struct kl_remembered {
        size_t count;
        uint32_t what; /* function, type and operation; 0: nothing is remembered */
        struct kl_choice choice;
    } last[KL_CHOICES];
};

/**
 * Fill in task->choice. ncclInvalidUsage when NCCL_ALGO and NCCL_PROTO leave nothing for the
 * function; the sentence says what there is.
 */
ncclResult_t kl_choose(struct kl_chooser *chooser, struct kl_task *task, size_t elem_bytes);

/** Is an all-to-all with parts of so many bytes one operation? Else it is messages from the start. All ranks answer alike. */
bool kl_chooser_takes_all_to_all(const struct kl_chooser *chooser, size_t part);

#endif
