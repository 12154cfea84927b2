/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of tuning in NCCL 2.31 and 2.32, each before and after its release: the annex of the specification, 4. */
#include "graph/tuning.h"

#include "base/error.h"
#include "graph/test_tuning.h"
#include "tests/kolo_test.h"

#include <math.h>

enum { LAST_OF_30 = 23007, FIRST_OF_31 = 23102, FIRST_OF_32 = 23203, KIB = 1024, MIB = 1024 * KIB };

/* ---- machines ---- */

static struct kl_tuning_input machine(int sm, int nnodes, int local)
{
    struct kl_tuning_input in = switched_hosts(sm, nnodes, local);

    in.nchannels = 10;
    set_graphs(&in, 10, 30, 20);
    return in;
}

static struct kl_tuning_input with_collnet(struct kl_tuning_input in)
{
    in.collnet = in.collnet_gather = in.collnet_scatter = true;
    in.collnet_heads = in.max_local_ranks;
    return in;
}

static struct kl_tuning_input two_hosts_of_hopper(void)
{
    return machine(90, 2, 8);
}

static struct kl_tuning_input two_hosts_of_blackwell(void)
{
    return machine(100, 2, 8);
}

static struct kl_tuning_input two_single_gpus(void)
{
    return with_collnet(machine(90, 2, 1));
}

static struct kl_tuning_input two_single_gpus_without_switches(void)
{
    struct kl_tuning_input in = two_single_gpus();

    in.nvs = false;
    return in;
}

static struct kl_tuning_input eight_and_four(void)
{
    struct kl_tuning_input in = with_collnet(machine(90, 2, 8));

    in.nranks = 12;
    in.min_local_ranks = 4;
    in.nvls = true;
    set_graphs(&in, 16, 100, 1000);
    return in;
}

static struct kl_tuning_input slow_ring(void)
{
    struct kl_tuning_input in = machine(80, 1, 8);

    set_graphs(&in, 1, 12, 12);
    return in;
}

static struct kl_tuning_input one_host_of_power(void)
{
    struct kl_tuning_input in = machine(70, 1, 8);

    in.cpu_arch = KL_ARCH_POWER;
    in.graph[KL_GRAPH_TREE].type_intra = KL_PATH_PHB;
    return in;
}

static struct kl_tuning_input one_host_of_blackwell(void)
{
    return machine(100, 1, 8);
}

static struct kl_tuning_input three_gpus_of_blackwell(void)
{
    return machine(100, 1, 3);
}

static struct kl_tuning_input pcie_gpus_of_blackwell(void)
{
    struct kl_tuning_input in = machine(120, 1, 8);

    in.graph[KL_GRAPH_RING].type_intra = KL_PATH_PHB;
    return in;
}

static struct kl_tuning_input trays(int n, int local, float net_bw)
{
    struct kl_tuning_input in = machine(100, n, local);

    in.cpu_arch = KL_ARCH_ARM;
    in.nvls = true;
    in.net_bw = net_bw;
    return in;
}

static struct kl_tuning_input two_trays(void)
{
    return trays(2, 4, 96);
}

static struct kl_tuning_input three_trays(void)
{
    return trays(3, 4, 96);
}

static struct kl_tuning_input two_slow_trays(void)
{
    return trays(2, 4, 48);
}

static struct kl_tuning_input two_trays_of_eight(void)
{
    return trays(2, 8, 96);
}

/* ---- questions ---- */

static double ring_bandwidth(const struct kl_tuning *t)
{
    return (double)t->bandwidth[KL_FUNC_ALL_REDUCE][KL_ALGO_RING][KL_PROTO_SIMPLE];
}

static double tree_bandwidth(const struct kl_tuning *t)
{
    return (double)t->bandwidth[KL_FUNC_ALL_REDUCE][KL_ALGO_TREE][KL_PROTO_SIMPLE];
}

static double tree_latency(const struct kl_tuning *t)
{
    return (double)t->latency[KL_FUNC_ALL_REDUCE][KL_ALGO_TREE][KL_PROTO_SIMPLE];
}

static double ring_latency(const struct kl_tuning *t)
{
    return (double)t->latency[KL_FUNC_ALL_GATHER][KL_ALGO_RING][KL_PROTO_LL];
}

static double chain_latency(const struct kl_tuning *t)
{
    return (double)t->latency[KL_FUNC_ALL_REDUCE][KL_ALGO_COLLNET_CHAIN][KL_PROTO_SIMPLE];
}

static double pat_bandwidth(const struct kl_tuning *t)
{
    return (double)t->bandwidth[KL_FUNC_ALL_GATHER][KL_ALGO_PAT][KL_PROTO_SIMPLE];
}

static double nvls_bandwidth(const struct kl_tuning *t)
{
    return (double)t->bandwidth[KL_FUNC_ALL_GATHER][KL_ALGO_NVLS][KL_PROTO_SIMPLE];
}

static double ring_threads(const struct kl_tuning *t)
{
    return t->max_threads[KL_ALGO_RING][KL_PROTO_SIMPLE];
}

