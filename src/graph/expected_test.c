/* SPDX-License-Identifier: Apache-2.0 */
/* Each term of an expected time, one at a time. */
#include "graph/expected.h"

#include "base/error.h"
#include "graph/test_tuning.h"
#include "tests/kolo_test.h"

#include <math.h>

enum { NCCL = 23007, MIB = 1 << 20 };
static const int64_t gib = (int64_t)1 << 30;

/* ---- machines ---- */

/* Eight channels of `intra` GB/s on `gpu_bw` of NVLinks, and NICs of 48. */
static struct kl_tuning_input machine(int sm, int nnodes, int local)
{
    struct kl_tuning_input in = switched_hosts(sm, nnodes, local);

    in.nccl = NCCL;
    in.nchannels = 8;
    in.nvls = true;
    in.net_bw = 48;
    in.gpu_bw = sm < 100 ? 370.8f : 721.8f;
    set_graphs(&in, 8, nnodes > 1 ? 60 : 45, 48);
    return in;
}

static struct kl_expected expect(const struct kl_tuning_input *in, int func, int64_t bytes, int algo, int proto)
{
    struct kl_tuning_op op = kl_tuning_op_of(func, bytes, ncclFloat32, ncclSum);
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning t;

    assert_int_equal(kl_tuning_compute(&kl_tuning_reference, in, &params, &t), ncclSuccess);
    return kl_expected_of(&t, &op, algo, proto);
}

static struct kl_expected sum(const struct kl_tuning_input *in, int64_t bytes, int algo)
{
    return expect(in, KL_FUNC_ALL_REDUCE, bytes, algo, KL_PROTO_SIMPLE);
}

static double value(enum kl_expected_id id)
{
    return kl_expected_constant[id].value;
}

static void expect_near(double got, double want)
{
    if (fabs(got - want) > 1e-4 * want) fail_msg("%g instead of %g", got, want);
}

/* ---- the terms ---- */

static void terms_add_up(void **state)
{
    struct kl_tuning_input in = machine(90, 2, 8);
    struct kl_expected e = sum(&in, 64 * MIB, KL_ALGO_NVLS_TREE);

    (void)state;
    expect_near((double)e.time,
                (double)e.latency + (double)e.start + (double)e.ramp + (double)e.tcp + (double)e.transfer);
    expect_near((double)e.transfer, 64 * MIB / 1e3 / (double)e.bandwidth);
}

static void links_have_the_efficiency_of_their_generation(void **state)
{
    static const struct {
        int sm, gpus;
        enum kl_expected_id id;
    } cases[] = {{70, 8, KL_EXPECTED_LINK_VOLTA},      {80, 8, KL_EXPECTED_LINK_AMPERE},
                 {90, 8, KL_EXPECTED_LINK_HOPPER},     {90, 2, KL_EXPECTED_LINK_HOPPER},
                 {100, 8, KL_EXPECTED_LINK_BLACKWELL}, {103, 2, KL_EXPECTED_LINK_PAIR}};

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_tuning_input in = machine(c->sm, 1, c->gpus);
        struct kl_expected e = sum(&in, gib, KL_ALGO_RING);

        expect_near((double)e.bandwidth * kl_tuning_bus_factor(KL_FUNC_ALL_REDUCE, c->gpus), 8 * 45 * value(c->id));
        assert_int_equal(e.limit, KL_EXPECTED_BY_LINKS);
    }
}

static void pci_is_as_the_model_has_it(void **state)
{
    struct kl_tuning_input in = machine(90, 1, 4);

    (void)state;
    set_graphs(&in, 2, 12, 12);
    for (int g = 0; g < KL_GRAPHS; g++) in.graph[g].type_intra = KL_PATH_PHB;
    expect_near((double)sum(&in, gib, KL_ALGO_RING).bandwidth * 1.5, 24);
}

