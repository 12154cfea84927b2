/* SPDX-License-Identifier: Apache-2.0 */
/* Terms of a time, reasons against candidates, and sizes where the choice changes: on whole machines. */
#include "graph/tuning_ranges.h"

#include "base/error.h"
#include "plan/test_cluster.h"

#include <math.h>

static struct cluster *open_named(const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "tests/data/topologies/synthetic/%s.xml", name);
    return open_cluster(path);
}

static const struct kl_tuning *tuning_for(struct cluster *c, int hosts)
{
    return &plan_cluster(c, hosts)->tuning;
}

/* ---- on every machine ---- */

static const char *const names[] = {"a100-nvsw-8nic-200g", "h100-nvsw-8nic-400g-coll", "dgx1v-hcm-4nic",
                                    "pcie-8gpu-4nic-100g", "b200-nvsw-8nic-800g",      "gb200-4gpu-4nic",
                                    "nvbridge-2x2-a40",    "power9-6gpu-2nic",         "h100-rail-2gpu-2nic-400g",
                                    "pcie-1cpu-2gpu-amd"};
static const int hosts[] = {1, 2, 5};

/* Call `check` with the model of every machine, with and without CollNet and PAT. */
static void on_all(void (*check)(const struct kl_tuning *t))
{
    FOR_EACH_CASE(name, names)
    {
        struct cluster *c = open_named(*name);

        for (int more = 0; more < 2; more++) {
            c->config.collnet[0] = more ? '1' : 0;
            c->config.tuning.pat = more ? 1 : 2;
            FOR_EACH_CASE(n, hosts) check(tuning_for(c, *n));
        }
        drop_cluster(c);
    }
}

static const int64_t sizes[] = {1, 63, 64, 100, 4096, 100000, 1 << 20, 64 << 20, (int64_t)1 << 34, (int64_t)1 << 45};

static float cost_alone(const struct kl_tuning *t, const struct kl_tuning_op *op, int a, int p)
{
    float cost[KL_ALGOS][KL_PROTOS];
    struct kl_tuning_choice choice;

    (void)kl_tuning_choose(t, op, &choice, cost);
    return cost[a][p];
}

static void sums(const struct kl_tuning *t, const struct kl_tuning_op *op, int a, int p)
{
    struct kl_tuning_terms x;
    double sum;

    kl_tuning_terms(t, op, a, p, &x);
    sum = (double)x.latency.base + (double)x.latency.inside + (double)x.latency.between + (double)x.latency.extra +
          (double)x.correction + (double)x.group + (double)x.transfer + (double)x.fp8;
    if (fabs(sum - (double)x.time) > 1e-5 * (double)x.time)
        fail_msg("%s %s %s: the terms of %lld bytes add up to %g, not %g", kl_func_name[op->func], kl_algo_name[a],
                 kl_proto_name[p], (long long)op->bytes, sum, (double)x.time);
    assert_true(x.time == cost_alone(t, op, a, p));
}

/* A candidate has a refusal if and only if the choice leaves it out. */
static void candidate_is_explained(const struct kl_tuning *t, const struct kl_tuning_op *op, int a, int p)
{
    char text[200];
    struct kl_text why = kl_text_over(text, sizeof text);
    float cost = cost_alone(t, op, a, p);
    enum kl_tuning_refusal refusal = kl_tuning_refused(t, op, a, p);

    if ((refusal == KL_TUNING_ALLOWED) != (cost >= 0))
        fail_msg("%s %s %s costs %g: %s", kl_func_name[op->func], kl_algo_name[a], kl_proto_name[p], (double)cost,
                 kl_tuning_refusal_name(refusal));
    if (refusal == KL_TUNING_ALLOWED) {
        sums(t, op, a, p);
        return;
    }
    kl_tuning_refusal_text(t, op, a, p, &why);
    assert_true(why.length > 10 && !why.cut && !strchr(text, '%'));
}

static void times_are_explained(const struct kl_tuning *t)
{
    for (int f = 0; f < KL_FUNCS; f++)
        for (int kind = 0; kind < 4; kind++) FOR_EACH_CASE(bytes, sizes)
            {
                struct kl_tuning_op op = {.func = f,
                                          .bytes = *bytes,
                                          .npipe = kind == 1 ? 25 : 1,
                                          .nvls = kind != 2,
                                          .collnet = kind != 2,
                                          .prescaled = kind == 2,
                                          .fp8 = kind == 3};

                for (int i = 0; i < KL_ALGOS * KL_PROTOS; i++)
                    candidate_is_explained(t, &op, i / KL_PROTOS, i % KL_PROTOS);
            }
}

