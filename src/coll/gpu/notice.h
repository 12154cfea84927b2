/* SPDX-License-Identifier: Apache-2.0 */
/**
 * notice.h - rounds of which the engine learns when their data are on the stage: of graphs, at each replay, and
 * of calls beside them, so that all ranks run their rounds in the order in which streams come to them.
 *
 *     a stream    copies to the stage, gives notice        waits for the round's word, or its number; copies the results
 *     the engine          takes the notice, runs its tasks, tells
 *
 * Ownership: notices are the gate's, with the tasks and operators that they refer to. Those of calls are used again once
 *            they were answered; those of graphs stay as long as the gate.
 * Threads:   kl_gpu_notice_give: any thread of CUDA's; kl_gpu_notices_take and kl_gpu_notice_answer: the engine's;
 *            kl_gpu_notices_make: the rank's.
 */
#ifndef KL_COLL_GPU_NOTICE_H
#define KL_COLL_GPU_NOTICE_H

#include "coll/gpu/round.h"
#include "coll/gpu/words.h"

struct kl_gpu_gate;

struct kl_gpu_notice {
    struct kl_gpu_notice *next; /* among those that were given */
    struct kl_gpu_gate *gate;
    struct kl_gpu_notice_set *set;
    _Atomic uint32_t *word; /* of a graph; NULL: of a call */
    uint64_t word_at;
    uint64_t number;            /* of a call's round */
    const struct kl_task *task; /* the engine's */
    size_t ntasks;
    const void *stream; /* the program's */
};

/** The notices of a rank. */
struct kl_gpu_notices {
    _Atomic(struct kl_gpu_notice *) given; /* last one first */
    struct kl_gpu_notice *next;            /* the engine's: those that it has taken, first one first */
    struct kl_gpu_notice_set *calls, *graphs;
    struct kl_gpu_words words;
    _Atomic bool released;
};

/** Make notices for the rounds of a call, which are placed and have their plans. Its context is current. */
ncclResult_t kl_gpu_notices_make(struct kl_gpu_gate *gate, struct kl_gpu_rounds *rounds,
                                 const struct kl_gpu_call *call);

/** A host function of CUDA. */
void kl_gpu_notice_give(void *notice);

/** The next one that has given; NULL: none. */
struct kl_gpu_notice *kl_gpu_notices_take(struct kl_gpu_notices *b);

/** Its results are on the stage: the number of a call's round, for kl_gpu_gate_tell; 0: a graph's, whose stream goes on. */
uint64_t kl_gpu_notice_answer(struct kl_gpu_notice *notice);

/** No stream waits for a graph's notice any longer, nor for one that is given later. Any thread. */
void kl_gpu_notices_release(struct kl_gpu_notices *b);

void kl_gpu_notices_free(struct kl_gpu_notices *b, const struct kl_cuda_driver *driver);

#endif
