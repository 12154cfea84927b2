/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuning.h"

#include "base/error.h"
#include "tests/kolo_test.h"

#include <math.h>

/* ---- NCCL_ALGO and NCCL_PROTO ---- */

/* The result, as bits per function: Tree 1, Ring 2, CollNetDirect 4, CollNetChain 8, NVLS 16, NVLSTree 32, PAT 64. */
static const struct grammar_case {
    const char *text;
    ncclResult_t rc;
    int broadcast, reduce, all_gather, reduce_scatter, all_reduce;
} algos[] = {
    {"Ring", ncclSuccess, 2, 2, 2, 2, 2},
    {"ring,tree", ncclSuccess, 3, 3, 3, 3, 3},
    {"^tree", ncclSuccess, 126, 126, 126, 126, 126},
    {"^NVLS,NVLSTree", ncclSuccess, 79, 79, 79, 79, 79},
    {"allreduce:Tree", ncclSuccess, 127, 127, 127, 127, 1},
    {"ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring", ncclSuccess, 2, 6, 6, 6, 5},
    {"AllGather:pat;AllGather:ring", ncclSuccess, 127, 127, 2, 127, 127},
    {",ring,,tree,", ncclSuccess, 3, 3, 3, 3, 3},
    {";;ring;", ncclSuccess, 2, 2, 2, 2, 2},
    {"", ncclSuccess, 127, 127, 127, 127, 127},
    {"^", ncclSuccess, 127, 127, 127, 127, 127},
    {"reduce:", ncclSuccess, 127, 0, 127, 127, 127},
    {"rings", ncclInvalidUsage, 127, 127, 127, 127, 127},
    {"ring;tree", ncclInvalidUsage, 127, 127, 127, 127, 127},
    {"alltoall:ring", ncclInvalidUsage, 127, 127, 127, 127, 127},
    {"ring;broadcast:nothing", ncclInvalidUsage, 127, 127, 127, 127, 127},
    {"ring^tree", ncclInvalidUsage, 127, 127, 127, 127, 127},
};

static int bits(const int row[KL_ALGOS])
{
    int all = 0;

    for (int i = 0; i < KL_NCCL_ALGOS; i++) all |= (row[i] != 0) << i;
    return all;
}

static void lists_parse(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, algos)
    {
        int on[KL_FUNCS][KL_ALGOS];

        for (int f = 0; f < KL_FUNCS; f++)
            for (int a = 0; a < KL_ALGOS; a++) on[f][a] = 1;
        expect_case(c->text, kl_tuning_parse("NCCL_ALGO", c->text, kl_algo_name, KL_NCCL_ALGOS, on) == c->rc);
        expect_case(c->text, bits(on[KL_FUNC_BROADCAST]) == c->broadcast && bits(on[KL_FUNC_REDUCE]) == c->reduce);
        expect_case(c->text, bits(on[KL_FUNC_ALL_GATHER]) == c->all_gather);
        expect_case(c->text, bits(on[KL_FUNC_REDUCE_SCATTER]) == c->reduce_scatter);
        expect_case(c->text, bits(on[KL_FUNC_ALL_REDUCE]) == c->all_reduce);
    }
}

static void errors_name_what_is_known(void **state)
{
    int on[KL_FUNCS][KL_ALGOS] = {0};

    (void)state;
    assert_int_equal(kl_tuning_parse("NCCL_PROTO", "simpel", kl_proto_name, KL_PROTOS, on), ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "NCCL_PROTO: no name \"simpel\"; known are LL, LL128, Simple"));
    assert_int_equal(kl_tuning_parse("NCCL_PROTO", "LL;Simple", kl_proto_name, KL_PROTOS, on), ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "allreduce:"));
}

/* ---- the model: two hosts of eight A100, as NCCL computes it ---- */

static struct kl_tuning_input two_hosts(void)
{
    struct kl_tuning_input in = {.nranks = 16,
                                 .nnodes = 2,
                                 .max_local_ranks = 8,
                                 .nchannels = 16,
                                 .min_sm = 80,
                                 .max_sm = 80,
                                 .cpu_arch = KL_ARCH_X86,
                                 .cpu_vendor = KL_VENDOR_AMD,
                                 .max_tree_pattern = KL_PATTERN_BALANCED_TREE,
                                 .nvs = true,
                                 .net_is_host = true};

