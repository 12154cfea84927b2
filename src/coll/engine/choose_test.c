/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/engine/choose.h"

#include "base/error.h"
#include "coll/algorithms/algorithms.h"
#include "device/host/redop.h"
#include "tests/kolo_test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- communicators ---- */

static struct kl_graph_facts graph(int pattern, int nchannels, float bandwidth)
{
    return (struct kl_graph_facts){.pattern = pattern,
                                   .nchannels = nchannels,
                                   .type_intra = KL_PATH_NVL,
                                   .type_inter = KL_PATH_PIX,
                                   .bw_intra = bandwidth,
                                   .bw_inter = bandwidth};
}

/* A host with an NVSwitch, or several with a network that reduces, where the tuner has everything to choose from. */
static struct kl_tuning_input ranks(int nranks, int nnodes)
{
    struct kl_tuning_input in = {.nranks = nranks,
                                 .nnodes = nnodes,
                                 .max_local_ranks = nranks / nnodes,
                                 .nchannels = 16,
                                 .nvls_channels = 16,
                                 .min_sm = 90,
                                 .max_sm = 90,
                                 .cpu_arch = KL_ARCH_X86,
                                 .cpu_vendor = KL_VENDOR_AMD,
                                 .max_tree_pattern = KL_PATTERN_BALANCED_TREE,
                                 .nvs = true,
                                 .nvls = true,
                                 .collnet = nnodes > 1,
                                 .collnet_gather = nnodes > 1,
                                 .collnet_scatter = nnodes > 1,
                                 .collnet_heads = nnodes > 1 ? nranks / nnodes : 0,
                                 .net_is_host = true};

    in.graph[KL_GRAPH_RING] = graph(KL_PATTERN_RING, 8, 20);
    in.graph[KL_GRAPH_TREE] = graph(KL_PATTERN_BALANCED_TREE, 8, 20);
    in.graph[KL_GRAPH_COLLNET_CHAIN] = graph(KL_PATTERN_TREE, 8, 60);
    in.graph[KL_GRAPH_COLLNET_DIRECT] = graph(KL_PATTERN_COLLNET_DIRECT, 8, 60);
    in.graph[KL_GRAPH_NVLS] = graph(KL_PATTERN_NVLS, 8, 60);
    return in;
}

static struct kl_tuning tuning_with(const struct kl_tuning_constants *constants, int nranks, int nnodes,
                                    const char *algo, const char *proto)
{
    struct kl_tuning_input in = ranks(nranks, nnodes);
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning t;

    params.algo = algo;
    params.proto = proto;
    assert_int_equal(kl_tuning_compute(constants, &in, &params, &t), ncclSuccess);
    return t;
}

static struct kl_tuning tuning_of(int nranks, int nnodes, const char *algo, const char *proto)
{
    return tuning_with(&kl_tuning_reference, nranks, nnodes, algo, proto);
}

/* ---- random calls ---- */

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

/* Few enough of a kind to be asked for again, and more of them than are remembered. */
static struct kl_task draw_task(uint64_t *seed)
{
    struct kl_task t = {.func = (int)draw(seed, KL_FUNCS),
                        .type = (ncclDataType_t)draw(seed, ncclNumTypes),
                        .count = (size_t)(1 + draw(seed, 5)) << draw(seed, 24)};

    if (kl_func_info[t.func].reduces) t.op = (ncclRedOp_t)draw(seed, ncclNumOps);
    if (kl_func_info[t.func].rooted) t.peer = (int)draw(seed, 8);
    return t;
}

static struct kl_choice choose(struct kl_chooser *chooser, struct kl_task t)
{
    assert_int_equal(kl_choose(chooser, &t, kl_type_bytes(t.type)), ncclSuccess);
    return t.choice;
}

static bool same(const struct kl_choice *a, const struct kl_choice *b)
{
    return a->algorithm == b->algorithm && a->proto == b->proto && a->partition.nchannels == b->partition.nchannels &&
           a->partition.lo == b->partition.lo && a->partition.mid == b->partition.mid &&
           a->partition.hi == b->partition.hi;
}

