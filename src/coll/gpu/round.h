/* SPDX-License-Identifier: Apache-2.0 */
/**
 * round.h - a call of a rank on GPUs of several hosts, cut into rounds: the pieces that pass through host memory.
 *
 * A collective is cut so that no buffer of a round is larger than `limit` bytes, alike on all ranks; all messages of a call
 * are one round. Two rounds of a collective are under way at a time, so a stage has two slots for it. Messages of which
 * op->by_nic is set have no place on the stage: the engine gets the program's addresses.
 *
 * Units:    elements and bytes; places on the stage are offsets until kl_gpu_rounds_place.
 * Ownership: a table's memory grows, and is freed by kl_gpu_rounds_free. Tasks refer to the stage and to the call's own
 *           operators.
 * Threads:  the rank's.
 */
#ifndef KL_COLL_GPU_ROUND_H
#define KL_COLL_GPU_ROUND_H

#include "coll/gpu/buffers.h"
#include "coll/gpu/team.h"

/** An operation's part of a round: the task is the engine's, on the stage. */
struct kl_gpu_travel {
    struct kl_task task;
    const struct kl_gpu_op *op;   /* the program's */
    size_t at[KL_GPU_BUFFERS];    /* on the stage */
    size_t bytes[KL_GPU_BUFFERS]; /* to copy there, or back, of each part; 0: nothing */
};

struct kl_gpu_notice;

struct kl_gpu_round {
    size_t travel, ntravels;      /* in the table */
    struct kl_gpu_notice *notice; /* notice.h; NULL: the engine expects the round already */
    size_t first;                 /* of a collective: the first element of each part */
    uint64_t number;              /* among the rank's rounds, from 1 on */
    uint32_t index;               /* among the rounds of its collective */
    bool messages;
    bool by_nic; /* some of them: the program's memory is in use until the engine has ended them */
    bool last_of_call;
};

/** The rounds of a call. */
struct kl_gpu_rounds {
    struct kl_gpu_travel *travel;
    struct kl_gpu_round *round;
    size_t ntravels, nrounds, travel_room, round_room;
    size_t ncollectives; /* rounds of collectives, which come first */
    size_t stage_bytes;
};

/** Cut a call of a rank among `nranks`, which may have no operations. The tasks have no plan yet, but where the call limits it. */
ncclResult_t kl_gpu_rounds_cut(struct kl_gpu_rounds *rounds, const struct kl_gpu_call *call, int nranks, size_t limit);

/** The stage is here: set the tasks' addresses. */
void kl_gpu_rounds_place(struct kl_gpu_rounds *rounds, char *stage);

void kl_gpu_rounds_free(struct kl_gpu_rounds *rounds);

#endif