    in.graph[KL_GRAPH_RING] = (struct kl_graph_facts){.pattern = KL_PATTERN_RING,
                                                      .nchannels = 8,
                                                      .type_intra = KL_PATH_NVL,
                                                      .type_inter = KL_PATH_PIX,
                                                      .bw_intra = 24,
                                                      .bw_inter = 24};
    in.graph[KL_GRAPH_TREE] = in.graph[KL_GRAPH_RING];
    in.graph[KL_GRAPH_TREE].pattern = KL_PATTERN_BALANCED_TREE;
    in.graph[KL_GRAPH_TREE].bw_intra = 30;
    return in;
}

static struct kl_tuning tuning_of(const struct kl_tuning_input *in, const struct kl_tuning_params *params)
{
    struct kl_tuning t;

    assert_int_equal(kl_tuning_compute(&kl_tuning_reference, in, params, &t), ncclSuccess);
    return t;
}

static const struct model_case {
    int func, algo, proto;
    float latency, bandwidth;
} models[] = {
    {KL_FUNC_BROADCAST, KL_ALGO_RING, KL_PROTO_LL, 49.8f, 22.5f},
    {KL_FUNC_BROADCAST, KL_ALGO_RING, KL_PROTO_LL128, 78, 160},
    {KL_FUNC_REDUCE, KL_ALGO_RING, KL_PROTO_SIMPLE, 232.4f, 192},
    {KL_FUNC_BROADCAST, KL_ALGO_TREE, KL_PROTO_SIMPLE, 0, 0},
    {KL_FUNC_ALL_GATHER, KL_ALGO_RING, KL_PROTO_LL, 37.3f, 24},
    {KL_FUNC_ALL_GATHER, KL_ALGO_RING, KL_PROTO_SIMPLE, 106.4f, 204.8f},
    {KL_FUNC_REDUCE_SCATTER, KL_ALGO_PAT, KL_PROTO_SIMPLE, 0, 0},
    {KL_FUNC_ALL_REDUCE, KL_ALGO_TREE, KL_PROTO_LL, 25.2f, 11.25f},
    {KL_FUNC_ALL_REDUCE, KL_ALGO_TREE, KL_PROTO_LL128, 48.5f, 80},
    {KL_FUNC_ALL_REDUCE, KL_ALGO_TREE, KL_PROTO_SIMPLE, 92.4f, 94.4f},
    {KL_FUNC_ALL_REDUCE, KL_ALGO_RING, KL_PROTO_LL, 68, 12},
    {KL_FUNC_ALL_REDUCE, KL_ALGO_RING, KL_PROTO_SIMPLE, 204.4f, 102.4f},
};

static void the_reference_model_is_nccls(void **state)
{
    struct kl_tuning_input in = two_hosts();
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning t = tuning_of(&in, &params);

    (void)state;
    FOR_EACH_CASE(c, models)
    {
        expect_case(kl_algo_name[c->algo], fabsf(t.latency[c->func][c->algo][c->proto] - c->latency) < 0.01f);
        expect_case(kl_algo_name[c->algo], fabsf(t.bandwidth[c->func][c->algo][c->proto] - c->bandwidth) < 0.01f);
    }
    params.pat = 1;
    in.graph[KL_GRAPH_TREE].latency_inter = 3.5f; /* counts twice */
    t = tuning_of(&in, &params);
    assert_float_equal(t.latency[KL_FUNC_ALL_GATHER][KL_ALGO_PAT][KL_PROTO_SIMPLE], 8 + 2 + 16 * 2.8f, 0.01f);
}

static const struct choice_case {
    int func, log2_bytes, algo, proto, nchannels, nthreads;
    float time;
} choices[] = {
    {KL_FUNC_BROADCAST, 3, KL_ALGO_RING, KL_PROTO_LL, 1, 96, 49.800354f},
    {KL_FUNC_ALL_GATHER, 3, KL_ALGO_RING, KL_PROTO_LL, 1, 96, 37.30033f},
    {KL_FUNC_ALL_REDUCE, 3, KL_ALGO_TREE, KL_PROTO_LL, 1, 640, 25.200712f},
    {KL_FUNC_ALL_REDUCE, 30, KL_ALGO_RING, KL_PROTO_SIMPLE, 16, 544, 10771.9f},
};