static void what_is_remembered_is_what_would_be_chosen_now(void **state)
{
    struct kl_tuning t = tuning_of(8, 1, NULL, NULL);
    struct kl_chooser chooser = {.tuning = &t};
    uint64_t seed = 7;

    (void)state;
    for (int i = 0; i < 30000; i++) {
        struct kl_chooser fresh = {.tuning = &t};
        struct kl_task task = draw_task(&seed);
        struct kl_choice one = choose(&chooser, task), again = choose(&chooser, task), anew = choose(&fresh, task);
        if (!same(&one, &anew) || !same(&one, &again))
            fail_msg("%s of %zu elements of type %d, operation %d: another choice is remembered",
                     kl_func_info[task.func].name, task.count, (int)task.type, (int)task.op);
    }
}

/* ---- what there is ---- */

/* The cheapest candidate that has a row, whatever the tuner would like best. */
static int cheapest_row(const struct kl_tuning *t, const struct kl_tuning_op *op, int *proto)
{
    struct kl_tuning_choice unused;
    float cost[KL_ALGOS][KL_PROTOS], best = -1;
    int row = -1;

    assert_int_equal(kl_tuning_choose(t, op, &unused, cost), ncclSuccess);
    for (int a = 0; a < KL_ALGOS; a++)
        for (int p = 0; p < KL_PROTOS; p++) {
            if (cost[a][p] < 0 || kl_algorithm_find(op->func, a, p, false) < 0) continue;
            if (best >= 0 && cost[a][p] >= best) continue;
            best = cost[a][p];
            row = kl_algorithm_find(op->func, a, p, false);
            *proto = p;
        }
    return row;
}

static struct kl_tuning_op op_of(const struct kl_tuning *t, const struct kl_task *task)
{
    size_t bytes = kl_func_bytes(task->func, task->count * kl_type_bytes(task->type), t->in.nranks);

    return kl_tuning_op_of(task->func, (int64_t)bytes, task->type, task->op);
}

/* Here two hosts, whose switches reduce faster than the rest, but ranks without memory in common: no row does that. */
static void what_no_row_serves_falls_away(void **state)
{
    struct kl_tuning t = tuning_of(16, 2, "NVLS,NVLSTree,Ring", NULL);
    struct kl_chooser chooser = {.tuning = &t};
    uint64_t seed = 3;
    int fallen = 0;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        struct kl_task task = draw_task(&seed);
        struct kl_tuning_op op = op_of(&t, &task);
        struct kl_tuning_choice choice;
        int proto = -1, row = cheapest_row(&t, &op, &proto);
        struct kl_choice got = choose(&chooser, task);
        assert_int_equal(kl_tuning_choose(&t, &op, &choice, NULL), ncclSuccess);
        fallen += kl_algorithm_find(op.func, choice.algo, choice.proto, false) < 0;
        assert_true(got.algorithm == row && got.proto == proto);
        assert_true(kl_algorithms[row]->funcs >> op.func & 1 && kl_algorithms[row]->protos >> proto & 1);
    }
    assert_true(fallen > 20); /* else this has shown nothing */
}

static void every_row_can_be_had_by_force(void **state)
{
    struct kl_task task = {.type = ncclFloat32, .count = 100000};

    (void)state;
    for (int row = 0; kl_algorithms[row]; row++) {
        const struct kl_algorithm *a = kl_algorithms[row];
        for (int f = 0; f < KL_FUNCS; f++)
            for (int p = 0; p < KL_PROTOS; p++) {
                if (!(a->funcs >> f & 1 && a->protos >> p & 1) || a->algo >= KL_ALGOS) continue;
                int nnodes = a->memory == KL_REACH_ALL ? 1 : 8;
                struct kl_tuning t = tuning_with(&kl_tuning_host, 8, nnodes, kl_algo_name[a->algo], kl_proto_name[p]);
                struct kl_chooser chooser = {.tuning = &t, .memory = a->memory};
                if (t.bandwidth[f][a->algo][p] == 0)
                    t = tuning_with(&kl_tuning_host, 8, 1, kl_algo_name[a->algo], kl_proto_name[p]);
                task.func = f;
                struct kl_choice c = choose(&chooser, task);
                assert_true(c.algorithm == row && c.proto == p);
            }
    }
}

static enum kl_algo ordered_algo(int nranks, const char *algo, int func, ncclDataType_t type, ncclRedOp_t op)
{
    struct kl_tuning t = tuning_of(nranks, 1, algo, NULL);
    struct kl_chooser chooser = {.tuning = &t, .ordered = true};