static void terms_add_up_and_refusals_have_reasons(void **state)
{
    (void)state;
    on_all(times_are_explained);
}

/* ---- ranges ---- */

static void expect_same_corrections(const struct kl_tuning *t, int algo, int64_t lo, int64_t hi)
{
    struct kl_tuning_op op = {.func = KL_FUNC_ALL_REDUCE, .npipe = 1};
    struct kl_tuning_terms a, b;

    for (int p = 0; p < KL_PROTOS; p++) {
        op.bytes = lo;
        kl_tuning_terms(t, &op, algo, p, &a);
        op.bytes = hi;
        kl_tuning_terms(t, &op, algo, p, &b);
        if (a.tree_share != b.tree_share || a.latency_factor != b.latency_factor)
            fail_msg("corrections change between %lld and %lld bytes", (long long)lo, (long long)hi);
    }
}

static void corrections_are_constant(const struct kl_tuning *t)
{
    for (int64_t lo = 1, next; (next = kl_tuning_next_step(t, lo)) < INT64_MAX; lo = next) {
        assert_true(next > lo);
        expect_same_corrections(t, KL_ALGO_TREE, lo, next - 1);
        expect_same_corrections(t, KL_ALGO_RING, lo, next - 1);
    }
    expect_same_corrections(t, KL_ALGO_TREE, (int64_t)1 << 30, INT64_MAX);
}

static void corrections_change_only_at_steps(void **state)
{
    (void)state;
    on_all(corrections_are_constant);
}

static bool alike(const struct kl_tuning_choice *a, const struct kl_tuning_choice *b)
{
    return a->algo == b->algo && a->proto == b->proto && a->nchannels == b->nchannels && a->nthreads == b->nthreads;
}

/* The choice at a size is the range's, but for lines that nearly touch there, in single precision. */
static void expect_range(const struct kl_tuning *t, struct kl_tuning_op *op, int64_t bytes,
                         const struct kl_tuning_range *r, bool exactly)
{
    struct kl_tuning_choice c = {.algo = -1};
    float cost[KL_ALGOS][KL_PROTOS];

    op->bytes = bytes;
    (void)kl_tuning_choose(t, op, &c, cost);
    if (alike(&c, &r->choice)) return;
    if (!exactly && r->choice.algo >= 0 && cost[r->choice.algo][r->choice.proto] < c.time * 1.000001f) return;
    fail_msg("%s of %lld bytes, in the range from %lld to %lld", kl_func_name[op->func], (long long)bytes,
             (long long)r->first, (long long)r->last);
}

static void ranges_are_right(const struct kl_tuning *t)
{
    uint32_t seed = 4711;

    for (int f = 0; f < KL_FUNCS; f++) {
        struct kl_tuning_op op = {.func = f, .bytes = 1 << 20, .npipe = 1, .nvls = true, .collnet = true};
        struct kl_tuning_range *r;
        int64_t last = (int64_t)1 << 36, expected = 1;
        int n;

        assert_int_equal(kl_tuning_ranges(t, &op, 1, last, &r, &n), ncclSuccess);
        for (int i = 0; i < n; i++) {
            assert_true(r[i].first == expected && r[i].last >= r[i].first);
            assert_false(i && alike(&r[i].choice, &r[i - 1].choice));
            expect_range(t, &op, r[i].first, &r[i], true);
            expect_range(t, &op, r[i].last, &r[i], true);
            for (int k = 0; k < 20; k++)
                expect_range(t, &op, r[i].first + (r[i].last - r[i].first) / 1000 * any_of(&seed, 1000), &r[i], false);
            expected = r[i].last + 1;
        }
        assert_true(expected == last + 1);
        free(r);
    }
}

static void ranges_change_where_the_choice_does(void **state)
{
    (void)state;
    on_all(ranges_are_right);
}

