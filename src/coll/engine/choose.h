/* SPDX-License-Identifier: Apache-2.0 */
/**
 * choose.h - algorithm, protocol and channels of a collective: what the plan's tuner says, remembered.
 *
 * The tuner weighs every candidate, which takes longer than a small operation. Programs repeat themselves, so the last choices
 * are kept, by what they depend on.
 *
 * Threads: one at a time: that of the calls.
 */
#ifndef KL_COLL_SELECT_CHOOSE_H
#define KL_COLL_SELECT_CHOOSE_H

#include "base/error.h"
#include "coll/pipeline/algorithm.h"
#include "coll/schedule/limits.h"
#include "coll/engine/task.h"
#include "graph/tuner.h"
#include "net/collnet.h"

enum { KL_CHOICES = 64 };

struct kl_chooser {
    const struct kl_tuning *tuning; /* outlives the chooser */
    enum kl_peer_connect memory;    /* of the ranks */
    const struct kl_limits *limits; /* of the call under way; NULL: none */
    struct kl_tuner *tuner;         /* NULL: the model decides alone */
    /* the network that reduces between nodes; NULL: none, or one that knows all operations */
    const struct kl_collnet *collnet;
    bool by_rows;   /* only algorithms that GPUs can follow (kl_algorithm_has_rows), if the settings leave one */
    uint32_t ll128; /* then, bits: functions for which they may use LL128 */
    bool ordered;   /* reductions whose result depends on the order are done in the ranks' order */
    struct kl_remembered {
        size_t count;
        uint32_t key; /* function, type and operation; 0: nothing is remembered */
        struct kl_choice choice;
    } last[KL_CHOICES];
};

/** What it depends on; never 0. */
static inline uint32_t kl_choice_key(const struct kl_task *t)
{
    return 1u << 31 | (uint32_t)(t->redop != NULL) << 30 | (uint32_t)t->func << 16 | (uint32_t)t->type << 8 |
           (uint32_t)t->op;
}

/** Ask the tuner, and remember what it says in `place`. Errors as kl_choose. */
ncclResult_t kl_choose_uncached(const struct kl_chooser *chooser, const struct kl_task *task, size_t elem_bytes,
                                struct kl_remembered *place);

/** Within chooser->limits; not remembered. ncclInvalidUsage: they leave no algorithm, and are forced. */
ncclResult_t kl_choose_within(const struct kl_chooser *chooser, struct kl_task *task, size_t elem_bytes);

/**
 * Fill in task->choice. ncclInvalidUsage when NCCL_ALGO and NCCL_PROTO leave nothing for the
 * function; the sentence says what there is.
 */
static inline ncclResult_t kl_choose(struct kl_chooser *chooser, struct kl_task *task, size_t elem_bytes)
{
    const uint32_t key = kl_choice_key(task);

    if (chooser->limits) return kl_choose_within(chooser, task, elem_bytes);
    struct kl_remembered *r = &chooser->last[((task->count ^ key) * 0x9e3779b97f4a7c15u >> 40) % KL_CHOICES];

    if (r->key != key || r->count != task->count) KL_TRY(kl_choose_uncached(chooser, task, elem_bytes, r));
    task->choice = r->choice;
    return ncclSuccess;
}

/** Is an all-to-all with parts of so many bytes one operation? Else it is messages from the start. All ranks answer alike. */
bool kl_chooser_takes_all_to_all(const struct kl_chooser *chooser, size_t part);

#endif
