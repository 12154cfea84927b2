/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/coll.h"

#include "answer/type_named.h"
#include "base/error.h"
#include "device/host/redop.h"

#include <string.h>
#include <strings.h>

/* ---- names ---- */

static const struct {
    const char *title;
    int func;
    enum kl_op_peers peers; /* of sends and receives */
} kinds[KL_NCOLLS] = {
    [KL_ALL_REDUCE] = {"AllReduce", KL_FUNC_ALL_REDUCE, KL_PEERS_ALL},
    [KL_ALL_GATHER] = {"AllGather", KL_FUNC_ALL_GATHER, KL_PEERS_ALL},
    [KL_REDUCE_SCATTER] = {"ReduceScatter", KL_FUNC_REDUCE_SCATTER, KL_PEERS_ALL},
    [KL_BROADCAST] = {"Broadcast", KL_FUNC_BROADCAST, KL_PEERS_ALL},
    [KL_REDUCE] = {"Reduce", KL_FUNC_REDUCE, KL_PEERS_ALL},
    [KL_ALLTOALL] = {"AllToAll", -1, KL_PEERS_ALL},
    [KL_ALLTOALLV] = {"AllToAllv", -1, KL_PEERS_ALL},
    [KL_GATHER] = {"Gather", -1, KL_PEERS_TO_ROOT},
    [KL_SCATTER] = {"Scatter", -1, KL_PEERS_OF_ROOT},
    [KL_SENDRECV] = {"SendRecv", -1, KL_PEERS_NEXT},
    [KL_HYPERCUBE] = {"Hypercube", -1, KL_PEERS_CUBE},
    [KL_BARRIER] = {"Barrier (an AllReduce of one element)", KL_FUNC_ALL_REDUCE, KL_PEERS_ALL},
};

static const struct kl_coll *coll_named(const char *name)
{
    if (!strcasecmp(name, "send") || !strcasecmp(name, "recv")) return &kl_colls[KL_SENDRECV];
    return kl_coll_find(name);
}

bool kl_coll_is_named(const char *name)
{
    return coll_named(name) != NULL;
}

static ncclResult_t type_named(const char *name, ncclDataType_t *type)
{
    if (kl_type_named(name, type)) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument,
                   "--type %s: none of int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2",
                   name);
}

static ncclResult_t op_named(const char *name, ncclRedOp_t *op)
{
    for (int o = 0; o < ncclNumOps; o++)
        if (!strcasecmp(name, kl_redop_name((ncclRedOp_t)o))) return *op = (ncclRedOp_t)o, ncclSuccess;
    return KL_FAIL(ncclInvalidArgument, "--op %s: none of sum prod max min avg", name);
}

/* ---- the question ---- */

static ncclResult_t take_sizes(const struct kl_coll_question *q, struct kl_coll_asked *a)
{
    static const int64_t everything = (int64_t)16 << 30;
    const bool none = !q->first && !q->last;

    if (kl_coll_id(a->coll) == KL_BARRIER) {
        if (!none) return KL_FAIL(ncclInvalidArgument, "a barrier has no size");
        a->first = a->last = (int64_t)kl_type_bytes(a->type);
        return ncclSuccess;
    }
    a->first = none ? 1 : q->first;
    a->last = none ? everything : q->last;
    if (a->first >= 1 && a->first <= a->last) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument,
                   "sizes from %lld to %lld bytes: the first must be at least 1, and at most the last",
                   (long long)q->first, (long long)q->last);
}

ncclResult_t kl_coll_ask(const struct kl_coll_question *q, struct kl_coll_asked *a)
{
    const struct kl_coll *coll = coll_named(q->coll);

    if (!coll)
        return KL_FAIL(ncclInvalidArgument, "no collective \"%s\"; expected all_reduce, all_gather ...", q->coll);
    const enum kl_coll_id id = kl_coll_id(coll);

    *a = (struct kl_coll_asked){.coll = coll,
                                .title = kinds[id].title,
                                .func = kinds[id].func,
                                .peers = kinds[id].peers,
                                .type = ncclFloat,
                                .op = ncclSum};
    if (q->type) KL_TRY(type_named(q->type, &a->type));
    if (q->op) KL_TRY(op_named(q->op, &a->op));
    return take_sizes(q, a);
}

/* ---- the answer ---- */

/* NCCL refuses such a call. */
ncclResult_t kl_coll_check_type(const struct kl_coll_asked *a, const struct kl_tuning *t)
{
    int sm = kl_tuning_type_sm(t->constants, a->type);

    if (a->func >= 0 && !a->cluster->cpus && t->in.min_sm < sm)
        return KL_FAIL(ncclInvalidUsage, "%s: %s needs GPUs of sm %d or newer, and one here is sm %d", a->title,
                       kl_type_name(a->type), sm, t->in.min_sm);
    return ncclSuccess;
}

static ncclResult_t find_choice(struct kl_opened *o, struct kl_coll_answer *answer)
{
    const struct kl_coll_asked *a = &answer->asked;
    const struct kl_op_question question = {a->func, a->first, a->last, a->type, a->op};
    const struct kl_tuning_op op = kl_tuning_op_of(a->func, a->first, a->type, a->op);
    const struct kl_tuning *tuning = &o->planned.plan->tuning;

    kl_opened_about_tuning(o, &op);
    KL_TRY(kl_coll_check_type(a, tuning));
    return kl_op_choice_find(&question, tuning, &answer->choice);
}

ncclResult_t kl_coll_place(struct kl_coll_asked *a, struct kl_opened *o)
{
    KL_TRY(kl_opened_plan(o));
    a->cluster = &o->cluster;
    a->ranks = o->planned.plan->nranks;
    a->nodes = o->planned.plan->connect->nodes.nnodes;
    return ncclSuccess;
}

ncclResult_t kl_coll_answer_make(const struct kl_coll_asked *asked, struct kl_opened *o, struct kl_coll_answer *answer)
{
    memset(answer, 0, sizeof *answer);
    answer->asked = *asked;
    KL_TRY(kl_coll_place(&answer->asked, o));
    if (asked->func >= 0) return find_choice(o, answer);
    kl_opened_about_machine(o);
    return kl_op_rounds_find(asked->peers, o->planned.plan, &answer->rounds);
}

void kl_coll_answer_fini(struct kl_coll_answer *answer)
{
    kl_op_choice_fini(&answer->choice);
    kl_op_rounds_fini(&answer->rounds);
}