/* The size that was asked for is always right, also where lines cross at a narrow angle. */
static void what_was_asked_is_exact(void **state)
{
    struct cluster *c = open_named("dgx1v-hcm-4nic");
    const struct kl_tuning *t = tuning_for(c, 2);
    struct kl_tuning_op op = {.func = KL_FUNC_ALL_REDUCE, .npipe = 1};
    struct kl_tuning_range *all, *r;
    int n, nall;

    (void)state;
    assert_int_equal(kl_tuning_ranges(t, &op, 1, 1 << 30, &all, &nall), ncclSuccess);
    for (int i = 1; i < nall; i++)
        for (int64_t bytes = all[i].first - 40; bytes < all[i].first + 40; bytes++) {
            int k = 0;

            if (bytes < 1) continue;
            op.bytes = bytes;
            assert_int_equal(kl_tuning_ranges(t, &op, 1, 1 << 30, &r, &n), ncclSuccess);
            while (r[k].last < bytes) k++;
            expect_range(t, &op, bytes, &r[k], true);
            free(r);
        }
    free(all);
    drop_cluster(c);
}

static void extreme_sizes_have_ranges(void **state)
{
    struct cluster *c = open_named("a100-nvsw-8nic-200g");
    struct kl_tuning_op op = {.func = KL_FUNC_ALL_REDUCE, .npipe = 1};
    struct kl_tuning_range *r;
    int n;

    (void)state;
    assert_int_equal(kl_tuning_ranges(tuning_for(c, 2), &op, INT64_MAX - 5, INT64_MAX, &r, &n), ncclSuccess);
    assert_true(n == 1 && r[0].choice.algo >= 0 && r[0].last == INT64_MAX);
    free(r);
    assert_int_equal(kl_tuning_ranges(tuning_for(c, 2), &op, 7, 7, &r, &n), ncclSuccess);
    assert_true(n == 1 && r[0].first == 7 && r[0].last == 7);
    free(r);
    drop_cluster(c);
}

/* ---- reasons ---- */

/* Two hosts of eight A100, with one change per rule. */
struct change {
    int nccl, nnodes, sm, max_sm, type_intra, type_inter, local;
    bool nvls, collnet, chains_elsewhere;
    int pat;
    const char *algo, *proto;
    struct kl_tuning_op op;
};

