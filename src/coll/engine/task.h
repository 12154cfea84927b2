/* SPDX-License-Identifier: Apache-2.0 */
/** task.h - one operation of one rank: the call, and the plan chosen for it. */
#ifndef KL_COLL_SELECT_TASK_H
#define KL_COLL_SELECT_TASK_H

#include "coll/schedule/partition.h"
#include "coll/schedule/func.h"
#include "device/host/redop.h"
#include "include/nccl.h"

/** The plan of a collective; the same on every rank. */
struct kl_choice {
    uint8_t algorithm;    /* row of kl_algorithms */
    uint8_t proto;        /* enum kl_proto */
    bool peer_direct : 1; /* shown as Mapped: tried before it */
    bool messages : 1;    /* for an all-to-all: it runs as messages, not by the algorithm */
    bool by_tuner : 1;    /* a tuner (graph/tuner.h) has chosen algorithm and protocol, not the model */
    bool of_gpu : 1; /* of a message, not of a collective: its data are in memory of a GPU, and the NIC moves them */
    float time_us;   /* the tuning model's expectation */
    struct kl_partition partition;
};

/** The arguments of a call. */
struct kl_op_args {
    int func; /* enum kl_func, KL_FUNC_SEND, KL_FUNC_RECV */
    ncclDataType_t type;
    ncclRedOp_t op;
    int peer; /* root, or the other end of a message */
    const void *send;
    void *recv;
    size_t count;
};

struct kl_task {
    uint8_t func;    /* enum kl_func, KL_FUNC_SEND, KL_FUNC_RECV */
    uint8_t op_code; /* code of an operator that is not built-in: the same on all ranks (signature.h) */
    uint16_t limits; /* kl_limits_hash; 0: the call sets none */
    ncclDataType_t type;
    ncclRedOp_t op;               /* built-in; ncclAvg stands for any other */
    int peer;                     /* root, or the other end of a message */
    const struct kl_redop *redop; /* NULL: the one of `op` */
    const void *scalar;           /* factor of contributions, read when the operation begins; NULL: see redop */
    const void *send;
    void *recv;
    size_t count, bytes;        /* count: the user's; bytes: of the larger buffer, once checked */
    uint64_t timeout_ns;        /* limit without progress; 0: none */
    uint64_t number, signature; /* of a collective: its number in the communicator, from 1 on (signature.h) */

    struct kl_choice choice; /* of a collective */
};
_Static_assert(sizeof(struct kl_task) == 128, "the ring of a communicator has one in two lines of 64 bytes");

/** A task with these arguments: no plan yet, and not recorded. Field by field: clearing all of it first takes longer
 * than the rest. */
static inline void kl_task_init(struct kl_task *t, const struct kl_op_args *args)
{
    t->func = (uint8_t)args->func;
    t->type = args->type;
    t->op = args->op;
    t->redop = NULL;
    t->op_code = 0;
    t->limits = 0;
    t->scalar = NULL;
    t->peer = args->peer;
    t->send = args->send;
    t->recv = args->recv;
    t->count = args->count;
    t->timeout_ns = t->number = t->signature = 0;
    t->choice = (struct kl_choice){0};
}

/** Does `rank` contribute its send buffer? Else the buffer is not read. */
static inline bool kl_task_reads(const struct kl_task *t, int rank)
{
    return t->func != KL_FUNC_RECV && (t->func != KL_FUNC_BROADCAST || t->peer == rank);
}

/** Does it get a result in its receive buffer? */
static inline bool kl_task_writes(const struct kl_task *t, int rank)
{
    return t->func != KL_FUNC_SEND && (t->func != KL_FUNC_REDUCE || t->peer == rank);
}

/** The operator's code, the same on all ranks (kl_call_of). */
static inline unsigned kl_task_op_code(const struct kl_task *t)
{
    return t->redop ? t->op_code : (unsigned)t->op;
}

#endif
