/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters on paper: identical hosts, hosts that fall apart, and one of 16,384 GPUs. */
#include "plan/plan.h"

#include "base/error.h"
#include "graph/nic.h"
#include "include/kolo.h"
#include "plan/cluster.h"
#include "plan/test_cluster.h"

#include <stdlib.h>

static struct cluster *plan_for(const char *file, int hosts, bool p2p)
{
    struct cluster *c = open_cluster(file);

    c->options.p2p_disable = !p2p;
    plan_cluster(c, hosts);
    return c;
}

static const char a100[] = "tests/data/topologies/synthetic/a100-nvsw-8nic-200g.xml";

static void all_rings_are_rings(const struct kl_plan *p)
{
    int32_t *order = malloc((size_t)p->nranks * sizeof *order);

    for (int ch = 0; ch < p->connect->nchannels; ch++)
        assert_int_equal(kl_connect_ring_order(p->connect, ch, 0, order), ncclSuccess);
    free(order);
}

static void two_hosts_are_two_nodes(void **state)
{
    struct cluster *c = plan_for(a100, 2, true);

    (void)state;
    assert_int_equal(c->plan->ndomains, 1);
    assert_int_equal(c->plan->connect->nodes.nnodes, 2);
    assert_int_equal(c->plan->connect->nchannels, 16);
    assert_int_equal(c->plan->p2p.n, 16);
    assert_int_equal(c->plan->p2p.per_peer, 2);
    all_rings_are_rings(c->plan);
    drop_cluster(c);
}

/* Without P2P the GPUs of each socket stay together, and the network joins them: two nodes per host. */
static void a_host_can_be_two_nodes(void **state)
{
    struct cluster *c = plan_for(a100, 2, false);
    int shift;

    (void)state;
    assert_int_equal(c->plan->ndomains, 2);
    assert_int_equal(c->plan->connect->nodes.nnodes, 4);
    for (int r = 0; r < 16; r++) {
        const struct kl_plan_domain *d = kl_plan_domain_of(c->plan, r, &shift);

        assert_true(kl_topo_gpu_of_rank(d->topo, r - shift) >= 0);
        assert_int_equal(shift, r / 8 * 8);
    }
    all_rings_are_rings(c->plan);
    drop_cluster(c);
}

/* Each channel has a sender and a receiver, with their NICs. */
static void ends_of_channels_have_nics(void **state)
{
    struct cluster *c = plan_for(a100, 2, true);
    const struct kl_plan_domain *d = &c->plan->domain[0];
    const struct kl_graph *ring = d->graphs.graph[KL_GRAPH_RING];
    struct kl_graph_nic nic;

    (void)state;
    for (int ch = 0; ch < 16; ch++) {
        int first = ring->intra[ch % 8 * 8], last = ring->intra[ch % 8 * 8 + 7];

        assert_int_equal(kl_graph_nic(d->topo, ring, 8, ch, first, &nic), ncclSuccess);
        assert_int_equal(nic.net, ch % 8);
        assert_int_equal(nic.proxy, first);
        assert_int_equal(kl_graph_nic(d->topo, ring, 8, ch, last, &nic), ncclSuccess);
        assert_int_equal(nic.net, ch % 8);
        assert_int_equal(nic.proxy, last);
    }
    assert_int_equal(kl_graph_nic(d->topo, ring, 9, 0, 0, &nic), ncclInternalError);
    drop_cluster(c);
}

/* Heads of NVLS have edges that neither rings nor trees have. */
static void both_ends_of_an_edge_ask_the_same_graph(void **state)
{
    static const char rails[] = "tests/data/topologies/synthetic/h100-rail-8nic-400g.xml";
    struct cluster *c = plan_for(rails, 3, true);
    const struct kl_connect *all = c->plan->connect;
    int found[KL_GRAPHS] = {0};

    (void)state;
    for (int ch = 0; ch < all->nchannels; ch++)
        for (int a = 0; a < all->ranks.nranks; a++)
            for (int b = 0; b < all->ranks.nranks; b++) {
                int graph = kl_graph_of_edge(all, ch, a, b, true);
                assert_int_equal(kl_graph_of_edge(all, ch, b, a, false), graph);
                found[graph] += a != b;
                if (kl_connect_ring(all, ch, a).next == b) assert_int_equal(graph, KL_GRAPH_RING);
                if (graph == KL_GRAPH_NVLS) assert_true(a / 8 != b / 8 && a % 8 == b % 8);
            }
    assert_int_equal(found[KL_GRAPH_RING], all->nchannels * 24);
    assert_true(found[KL_GRAPH_NVLS] > all->nvls_channels * 8 && found[KL_GRAPH_TREE]);
    drop_cluster(c);
}