    return kl_algorithms[choose(&chooser, (struct kl_task){.func = func, .type = type, .op = op, .count = 1000})
                             .algorithm]
        ->algo;
}

static void what_depends_on_the_order_is_done_in_order(void **state)
{
    static const ncclDataType_t floats[] = {ncclFloat16,  ncclFloat32,    ncclFloat64,
                                            ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2};
    static const int funcs[] = {KL_FUNC_REDUCE, KL_FUNC_REDUCE_SCATTER, KL_FUNC_ALL_REDUCE};

    (void)state;
    FOR_EACH_CASE(func, funcs)
    FOR_EACH_CASE(type, floats)
    {
        assert_int_equal(ordered_algo(8, NULL, *func, *type, ncclSum), KL_ALGO_ORDERED);
        assert_int_equal(ordered_algo(8, "ring", *func, *type, ncclAvg), KL_ALGO_ORDERED);
        assert_int_equal(ordered_algo(33, "tree,ring", *func, *type, ncclProd), KL_ALGO_ORDERED);
        assert_int_equal(ordered_algo(34, NULL, *func, *type, ncclSum), KL_ALGO_ORDERED_RING);
        assert_int_equal(ordered_algo(8, "ring", *func, *type, ncclMax), KL_ALGO_RING);
    }
    assert_int_equal(ordered_algo(8, "ring", KL_FUNC_ALL_REDUCE, ncclInt32, ncclSum), KL_ALGO_RING);
    assert_int_equal(ordered_algo(8, "ring", KL_FUNC_ALL_GATHER, ncclFloat32, ncclSum), KL_ALGO_RING);
}

static void what_needs_memory_in_common_falls_away_without(void **state)
{
    struct kl_tuning t = tuning_of(8, 1, NULL, NULL);
    struct kl_chooser with = {.tuning = &t, .memory = KL_REACH_ALL}, without = {.tuning = &t};
    uint64_t seed = 3;
    int taken = 0;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        struct kl_task task = draw_task(&seed);
        taken += kl_algorithms[choose(&with, task).algorithm]->memory;
        assert_false(kl_algorithms[choose(&without, task).algorithm]->memory);
    }
    assert_true(taken > 100);
}

/* GPUs follow LL128 only for functions for which they may; the others get another protocol. */
static void gpus_get_ll128_only_where_they_may(void **state)
{
    struct kl_tuning t = tuning_of(8, 1, NULL, NULL);
    struct kl_chooser all = {.tuning = &t, .by_rows = true, .ll128 = (1u << KL_FUNCS) - 1};
    struct kl_chooser one = {.tuning = &t, .by_rows = true, .ll128 = 1u << KL_FUNC_ALL_GATHER};
    uint64_t seed = 5;
    int taken = 0, left = 0;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        struct kl_task task = draw_task(&seed);
        const struct kl_choice free = choose(&all, task), bound = choose(&one, task);
        const bool may = task.func == KL_FUNC_ALL_GATHER;
        assert_true(kl_algorithm_has_rows(free.algorithm) && kl_algorithm_has_rows(bound.algorithm));
        assert_true(may ? same(&free, &bound) : bound.proto != KL_PROTO_LL128);
        taken += may && bound.proto == KL_PROTO_LL128;
        left += !may && free.proto == KL_PROTO_LL128;
    }
    assert_true(taken > 20 && left > 20);
}

/* ---- what is tried first ---- */

static bool tries_peer_direct(const struct kl_chooser *like, const char *algo, struct kl_task task)
{
    struct kl_tuning t = tuning_with(&kl_tuning_host, task.peer, 1, algo, NULL);
    struct kl_chooser chooser = *like;

    chooser.tuning = &t;
    task.peer = 0;
    return choose(&chooser, task).peer_direct;
}