/* The release's model may cap it by the graph's NICs, and count the heads: neither limits an NVLink domain. */
static void switches_are_not_capped_by_nics(void **state)
{
    static const struct {
        int sm, gpus;
        enum kl_expected_id id;
    } cases[] = {{90, 8, KL_EXPECTED_NVLS_HOPPER},
                 {90, 4, KL_EXPECTED_NVLS_HOPPER},
                 {100, 8, KL_EXPECTED_NVLS_BLACKWELL},
                 {100, 72, KL_EXPECTED_NVLS_DOMAIN}};

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_tuning_input in = machine(c->sm, 1, c->gpus);

        in.graph[KL_GRAPH_NVLS].bw_inter = 1;
        struct kl_expected e = sum(&in, gib, KL_ALGO_NVLS);
        expect_near((double)e.bandwidth, (double)in.gpu_bw * value(c->id));
        assert_int_equal(e.limit, KL_EXPECTED_BY_SWITCHES);
    }
}

static void all_nics_of_a_gpu_serve_nvls_tree(void **state)
{
    struct kl_tuning_input in = machine(90, 4, 8);
    double want;

    (void)state;
    in.graph[KL_GRAPH_NVLS].bw_inter = 24; /* one of two NICs; the ring has all of them */
    want = 8 * 48 / 2.0 * value(KL_EXPECTED_NET);
    expect_near((double)sum(&in, gib, KL_ALGO_NVLS_TREE).bandwidth, want);
    assert_int_equal(sum(&in, gib, KL_ALGO_NVLS_TREE).limit, KL_EXPECTED_BY_NETWORK);
    in = machine(100, 2, 8);
    in.graph[KL_GRAPH_NVLS].bw_inter = 24;
    expect_near((double)sum(&in, gib, KL_ALGO_NVLS_TREE).bandwidth, 8 * 48 * value(KL_EXPECTED_NET_NVLS));
}

static void networks_have_an_efficiency(void **state)
{
    struct kl_tuning_input in = machine(90, 4, 8);

    (void)state;
    expect_near((double)sum(&in, gib, KL_ALGO_RING).bandwidth * 62 / 32, 8 * 48 * value(KL_EXPECTED_NET));
    in.net_staged = true;
    expect_near((double)sum(&in, gib, KL_ALGO_RING).bandwidth * 62 / 32, 8 * 48 * value(KL_EXPECTED_NET_STAGED));
}

static void trees_of_two_nodes_use_both_directions(void **state)
{
    struct kl_tuning_input in = machine(90, 2, 1);

    (void)state;
    for (int g = 0; g < KL_GRAPHS; g++) in.graph[g].type_intra = KL_PATH_LOC;
    expect_near((double)sum(&in, gib, KL_ALGO_TREE).bandwidth,
                8 * 48 * value(KL_EXPECTED_NET) * value(KL_EXPECTED_NET_TREE));
}

static void sockets_of_grace_do_not_hold_back(void **state)
{
    struct kl_tuning_input in = machine(90, 4, 4);

    (void)state;
    set_graphs(&in, 4, 6, 6);
    in.net_bw = 24;
    expect_near((double)sum(&in, gib, KL_ALGO_RING).bandwidth * 30 / 16, 24 * value(KL_EXPECTED_NET));
    in.cpu_arch = KL_ARCH_ARM;
    expect_near((double)sum(&in, gib, KL_ALGO_RING).bandwidth * 30 / 16, 4 * 24 * value(KL_EXPECTED_NET));
}

static void pipelines_fill_once(void **state)
{
    struct kl_tuning_input in = machine(90, 4, 8);
    double most = value(KL_EXPECTED_NVLS_RAMP) + 2 * value(KL_EXPECTED_TREE_RAMP);

    (void)state;
    expect_near((double)sum(&in, (int64_t)(1e6 * value(KL_EXPECTED_RAMP_SIZE)), KL_ALGO_NVLS_TREE).ramp, most / 2);
    assert_true((double)sum(&in, 1024, KL_ALGO_NVLS_TREE).ramp < most / 1000);
    assert_true(fabs((double)sum(&in, 1024 * gib, KL_ALGO_NVLS_TREE).ramp - most) < most / 1000);
    assert_true(sum(&in, gib, KL_ALGO_RING).ramp == 0);
    in = machine(100, 1, 72);
    in.graph[KL_GRAPH_NVLS].nchannels = 32;
    assert_true((double)sum(&in, 1024 * gib, KL_ALGO_NVLS).ramp > 3.99 * value(KL_EXPECTED_NVLS_RAMP));
}