static const struct refusal_case {
    const char *label;
    int algo, proto;
    struct change change;
    enum kl_tuning_refusal refusal;
    const char *part; /* of the text */
} refusals[] = {
    {"fine", KL_ALGO_RING, KL_PROTO_LL128, {.op.func = KL_FUNC_ALL_REDUCE}, KL_TUNING_ALLOWED, ""},
    {"function", KL_ALGO_TREE, 2, {.op.func = KL_FUNC_BROADCAST}, KL_REFUSED_FUNC, "Broadcast"},
    {"function", KL_ALGO_PAT, 2, {.op.func = KL_FUNC_ALL_REDUCE}, KL_REFUSED_FUNC, "AllReduce"},
    {"protocol", KL_ALGO_NVLS, 0, {.op.func = KL_FUNC_ALL_REDUCE}, KL_REFUSED_PROTO, "Simple"},
    {"PAT off", KL_ALGO_PAT, 2, {.op.func = KL_FUNC_ALL_GATHER, .pat = -1}, KL_REFUSED_PAT_OFF, "NCCL_PAT_ENABLE"},
    {"PAT sm", KL_ALGO_PAT, 2, {.op.func = KL_FUNC_ALL_GATHER, .sm = 50}, KL_REFUSED_PAT_SM, "sm 50"},
    {"PAT ranks", KL_ALGO_PAT, 2, {.op.func = KL_FUNC_ALL_GATHER}, KL_REFUSED_PAT_RANKS, "here 8"},
    {"PAT op",
     KL_ALGO_PAT,
     2,
     {.op = {.func = KL_FUNC_REDUCE_SCATTER, .prescaled = true}, .pat = 1, .nccl = 23007},
     KL_REFUSED_PAT_OP,
     "scales"},
    {"PAT op now",
     KL_ALGO_PAT,
     2,
     {.op = {.func = KL_FUNC_REDUCE_SCATTER, .prescaled = true}, .pat = 1},
     KL_TUNING_ALLOWED,
     ""},
    {"no CollNet", KL_ALGO_COLLNET_CHAIN, 2, {.op.func = KL_FUNC_ALL_REDUCE}, KL_REFUSED_NO_COLLNET, "COLLNET_ENABLE"},
    {"no NVLS", KL_ALGO_NVLS_TREE, 2, {.op.func = KL_FUNC_ALL_REDUCE}, KL_REFUSED_NO_NVLS, "sm 90"},
    {"NVLS op",
     KL_ALGO_NVLS_TREE,
     2,
     {.op.func = KL_FUNC_ALL_REDUCE, .nvls = true, .sm = 90},
     KL_REFUSED_NVLS_OP,
     "NVSwitch"},
    {"NVLS nodes",
     KL_ALGO_NVLS,
     2,
     {.op = {.func = KL_FUNC_ALL_REDUCE, .nvls = true}, .nvls = true},
     KL_REFUSED_NVLS_NODES,
     "CollNet"},
    {"one node",
     KL_ALGO_NVLS_TREE,
     2,
     {.op = {.func = KL_FUNC_ALL_REDUCE, .nvls = true}, .nvls = true, .nnodes = 1},
     KL_REFUSED_ONE_NODE,
     "more than one node"},
    {"CollNet op",
     KL_ALGO_COLLNET_CHAIN,
     2,
     {.op.func = KL_FUNC_ALL_REDUCE, .collnet = true},
     KL_REFUSED_COLLNET_OP,
     ""},
    {"CollNet chains",
     KL_ALGO_COLLNET_CHAIN,
     2,
     {.op = {.func = KL_FUNC_ALL_REDUCE, .collnet = true}, .collnet = true, .chains_elsewhere = true},
     KL_REFUSED_CHAIN_HEADS,
     "other GPUs"},
    {"CollNet chains once",
     KL_ALGO_COLLNET_CHAIN,
     2,
     {.op = {.func = KL_FUNC_ALL_REDUCE, .collnet = true}, .collnet = true, .chains_elsewhere = true, .nccl = 23004},
     KL_TUNING_ALLOWED,
     ""},
    {"CollNetDirect has none",
     KL_ALGO_COLLNET_DIRECT,
     2,
     {.op = {.func = KL_FUNC_ALL_REDUCE, .collnet = true}, .collnet = true, .chains_elsewhere = true},
     KL_TUNING_ALLOWED,
     ""},
    {"CollNet local",
     KL_ALGO_COLLNET_DIRECT,
     2,
     {.op = {.func = KL_FUNC_ALL_REDUCE, .collnet = true}, .collnet = true, .local = 9},
     KL_REFUSED_COLLNET_LOCAL,
     "here 9"},
    {"CollNet gather",
     KL_ALGO_COLLNET_DIRECT,
     2,
     {.op = {.func = KL_FUNC_ALL_GATHER, .collnet = true}, .collnet = true},
     KL_REFUSED_COLLNET_GATHER,
     "AllGather"},
    {"NCCL_ALGO", KL_ALGO_TREE, 2, {.op.func = KL_FUNC_ALL_REDUCE, .algo = "ring"}, KL_REFUSED_BY_ALGO, "NCCL_ALGO"},
    {"NCCL_PROTO", KL_ALGO_TREE, 2, {.op.func = KL_FUNC_ALL_REDUCE, .proto = "LL"}, KL_REFUSED_BY_PROTO, "NCCL_PROTO"},
    {"LL128 intra",
     KL_ALGO_RING,
     KL_PROTO_LL128,
     {.op.func = KL_FUNC_ALL_REDUCE, .type_intra = KL_PATH_PHB},
     KL_REFUSED_LL128_INTRA,
     "type PHB"},
    {"LL128 inter",
     KL_ALGO_RING,
     KL_PROTO_LL128,
     {.op.func = KL_FUNC_ALL_REDUCE, .type_inter = KL_PATH_PXN},
     KL_REFUSED_LL128_INTER,
     "type PXN"},
    {"PXN is fine from sm 90 on",
     KL_ALGO_RING,
     KL_PROTO_LL128,
     {.op.func = KL_FUNC_ALL_REDUCE, .type_inter = KL_PATH_PXN, .sm = 90},
     KL_TUNING_ALLOWED,
     ""},
    {"LL128 mixed",
     KL_ALGO_RING,
     KL_PROTO_LL128,
     {.op.func = KL_FUNC_ALL_REDUCE, .max_sm = 90},
     KL_REFUSED_LL128_MIXED,
     "down to sm 80"},
    {"LL128 sm", KL_ALGO_RING, KL_PROTO_LL128, {.op.func = KL_FUNC_ALL_REDUCE, .sm = 60}, KL_REFUSED_LL128_SM, "sm 60"},
    {"LL128 sm once",
     KL_ALGO_RING,
     KL_PROTO_LL128,
     {.op.func = KL_FUNC_ALL_REDUCE, .sm = 86, .nccl = KL_NCCL_2_26_3},
     KL_REFUSED_LL128_SM,
     "sm 86"},
    {"LL128 sm now", KL_ALGO_RING, KL_PROTO_LL128, {.op.func = KL_FUNC_ALL_REDUCE, .sm = 86}, KL_TUNING_ALLOWED, ""},
};

