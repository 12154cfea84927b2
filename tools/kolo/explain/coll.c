/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/parse.h"
#include "device/host/redop.h"
#include "plan/planned.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/coll_print.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/type_named.h"

#include <stdlib.h>
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

bool kl_explain_is_coll(const char *name)
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

/* ---- sizes ---- */

static ncclResult_t read_size(const char *text, size_t length, int64_t *bytes)
{
    char copy[32];
    uint64_t value = 0;

    snprintf(copy, sizeof copy, "%.*s", (int)length, text);
    if (length >= sizeof copy || !kl_parse_size(copy, &value) || !value)
        return KL_FAIL(ncclInvalidArgument,
                       "\"%.*s\" is no size: expected bytes, as in 1024, 1.5K, 64M, 1GB, or a range, as in 1K-1G",
                       (int)length, text);
    *bytes = (int64_t)value;
    return ncclSuccess;
}

/* "64M", "1K-1G", "1K" "1G", or nothing: everything. */
static ncclResult_t read_sizes(const struct kl_explain_request *q, struct kl_coll_asked *a)
{
    const char *word = q->nwords ? q->word[0] : "1-16G", *dash = strchr(word, '-');
    const char *end = q->nwords > 1 ? q->word[1] : dash ? dash + 1 : word;

    if (q->nwords > 1) dash = NULL;
    KL_TRY(read_size(word, dash ? (size_t)(dash - word) : strlen(word), &a->first));
    KL_TRY(read_size(end, strlen(end), &a->last));
    if (a->first > a->last)
        return KL_FAIL(ncclInvalidArgument, "the range %s%s%s is empty: the smaller size comes first", word,
                       dash ? "" : " ", dash ? "" : end);
    return ncclSuccess;
}

ncclResult_t kl_coll_read(const struct kl_explain_request *q, struct kl_coll_asked *a)
{
    enum kl_coll_id id;

    a->coll = coll_named(q->question);
    if (!a->coll) return KL_FAIL(ncclInvalidArgument, "no collective \"%s\"", q->question);
    id = kl_coll_id(a->coll);
    a->title = kinds[id].title;
    a->func = kinds[id].func;
    a->peers = kinds[id].peers;
    a->type = ncclFloat;
    a->op = ncclSum;
    if (q->type) KL_TRY(type_named(q->type, &a->type));
    if (q->op) KL_TRY(op_named(q->op, &a->op));
    if (id != KL_BARRIER) return read_sizes(q, a);
    if (q->nwords) return KL_FAIL(ncclInvalidArgument, "a barrier has no size");
    a->first = a->last = (int64_t)kl_type_bytes(a->type);
    return ncclSuccess;
}

/* ---- the answer ---- */

/* What NCCL would not even begin with. */
static ncclResult_t check_type(const struct kl_coll_asked *a, const struct kl_tuning *t)
{
    int sm = kl_tuning_type_sm(t->constants, a->type);

    if (a->func >= 0 && !a->cluster->cpus && t->in.min_sm < sm)
        return KL_FAIL(ncclInvalidUsage, "%s: %s needs GPUs of sm %d or newer, and one here is sm %d", a->title,
                       kl_type_name(a->type), sm, t->in.min_sm);
    return ncclSuccess;
}

static ncclResult_t answer_choice(const struct kl_explain_request *q, const struct kl_coll_asked *a,
                                  const struct kl_tuning *t, FILE *to)
{
    const struct kl_op_question question = {a->func, a->first, a->last, a->type, a->op};
    struct kl_op_choice choice;
    ncclResult_t rc = ncclSuccess;

    KL_TRY(check_type(a, t));
    KL_TRY(kl_op_choice_find(&question, t, &choice));
    if (q->json) {
        rc = kl_coll_json(a, &choice, to);
    } else {
        kl_print_preamble(a->cluster, to);
        kl_coll_text(a, &choice, to);
    }
    kl_op_choice_fini(&choice);
    return rc;
}

static ncclResult_t answer_rounds(const struct kl_explain_request *q, const struct kl_coll_asked *a,
                                  const struct kl_plan *plan, FILE *to)
{
    struct kl_op_rounds rounds;
    ncclResult_t rc = ncclSuccess;

    KL_TRY(kl_op_rounds_find(a->peers, plan, &rounds));
    if (q->json) {
        rc = kl_coll_rounds_json(a, &rounds, to);
    } else {
        kl_print_preamble(a->cluster, to);
        kl_coll_rounds_text(a, &rounds, to);
    }
    kl_op_rounds_fini(&rounds);
    return rc;
}

ncclResult_t kl_explain_coll(const struct kl_explain_request *q, FILE *to)
{
    struct kl_coll_asked asked = {0};
    struct kl_cluster cluster;
    struct kl_planned planned;
    ncclResult_t rc;

    KL_TRY(kl_coll_read(q, &asked));
    KL_TRY(kl_cluster_options_open(&q->cluster, &cluster));
    KL_TRY_OR(rc, out, kl_planned_init(&cluster, &planned));
    asked.cluster = &cluster;
    asked.ranks = planned.plan->nranks;
    asked.nodes = planned.plan->connect->nodes.nnodes;
    if (asked.func >= 0) {
        const struct kl_tuning_op op = kl_tuning_op_of(asked.func, asked.first, asked.type, asked.op);

        kl_uncertain_tuning(&planned, &op, &cluster);
    }
    rc = asked.func < 0 ? answer_rounds(q, &asked, planned.plan, to)
                        : answer_choice(q, &asked, &planned.plan->tuning, to);
    if (!rc && !q->json) kl_assumed_print(&cluster, "", to);
    if (!rc && !q->json) kl_uncertain_print(&cluster, "", to);
out:
    kl_planned_fini(&planned);
    kl_cluster_close(&cluster);
    return rc;
}
