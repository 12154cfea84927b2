/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "logs/bench_make.h"
#include "logs/machine.h"
#include "plan/planned.h"
#include "topo/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEAR 2.0 /* a factor beyond which nothing is explained */

enum { SETTINGS = 3, NETS = 64 };

/* ---- predicted times ---- */

static int func_of(const char *name)
{
    static const struct {
        const char *name;
        int func;
    } funcs[] = {{"all_reduce", KL_FUNC_ALL_REDUCE},
                 {"all_gather", KL_FUNC_ALL_GATHER},
                 {"reduce_scatter", KL_FUNC_REDUCE_SCATTER},
                 {"broadcast", KL_FUNC_BROADCAST},
                 {"reduce", KL_FUNC_REDUCE}};

    for (size_t i = 0; i < sizeof funcs / sizeof funcs[0]; i++)
        if (!strcmp(funcs[i].name, name)) return funcs[i].func;
    return -1;
}

/* Types and operations as nccl-tests write them, in NCCL's order. Unknown ones count as float, and as sum. */
static int word_of(const char *text, const char *const *words, int n, int absent)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(text, words[i])) return i;
    return absent;
}

static struct kl_tuning_op op_of(int func, const struct kl_bench_row *r)
{
    static const char *const types[] = {"int8", "uint8", "int32",  "uint32",   "int64",    "uint64",
                                        "half", "float", "double", "bfloat16", "fp8_e4m3", "fp8_e5m2"},
                             *const ops[] = {"sum", "prod", "max", "min", "avg"};
    int type = word_of(r->type, types, sizeof types / sizeof types[0], ncclFloat),
        op = word_of(r->op, ops, sizeof ops / sizeof ops[0], ncclSum);
    struct kl_tuning_op t = kl_tuning_op_of(func, r->size, (ncclDataType_t)type, (ncclRedOp_t)op);

    if (strcmp(r->op, "mulsum")) return t;
    t.nvls = false; /* a factor of the user's: nothing but the ranks themselves can multiply */
    t.prescaled = true;
    return t;
}

/* Microseconds; 0: nothing can do it. */
static double predict(const struct kl_tuning *t, int func, const struct kl_bench_row *r)
{
    struct kl_tuning_op op = op_of(func, r);
    struct kl_tuning_choice choice;

    return kl_tuning_choose(t, &op, &choice, NULL) ? 0 : (double)choice.time;
}

/* How far times are from a table's: the mean factor over sizes that fill links. 0: no such size. */
static double distance(const struct kl_bench *b, const struct kl_bench_table *t, const struct kl_tuning *tuning,
                       int func, double *slower, int *compared)
{
    double sum = 0, bias = 0;
    int n = 0;

    for (int i = 0; i < t->n; i++) {
        const struct kl_bench_row *r = &b->row[t->first + i];
        double us = kl_bench_row_us(r), model = r->size < KL_BENCH_FILLS || us <= 0 ? 0 : predict(tuning, func, r);

        if (model <= 0) continue;
        sum += fabs(log(us / model));
        bias += log(us / model);
        n++;
    }
    *compared = n;
    *slower = n ? exp(bias / n) : 1;
    return n ? exp(sum / n) : 0;
}

/* ---- explanations of a shortfall ---- */