/* Every neighbour knows its neighbour, for a sample of the ranks; rings close; one root per tree. */
static void sixteen_thousand_gpus(void **state)
{
    struct cluster *c = plan_for(a100, 2048, true);
    const struct kl_connect *all = c->plan->connect;

    (void)state;
    assert_int_equal(c->plan->nranks, 16384);
    assert_int_equal(all->nodes.nnodes, 2048);
    all_rings_are_rings(c->plan);
    for (int ch = 0; ch < all->nchannels; ch++) {
        int roots = 0;

        for (int r = 0; r < 16384; r++) {
            struct kl_tree_neighbours t = kl_connect_tree(all, ch, r);
            int hops = 0;

            roots += t.up < 0;
            for (int i = 0; i < 3 && t.down[i] >= 0; i++) assert_int_equal(kl_connect_tree(all, ch, t.down[i]).up, r);
            if (r % 97) continue;
            for (int up = t.up; up >= 0; up = kl_connect_tree(all, ch, up).up) hops++;
            assert_true(hops <= 9 * 12); /* chains of 8 and a wire, on each of at most 12 levels */
        }
        assert_int_equal(roots, 1);
    }
    drop_cluster(c);
}

/* ---- sends and receives ---- */

static const struct p2p_case {
    int nccl;
    const char *file;
    int hosts;
    int64_t max, min, args, per_net_peer;
    int n, per_peer, limit, share, far;
} p2p[] = {
    {KL_NCCL_2_26_3, "a100-nvsw-8nic-200g", 2, 64, 1, INT64_MAX, -1, 16, 2, KL_P2P_CHANNELS, KL_P2P_REMOTE, -1},
    {KL_NCCL_2_26_3, "a100-nvsw-8nic-200g", 9, 64, 1, INT64_MAX, -1, 16, 1, KL_P2P_CHANNELS, KL_P2P_REMOTE, -1},
    {KL_NCCL_2_26_3, "a100-nvsw-8nic-200g", 2, 64, 1, INT64_MAX, 4, 16, 4, KL_P2P_CHANNELS, KL_P2P_PER_PEER, -1},
    {KL_NCCL_2_26_3, "a100-nvsw-8nic-200g", 2, 5, 1, INT64_MAX, -1, 8, 1, KL_P2P_MAX, KL_P2P_REMOTE, -1},
    {KL_NCCL_2_26_3, "a100-nvsw-8nic-200g", 1, 64, 33, INT64_MAX, -1, 64, 32, KL_P2P_MIN, KL_P2P_NVLINKS, 1},
    {KL_NCCL_2_26_3, "a100-nvsw-8nic-200g", 1, 64, 1, 100, -1, 4, 4, KL_P2P_ARGS, KL_P2P_ALL, -1},
    {KL_NCCL_2_26_3, "dgx1v-hcm-4nic", 1, 64, 1, INT64_MAX, -1, 16, 2, KL_P2P_CHANNELS, KL_P2P_NVLINKS, 1},
    {KL_NCCL_2_26_3, "pcie-8gpu-0nic-l40s", 1, 64, 8, INT64_MAX, -1, 8, 2, KL_P2P_MIN, KL_P2P_TWO, 1},
    {KL_NCCL_2_26_3, "pcie-8gpu-4nic-100g", 1, 64, 1, INT64_MAX, -1, 2, 1, KL_P2P_CHANNELS, KL_P2P_REMOTE, -1},
    {KL_NCCL_2_26_3, "gb200-4gpu-4nic", 33, 64, 1, INT64_MAX, -1, 32, 2, KL_P2P_CHANNELS, KL_P2P_NICS, -1},
    {KL_NCCL_DEFAULT, "a100-nvsw-8nic-200g", 2, 64, 1, INT64_MAX, -1, 16, 2, KL_P2P_CHANNELS, KL_P2P_BANDWIDTH, -1},
    {KL_NCCL_DEFAULT, "a100-nvsw-8nic-200g", 9, 64, 1, INT64_MAX, -1, 16, 1, KL_P2P_CHANNELS, KL_P2P_PEERS, -1},
    {KL_NCCL_DEFAULT, "a100-nvsw-8nic-200g", 1, 64, 33, INT64_MAX, -1, 64, 32, KL_P2P_MIN, KL_P2P_NVLINKS, 1},
    {KL_NCCL_DEFAULT, "dgx1v-hcm-4nic", 1, 64, 1, INT64_MAX, -1, 16, 2, KL_P2P_CHANNELS, KL_P2P_NVLINKS, 1},
    {KL_NCCL_DEFAULT, "dgx1v-hcm-4nic", 3, 64, 1, INT64_MAX, -1, 8, 1, KL_P2P_CHANNELS, KL_P2P_BANDWIDTH, -1},
    {KL_NCCL_DEFAULT, "pcie-8gpu-0nic-l40s", 1, 64, 8, INT64_MAX, -1, 8, 2, KL_P2P_MIN, KL_P2P_TWO, 1},
    {KL_NCCL_DEFAULT, "gb200-4gpu-4nic", 33, 64, 1, INT64_MAX, -1, 16, 1, KL_P2P_CHANNELS, KL_P2P_PEERS, -1},
};

