/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/queue/userops.h"

#include "coll/schedule/signature.h"
#include "comm/comm.h"
#include "include/kolo.h"

#include <stdlib.h>

enum { ENTRY_BITS = 14, USE_BITS = 15, ENTRIES = 1 << ENTRY_BITS };
#define NOT_LAUNCHED UINT64_MAX
_Static_assert(ncclNumOps + (1u << (ENTRY_BITS + USE_BITS)) < koloBitAnd, "kolo.h's operations are behind these");

struct kl_userop {
    struct kl_redop redop;
    const void *scalar; /* NULL: it was read already */
    ncclDataType_t type;
    bool used;
    uint32_t use;
    uint64_t free_at; /* launches that must have finished before the entry is reused */
};

/* ---- handles ---- */

/* The communicator's part of the use number: handles of other communicators do not fit by accident. */
static uint32_t use_number(const struct ncclComm *comm, uint32_t use)
{
    return (uint32_t)(((uintptr_t)comm->handle * 0x9e3779b97f4a7c15u >> 40) + use) & ((1 << USE_BITS) - 1);
}

static ncclRedOp_t handle_of(const struct ncclComm *comm, uint32_t entry)
{
    return (ncclRedOp_t)(ncclNumOps + (use_number(comm, comm->userops.entry[entry]->use) << ENTRY_BITS) + entry);
}

static struct kl_userop *find(const struct ncclComm *comm, ncclRedOp_t op)
{
    uint32_t entry = ((uint32_t)op - ncclNumOps) % ENTRIES;

    if ((uint32_t)op < ncclNumOps || entry >= comm->userops.n) return NULL;
    struct kl_userop *found = comm->userops.entry[entry];
    return found->used && handle_of(comm, entry) == op ? found : NULL;
}

/* ---- entries ---- */

static bool is_free(const struct ncclComm *comm, const struct kl_userop *u)
{
    return !u->used && kl_load_acquire(&comm->finished) >= u->free_at; /* pairs with finish_launch */
}

static ncclResult_t add_entry(struct kl_userops *ops)
{
    if (ops->n == ENTRIES) return KL_FAIL(ncclInvalidUsage, "a communicator has %d operations at most", ENTRIES);
    struct kl_userop **grown = realloc(ops->entry, (ops->n + 1) * sizeof(void *));
    if (!grown) return KL_NOMEM("an operation");
    ops->entry = grown;
    grown[ops->n] = calloc(1, sizeof **grown);
    if (!grown[ops->n]) return KL_NOMEM("an operation");
    ops->n++;
    return ncclSuccess;
}

static ncclResult_t take_entry(struct ncclComm *comm, uint32_t *entry)
{
    struct kl_userops *ops = &comm->userops;

    for (*entry = 0; *entry < ops->n; ++*entry)
        if (is_free(comm, ops->entry[*entry])) return ncclSuccess;
    return add_entry(ops);
}

void kl_userops_fini(struct kl_userops *ops)
{
    for (uint32_t i = 0; i < ops->n; i++) free(ops->entry[i]);
    free(ops->entry);
}

/* ---- calls of programs ---- */

ncclResult_t kl_userop_create(struct ncclComm *comm, ncclDataType_t type, const void *scalar, bool later,
                              ncclRedOp_t *op)
{
    static const uint64_t none = 0;
    struct kl_redop redop;
    uint32_t entry;

    KL_TRY(kl_redop_init_scaled(&redop, type, later ? (const void *)&none : scalar));
    KL_TRY(take_entry(comm, &entry));
    struct kl_userop *u = comm->userops.entry[entry];
    *u = (struct kl_userop){
        .redop = redop, .scalar = later ? scalar : NULL, .type = type, .used = true, .use = u->use + 1};
    *op = handle_of(comm, entry);
    return ncclSuccess;
}

/* In an open group there may be tasks that are not launched yet: in one launch, or, between hosts of GPUs, in many. */
static uint64_t last_use(const struct ncclComm *comm)
{
    if (!kl_load_relaxed(&comm->in_group)) return comm->launched;
    return comm->gpus_use_engine ? NOT_LAUNCHED : comm->launched + 1;
}

void kl_userops_note_launches(struct ncclComm *comm)
{
    for (uint32_t i = 0; i < comm->userops.n; i++)
        if (comm->userops.entry[i]->free_at == NOT_LAUNCHED) comm->userops.entry[i]->free_at = comm->launched;
}

ncclResult_t kl_userop_destroy(struct ncclComm *comm, ncclRedOp_t op)
{
    struct kl_userop *u = find(comm, op);

    if (!u)
        return KL_FAIL(ncclInvalidArgument,
                       "ncclRedOpDestroy: %d is no operation of this communicator that a program made", (int)op);
    u->used = false;
    u->free_at = last_use(comm);
    return ncclSuccess;
}

static ncclResult_t resolve_bits(struct ncclComm *comm, struct kl_task *task)
{
    struct kl_redop *redop = &comm->bits[task->type][task->op - koloBitAnd];

    if (!redop->combine) KL_TRY(kl_redop_init_bits(redop, task->type, (enum kl_bits_op)(task->op - koloBitAnd)));
    task->redop = redop;
    task->op_code = (uint8_t)(KL_CALL_BITS_OP + (task->op - koloBitAnd));
    task->op = ncclAvg;
    return ncclSuccess;
}

ncclResult_t kl_userop_resolve(struct ncclComm *comm, struct kl_task *task, const char *function)
{
    if ((unsigned)task->type >= ncclNumTypes) return ncclSuccess; /* refused later */
    if (task->op >= koloBitAnd && task->op < koloBitAnd + KL_BITS_OPS) return resolve_bits(comm, task);
    const struct kl_userop *u = find(comm, task->op);
    if (!u)
        return KL_FAIL(ncclInvalidArgument,
                       "%s: operation %d is none of the built-in 0 to %d, nor one that this communicator has", function,
                       (int)task->op, ncclNumOps - 1);
    if (u->type != task->type)
        return KL_FAIL(ncclInvalidArgument, "%s: the operation was made for %s, the data are %s", function,
                       kl_type_name(u->type), kl_type_name(task->type));
    task->redop = &u->redop;
    task->op_code = KL_CALL_USER_OP;
    task->scalar = u->scalar;
    task->op = ncclAvg;
    return ncclSuccess;
}