static void the_fastest_is_chosen(void **state)
{
    struct kl_tuning_input in = two_hosts();
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning t = tuning_of(&in, &params);

    (void)state;
    FOR_EACH_CASE(c, choices)
    {
        struct kl_tuning_op op = {.func = c->func, .bytes = (int64_t)1 << c->log2_bytes, .npipe = 1, .nvls = true};
        struct kl_tuning_choice choice;

        expect_case(kl_func_name[c->func], !kl_tuning_choose(&t, &op, &choice, NULL));
        expect_case(kl_func_name[c->func], choice.algo == c->algo && choice.proto == c->proto);
        expect_case(kl_func_name[c->func], choice.nchannels == c->nchannels && choice.nthreads == c->nthreads);
        expect_case(kl_func_name[c->func], fabsf(choice.time - c->time) < 0.001f * c->time);
    }
}

/* Costs that somebody else changed decide. */
static void changed_costs_decide(void **state)
{
    struct kl_tuning_input in = two_hosts();
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning t = tuning_of(&in, &params);
    struct kl_tuning_op op = {.func = KL_FUNC_ALL_REDUCE, .bytes = 8, .npipe = 1};
    struct kl_tuning_choice choice;
    float cost[KL_ALGOS][KL_PROTOS];

    (void)state;
    assert_int_equal(kl_tuning_choose(&t, &op, &choice, cost), ncclSuccess);
    cost[KL_ALGO_RING][KL_PROTO_SIMPLE] = 0;
    assert_int_equal(kl_tuning_pick(&t, &op, (const float(*)[KL_PROTOS])cost, &choice), ncclSuccess);
    assert_true(choice.algo == KL_ALGO_RING && choice.proto == KL_PROTO_SIMPLE);
}

/* ---- the user's settings ---- */

static void forced_choices_are_kept_or_refused(void **state)
{
    struct kl_tuning_input in = two_hosts();
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning_op op = {.func = KL_FUNC_ALL_REDUCE, .bytes = 8, .npipe = 1};
    struct kl_tuning_choice choice;

    (void)state;
    params.algo = "ring";
    params.proto = "Simple";
    struct kl_tuning t = tuning_of(&in, &params);
    assert_int_equal(kl_tuning_choose(&t, &op, &choice, NULL), ncclSuccess);
    assert_true(choice.algo == KL_ALGO_RING && choice.proto == KL_PROTO_SIMPLE);
    params.algo = "nonsense";
    assert_int_equal(kl_tuning_compute(&kl_tuning_reference, &in, &params, &t), ncclInvalidUsage);
}

static const struct nothing_case {
    const char *algo, *proto;
    int func;
    const char *text;
} nothings[] = {
    {"Tree", NULL, KL_FUNC_ALL_GATHER,
     "NCCL_ALGO=Tree leaves nothing that can do AllGather here; Ring (LL, LL128, Simple) can"},
    {"Tree", "Simple", KL_FUNC_BROADCAST,
     "NCCL_ALGO=Tree and NCCL_PROTO=Simple leave nothing that can do Broadcast here; "
     "Ring (LL, LL128, Simple) can"},
    {"collnetchain", NULL, KL_FUNC_ALL_REDUCE,
     "NCCL_ALGO=collnetchain leaves nothing that can do AllReduce here; Tree (LL, LL128, Simple), "
     "Ring (LL, LL128, Simple) can"},
    {NULL, "allgather:", KL_FUNC_ALL_GATHER,
     "NCCL_PROTO=allgather: leaves nothing that can do AllGather here; Ring (LL, LL128, Simple) can"},
};