static struct kl_tuning changed(const struct kl_tuning *plain, const struct change *x)
{
    struct kl_tuning_input in = plain->in;
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning t;

    if (x->nccl) in.nccl = x->nccl;
    if (x->nnodes) in.nnodes = x->nnodes;
    if (x->sm) in.min_sm = in.max_sm = x->sm;
    if (x->max_sm) in.max_sm = x->max_sm;
    if (x->type_intra) in.graph[KL_GRAPH_RING].type_intra = x->type_intra;
    if (x->type_inter) in.graph[KL_GRAPH_RING].type_inter = x->type_inter;
    if (x->local) in.max_local_ranks = x->local;
    if (x->nvls) in.nvls = true, in.graph[KL_GRAPH_NVLS] = in.graph[KL_GRAPH_RING];
    if (x->collnet) {
        in.collnet = true;
        in.graph[KL_GRAPH_COLLNET_CHAIN] = in.graph[KL_GRAPH_COLLNET_DIRECT] = in.graph[KL_GRAPH_RING];
    }
    in.chains_elsewhere = x->chains_elsewhere;
    if (x->pat) params.pat = x->pat < 0 ? 0 : x->pat;
    params.algo = x->algo;
    params.proto = x->proto;
    assert_int_equal(kl_tuning_compute(&kl_tuning_reference, &in, &params, &t), ncclSuccess);
    return t;
}

static void each_rule_gives_its_reason(void **state)
{
    struct cluster *cluster = open_named("a100-nvsw-8nic-200g");
    const struct kl_tuning *plain = tuning_for(cluster, 2);

    (void)state;
    FOR_EACH_CASE(c, refusals)
    {
        struct kl_tuning t = changed(plain, &c->change);
        struct kl_tuning_op op = c->change.op;
        char text[200];
        struct kl_text why = kl_text_over(text, sizeof text);

        op.npipe = 1;
        if (!op.bytes) op.bytes = 1 << 20;
        if (kl_tuning_refused(&t, &op, c->algo, c->proto) != c->refusal)
            fail_msg("%s: %s", c->label, kl_tuning_refusal_name(kl_tuning_refused(&t, &op, c->algo, c->proto)));
        kl_tuning_refusal_text(&t, &op, c->algo, c->proto, &why);
        if (!strstr(text, c->part)) fail_msg("%s: \"%s\"", c->label, text);
    }
    drop_cluster(cluster);
}

static void every_refusal_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < KL_REFUSALS; i++) {
        assert_non_null(kl_tuning_refusal_name(i));
        for (int k = 0; k < i; k++) assert_string_not_equal(kl_tuning_refusal_name(i), kl_tuning_refusal_name(k));
    }
    for (int i = 0; i < KL_OFFLOADS; i++) assert_non_null(kl_offload_text(i));
}

/* ---- switches that reduce ---- */

