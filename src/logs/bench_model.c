/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "logs/bench_make.h"
#include "logs/machine.h"
#include "plan/planned.h"
#include "topo/release.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEAR 2.0 /* a factor beyond which nothing is explained */

enum { FILLS = 16 << 20, SETTINGS = 3, NETS = 64 };

/* ---- what the model says ---- */

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

static double factor(int func, int n)
{
    if (func == KL_FUNC_ALL_REDUCE) return 2.0 * (n - 1) / n;
    return func == KL_FUNC_ALL_GATHER || func == KL_FUNC_REDUCE_SCATTER ? (double)(n - 1) / n : 1;
}

/* Microseconds; 0: nothing can do it. */
static double predict(const struct kl_tuning *t, int func, int64_t size)
{
    struct kl_tuning_op op = kl_tuning_op_of(func, size, ncclFloat, ncclSum);
    struct kl_tuning_choice choice;

    return kl_tuning_choose(t, &op, &choice, NULL) ? 0 : (double)choice.time;
}

/* How far times are from a table's: the mean factor over sizes that fill links. 0: no such size. */
static double distance(const struct kl_bench *b, const struct kl_bench_table *t, const struct kl_tuning *tuning,
                       int func, double *slower)
{
    double sum = 0, bias = 0;
    int n = 0;

    for (int i = 0; i < t->n; i++) {
        const struct kl_bench_row *r = &b->row[t->first + i];
        double us = kl_bench_row_us(r), model = r->size < FILLS || us <= 0 ? 0 : predict(tuning, func, r->size);

        if (model <= 0) continue;
        sum += fabs(log(us / model));
        bias += log(us / model);
        n++;
    }
    *slower = n ? exp(bias / n) : 1;
    return n ? exp(sum / n) : 0;
}

/* ---- what would explain a shortfall ---- */

static const struct {
    const char *name, *text, *experiment;
    const char *with[SETTINGS];
    int nets; /* leave NETs out until so many of 8 are left */
} tries[] = {
    {"no_nvls",
     "as if the NVSwitches did not reduce (NVLS)",
     "set NCCL_NVLS_ENABLE=0: if times stay, NVLS was not in use; NCCL_DEBUG=INFO says \"NVLS multicast support\"",
     {"NCCL_NVLS_ENABLE=0"},
     0},
    {"no_p2p",
     "as if GPUs did not reach each other's memory",
     "set NCCL_P2P_DISABLE=1: if times stay, P2P was not in use; NCCL_DEBUG=INFO then says \"via SHM\"",
     {"NCCL_P2P_DISABLE=1"},
     0},
    {"no_gdr",
     "as if data went through host memory on their way to the NICs (no GPUDirect)",
     "set NCCL_NET_GDR_LEVEL=LOC: if times stay, GPUDirect was not in use; NCCL_DEBUG=INFO says \"/GDRDMA\"",
     {"NCCL_NET_GDR_LEVEL=LOC"},
     0},
    {"no_pxn",
     "as if GPUs did not send through each other's NICs (PXN)",
     "set NCCL_PXN_DISABLE=1: if times stay, PXN was not in use",
     {"NCCL_PXN_DISABLE=1"},
     0},
    {"half_nets",
     "as if half of the NICs were used",
     "ibstat and NCCL_DEBUG=INFO (NET/IB : Using) show which are; NCCL_IB_HCA names them",
     {NULL},
     4},
    {"quarter_nets",
     "as if a quarter of the NICs were used",
     "ibstat and NCCL_DEBUG=INFO (NET/IB : Using) show which are; NCCL_IB_HCA names them",
     {NULL},
     2},
    {"one_net",
     "as if one NIC were used",
     "ibstat and NCCL_DEBUG=INFO (NET/IB : Using) show which are; NCCL_IB_HCA names them",
     {NULL},
     1},
    {"channels_1",
     "as if there were one channel",
     "NCCL_DEBUG=INFO prints \"coll channels\"; NCCL_MIN_NCHANNELS=16 raises it",
     {"NCCL_MAX_NCHANNELS=1"},
     0},
    {"channels_2",
     "as if there were two channels",
     "NCCL_DEBUG=INFO prints \"coll channels\"; NCCL_MIN_NCHANNELS=16 raises it",
     {"NCCL_MAX_NCHANNELS=2"},
     0},
    {"channels_4",
     "as if there were four channels",
     "NCCL_DEBUG=INFO prints \"coll channels\"; NCCL_MIN_NCHANNELS=16 raises it",
     {"NCCL_MAX_NCHANNELS=4"},
     0},
    {"channels_8",
     "as if there were eight channels",
     "NCCL_DEBUG=INFO prints \"coll channels\"; NCCL_MIN_NCHANNELS=16 raises it",
     {"NCCL_MAX_NCHANNELS=8"},
     0},
    {"ll",
     "as if the LL protocol were used",
     "set NCCL_PROTO=LL to see the same; unset NCCL_PROTO",
     {"NCCL_PROTO=LL"},
     0},
    {"simple",
     "as if the Simple protocol were used alone",
     "set NCCL_PROTO=Simple: if times stay, it was; unset NCCL_PROTO",
     {"NCCL_PROTO=Simple"},
     0},
    {"ring",
     "as if rings were used",
     "set NCCL_ALGO=Ring: if times stay, they were; unset NCCL_ALGO",
     {"NCCL_ALGO=Ring"},
     0},
    {"tree",
     "as if trees were used",
     "set NCCL_ALGO=Tree: if times stay, they were; unset NCCL_ALGO",
     {"NCCL_ALGO=Tree"},
     0},
};