/* A list that leaves a function without candidates is valid: only calls of that function fail. */
static void what_is_left_decides_for_each_function(void **state)
{
    struct kl_tuning_input in = two_hosts();
    struct kl_tuning_params params = KL_TUNING_PARAMS;

    (void)state;
    FOR_EACH_CASE(c, nothings)
    {
        params.algo = c->algo;
        params.proto = c->proto;
        struct kl_tuning t = tuning_of(&in, &params);

        for (int f = 0; f < KL_FUNCS; f++) {
            struct kl_tuning_op op = {.func = f, .bytes = 1 << 20, .npipe = 1};
            struct kl_tuning_choice choice;
            bool tree = f == KL_FUNC_ALL_REDUCE && c->algo && !strcmp(c->algo, "Tree");
            bool left = tree || (!c->algo && f != c->func);

            assert_int_equal(kl_tuning_choose(&t, &op, &choice, NULL), left ? ncclSuccess : ncclInvalidUsage);
            if (f == c->func) assert_string_equal(kl_error_text(), c->text);
        }
    }
}

/* LL128 is off where stores may be torn, unless it is asked for; excluding another protocol is asking for it. */
static void ll128_is_for_machines_that_keep_it_whole(void **state)
{
    struct kl_tuning_input in = two_hosts();
    struct kl_tuning_params params = KL_TUNING_PARAMS;

    (void)state;
    in.graph[KL_GRAPH_RING].type_intra = KL_PATH_PHB;
    struct kl_tuning t = tuning_of(&in, &params);
    assert_true(t.bandwidth[KL_FUNC_ALL_REDUCE][KL_ALGO_RING][KL_PROTO_LL128] == 0);
    assert_true(t.bandwidth[KL_FUNC_ALL_REDUCE][KL_ALGO_TREE][KL_PROTO_LL128] > 0);
    params.proto = "^LL";
    t = tuning_of(&in, &params);
    assert_true(t.bandwidth[KL_FUNC_ALL_REDUCE][KL_ALGO_RING][KL_PROTO_LL128] > 0);
    assert_true(t.bandwidth[KL_FUNC_ALL_REDUCE][KL_ALGO_RING][KL_PROTO_LL] == 0);
}

static const struct thread_case {
    const char *label;
    int64_t nthreads, ll128;
    float bw;
    int ring_simple, tree_ll, ring_ll128;
} threads[] = {
    {"unset", -2, -2, 24, 512, 512, 640},
    {"small ring", -2, -2, 1.5f, 256, 512, 640},
    {"asked for", 128, 320, 1.5f, 128, 128, 320},
    {"not a multiple of 32", 100, 170, 24, 512, 512, 640},
    {"too many", 1024, 1024, 24, 512, 512, 640},
    {"too few", 32, 32, 24, 64, 64, 160},
    {"zero", 0, 0, 24, 512, 512, 640},
};

static void threads_are_limited(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, threads)
    {
        struct kl_tuning_input in = two_hosts();
        struct kl_tuning_params params = KL_TUNING_PARAMS;

        in.graph[KL_GRAPH_RING].bw_intra = c->bw;
        params.nthreads = c->nthreads;
        params.ll128_nthreads = c->ll128;
        struct kl_tuning t = tuning_of(&in, &params);
        expect_case(c->label, t.max_threads[KL_ALGO_RING][KL_PROTO_SIMPLE] == c->ring_simple);
        expect_case(c->label, t.max_threads[KL_ALGO_TREE][KL_PROTO_LL] == c->tree_ll);
        expect_case(c->label, t.max_threads[KL_ALGO_RING][KL_PROTO_LL128] == c->ring_ll128);
        expect_case(c->label, t.max_threads[KL_ALGO_NVLS][KL_PROTO_SIMPLE] == 640);
    }
}

static void thresholds_can_be_given(void **state)
{
    struct kl_tuning_input in = two_hosts();
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning t = tuning_of(&in, &params);

    (void)state;
    assert_int_equal(t.threshold[KL_ALGO_RING][KL_PROTO_LL], 128);
    params.thread_thresholds = "1 -2 3 4";
    t = tuning_of(&in, &params);
    assert_int_equal(t.threshold[KL_ALGO_TREE][KL_PROTO_LL], 1);
    assert_int_equal(t.threshold[KL_ALGO_TREE][KL_PROTO_LL128], 8);
    assert_int_equal(t.threshold[KL_ALGO_TREE][KL_PROTO_SIMPLE], 3);
    assert_int_equal(t.threshold[KL_ALGO_RING][KL_PROTO_LL], 4);
    assert_int_equal(t.threshold[KL_ALGO_RING][KL_PROTO_SIMPLE], 64);
}