static const struct {
    const char *name, *text, *experiment;
    const char *with[SETTINGS];
    int nets; /* leave NETs out until so many of 8 are left */
} tries[] = {
    {"no_nvls",
     "as if NVLS were not used",
     "set NCCL_NVLS_ENABLE=0: if times stay the same, NVLS was not in use; NCCL_DEBUG=INFO prints \"NVLS multicast "
     "support\"",
     {"NCCL_NVLS_ENABLE=0"},
     0},
    {"no_p2p",
     "as if GPUs could not access each other's memory (no P2P)",
     "set NCCL_P2P_DISABLE=1: if times stay the same, P2P was not in use; NCCL_DEBUG=INFO prints \"via SHM\" then",
     {"NCCL_P2P_DISABLE=1"},
     0},
    {"no_gdr",
     "as if data passed through host memory on the way to the NICs (no GPUDirect RDMA)",
     "set NCCL_NET_GDR_LEVEL=LOC: if times stay the same, GPUDirect was not in use; NCCL_DEBUG=INFO prints \"/GDRDMA\" "
     "where it is",
     {"NCCL_NET_GDR_LEVEL=LOC"},
     0},
    {"no_pxn",
     "as if GPUs did not send through each other's NICs (no PXN)",
     "set NCCL_PXN_DISABLE=1: if times stay the same, PXN was not in use",
     {"NCCL_PXN_DISABLE=1"},
     0},
    {"half_nets",
     "as if only half of the NICs were used",
     "ibstat and NCCL_DEBUG=INFO (NET/IB : Using) show which are used; NCCL_IB_HCA selects them",
     {NULL},
     4},
    {"quarter_nets",
     "as if only a quarter of the NICs were used",
     "ibstat and NCCL_DEBUG=INFO (NET/IB : Using) show which are used; NCCL_IB_HCA selects them",
     {NULL},
     2},
    {"one_net",
     "as if only one NIC were used",
     "ibstat and NCCL_DEBUG=INFO (NET/IB : Using) show which are used; NCCL_IB_HCA selects them",
     {NULL},
     1},
    {"channels_1",
     "as if there were only one channel",
     "NCCL_DEBUG=INFO prints the number (\"coll channels\"); NCCL_MIN_NCHANNELS=16 raises it",
     {"NCCL_MAX_NCHANNELS=1"},
     0},
    {"channels_2",
     "as if there were only two channels",
     "NCCL_DEBUG=INFO prints the number (\"coll channels\"); NCCL_MIN_NCHANNELS=16 raises it",
     {"NCCL_MAX_NCHANNELS=2"},
     0},
    {"channels_4",
     "as if there were only four channels",
     "NCCL_DEBUG=INFO prints the number (\"coll channels\"); NCCL_MIN_NCHANNELS=16 raises it",
     {"NCCL_MAX_NCHANNELS=4"},
     0},
    {"channels_8",
     "as if there were only eight channels",
     "NCCL_DEBUG=INFO prints the number (\"coll channels\"); NCCL_MIN_NCHANNELS=16 raises it",
     {"NCCL_MAX_NCHANNELS=8"},
     0},
    {"ll",
     "as if the LL protocol were used",
     "set NCCL_PROTO=LL: if times stay the same, it was in use already; otherwise unset NCCL_PROTO",
     {"NCCL_PROTO=LL"},
     0},
    {"simple",
     "as if only the Simple protocol were used",
     "set NCCL_PROTO=Simple: if times stay the same, it was in use already; otherwise unset NCCL_PROTO",
     {"NCCL_PROTO=Simple"},
     0},
    {"ring",
     "as if rings were used",
     "set NCCL_ALGO=Ring: if times stay the same, rings were in use already; otherwise unset NCCL_ALGO",
     {"NCCL_ALGO=Ring"},
     0},
    {"tree",
     "as if trees were used",
     "set NCCL_ALGO=Tree: if times stay the same, trees were in use already; otherwise unset NCCL_ALGO",
     {"NCCL_ALGO=Tree"},
     0},
};

struct modelling {
    struct kl_bench *b;
    const struct kl_cluster_request *request;
    struct kl_bench_table *table;
    int func;
    int net[NETS], nnets; /* numbers of the NETs of a host, those that the first plan has */
};

/* How many NETs of a host row `i` of the tries leaves. */
static int left(const struct modelling *k, int i)
{
    return (k->nnets * tries[i].nets + 7) / 8;
}

static void gather_nets(const struct kl_topo *topo, struct modelling *k)
{
    k->nnets = 0;
    for (int i = 0; i < topo->count[KL_NODE_NET] && k->nnets < NETS; i++) {
        const struct kl_node *n = &topo->node[kl_topo_at(topo, KL_NODE_NET, i)];

        if (kl_id_host(n->id) == kl_id_host(topo->node[kl_topo_at(topo, KL_NODE_NET, 0)].id))
            k->net[k->nnets++] = n->net.dev;
    }
}

