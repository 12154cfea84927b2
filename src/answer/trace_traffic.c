/* SPDX-License-Identifier: Apache-2.0 */
/**
 * trace_traffic.c - the bytes of all collectives of a trace: each group of ranks is planned on a cluster of its own GPUs, each kind of
 * operation is cut once, and counted as often as the rank with the longest record called it. Messages go over the whole cluster.
 */
#include "answer/record.h"
#include "answer/trace_calls.h"
#include "answer/trace_messages.h"
#include "answer/traffic.h"
#include "base/error.h"
#include "plan/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 4096, SHAPES = 64, OPS = 4096, GPUS_TEXT = 1024, MOST_RANKS = 1 << 20 };

/* Some GPUs of some hosts, the same on each. */
struct shape {
    char gpus[GPUS_TEXT]; /* "" all */
    int hosts;
    bool opened, failed;
    struct kl_opened cluster;
    int *pod; /* zeros, one for each host */
};

struct op {
    int group, func;
    ncclDataType_t type;
    ncclRedOp_t op;
    int64_t bytes, times;
    int root;
};

struct group {
    int *rank, nranks; /* of the job, ascending */
    int *host, nhosts;
    int shape; /* -1: not modelled */
};

struct tracer {
    const struct kl_traffic_question *question;
    const struct kl_record *record;
    const struct kl_cluster_request *request;
    struct kl_opened *opened;
    struct kl_traffic_answer *answer;
    struct group *group;
    struct shape *shape;
    struct op *op;
    int *leader; /* by group: a member; -1 none */
    int nshapes, nops;
    int per_host, nranks; /* of the cluster */
    int seen;             /* ranks that the records show */
};

/* ---- the calls ---- */

/* "all_reduce", "_allgather_base", "ALLREDUCE", "AllReduce", "allreduce_coalesced": a function; -1: none with an algorithm. */
static int func_of(const char *name)
{
    static const struct {
        const char *name;
        int func;
    } names[] = {
        {"allreduce", KL_FUNC_ALL_REDUCE}, {"allgather", KL_FUNC_ALL_GATHER}, {"reducescatter", KL_FUNC_REDUCE_SCATTER},
        {"broadcast", KL_FUNC_BROADCAST},  {"reduce", KL_FUNC_REDUCE},        {"barrier", KL_FUNC_ALL_REDUCE}};
    char plain[64];

    kl_trace_plain_name(name, plain, sizeof plain);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strncmp(plain, names[i].name, strlen(names[i].name))) return names[i].func;
    return -1;
}

static ncclResult_t add_call(struct tracer *t, int group, const struct kl_record_call *c)
{
    struct op o = {.group = group, .func = func_of(c->name), .op = ncclSum, .times = 1};

    o.bytes = kl_trace_bytes(c, &o.type); /* nccl-tests' size */
    if (o.func == KL_FUNC_ALL_GATHER && c->in > 0 && c->out < 1 && o.bytes > 0 && o.bytes <= KL_ORDER_BYTES)
        o.bytes *= t->group[group].nranks; /* the call states the input only */
    o.root = c->root > 0 && c->root < t->group[group].nranks ? c->root : 0;
    if (o.func < 0 || o.bytes < 1 || o.bytes > KL_ORDER_BYTES)
        return kl_trace_skip(&t->answer->trace, c->name), ncclSuccess;
    for (int i = t->nops - 1; i >= 0; i--)
        if (t->op[i].group == group && t->op[i].func == o.func && t->op[i].type == o.type &&
            t->op[i].bytes == o.bytes && t->op[i].root == o.root)
            return t->op[i].times++, ncclSuccess;
    if (t->nops == OPS)
        return KL_FAIL(ncclInvalidUsage, "the trace has more than %d kinds of operations: give a part of it", OPS);
    t->op[t->nops++] = o;
    return ncclSuccess;
}