static void one_rank_needs_no_model(void **state)
{
    struct kl_tuning_input in = two_hosts();
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning_op op = {.func = KL_FUNC_ALL_REDUCE, .bytes = 1 << 20, .npipe = 1};
    struct kl_tuning_choice choice;

    (void)state;
    in.nranks = in.nnodes = 1;
    struct kl_tuning t = tuning_of(&in, &params);
    assert_int_equal(kl_tuning_choose(&t, &op, &choice, NULL), ncclSuccess);
    assert_true(choice.algo == KL_ALGO_RING && choice.proto == KL_PROTO_SIMPLE && choice.time == 0);
    assert_int_equal(choice.nchannels, 16);
    assert_int_equal(choice.nthreads, 544);
}

/* A terabyte over the search's fallback takes hours, but is possible. */
static void what_takes_hours_is_done(void **state)
{
    struct kl_tuning_input in = two_hosts();
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning_op op = {.func = KL_FUNC_BROADCAST, .bytes = (int64_t)1 << 40, .npipe = 1};
    struct kl_tuning_choice choice;

    (void)state;
    in.graph[KL_GRAPH_RING].nchannels = 1;
    in.graph[KL_GRAPH_RING].bw_intra = in.graph[KL_GRAPH_RING].bw_inter = 0.1f;
    struct kl_tuning t = tuning_of(&in, &params);
    assert_int_equal(kl_tuning_choose(&t, &op, &choice, NULL), ncclSuccess);
    assert_true(choice.algo == KL_ALGO_RING && choice.time > 3600e6f);
}

/* ---- host devices ---- */

/* One host: a ring of 12 GB/s through a PCI switch, or an NVSwitch that from three GPUs on has NVLS. */
static struct kl_tuning_input one_host(int nranks, bool nvswitch)
{
    struct kl_graph_facts pci = {.nchannels = 1, .type_intra = KL_PATH_PIX, .bw_intra = 12, .bw_inter = 12};
    struct kl_graph_facts nvl = {.nchannels = 12, .type_intra = KL_PATH_NVL, .bw_intra = 30, .bw_inter = 30};
    struct kl_graph_facts nvls = {.nchannels = nranks, .type_intra = KL_PATH_NVL, .bw_intra = 45, .bw_inter = 45};
    struct kl_tuning_input in = {.nranks = nranks, .nnodes = 1, .max_local_ranks = nranks, .min_sm = 90, .max_sm = 90};

    in.graph[KL_GRAPH_RING] = in.graph[KL_GRAPH_TREE] = nvswitch ? nvl : pci;
    in.nchannels = 2 * in.graph[KL_GRAPH_RING].nchannels;
    in.max_tree_pattern = KL_PATTERN_BALANCED_TREE;
    in.nvls = in.nvs = nvswitch && nranks > 2;
    if (in.nvls) in.graph[KL_GRAPH_NVLS] = nvls;
    in.nvls_channels = 16;
    return in;
}

static struct kl_tuning host_tuning(const struct kl_tuning_input *in, const struct kl_tuning_params *params)
{
    struct kl_tuning t;

    assert_int_equal(kl_tuning_compute(&kl_tuning_host, in, params, &t), ncclSuccess);
    return t;
}

/* The algorithms in order of an operation's size. */
enum { FLAT, ONE_SHOT, TREE, RING, NVLS, ELSE };

static int place_of(const struct kl_tuning_choice *c)
{
    if (c->proto != KL_PROTO_SIMPLE) return ELSE;
    if (c->algo == KL_ALGO_FLAT) return FLAT;
    if (c->algo == KL_ALGO_ONE_SHOT) return ONE_SHOT;
    if (c->algo == KL_ALGO_TREE) return TREE;
    if (c->algo == KL_ALGO_RING) return RING;
    return c->algo == KL_ALGO_NVLS ? NVLS : ELSE;
}