struct modelling {
    struct kl_bench *b;
    const struct kl_cluster_request *request;
    struct kl_bench_table *table;
    int func, nets;
};

/* Plan as asked for, with what row `i` of the tries changes; -1: nothing. */
static ncclResult_t plan_with(const struct modelling *k, int i, struct kl_cluster *cluster, struct kl_planned *planned)
{
    struct kl_cluster_request q = *k->request;
    const char *with[SETTINGS + 64], *without[NETS];
    char name[NETS][16];
    int n = 0, m = 0;

    for (int j = 0; j < q.edits.with.n && n < 64; j++) with[n++] = q.edits.with.text[j];
    for (int j = 0; i >= 0 && j < SETTINGS && tries[i].with[j]; j++) with[n++] = tries[i].with[j];
    if (i >= 0 && tries[i].nets)
        for (int j = (k->nets * tries[i].nets + 7) / 8; j < k->nets && m < NETS; j++) {
            snprintf(name[m], sizeof name[m], "NET/%d", j);
            without[m] = name[m];
            m++;
        }
    q.edits.with = (struct kl_edit_list){with, n};
    if (m) q.edits.without = (struct kl_edit_list){without, m};
    KL_TRY(kl_cluster_open(&q, cluster));
    ncclResult_t rc = kl_planned_init(cluster, planned);

    if (!rc) return ncclSuccess;
    kl_planned_fini(planned);
    kl_cluster_close(cluster);
    return rc;
}

static void try_row(const struct modelling *k, int i)
{
    struct kl_bench_table *t = k->table;
    struct kl_cluster cluster;
    struct kl_planned planned = {.plan = NULL};
    double slower, off;

    if (tries[i].nets && (k->nets < 2 || (k->nets * tries[i].nets + 7) / 8 >= k->nets)) return;
    if (plan_with(k, i, &cluster, &planned)) return;
    off = distance(k->b, t, &planned.plan->tuning, k->func, &slower);
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
        double us = predict(tuning, k->func, r->size);

        r->predicted_us = us;
        r->predicted_bus = us > 0 ? (double)r->size / us / 1e3 * factor(k->func, nranks) : 0;
    }
}

static bool fits(const struct modelling *k, const struct kl_planned *planned)
{
    int n = planned->plan->nranks;

    if (k->table->nranks == n) return true;
    if (!k->b->why[0])
        snprintf(k->b->why, sizeof k->b->why, "a table has %d ranks, the machine %d (--hosts, --gpus)",
                 k->table->nranks, n);
    return false;
}

static ncclResult_t model_table(struct modelling *k)
{
    struct kl_cluster cluster;
    struct kl_planned planned = {.plan = NULL};

    KL_TRY(plan_with(k, -1, &cluster, &planned));
    snprintf(k->b->machine, sizeof k->b->machine, "%.500s", cluster.name);
    k->nets = planned.plan->domain[0].topo->count[KL_NODE_NET];
    if (fits(k, &planned)) {
        predict_rows(k, &planned.plan->tuning, planned.plan->nranks);
        k->table->off = distance(k->b, k->table, &planned.plan->tuning, k->func, &k->table->slower);
        k->table->modelled = true;
    }
    kl_planned_fini(&planned);
    kl_cluster_close(&cluster);
    if (k->table->modelled && k->table->off > 1.2 && k->table->slower > 1.15) find_hypotheses(k);
    return ncclSuccess;
}

static ncclResult_t model_all(struct kl_bench *b, const struct kl_cluster_request *request)
{
    for (int i = 0; i < b->ntable; i++) {
        struct kl_bench_table *t = &b->table[i];
        struct kl_cluster_request q = *request;
        struct modelling k = {.b = b, .request = &q, .table = t, .func = func_of(t->name)};

        if (!q.nccl) kl_nccl_text(kl_nccl_nearest(t->version[0] ? t->version : NULL), b->nccl);
        if (q.nccl) snprintf(b->nccl, sizeof b->nccl, "%.15s", q.nccl);
        q.nccl = b->nccl;
        if (!q.hosts && t->nhosts > 1) q.hosts = t->nhosts;
        if (k.func >= 0 && t->nranks != 1) KL_TRY(model_table(&k));
    }
    return ncclSuccess;
}

/* The machine of a log in the same file: what cannot be made of it is no error. */
static ncclResult_t model_own(struct kl_bench *b, const struct kl_cluster_request *request)
{
    int system = kl_log_system_of(&b->log, kl_log_main(&b->log)), quiet = kl_error_quiet(1);
    const struct kl_log_version *own = kl_log_version_of(&b->log, kl_log_main(&b->log));
    struct kl_cluster_request q = *request;
    struct kl_log_assumed assumed;
    struct kl_xml *xml = NULL;

    if (system < 0 || b->log.amd)
        snprintf(b->why, sizeof b->why, "no machine is named");
    else if (!kl_log_machine(&b->log, system, kl_nccl_nearest(own ? own->text : NULL), &xml, &assumed)) {
        q.document = xml;
        if (model_all(b, &q)) snprintf(b->why, sizeof b->why, "%.250s", kl_error_text());
    }
    kl_xml_free(xml);
    kl_error_quiet(quiet);
    return ncclSuccess;
}

ncclResult_t kl_bench_model(struct kl_bench *b, const struct kl_cluster_request *request)
{
    bool named = kl_cluster_is_named(request);

    return named ? model_all(b, request) : model_own(b, request);
}