static double direct_refusal(const struct kl_tuning *t)
{
    return t->refusal[KL_FUNC_ALL_REDUCE][KL_ALGO_COLLNET_DIRECT][KL_PROTO_SIMPLE];
}

static struct kl_tuning_terms terms_of(const struct kl_tuning *t, int func, int algo, int64_t bytes)
{
    struct kl_tuning_op op = {.func = func, .bytes = bytes, .npipe = 1, .nvls = true};
    struct kl_tuning_terms terms;

    kl_tuning_terms(t, &op, algo, KL_PROTO_SIMPLE, &terms);
    return terms;
}

static double share_of_1_mib(const struct kl_tuning *t)
{
    return (double)terms_of(t, KL_FUNC_ALL_REDUCE, KL_ALGO_NVLS_TREE, MIB).tree_share;
}

static double share_of_64_mib(const struct kl_tuning *t)
{
    return (double)terms_of(t, KL_FUNC_ALL_REDUCE, KL_ALGO_NVLS_TREE, 64 * MIB).tree_share;
}

static double small_ring_factor(const struct kl_tuning *t)
{
    return (double)terms_of(t, KL_FUNC_ALL_REDUCE, KL_ALGO_RING, KIB).latency_factor;
}

static double middle_ring_factor(const struct kl_tuning *t)
{
    return (double)terms_of(t, KL_FUNC_ALL_REDUCE, KL_ALGO_RING, 384 * KIB * 80).latency_factor;
}

static double large_ring_factor(const struct kl_tuning *t)
{
    return (double)terms_of(t, KL_FUNC_ALL_REDUCE, KL_ALGO_RING, 4096 * (int64_t)MIB).latency_factor;
}

static double gathering_ring_factor(const struct kl_tuning *t)
{
    return (double)terms_of(t, KL_FUNC_ALL_GATHER, KL_ALGO_RING, KIB).latency_factor;
}

static double broadcasting_ring_factor(const struct kl_tuning *t)
{
    return (double)terms_of(t, KL_FUNC_BROADCAST, KL_ALGO_RING, KIB).latency_factor;
}

/* How many times as much as others rings cost for sums of FP8. */
static double fp8_factor(const struct kl_tuning *t)
{
    struct kl_tuning_op op = {.func = KL_FUNC_ALL_REDUCE, .bytes = MIB, .npipe = 1};
    float plain[KL_ALGOS][KL_PROTOS], fp8[KL_ALGOS][KL_PROTOS];
    struct kl_tuning_choice choice;

    assert_int_equal(kl_tuning_choose(t, &op, &choice, plain), ncclSuccess);
    op.fp8 = true;
    assert_int_equal(kl_tuning_choose(t, &op, &choice, fp8), ncclSuccess);
    return (double)(fp8[KL_ALGO_RING][KL_PROTO_SIMPLE] / plain[KL_ALGO_RING][KL_PROTO_SIMPLE]);
}

static double refusal_of_scaled(const struct kl_tuning *t)
{
    struct kl_tuning_op op = {.func = KL_FUNC_REDUCE_SCATTER, .bytes = MIB, .npipe = 1, .prescaled = true};

    return kl_tuning_refused(t, &op, KL_ALGO_PAT, KL_PROTO_SIMPLE);
}

/* Tree LL and Ring Simple cost the same: which is chosen? */
static double winner_of_equals(const struct kl_tuning *t)
{
    struct kl_tuning_op op = {.func = KL_FUNC_ALL_REDUCE, .bytes = 8, .npipe = 1};
    struct kl_tuning_choice choice;
    float cost[KL_ALGOS][KL_PROTOS];

    for (int i = 0; i < KL_ALGOS * KL_PROTOS; i++) cost[i / KL_PROTOS][i % KL_PROTOS] = -1;
    cost[KL_ALGO_TREE][KL_PROTO_LL] = cost[KL_ALGO_RING][KL_PROTO_SIMPLE] = 5;
    assert_int_equal(kl_tuning_pick(t, &op, (const float(*)[KL_PROTOS])cost, &choice), ncclSuccess);
    return choice.algo;
}

/* ---- before and after ---- */