static const struct offload_case {
    const char *name;
    int hosts, nvls;
    const char *collnet;
    enum kl_offload no_nvls, no_collnet;
} offloads[] = {
    {"h100-nvsw-8nic-400g-coll", 2, 2, "1", KL_OFFLOAD_OK, KL_OFFLOAD_OK},
    {"h100-nvsw-8nic-400g-coll", 1, 2, "1", KL_OFFLOAD_OK, KL_OFFLOAD_NO_NIC}, /* one host needs no NICs: trimmed */
    {"h100-nvsw-8nic-400g-coll", 2, 0, "", KL_OFFLOAD_SWITCHED_OFF, KL_OFFLOAD_NOT_ASKED},
    {"h100-nvsw-8nic-400g", 2, 2, "1", KL_OFFLOAD_OK, KL_OFFLOAD_NO_NIC},
    {"h100-nvsw-0nic", 2, 2, "1", KL_OFFLOAD_OK, KL_OFFLOAD_OK}, /* no NICs are described at all */
    {"h100-nvsw-0nic", 1, 2, "1", KL_OFFLOAD_OK, KL_OFFLOAD_NO_NIC},
    {"h100-rail-2gpu-2nic-400g", 2, 2, "", KL_OFFLOAD_OK, KL_OFFLOAD_NOT_ASKED},
    {"single-gpu-1nic", 2, 2, "", KL_OFFLOAD_FEW_GPUS, KL_OFFLOAD_NOT_ASKED},
    {"a100-nvsw-8nic-200g", 2, 2, "", KL_OFFLOAD_OLD_GPUS, KL_OFFLOAD_NOT_ASKED},
    {"pcie-8gpu-4nic-100g", 2, 1, "", KL_OFFLOAD_NO_CHANNELS, KL_OFFLOAD_NOT_ASKED},
};

static void switches_say_why_they_do_not_reduce(void **state)
{
    (void)state;
    FOR_EACH_CASE(o, offloads)
    {
        struct cluster *c = open_named(o->name);

        c->config.nvls = o->nvls;
        snprintf(c->config.collnet, sizeof c->config.collnet, "%s", o->collnet);
        const struct kl_tuning *t = tuning_for(c, o->hosts);

        if (t->in.no_nvls != o->no_nvls || t->in.no_collnet != o->no_collnet)
            fail_msg("%s on %d: NVLS %s, CollNet %s", o->name, o->hosts, kl_offload_text(t->in.no_nvls),
                     kl_offload_text(t->in.no_collnet));
        assert_true(t->in.nvls == !o->no_nvls && t->in.collnet == !o->no_collnet);
        drop_cluster(c);
    }
}

static const struct op_case {
    int func;
    ncclDataType_t type;
    ncclRedOp_t op;
    bool nvls, prescaled, fp8;
} ops[] = {
    {KL_FUNC_ALL_REDUCE, ncclFloat, ncclSum, true, false, false},
    {KL_FUNC_ALL_REDUCE, ncclFloat, ncclMax, false, false, false},
    {KL_FUNC_ALL_REDUCE, ncclHalf, ncclMin, true, false, false},
    {KL_FUNC_ALL_REDUCE, ncclInt64, ncclProd, false, false, false},
    {KL_FUNC_ALL_REDUCE, ncclInt8, ncclSum, false, false, false},
    {KL_FUNC_REDUCE_SCATTER, ncclBfloat16, ncclAvg, false, true, false},
    {KL_FUNC_ALL_REDUCE, ncclFloat8e4m3, ncclSum, false, false, true},
    {KL_FUNC_ALL_GATHER, ncclFloat8e5m2, ncclAvg, true, false, false},
};

static void types_and_operations_decide(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, ops)
    {
        struct kl_tuning_op op = kl_tuning_op_of(c->func, 100, c->type, c->op);

        assert_true(op.nvls == c->nvls && op.prescaled == c->prescaled && op.fp8 == c->fp8);
        assert_true(op.func == c->func && op.bytes == 100 && op.npipe == 1 && op.collnet);
    }
    assert_int_equal(kl_tuning_type_sm(&kl_tuning_reference, ncclFloat8e5m2), 90);
    assert_int_equal(kl_tuning_type_sm(&kl_tuning_reference, ncclHalf), 0);
    assert_int_equal(kl_tuning_type_sm(&kl_tuning_host, ncclFloat8e5m2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_add_up_and_refusals_have_reasons),
        cmocka_unit_test(corrections_change_only_at_steps),
        cmocka_unit_test(ranges_change_where_the_choice_does),
        cmocka_unit_test(what_was_asked_is_exact),
        cmocka_unit_test(extreme_sizes_have_ranges),
        cmocka_unit_test(each_rule_gives_its_reason),
        cmocka_unit_test(every_refusal_has_a_name),
        cmocka_unit_test(switches_say_why_they_do_not_reduce),
        cmocka_unit_test(types_and_operations_decide),
    };

    kl_error_quiet(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