static void tcp_takes_time_to_be_at_speed(void **state)
{
    struct kl_tuning_input in = machine(90, 2, 8);

    (void)state;
    in.net_tcp = true;
    expect_near((double)sum(&in, (int64_t)(1e6 * value(KL_EXPECTED_TCP_SIZE)), KL_ALGO_RING).tcp,
                value(KL_EXPECTED_TCP_RAMP) / 2);
    in = machine(90, 1, 8);
    in.net_tcp = true;
    assert_true(sum(&in, gib, KL_ALGO_RING).tcp == 0);
}

static void nodes_start_later_unless_the_network_says_how_late(void **state)
{
    struct kl_tuning_input one = machine(90, 1, 8), two = machine(90, 2, 8), told = machine(90, 2, 8);

    (void)state;
    for (int g = 0; g < KL_GRAPHS; g++) told.graph[g].latency_inter = 75;
    expect_near((double)sum(&one, MIB, KL_ALGO_RING).start, value(KL_EXPECTED_START));
    expect_near((double)sum(&two, MIB, KL_ALGO_RING).start, value(KL_EXPECTED_START) + value(KL_EXPECTED_NET_START));
    expect_near((double)sum(&told, MIB, KL_ALGO_RING).start, value(KL_EXPECTED_START));
    assert_true(sum(&told, MIB, KL_ALGO_RING).latency > sum(&two, MIB, KL_ALGO_RING).latency);
}

static void unknown_is_no_time(void **state)
{
    struct kl_tuning_op op = kl_tuning_op_of(KL_FUNC_ALL_REDUCE, MIB, ncclFloat32, ncclSum);
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning_input in = machine(90, 1, 8);
    struct kl_tuning t;

    (void)state;
    assert_int_equal(kl_tuning_compute(&kl_tuning_host, &in, &params, &t), ncclSuccess);
    assert_true(kl_expected_of(&t, &op, KL_ALGO_RING, KL_PROTO_SIMPLE).time == 0);
    in.nranks = in.max_local_ranks = 1;
    assert_true(sum(&in, MIB, KL_ALGO_RING).time == 0);
}

/* Whatever the machine, a longer operation takes longer. */
static void times_grow(void **state)
{
    static const int algos[] = {KL_ALGO_TREE, KL_ALGO_RING, KL_ALGO_NVLS, KL_ALGO_NVLS_TREE};

    (void)state;
    for (int nodes = 1; nodes <= 8; nodes *= 2)
        FOR_EACH_CASE(a, algos) for (int f = 0; f < KL_FUNCS; f++) for (int p = 0; p < KL_PROTOS; p++)
        {
            struct kl_tuning_input in = machine(100, nodes, 8);
            float before = 0;

            for (int64_t bytes = 16 * (int64_t)MIB; bytes <= 16 * gib; bytes *= 4) {
                float time = expect(&in, f, bytes, *a, p).time;

                assert_true(time == 0 ? before == 0 : isfinite(time) && time > before);
                before = time;
            }
        }
}

static void every_constant_is_explained(void **state)
{
    (void)state;
    FOR_EACH_CASE(k, kl_expected_constant)
    assert_true(k->name && k->unit && k->meaning && strlen(k->meaning) >= 5 && k->value > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_add_up),
        cmocka_unit_test(links_have_the_efficiency_of_their_generation),
        cmocka_unit_test(pci_is_as_the_model_has_it),
        cmocka_unit_test(switches_are_not_capped_by_nics),
        cmocka_unit_test(all_nics_of_a_gpu_serve_nvls_tree),
        cmocka_unit_test(networks_have_an_efficiency),
        cmocka_unit_test(trees_of_two_nodes_use_both_directions),
        cmocka_unit_test(sockets_of_grace_do_not_hold_back),
        cmocka_unit_test(pipelines_fill_once),
        cmocka_unit_test(tcp_takes_time_to_be_at_speed),
        cmocka_unit_test(nodes_start_later_unless_the_network_says_how_late),
        cmocka_unit_test(unknown_is_no_time),
        cmocka_unit_test(times_grow),
        cmocka_unit_test(every_constant_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