/* Plan the requested machine with the edits of row `i` of the tries added; -1: without any. */
static ncclResult_t plan_edited(const struct modelling *k, int i, const char **text, struct kl_cluster *cluster,
                                struct kl_planned *planned)
{
    struct kl_cluster_request q = *k->request;
    const struct kl_edit_list with = q.edits.with, without = q.edits.without;
    const char **add = text;
    char name[NETS][16];
    int n = 0;

    if (with.n) memcpy(add, with.text, (size_t)with.n * sizeof *add);
    q.edits.with = (struct kl_edit_list){add, with.n};
    for (int j = 0; i >= 0 && j < SETTINGS && tries[i].with[j]; j++) add[q.edits.with.n++] = tries[i].with[j];
    add += q.edits.with.n;
    if (without.n) memcpy(add, without.text, (size_t)without.n * sizeof *add);
    q.edits.without = (struct kl_edit_list){add, without.n};
    for (int j = i >= 0 && tries[i].nets ? left(k, i) : k->nnets; j < k->nnets; j++) {
        snprintf(name[n], sizeof name[n], "NET/%d", k->net[j]);
        add[q.edits.without.n++] = name[n++];
    }
    KL_TRY(kl_cluster_open(&q, cluster));
    ncclResult_t rc = kl_planned_init(cluster, planned);

    if (!rc) return ncclSuccess;
    kl_planned_fini(planned);
    kl_cluster_close(cluster);
    return rc;
}

static ncclResult_t plan_with(const struct modelling *k, int i, struct kl_cluster *cluster, struct kl_planned *planned)
{
    const struct kl_edits *e = &k->request->edits;
    size_t n = (size_t)e->with.n + (size_t)e->without.n + SETTINGS + NETS;
    const char **text = malloc(n * sizeof *text);

    if (!text) return KL_NOMEM("edits of a machine");
    ncclResult_t rc = plan_edited(k, i, text, cluster, planned);

    free(text);
    return rc;
}

static void try_row(const struct modelling *k, int i)
{
    struct kl_bench_table *t = k->table;
    struct kl_cluster cluster;
    struct kl_planned planned = {.plan = NULL};
    double slower, off;
    int compared;

    if (tries[i].nets && (k->nnets < 2 || left(k, i) >= k->nnets)) return;
    if (plan_with(k, i, &cluster, &planned)) return;
    off = distance(k->b, t, &planned.plan->tuning, k->func, &slower, &compared);
    kl_planned_fini(&planned);
    kl_cluster_close(&cluster);
    if (off <= 0 || off > NEAR || log(off) > 0.6 * log(t->off) || t->nhypotheses == KL_BENCH_HYPOTHESES) return;
    t->hypothesis[t->nhypotheses++] =
        (struct kl_bench_hypothesis){tries[i].name, tries[i].text, tries[i].experiment, off};
}

static int nearest_first(const void *x, const void *y)
{
    const struct kl_bench_hypothesis *a = x, *b = y;

    return (a->off > b->off) - (a->off < b->off);
}

static void find_hypotheses(const struct modelling *k)
{
    struct kl_bench_table *t = k->table;
    int quiet = kl_error_quiet(1);

    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) try_row(k, (int)i);
    kl_error_quiet(quiet);
    qsort(t->hypothesis, (size_t)t->nhypotheses, sizeof t->hypothesis[0], nearest_first);
}

/* ---- tables ---- */

static void predict_rows(const struct modelling *k, const struct kl_tuning *tuning, int nranks)
{
    for (int i = 0; i < k->table->n; i++) {
        struct kl_bench_row *r = &k->b->row[k->table->first + i];
        double us = predict(tuning, k->func, r);

        r->predicted_us = us;
        r->predicted_bus = us > 0 ? (double)r->size / us / 1e3 * kl_tuning_bus_factor(k->func, nranks) : 0;
    }
}

static bool fits(const struct modelling *k, const struct kl_planned *planned)
{
    int n = planned->plan->nranks;

    if (k->table->nranks == n) return true;
    if (!k->b->why[0] && !k->table->nranks)
        snprintf(k->b->why, sizeof k->b->why, "a table does not tell how many ranks it has");
    else if (!k->b->why[0])
        snprintf(k->b->why, sizeof k->b->why, "a table has %d rank%s, the machine %d (--hosts, --gpus)",
                 k->table->nranks, kl_plural(k->table->nranks), n);
    return false;
}

