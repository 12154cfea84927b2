/* SPDX-License-Identifier: Apache-2.0 */
/**
 * bell.h - rounds of which the engine learns when their data are on the stage: of graphs, which rings at each replay, and
 * of calls beside them, so that all ranks run their rounds in the order in which streams come to them.
 *
 *     a stream    copies to the stage, rings        waits for the round's word, or its number; copies the results
 *     the engine          takes the bell, runs its tasks, tells
 *
 * Ownership: bells are the gate's, with the tasks and operators that they refer to. Those of calls are used again once
 *            they were told; those of graphs stay as long as the gate.
 * Threads:   kl_gpu_bell_ring: any thread of CUDA's; kl_gpu_bells_take and kl_gpu_bell_tell: the engine's;
 *            kl_gpu_bells_make: the rank's.
 */
#ifndef KL_COLL_GPU_BELL_H
#define KL_COLL_GPU_BELL_H

#include "coll/gpu/round.h"
#include "coll/gpu/words.h"

struct kl_gpu_gate;

struct kl_gpu_bell {
    struct kl_gpu_bell *next; /* among those that have rung */
    struct kl_gpu_gate *gate;
    struct kl_gpu_bells *set;
    _Atomic uint32_t *word; /* of a graph; NULL: of a call */
    uint64_t word_at;
    uint64_t number;            /* of a call's round */
    const struct kl_task *task; /* the engine's */
    size_t ntasks;
    const void *stream; /* the program's */
};

/** The bells of a rank. */
struct kl_gpu_belfry {
    _Atomic(struct kl_gpu_bell *) rung; /* last one first */
    struct kl_gpu_bell *next;           /* the engine's: those that it has taken, first one first */
    struct kl_gpu_bells *calls, *graphs;
    struct kl_gpu_words words;
    _Atomic bool released;
};

/** Make bells for the rounds of a call, which are placed and have their plans. Its context is current. */
ncclResult_t kl_gpu_bells_make(struct kl_gpu_gate *gate, struct kl_gpu_rounds *rounds, const struct kl_gpu_call *call);

/** A host function of CUDA. */
void kl_gpu_bell_ring(void *bell);

/** The next one that has rung; NULL: none. */
struct kl_gpu_bell *kl_gpu_bells_take(struct kl_gpu_belfry *b);

/** Its results are on the stage. */
void kl_gpu_bell_tell(struct kl_gpu_bell *bell);

/** No stream waits for a graph's bell any longer, nor for one that rings later. Any thread. */
void kl_gpu_bells_release(struct kl_gpu_belfry *b);

void kl_gpu_bells_free(struct kl_gpu_belfry *b, const struct kl_cuda_driver *driver);

#endif