/* The member of each group with the most calls speaks for all. */
static ncclResult_t find_leaders(struct tracer *t)
{
    const struct kl_record *r = t->record;
    int *calls = calloc((size_t)r->nmember + 1, sizeof *calls);

    t->leader = calloc((size_t)r->ngroup + 1, sizeof *t->leader);
    if (!calls || !t->leader) return free(calls), KL_NOMEM("calls");
    for (int i = 0; i < r->ncall; i++) calls[r->call[i].member]++;
    for (int g = 0; g < r->ngroup; g++) t->leader[g] = -1;
    for (int m = 0; m < r->nmember; m++) {
        int *best = &t->leader[r->member[m].group];

        if (*best < 0 || calls[m] > calls[*best]) *best = m;
    }
    free(calls);
    return ncclSuccess;
}

static ncclResult_t add_calls(struct tracer *t)
{
    const struct kl_record *r = t->record;

    for (int i = 0; i < r->ncall; i++) {
        const struct kl_record_call *c = &r->call[i];
        const int group = r->member[c->member].group;

        if (t->leader[group] != c->member || c->kind == KL_CALL_BATCH || kl_trace_is_message(c)) continue;
        if (t->group[group].shape < 0)
            kl_trace_skip(&t->answer->trace, c->name);
        else
            KL_TRY(add_call(t, group, c));
    }
    return ncclSuccess;
}

static ncclResult_t add_messages(struct tracer *t, struct kl_op_traffic_sum *sum)
{
    struct kl_trace_messages m = {
        .record = t->record, .leader = t->leader, .nranks = t->nranks, .trace = &t->answer->trace};
    struct kl_trace_ranks *ranks = calloc((size_t)t->record->ngroup + 1, sizeof *ranks);
    ncclResult_t rc = ranks ? ncclSuccess : KL_NOMEM("ranks of groups");

    for (int g = 0; !rc && g < t->record->ngroup; g++)
        ranks[g] = (struct kl_trace_ranks){t->group[g].rank, t->group[g].nranks};
    m.ranks = ranks;
    if (!rc) rc = kl_trace_messages_find(&m);
    if (!rc) rc = kl_op_traffic_sum_messages(sum, t->answer->plan, m.message, m.n);
    free(m.message);
    free(ranks);
    return rc;
}

/* ---- groups ---- */

