/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/coll.h"

#include "base/error.h"
#include "base/parse.h"
#include "device/host/redop.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char kl_coll_timeless[] = "it leaves out the latency inside a node, which NCCL's model knows over NVLink only";

enum { LEAST_TO_SEARCH = 34 }; /* log2: changes are looked for up to 16 GiB, or the size that was asked for */

/* ---- names ---- */

static const struct {
    const char *title;
    int func;
} kinds[KL_NCOLLS] = {
    [KL_ALL_REDUCE] = {"AllReduce", KL_FUNC_ALL_REDUCE},
    [KL_ALL_GATHER] = {"AllGather", KL_FUNC_ALL_GATHER},
    [KL_REDUCE_SCATTER] = {"ReduceScatter", KL_FUNC_REDUCE_SCATTER},
    [KL_BROADCAST] = {"Broadcast", KL_FUNC_BROADCAST},
    [KL_REDUCE] = {"Reduce", KL_FUNC_REDUCE},
    [KL_ALLTOALL] = {"AllToAll", -1},
    [KL_ALLTOALLV] = {"AllToAllv", -1},
    [KL_GATHER] = {"Gather", -1},
    [KL_SCATTER] = {"Scatter", -1},
    [KL_SENDRECV] = {"SendRecv", -1},
    [KL_HYPERCUBE] = {"Hypercube", -1},
    [KL_BARRIER] = {"Barrier (an AllReduce of one element)", KL_FUNC_ALL_REDUCE},
};

/* Letters only matter, not their case: all_reduce, AllReduce, all-reduce. */
static bool same_letters(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == '_' || *a == '-') a++;
        while (*b == '_' || *b == '-') b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
        if (!*a) return true;
    }
}

static const struct kl_coll *coll_named(const char *name)
{
    if (same_letters(name, "send") || same_letters(name, "recv")) return &kl_colls[KL_SENDRECV];
    for (int i = 0; i < KL_NCOLLS; i++)
        if (same_letters(name, kl_colls[i].name)) return &kl_colls[i];
    return NULL;
}

bool kl_explain_is_coll(const char *name)
{
    return coll_named(name) != NULL;
}