/* The choices from 8 B to 4 GB have the order above, none comes back, and times only grow. */
static void choices_follow(int nranks, bool nvswitch, int func)
{
    struct kl_tuning_input in = one_host(nranks, nvswitch);
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning t = host_tuning(&in, &params);
    int place = FLAT;
    bool reduces_for_all = func == KL_FUNC_ALL_REDUCE || func == KL_FUNC_REDUCE_SCATTER;
    float time = 0;

    for (int64_t bytes = 8; bytes <= (int64_t)1 << 32; bytes *= 2) {
        struct kl_tuning_op op = kl_tuning_op_of(func, bytes, ncclFloat, ncclSum);
        struct kl_tuning_choice c;

        assert_int_equal(kl_tuning_choose(&t, &op, &c, NULL), ncclSuccess);
        if (place_of(&c) < place || place_of(&c) == ELSE || c.time < time || (bytes == 8 && place_of(&c) != FLAT))
            fail_msg("%s of %lld bytes on %d ranks%s: %s %s in %g us", kl_func_name[func], (long long)bytes, nranks,
                     nvswitch ? " of an NVSwitch" : "", kl_algo_name[c.algo], kl_proto_name[c.proto], (double)c.time);
        place = place_of(&c);
        time = c.time;
    }
    if ((func == KL_FUNC_ALL_GATHER || func == KL_FUNC_BROADCAST) && nranks > 2)
        return; /* Flat perhaps, whatever the size */
    assert_true(place >= RING);
    if (in.nvls && nranks >= 12 && reduces_for_all) assert_int_equal(place, NVLS);
}

/* NCCL's constants do not know an algorithm that NCCL lacks. */
static void one_shot_is_for_hosts(void **state)
{
    struct kl_tuning_input in = one_host(8, true);
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning_op op = kl_tuning_op_of(KL_FUNC_ALL_REDUCE, 64, ncclFloat, ncclSum);
    struct kl_tuning_choice c;
    struct kl_tuning t;

    (void)state;
    params.algo = "oneshot";
    t = host_tuning(&in, &params);
    assert_int_equal(kl_tuning_choose(&t, &op, &c, NULL), ncclSuccess);
    assert_true(c.algo == KL_ALGO_ONE_SHOT && c.proto == KL_PROTO_SIMPLE && c.nchannels == 1);
    kl_error_quiet(1);
    assert_int_equal(kl_tuning_compute(&kl_tuning_reference, &in, &params, &t), ncclInvalidUsage);
    assert_null(strstr(kl_error_text(), "OneShot"));
    kl_error_quiet(0);
    params.algo = NULL;
    in = one_host(34, true);
    t = host_tuning(&in, &params);
    assert_int_equal(kl_tuning_refused(&t, &op, KL_ALGO_ONE_SHOT, KL_PROTO_SIMPLE), KL_REFUSED_NO_GRID);
    assert_int_equal(kl_tuning_refused(&t, &op, KL_ALGO_ONE_SHOT, KL_PROTO_LL), KL_REFUSED_PROTO);
}

/* Where ranks take turns on cores, a second exchange waits for all of them. */
static void one_shot_is_for_ranks_with_cores(void **state)
{
    static const struct {
        int ranks_per_cpu;
        int64_t bytes;
        enum kl_algo algo;
    } cases[] = {{0, 8, KL_ALGO_ONE_SHOT}, {1, 8, KL_ALGO_ONE_SHOT}, {1, 2048, KL_ALGO_ONE_SHOT},
                 {4, 8, KL_ALGO_FLAT},     {32, 8, KL_ALGO_FLAT},    {32, 2048, KL_ALGO_FLAT}};
    struct kl_tuning_params params = KL_TUNING_PARAMS;

    (void)state;
    FOR_EACH_CASE(k, cases)
    {
        struct kl_tuning_input in = one_host(64, true);
        struct kl_tuning_op op = kl_tuning_op_of(KL_FUNC_ALL_REDUCE, k->bytes, ncclFloat, ncclSum);
        struct kl_tuning_choice c;
        in.ranks_per_cpu = k->ranks_per_cpu;
        struct kl_tuning t = host_tuning(&in, &params);
        assert_int_equal(kl_tuning_choose(&t, &op, &c, NULL), ncclSuccess);
        assert_int_equal(c.algo, k->algo);
    }
}

static void hosts_choose_by_size(void **state)
{
    (void)state;
    for (int nranks = 2; nranks <= 16; nranks++)
        for (int func = 0; func < KL_FUNCS; func++) {
            choices_follow(nranks, false, func);
            choices_follow(nranks, true, func);
        }
}