static int by_rank(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* "[0, 1, 2]", "0,1,2": false where the list is cut short ("..."), or has anything else. */
static bool read_ranks(const char *text, struct group *g)
{
    for (const char *at = text + strspn(text, "[( "); *at && !strchr("])", *at);) {
        char *end;
        const long rank = strtol(at, &end, 10);

        if (end == at || rank < 0 || rank >= MOST_RANKS) return false;
        int *grown = realloc(g->rank, (size_t)(g->nranks + 1) * sizeof *grown);

        if (!grown) return false;
        g->rank = grown;
        grown[g->nranks++] = (int)rank;
        at = end + strspn(end, ", ");
    }
    return g->nranks > 0;
}

/* The ranks of a group: listed, or all of the job, or of the cluster, where its size is that or unknown. */
static void ranks_of(const struct tracer *t, int group, struct group *g)
{
    const struct kl_record_group *from = &t->record->group[group];

    if (*from->listed && read_ranks(from->listed, g)) {
        qsort(g->rank, (size_t)g->nranks, sizeof *g->rank, by_rank);
        return;
    }
    g->nranks = 0;
    if (*from->listed || (from->size > 0 && from->size != t->nranks && from->size != t->seen)) return;
    const int n = from->size > 0 ? from->size : t->nranks;
    g->rank = realloc(g->rank, (size_t)(n ? n : 1) * sizeof *g->rank);
    for (int i = 0; g->rank && i < n; i++) g->rank[g->nranks++] = i;
}

/* The most ranks that the records show. */
static int ranks_seen(const struct kl_record *r)
{
    int n = 0;

    for (int i = 0; i < r->nfile; i++) n = r->file[i].ranks > n ? r->file[i].ranks : n;
    for (int i = 0; i < r->nmember; i++) n = r->member[i].rank >= n ? r->member[i].rank + 1 : n;
    for (int i = 0; i < r->ngroup; i++) {
        struct group g = {.nranks = 0};

        n = r->group[i].size > n ? r->group[i].size : n;
        if (*r->group[i].listed && read_ranks(r->group[i].listed, &g))
            for (int k = 0; k < g.nranks; k++) n = g.rank[k] >= n ? g.rank[k] + 1 : n;
        free(g.rank);
    }
    return n < MOST_RANKS ? n : MOST_RANKS;
}

/* The GPUs of a group's hosts as a list; false where they differ between hosts. */
static bool gpus_of(const struct tracer *t, struct group *g, char gpus[GPUS_TEXT])
{
    struct kl_text text = kl_text_in(gpus, GPUS_TEXT);
    int each = 0;

    g->host = calloc((size_t)g->nranks + 1, sizeof *g->host);
    if (!g->host || !g->nranks || g->rank[g->nranks - 1] >= t->nranks) return false;
    while (each < g->nranks && g->rank[each] / t->per_host == g->rank[0] / t->per_host) each++;
    for (int i = 0; i < each; i++) kl_text_add(&text, "%s%d", i ? "," : "", g->rank[i] % t->per_host);
    for (int i = 0; i < g->nranks; i++) {
        const int host = g->rank[i] / t->per_host;

        if (g->rank[i] % t->per_host != g->rank[i % each] % t->per_host) return false;
        if (i % each == 0) g->host[g->nhosts++] = host;
        if (host != g->host[g->nhosts - 1]) return false;
    }
    if (each == t->per_host) *gpus = 0;
    return g->nranks % each == 0 && !text.cut;
}

static void shape_group(struct tracer *t, int group)
{
    struct group *g = &t->group[group];
    char gpus[GPUS_TEXT];

    g->shape = -1;
    ranks_of(t, group, g);
    if (!gpus_of(t, g, gpus)) return;
    for (int i = 0; i < t->nshapes && g->shape < 0; i++)
        if (t->shape[i].hosts == g->nhosts && !strcmp(t->shape[i].gpus, gpus)) g->shape = i;
    if (g->shape >= 0 || t->nshapes == SHAPES) return;
    g->shape = t->nshapes++;
    t->shape[g->shape].hosts = g->nhosts;
    strcpy(t->shape[g->shape].gpus, gpus);
}

static ncclResult_t open_shape(struct tracer *t, struct shape *s)
{
    struct kl_cluster_request q = *t->request;

    s->opened = true;
    q.hosts = s->hosts;
    if (*s->gpus) q.gpus = s->gpus;
    s->pod = calloc((size_t)s->hosts + 1, sizeof *s->pod);
    if (!s->pod) return KL_NOMEM("pods");
    const ncclResult_t rc = kl_opened_init(&q, &s->cluster);

    s->failed = rc != ncclSuccess;
    return rc ? rc : kl_opened_plan(&s->cluster);
}

/* ---- the sum ---- */

static ncclResult_t add_op(struct tracer *t, struct kl_op_traffic_sum *sum, const struct op *o)
{
    const struct group *g = &t->group[o->group];
    struct shape *s = &t->shape[g->shape];
    struct kl_op_traffic one = {.nnics = 0};

    if (g->nranks < 2) return ncclSuccess;
    if (!s->opened) KL_TRY(open_shape(t, s));
    const struct kl_op_traffic_request q = {.func = o->func,
                                            .type = o->type,
                                            .op = o->op,
                                            .bytes = o->bytes,
                                            .root = o->root,
                                            .pod = t->answer->pod ? s->pod : NULL};
    ncclResult_t rc = kl_op_traffic_find(&q, &s->cluster.cluster, &s->cluster.planned, &one);

    if (!rc) rc = kl_op_traffic_sum_add(sum, s->cluster.planned.plan, &one, g->host, o->times);
    kl_op_traffic_fini(&one);
    return rc;
}

static ncclResult_t sum_up(struct tracer *t)
{
    struct kl_op_traffic_sum sum;
    struct kl_traffic_trace *x = &t->answer->trace;
    ncclResult_t rc = kl_op_traffic_sum_begin(t->answer->plan, t->answer->pod, &sum);

    for (int i = 0; !rc && i < t->nops; i++) {
        rc = add_op(t, &sum, &t->op[i]);
        x->operations += t->op[i].times;
    }
    if (!rc) rc = add_messages(t, &sum);
    if (!rc) rc = kl_op_traffic_sum_end(t->answer->plan, &sum);
    x->kinds = t->nops;
    t->answer->traffic = sum.all;
    sum.all = (struct kl_op_traffic){.nnics = 0};
    kl_op_traffic_sum_fini(&sum);
    if (!rc && !x->operations && !x->messages && !x->all_to_alls)
        rc = KL_FAIL(ncclInvalidUsage,
                     "%.300s: the trace has no call of known bytes and ranks (%lld others%s%s); give the files of all "
                     "ranks, and a cluster of at least as many GPUs",
                     t->record->nfile ? t->record->file[0].name : "no file", (long long)x->skipped,
                     x->skipped ? ", the first is " : "", x->first_skipped);
    return rc;
}

/* ---- all ---- */

static ncclResult_t trace(struct tracer *t)
{
    const struct kl_record *r = t->record;

    if (r->ngroup > GROUPS) return KL_FAIL(ncclInvalidUsage, "the trace has more than %d groups", GROUPS);
    t->group = calloc((size_t)r->ngroup + 1, sizeof *t->group);
    t->shape = calloc(SHAPES, sizeof *t->shape);
    t->op = calloc(OPS, sizeof *t->op);
    if (!t->group || !t->shape || !t->op) return KL_NOMEM("a trace");
    for (int g = 0; g < r->ngroup; g++) shape_group(t, g);
    t->answer->trace.groups = r->ngroup;
    t->answer->trace.files = r->nfile;
    t->answer->trace.kind = r->nfile ? kl_input_name(r->file[0].kind) : "nothing";
    KL_TRY(find_leaders(t));
    KL_TRY(add_calls(t));
    return sum_up(t);
}

static void fini(struct tracer *t)
{
    for (int g = 0; t->group && g < t->record->ngroup; g++) {
        free(t->group[g].rank);
        free(t->group[g].host);
    }
    for (int i = 0; t->shape && i < t->nshapes; i++) {
        if (t->shape[i].opened && !t->shape[i].failed) kl_opened_fini(&t->shape[i].cluster);
        free(t->shape[i].pod);
    }
    free(t->group);
    free(t->leader);
    free(t->shape);
    free(t->op);
}

int kl_traffic_trace_hosts(const struct kl_record *record, int gpus)
{
    const int n = ranks_seen(record);

    return gpus > 0 && n > gpus ? (n + gpus - 1) / gpus : 1;
}

ncclResult_t kl_traffic_trace_make(const struct kl_traffic_question *q, const struct kl_record *record,
                                   const struct kl_cluster_request *request, struct kl_opened *o,
                                   struct kl_traffic_answer *x)
{
    struct tracer t = {.question = q, .record = record, .request = request, .opened = o, .answer = x};

    memset(x, 0, sizeof *x);
    x->question = *q;
    x->is_trace = true;
    if (request->gpus)
        return KL_FAIL(ncclInvalidUsage, "--gpus and a trace: its ranks say which GPUs are used, so leave --gpus out");
    KL_TRY(kl_opened_plan(o));
    x->plan = o->planned.plan;
    x->asked.cluster = &o->cluster;
    x->asked.ranks = t.nranks = x->plan->nranks;
    x->asked.nodes = x->plan->connect->nodes.nnodes;
    t.per_host = x->plan->ranks_per_host;
    t.seen = ranks_seen(record);
    KL_TRY(kl_traffic_make_pods(x));
    ncclResult_t rc = trace(&t);

    fini(&t);
    return rc;
}