/* Is there something to compare with? */
static bool has_model(const struct modelling *k)
{
    if (k->func >= 0 && k->table->nranks != 1) return true;
    if (!k->b->why[0] && k->func < 0)
        snprintf(k->b->why, sizeof k->b->why, k->table->name[0] ? "there is no model for %s" : "a table has no name%s",
                 k->table->name);
    else if (!k->b->why[0])
        snprintf(k->b->why, sizeof k->b->why, "a single rank sends nothing");
    return false;
}

/* Within these factors, times count as alike. */
#define ALIKE             1.2
#define ALIKE_IN_THE_MEAN 1.15

static enum kl_bench_beside beside(const struct kl_bench_table *t)
{
    if (!t->compared) return KL_BENCH_NOT_COMPARED;
    if (t->off <= ALIKE) return KL_BENCH_ALIKE;
    return t->slower < 1 / ALIKE_IN_THE_MEAN ? KL_BENCH_FASTER
           : t->slower > ALIKE_IN_THE_MEAN   ? KL_BENCH_SLOWER
                                             : KL_BENCH_SCATTERED;
}

static ncclResult_t model_table(struct modelling *k)
{
    struct kl_bench_table *t = k->table;
    struct kl_cluster cluster;
    struct kl_planned planned = {.plan = NULL};

    KL_TRY(plan_with(k, -1, &cluster, &planned));
    snprintf(k->b->machine, sizeof k->b->machine, "%.500s", cluster.name);
    gather_nets(planned.plan->domain[0].topo, k);
    if (fits(k, &planned)) {
        predict_rows(k, &planned.plan->tuning, planned.plan->nranks);
        t->off = distance(k->b, t, &planned.plan->tuning, k->func, &t->slower, &t->compared);
        t->beside = beside(t);
        t->modelled = true;
    }
    kl_planned_fini(&planned);
    kl_cluster_close(&cluster);
    if (t->beside == KL_BENCH_SLOWER) find_hypotheses(k);
    return ncclSuccess;
}

static ncclResult_t model_all(struct kl_bench *b, const struct kl_cluster_request *request)
{
    for (int i = 0; i < b->ntable; i++) {
        struct kl_bench_table *t = &b->table[i];
        struct kl_cluster_request q = *request;
        struct modelling k = {.b = b, .request = &q, .table = t, .func = func_of(t->name)};

        if (!q.nccl) kl_nccl_text(kl_nccl_nearest(t->version, kl_topo_config_release()), b->nccl);
        if (q.nccl) snprintf(b->nccl, sizeof b->nccl, "%.15s", q.nccl);
        q.nccl = b->nccl;
        if (!q.hosts && t->nhosts > 1) q.hosts = t->nhosts;
        if (has_model(&k)) KL_TRY(model_table(&k));
    }
    return ncclSuccess;
}

/* Use the machine of a log in the same file; one that cannot be planned is no error. */
static ncclResult_t model_own(struct kl_bench *b, const struct kl_cluster_request *request)
{
    int system = kl_log_system_of(&b->log, kl_log_main(&b->log)), quiet = kl_error_quiet(1);
    struct kl_cluster_request q = *request;
    struct kl_log_assumed assumed;
    struct kl_xml *xml = NULL;

    if (system < 0 || b->log.amd)
        snprintf(b->why, sizeof b->why, "no machine is named");
    else if (!kl_log_machine(&b->log, system, kl_log_release(&b->log, kl_log_main(&b->log)), &xml, &assumed)) {
        q.document = xml;
        if (model_all(b, &q)) snprintf(b->why, sizeof b->why, "%.250s", kl_error_text());
    }
    kl_xml_free(xml);
    kl_error_quiet(quiet);
    return ncclSuccess;
}

ncclResult_t kl_bench_model(struct kl_bench *b, const struct kl_cluster_request *request)
{
    KL_TRY(kl_cluster_check_release(request));
    return kl_cluster_is_named(request) ? model_all(b, request) : model_own(b, request);
}