static ncclResult_t type_named(const char *name, ncclDataType_t *type)
{
    for (int t = 0; t < ncclNumTypes; t++)
        if (!strcasecmp(name, kl_type_name((ncclDataType_t)t))) return *type = (ncclDataType_t)t, ncclSuccess;
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
        return KL_FAIL(ncclInvalidArgument, "\"%.*s\" is no size: expected bytes, as in 1024, 64M, 1G, or 1K-1G",
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

static ncclResult_t read_question(const struct kl_explain_request *q, struct kl_coll_asked *a)
{
    enum kl_coll_id id;

    a->coll = coll_named(q->question);
    id = kl_coll_id(a->coll);
    a->title = kinds[id].title;
    a->func = kinds[id].func;
    a->type = ncclFloat;
    a->op = ncclSum;
    if (q->type) KL_TRY(type_named(q->type, &a->type));
    if (q->op) KL_TRY(op_named(q->op, &a->op));
    if (id != KL_BARRIER) return read_sizes(q, a);
    if (q->nwords) return KL_FAIL(ncclInvalidArgument, "a barrier has no size");
    a->first = a->last = (int64_t)kl_type_bytes(a->type);
    return ncclSuccess;
}

/* ---- candidates ---- */

double kl_coll_bus(const struct kl_coll_asked *a, const struct kl_coll_place *p, int64_t bytes, float time)
{
    enum kl_coll_id id = kl_coll_id(a->coll);

    if (id == KL_BARRIER || time <= 0) return 0;
    return (double)bytes / (double)time / 1e3 * kl_coll_bus_factor(id, p->ranks);
}

double kl_coll_slower(float time, float best)
{
    return best > 0 ? ((double)time / (double)best - 1) * 100 : 0;
}

static void judge(const struct kl_tuning *t, const struct kl_tuning_op *op, struct kl_coll_candidate *c)
{
    int algo = c->choice.algo, proto = c->choice.proto;
    struct kl_text why = kl_text_over(c->why, sizeof c->why);

    c->refusal = kl_tuning_refused(t, op, algo, proto);
    if (c->refusal) {
        kl_tuning_refusal_text(t, op, algo, proto, &why);
        return;
    }
    kl_tuning_terms(t, op, algo, proto, &c->terms);
    c->choice.time = c->terms.time;
    kl_tuning_size(t, op->bytes, &c->choice);
}

/* Possible before refused, then by time, then in the model's order, which decides between equals. */
static int by_time(const void *x, const void *y)
{
    const struct kl_coll_candidate *a = x, *b = y;
    int refused = (a->refusal != 0) - (b->refusal != 0);

    if (refused) return refused;
    if (!a->refusal && a->terms.time != b->terms.time) return a->terms.time < b->terms.time ? -1 : 1;
    return (a->choice.algo - b->choice.algo) * KL_PROTOS + a->choice.proto - b->choice.proto;
}

ncclResult_t kl_coll_find_out(const struct kl_coll_asked *a, const struct kl_coll_place *place,
                              const struct kl_tuning *t, struct kl_coll_finding *f)
{
    struct kl_tuning_op op = kl_tuning_op_of(a->func, a->first, a->type, a->op);
    bool one = a->first == a->last;
    int64_t most = (int64_t)1 << LEAST_TO_SEARCH;

    *f = (struct kl_coll_finding){.asked = *a, .place = *place};
    for (int i = 0; i < KL_COLL_CANDIDATES; i++) {
        f->candidate[i].choice = (struct kl_tuning_choice){.algo = i / KL_PROTOS, .proto = i % KL_PROTOS};
        judge(t, &op, &f->candidate[i]);
        f->npossible += !f->candidate[i].refusal;
    }
    qsort(f->candidate, KL_COLL_CANDIDATES, sizeof f->candidate[0], by_time);
    return kl_tuning_ranges(t, &op, one ? 1 : a->first, one && a->last < most ? most : a->last, &f->range, &f->nranges);
}

/* ---- the answer ---- */

static struct kl_coll_place place_of(const struct kl_cluster *cluster, const struct kl_plan *plan)
{
    return (struct kl_coll_place){.topology = cluster->name,
                                  .ranks = plan->nranks,
                                  .hosts = cluster->hosts,
                                  .nodes = plan->connect->nodes.nnodes,
                                  .here = cluster->cpus,
                                  .constants = cluster->constants};
}

/* What NCCL would not even begin with. */
static ncclResult_t check_type(const struct kl_coll_asked *a, const struct kl_coll_place *place, int sm)
{
    if (a->func >= 0 && !place->here && sm < kl_tuning_type_sm(a->type))
        return KL_FAIL(ncclInvalidUsage, "%s: %s needs GPUs of sm %d or newer, and one here is sm %d", a->title,
                       kl_type_name(a->type), kl_tuning_type_sm(a->type), sm);
    return ncclSuccess;
}

static ncclResult_t answer_choice(const struct kl_explain_request *q, const struct kl_coll_asked *a,
                                  const struct kl_coll_place *place, const struct kl_tuning *t, FILE *to)
{
    struct kl_coll_finding f;
    ncclResult_t rc = ncclSuccess;

    KL_TRY(check_type(a, place, t->in.min_sm));
    KL_TRY(kl_coll_find_out(a, place, t, &f));
    if (q->json)
        rc = kl_coll_json(&f, to);
    else
        kl_coll_text(&f, to);
    free(f.range);
    return rc;
}

static ncclResult_t answer_messages(const struct kl_explain_request *q, const struct kl_coll_asked *a,
                                    const struct kl_coll_place *place, const struct kl_plan *plan, FILE *to)
{
    struct kl_coll_messages m;
    ncclResult_t rc = ncclSuccess;

    KL_TRY(kl_coll_find_messages(a, place, plan, &m));
    if (q->json)
        rc = kl_coll_json_messages(&m, to);
    else
        kl_coll_text_messages(&m, to);
    free(m.round);
    return rc;
}

ncclResult_t kl_explain_coll(const struct kl_explain_request *q, FILE *to)
{
    struct kl_coll_asked asked = {0};
    struct kl_cluster cluster;
    struct kl_planned planned;
    ncclResult_t rc;

    KL_TRY(read_question(q, &asked));
    KL_TRY(kl_cluster_options_open(&q->cluster, &cluster));
    KL_TRY_OR(rc, out, kl_planned_init(&cluster, &planned));
    struct kl_coll_place place = place_of(&cluster, planned.plan);

    rc = asked.func < 0 ? answer_messages(q, &asked, &place, planned.plan, to)
                        : answer_choice(q, &asked, &place, &planned.plan->tuning, to);
out:
    kl_planned_fini(&planned);
    kl_cluster_close(&cluster);
    return rc;
}