/* By default as NCCL does: where stores of a line stay whole. */
static void hosts_take_ll128_when_asked(void **state)
{
    struct kl_tuning_input in = one_host(4, false);
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning_op op = kl_tuning_op_of(KL_FUNC_ALL_REDUCE, 4096, ncclFloat, ncclSum);
    struct kl_tuning_choice choice;

    (void)state;
    struct kl_tuning t = host_tuning(&in, &params);
    assert_int_equal(kl_tuning_refused(&t, &op, KL_ALGO_RING, KL_PROTO_LL128), KL_REFUSED_LL128_INTRA);
    params.proto = "LL128";
    t = host_tuning(&in, &params);
    assert_int_equal(kl_tuning_choose(&t, &op, &choice, NULL), ncclSuccess);
    assert_int_equal(choice.proto, KL_PROTO_LL128);
}

static const struct reduction_case {
    int func, algo;
    ncclDataType_t type;
    ncclRedOp_t op;
    enum kl_tuning_refusal reference;
} reductions[] = {
    {KL_FUNC_ALL_REDUCE, KL_ALGO_NVLS, ncclFloat, ncclSum, KL_TUNING_ALLOWED},
    {KL_FUNC_ALL_REDUCE, KL_ALGO_NVLS, ncclFloat, ncclMax, KL_REFUSED_NVLS_OP},
    {KL_FUNC_ALL_REDUCE, KL_ALGO_NVLS, ncclInt8, ncclProd, KL_REFUSED_NVLS_OP},
    {KL_FUNC_ALL_REDUCE, KL_ALGO_NVLS, ncclFloat8e4m3, ncclAvg, KL_REFUSED_NVLS_OP},
    {KL_FUNC_REDUCE_SCATTER, KL_ALGO_NVLS, ncclDouble, ncclMin, KL_REFUSED_NVLS_OP},
    {KL_FUNC_REDUCE_SCATTER, KL_ALGO_PAT, ncclFloat, ncclSum, KL_TUNING_ALLOWED},
    {KL_FUNC_REDUCE_SCATTER, KL_ALGO_PAT, ncclFloat, ncclAvg, KL_REFUSED_PAT_OP},
    {KL_FUNC_ALL_GATHER, KL_ALGO_PAT, ncclFloat, ncclAvg, KL_TUNING_ALLOWED},
};

/* Switches reduce little, segments in memory everything. */
static void hosts_reduce_everything(void **state)
{
    struct kl_tuning_input in = one_host(8, true);
    struct kl_tuning_params params = KL_TUNING_PARAMS;

    (void)state;
    params.pat = 1;
    struct kl_tuning host = host_tuning(&in, &params), reference = tuning_of(&in, &params);
    FOR_EACH_CASE(c, reductions)
    {
        struct kl_tuning_op op = kl_tuning_op_of(c->func, 1 << 20, c->type, c->op);

        assert_int_equal(kl_tuning_refused(&host, &op, c->algo, KL_PROTO_SIMPLE), KL_TUNING_ALLOWED);
        assert_int_equal(kl_tuning_refused(&reference, &op, c->algo, KL_PROTO_SIMPLE), c->reference);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_parse),
        cmocka_unit_test(errors_name_what_is_known),
        cmocka_unit_test(the_reference_model_is_nccls),
        cmocka_unit_test(the_fastest_is_chosen),
        cmocka_unit_test(changed_costs_decide),
        cmocka_unit_test(forced_choices_are_kept_or_refused),
        cmocka_unit_test(what_is_left_decides_for_each_function),
        cmocka_unit_test(ll128_is_for_machines_that_keep_it_whole),
        cmocka_unit_test(threads_are_limited),
        cmocka_unit_test(thresholds_can_be_given),
        cmocka_unit_test(one_rank_needs_no_model),
        cmocka_unit_test(what_takes_hours_is_done),
        cmocka_unit_test(hosts_choose_by_size),
        cmocka_unit_test(one_shot_is_for_hosts),
        cmocka_unit_test(one_shot_is_for_ranks_with_cores),
        cmocka_unit_test(hosts_take_ll128_when_asked),
        cmocka_unit_test(hosts_reduce_everything),
    };

    kl_error_quiet(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