static const struct row {
    const char *name;
    int before, since;
    struct kl_tuning_input (*machine)(void);
    double (*ask)(const struct kl_tuning *t);
    double was, is;
} rows[] = {
    {"4.1 equals", LAST_OF_30, FIRST_OF_31, two_hosts_of_hopper, winner_of_equals, KL_ALGO_TREE, KL_ALGO_RING},
    {"4.2 no latency", LAST_OF_30, FIRST_OF_31, two_hosts_of_hopper, chain_latency, 14 * 2.8 + 30, 0},
    {"4.3 ring", LAST_OF_30, FIRST_OF_31, two_hosts_of_blackwell, ring_bandwidth, 300 * 16 / 30., 200 * 16 / 30.},
    {"4.3 ring, sm 90", LAST_OF_30, FIRST_OF_32, two_hosts_of_hopper, ring_bandwidth, 160, 160},
    {"4.4 tree", LAST_OF_30, FIRST_OF_31, two_hosts_of_hopper, tree_bandwidth, 300 * .92 / 2, 200 * .92 / 2},
    {"4.5 PAT", LAST_OF_30, FIRST_OF_31, two_single_gpus, pat_bandwidth, 300 * .75, 200 * .75},
    {"4.6 NVLS", LAST_OF_30, FIRST_OF_31, eight_and_four, nvls_bandwidth, 1500 * .85 * 5 / 6, 1500 * .85 * 3 / 4},
    {"4.8 chain", LAST_OF_30, FIRST_OF_31, two_single_gpus, chain_latency, 14, 30},
    {"4.8 ring", LAST_OF_30, FIRST_OF_31, two_single_gpus, ring_latency, 6.6 + 5, 6.6 + 5},
    {"4.10 threads", LAST_OF_30, FIRST_OF_31, slow_ring, ring_threads, 256, 512},
    {"4.11 Arm", FIRST_OF_31, FIRST_OF_32, two_trays, share_of_1_mib, 1, .5},
    {"4.11 large, two nodes", FIRST_OF_31, FIRST_OF_32, two_trays, share_of_64_mib, 1, 1},
    {"4.11 large, three nodes", FIRST_OF_31, FIRST_OF_32, three_trays, share_of_64_mib, 1, .8},
    {"4.11 slow NICs", FIRST_OF_31, FIRST_OF_32, two_slow_trays, share_of_1_mib, 1, 1},
    {"4.11 eight ranks", FIRST_OF_31, FIRST_OF_32, two_trays_of_eight, share_of_1_mib, 1, 1},
    {"4.12 small", FIRST_OF_31, FIRST_OF_32, one_host_of_blackwell, small_ring_factor, 1, 1.4},
    {"4.12 middle", FIRST_OF_31, FIRST_OF_32, one_host_of_blackwell, middle_ring_factor, 1, 1.35},
    {"4.12 large", FIRST_OF_31, FIRST_OF_32, one_host_of_blackwell, large_ring_factor, 1, 1.3},
    {"4.12 two steps", FIRST_OF_31, FIRST_OF_32, three_gpus_of_blackwell, gathering_ring_factor, 1, 1 + .4 * .75},
    {"4.12 Broadcast", FIRST_OF_31, FIRST_OF_32, one_host_of_blackwell, broadcasting_ring_factor, 1, 1},
    {"4.12 PCIe", FIRST_OF_31, FIRST_OF_32, pcie_gpus_of_blackwell, small_ring_factor, 1, 1},
    {"4.12 several nodes", FIRST_OF_31, FIRST_OF_32, two_hosts_of_blackwell, large_ring_factor, 1.4, 1.4},
    {"4.13 CollNetDirect", LAST_OF_30, FIRST_OF_31, two_single_gpus_without_switches, direct_refusal,
     KL_REFUSED_NO_NVSWITCH, KL_TUNING_ALLOWED},
    {"4.14 POWER", LAST_OF_30, FIRST_OF_31, one_host_of_power, tree_latency, 8.4 + 14 * 5.7, 8.4 + 14 * 4},
    {"4.14 FP8", LAST_OF_30, FIRST_OF_31, two_hosts_of_hopper, fp8_factor, 1024, 1},
    {"4.14 scaled", LAST_OF_30, FIRST_OF_31, two_single_gpus, refusal_of_scaled, KL_REFUSED_PAT_OP, KL_TUNING_ALLOWED},
};

static double answer(const struct row *r, int nccl)
{
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning_input in = r->machine();
    struct kl_tuning t;

    in.nccl = nccl;
    assert_int_equal(kl_tuning_compute(&kl_tuning_reference, &in, &params, &t), ncclSuccess);
    return r->ask(&t);
}

static void each_row_changes_with_its_release(void **state)
{
    (void)state;
    FOR_EACH_CASE(r, rows)
    {
        double was = answer(r, r->before), is = answer(r, r->since);

        if (fabs(was - r->was) > 1e-4 * r->was || fabs(is - r->is) > 1e-4 * r->is)
            fail_msg("%s: %g before and %g after, instead of %g and %g", r->name, was, is, r->was, r->is);
    }
}

/* Between steps, times are straight lines. */
static void the_plateau_ends_at_steps(void **state)
{
    struct kl_tuning_params params = KL_TUNING_PARAMS;
    struct kl_tuning_input in = one_host_of_blackwell();
    struct kl_tuning t;

    (void)state;
    in.nccl = FIRST_OF_32;
    assert_int_equal(kl_tuning_compute(&kl_tuning_reference, &in, &params, &t), ncclSuccess);
    const int64_t first = (int64_t)256 * KIB * 80, last = 2 * first;

    assert_int_equal(kl_tuning_next_step(&t, first - 1), first);
    assert_int_equal(kl_tuning_next_step(&t, last - 1), last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_changes_with_its_release),
        cmocka_unit_test(the_plateau_ends_at_steps),
    };

    kl_error_quiet(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