/* The number of channels for sends and receives, and its cause. */
static void p2p_channels_say_why(void **state)
{
    (void)state;
    FOR_EACH_CASE(q, p2p)
    {
        char file[128];

        snprintf(file, sizeof file, "tests/data/topologies/synthetic/%s.xml", q->file);
        struct cluster *c = open_cluster(file);

        c->options.nccl = q->nccl;
        plan_cluster(c, q->hosts);
        const struct kl_plan_domain *d = &c->plan->domain[0];
        struct kl_channel_params params = KL_CHANNEL_PARAMS;

        params.max_p2p = q->max;
        params.min_p2p = q->min;
        params.work_args_bytes = q->args;
        params.per_net_peer = q->per_net_peer;
        struct kl_p2p_channels p = kl_p2p_channels_of(d->topo, c->plan->connect, &params, 0);

        if (p.n != q->n || p.per_peer != q->per_peer || p.why.limit != q->limit || p.why.share != q->share ||
            p.why.far != q->far)
            fail_msg("%s on %d: %d, %s; %d, %s, far %d", q->file, q->hosts, p.n,
                     kl_p2p_channels_limit_name(p.why.limit), p.per_peer, kl_p2p_share_name(p.why.share), p.why.far);
        assert_true(kl_p2p_channels_limit_text(p.why.limit) && kl_p2p_share_text(p.why.share));
        drop_cluster(c);
    }
}

/* ---- this machine ---- */

#define FOUR_GPUS "tests/data/topologies/synthetic/pcie-2cpu-4gpu.xml"

static const struct {
    const char *configured, *local_size, *file;
    int devices; /* 0: whatever this machine has */
} environments[] = {
    {"", "", "", 0},  {"5", "", "", 5},        {"", "3", "", 3},        {"5", "3", "", 5},
    {"1", "", "", 1}, {"", "3", FOUR_GPUS, 4}, {"2", "", FOUR_GPUS, 2}, {"", "3", "/nonexistent", 3},
};

/* A plan for this machine has as many devices as a process here counts, wherever the number comes from. */
static void this_machine_has_the_devices_of_a_process(void **state)
{
    struct kl_cluster_request request = {.hosts = 1};
    struct kl_cluster cluster;
    int count;

    (void)state;
    setenv("HOME", "/nonexistent", 1);
    FOR_EACH_CASE(c, environments)
    {
        setenv("KOLO_HOST_DEVICES", c->configured, 1);
        setenv("LOCAL_WORLD_SIZE", c->local_size, 1);
        setenv("NCCL_TOPO_FILE", c->file, 1);
        assert_int_equal(koloGetDeviceCount(&count), ncclSuccess);
        assert_int_equal(kl_cluster_open(&request, &cluster), ncclSuccess);
        assert_int_equal(cluster.gpus, count);
        if (c->devices)
            assert_int_equal(count, c->devices);
        else
            assert_true(count >= 8);
        kl_cluster_close(&cluster);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_hosts_are_two_nodes),
        cmocka_unit_test(a_host_can_be_two_nodes),
        cmocka_unit_test(ends_of_channels_have_nics),
        cmocka_unit_test(sixteen_thousand_gpus),
        cmocka_unit_test(both_ends_of_an_edge_ask_the_same_graph),
        cmocka_unit_test(p2p_channels_say_why),
        cmocka_unit_test(this_machine_has_the_devices_of_a_process),
    };

    kl_error_quiet(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