static void large_operations_are_tried_in_the_ranks_own_buffers(void **state)
{
    static const struct kl_redop users;
    const struct kl_chooser all = {.memory = KL_REACH_ALL}, node = {.memory = KL_REACH_NODE},
                            ordered = {.memory = KL_REACH_ALL, .ordered = true};
    const struct kl_task large = {
        .func = KL_FUNC_ALL_REDUCE, .type = ncclFloat32, .peer = 4 /* ranks */, .count = 1 << 13};
    struct kl_task t = large;

    (void)state;
    assert_true(tries_peer_direct(&all, NULL, large));
    assert_false(tries_peer_direct(&node, NULL, large));
    assert_false(tries_peer_direct(&all, "ring", large)); /* a forced algorithm runs */
    assert_false(tries_peer_direct(&ordered, NULL, large));
    t.count--;
    assert_false(tries_peer_direct(&all, NULL, t));
    t = large, t.redop = &users; /* perhaps with a factor of each rank's own */
    assert_false(tries_peer_direct(&all, NULL, t));
    t = large, t.func = KL_FUNC_ALL_GATHER, t.count /= 4;
    assert_true(tries_peer_direct(&all, NULL, t));
}

/* ---- a tuner ---- */

/* The tuner of a file with these rules. */
static struct kl_tuner *tuner_of(const char *rules)
{
    const struct kl_tuner_place place = {.nranks = 4, .nnodes = 1};
    char file[] = "/tmp/kolo_rules_XXXXXX";
    struct kl_tuner *tuner;
    int fd = mkstemp(file);

    assert_true(fd >= 0 && write(fd, rules, strlen(rules)) == (ssize_t)strlen(rules));
    close(fd);
    assert_int_equal(kl_tuner_open_file(&place, &kl_tuning_host, file, &tuner), ncclSuccess);
    unlink(file);
    return tuner;
}

static void a_tuner_is_a_source_of_the_choice(void **state)
{
    const struct kl_limits tree = {
        .algorithms = 1u << KL_ALGO_TREE, .min_channels = 1, .max_channels = INT_MAX, .nvls_channels = INT_MAX};
    struct kl_tuning t = tuning_with(&kl_tuning_host, 4, 1, NULL, NULL);
    struct kl_tuner *tuner = tuner_of("allreduce,0,1048576,ring,simple,2,-1,-1\n");
    struct kl_chooser chooser = {.tuning = &t, .memory = KL_REACH_ALL, .tuner = tuner},
                      alone = {.tuning = &t, .memory = KL_REACH_ALL},
                      ordered = {.tuning = &t, .memory = KL_REACH_ALL, .tuner = tuner, .ordered = true},
                      limited = {.tuning = &t, .memory = KL_REACH_ALL, .tuner = tuner, .limits = &tree};
    const struct kl_task small = {.func = KL_FUNC_ALL_REDUCE, .type = ncclFloat32, .count = 1 << 18},
                         large = {.func = KL_FUNC_ALL_REDUCE, .type = ncclFloat32, .count = 1 << 20};

    (void)state;
    struct kl_choice c = choose(&chooser, small), beyond = choose(&chooser, large), model = choose(&alone, large);
    assert_true(c.by_tuner && !c.peer_direct && c.proto == KL_PROTO_SIMPLE && c.partition.nchannels <= 2 &&
                c.time_us > 0);
    assert_int_equal(kl_algorithms[c.algorithm]->algo, KL_ALGO_RING);
    assert_true(choose(&alone, small).peer_direct);
    assert_true(!beyond.by_tuner && beyond.peer_direct == model.peer_direct && same(&beyond, &model));
    assert_false(choose(&ordered, small).by_tuner);
    c = choose(&limited, small); /* the program's own selection for the call */
    assert_true(!c.by_tuner && kl_algorithms[c.algorithm]->algo == KL_ALGO_TREE);
    kl_tuner_close(tuner);
}

static void a_tuner_cannot_choose_a_missing_algorithm(void **state)
{
    struct kl_tuning t = tuning_with(&kl_tuning_host, 4, 1, "Ring", NULL);
    struct kl_tuner *tuner = tuner_of("allreduce,-1,-1,tree,simple,-1,-1,-1\n");
    struct kl_chooser chooser = {.tuning = &t, .memory = KL_REACH_ALL, .tuner = tuner};
    struct kl_choice c = choose(&chooser, (struct kl_task){.func = KL_FUNC_ALL_REDUCE, .count = 1000});

    (void)state;
    assert_true(!c.by_tuner && kl_algorithms[c.algorithm]->algo == KL_ALGO_RING);
    kl_tuner_close(tuner);
}

/* ---- nothing left ---- */

static void expect_nothing(const char *algo, const char *proto, int nnodes, int func, const char *words)
{
    struct kl_tuning t = tuning_of(16, nnodes, algo, proto);
    struct kl_chooser chooser = {.tuning = &t};
    struct kl_task task = {.func = func, .type = ncclFloat32, .count = 1000, .choice = {.algorithm = 77}};

    for (int i = 0; i < 2; i++) { /* a failure is not remembered as a choice */
        assert_int_equal(kl_choose(&chooser, &task, 4), ncclInvalidUsage);
        if (!strstr(kl_error_text(), words)) fail_msg("\"%s\" does not say \"%s\"", kl_error_text(), words);
        assert_int_equal(task.choice.algorithm, 77);
    }
}

static void an_error_says_what_is_set_and_what_there_is(void **state)
{
    (void)state;
    expect_nothing("Tree", NULL, 1, KL_FUNC_BROADCAST, "NCCL_ALGO=Tree leaves nothing that can do Broadcast");
    expect_nothing("Tree", NULL, 1, KL_FUNC_ALL_GATHER, "Ring (LL, LL128, Simple)");
    expect_nothing("PAT", "LL", 1, KL_FUNC_ALL_GATHER, "NCCL_ALGO=PAT and NCCL_PROTO=LL leave nothing");
    expect_nothing("CollNetDirect", NULL, 1, KL_FUNC_ALL_REDUCE, "NCCL_ALGO=CollNetDirect leaves nothing");
    expect_nothing("NVLS", NULL, 2, KL_FUNC_ALL_REDUCE, "NCCL_ALGO=NVLS leaves nothing"); /* no row */
}

static void an_all_to_all_is_one_operation_where_that_is_of_use(void **state)
{
    static const struct all_to_all_case {
        const char *text, *algo;
        int nranks, nnodes;
        enum kl_peer_connect memory;
        size_t part;
        bool takes, messages, peer_direct;
    } cases[] = {
        {"small parts", NULL, 4, 1, KL_REACH_ALL, 4096, true, false, false},
        {"small parts that are large together", NULL, 8, 1, KL_REACH_ALL, 8192, true, false, true},
        {"small parts that are not", NULL, 2, 1, KL_REACH_ALL, 8192, true, false, false},
        {"neither", NULL, 2, 1, KL_REACH_ALL, 8193, false, false, false},
        {"large parts", NULL, 4, 1, KL_REACH_ALL, 16384, true, true, true},
        {"large parts of two", NULL, 2, 1, KL_REACH_ALL, 16384, true, true, true},
        {"no common memory", NULL, 4, 1, KL_REACH_NODE, 8, false, false, false},
        {"several nodes", NULL, 4, 2, KL_REACH_ALL, 1 << 20, false, false, false},
        {"another algorithm by force", "ring", 4, 1, KL_REACH_ALL, 1 << 20, false, false, false},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_tuning t = tuning_with(&kl_tuning_host, c->nranks, c->nnodes, c->algo, NULL);
        struct kl_chooser chooser = {.tuning = &t, .memory = c->memory};
        struct kl_task task = {.func = KL_FUNC_ALL_TO_ALL, .type = ncclInt8, .count = c->part};

        expect_case(c->text, kl_chooser_takes_all_to_all(&chooser, c->part) == c->takes);
        if (!c->takes) continue;
        struct kl_choice choice = choose(&chooser, task);
        expect_case(c->text, choice.messages == c->messages && choice.peer_direct == c->peer_direct);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_remembered_is_what_would_be_chosen_now),
        cmocka_unit_test(what_no_row_serves_falls_away),
        cmocka_unit_test(every_row_can_be_had_by_force),
        cmocka_unit_test(what_depends_on_the_order_is_done_in_order),
        cmocka_unit_test(what_needs_memory_in_common_falls_away_without),
        cmocka_unit_test(gpus_get_ll128_only_where_they_may),
        cmocka_unit_test(large_operations_are_tried_in_the_ranks_own_buffers),
        cmocka_unit_test(a_tuner_is_a_source_of_the_choice),
        cmocka_unit_test(a_tuner_cannot_choose_a_missing_algorithm),
        cmocka_unit_test(an_error_says_what_is_set_and_what_there_is),
        cmocka_unit_test(an_all_to_all_is_one_operation_where_that_is_of_use),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
