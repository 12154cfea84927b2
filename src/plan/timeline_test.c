/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines: the loads of rings and trees over time, compared with closed formulas. */
#include "plan/timeline.h"

#include "base/error.h"
#include "plan/test_cluster.h"

#include <stdlib.h>

static const char a100[] = "tests/data/topologies/synthetic/a100-nvsw-8nic-200g.xml";
static const char dgx1[] = "tests/data/topologies/synthetic/dgx1v-hcm-4nic.xml";

enum { MIB = 1 << 20 };

static struct kl_timeline *timeline_of(const struct kl_plan *p, int graph, int64_t bytes)
{
    struct kl_timeline *t = NULL;

    assert_int_equal(kl_timeline_create(p, graph, bytes, &t), ncclSuccess);
    return t;
}

/* The row of links from one type of node to another; there must be one only. */
static const struct kl_timeline_row *row_of(const struct kl_plan *p, const struct kl_timeline *t, int from, int to)
{
    const struct kl_timeline_row *found = NULL;

    for (int i = 0; i < t->nrows; i++) {
        const struct kl_topo *topo = p->domain[t->row[i].domain].topo;
        const struct kl_link *l = &topo->link[t->row[i].link];

        if (topo->node[l->from].type != from || topo->node[l->to].type != to) continue;
        assert_null(found);
        found = &t->row[i];
    }
    assert_non_null(found);
    return found;
}

/* Every rank sends 2 (n - 1) / n of the data, over all channels together, at the bandwidth that the ring reserves. */
static void a_ring_takes_what_its_bandwidth_says(void **state)
{
    struct cluster *c = open_cluster(a100);

    (void)state;
    for (int hosts = 1; hosts <= 4; hosts *= 2) {
        const struct kl_plan *p = plan_cluster(c, hosts);
        const struct kl_graph_facts *g = &p->connect->graph[KL_GRAPH_RING];
        struct kl_timeline *t = timeline_of(p, KL_GRAPH_RING, 256 * MIB);
        double bw = (double)(hosts > 1 ? g->bw_inter : g->bw_intra) * g->nchannels * 1e3;

        assert_float_equal(t->us, 2.0 * (p->nranks - 1) / p->nranks * 256 * MIB / bw, t->us / 50);
        kl_timeline_free(t);
    }
    drop_cluster(c);
}

/* All NICs of all hosts send all of the time, and so do the NVLinks, which have room left. */
static void links_alike_are_one_row(void **state)
{
    struct cluster *c = open_cluster(a100);
    const struct kl_plan *p = plan_cluster(c, 2);
    struct kl_timeline *t = timeline_of(p, KL_GRAPH_RING, 256 * MIB);
    const struct kl_timeline_row *out = row_of(p, t, KL_NODE_NIC, KL_NODE_NET);

    (void)state;
    assert_int_equal(out->like, 15);
    assert_in_range(out->mean, 78, 100); /* 20 of 25 GB/s */
    assert_in_range(row_of(p, t, KL_NODE_GPU, KL_NODE_NVS)->mean, 30, 75);
    kl_timeline_free(t);
    drop_cluster(c);
}

static double net_bytes(const struct kl_plan *p, const struct kl_timeline *t)
{
    double sum = 0;

    for (int i = 0; i < t->nrows; i++) {
        const struct kl_topo *topo = p->domain[t->row[i].domain].topo;
        const struct kl_link *l = &topo->link[t->row[i].link];

        if (topo->node[l->to].type == KL_NODE_NET)
            sum += (t->row[i].like + 1) * (double)t->row[i].mean / 100 * (double)l->bw * 1e3 * t->us;
    }
    return sum;
}

/* Each edge between hosts carries its share once up and once down: two hosts, one edge per channel. */
static void a_tree_carries_all_data_once_each_way(void **state)
{
    const char *const files[] = {a100, dgx1};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct cluster *c = open_cluster(files[i]);
        const struct kl_plan *p = plan_cluster(c, 2);
        struct kl_timeline *t = timeline_of(p, KL_GRAPH_TREE, 64 * MIB);

        assert_float_equal(net_bytes(p, t), 2.0 * 64 * MIB, 64 * MIB / 10.0);
        kl_timeline_free(t);
        drop_cluster(c);
    }
}

/* Down begins only when the first chunk is up: at the very beginning, some links still wait. */
static void a_tree_begins_at_its_leaves(void **state)
{
    struct cluster *c = open_cluster(a100);
    const struct kl_plan *p = plan_cluster(c, 8);
    struct kl_timeline *t = timeline_of(p, KL_GRAPH_TREE, 64 * MIB);
    int late = 0;

    (void)state;
    for (int i = 0; i < t->nrows; i++) late += t->row[i].percent[0] == 0;
    assert_true(late > 0);
    kl_timeline_free(t);
    drop_cluster(c);
}

static void refused(const struct kl_plan *p, int graph, ncclResult_t want)
{
    int quiet = kl_error_quiet(1);
    struct kl_timeline *t = NULL;

    assert_int_equal(kl_timeline_create(p, graph, MIB, &t), want);
    assert_null(t);
    kl_error_quiet(quiet);
}

static void what_has_no_timeline_is_refused(void **state)
{
    struct cluster *c = open_cluster(a100);

    (void)state;
    refused(plan_cluster(c, 2), KL_GRAPH_NVLS, ncclInvalidUsage);
    refused(plan_cluster(c, 64), KL_GRAPH_RING, ncclInvalidUsage);
    drop_cluster(c);
    c = open_cluster("tests/data/topologies/synthetic/single-gpu-1nic.xml");
    refused(plan_cluster(c, 1), KL_GRAPH_RING, ncclInvalidUsage);
    drop_cluster(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_takes_what_its_bandwidth_says),  cmocka_unit_test(links_alike_are_one_row),
        cmocka_unit_test(a_tree_carries_all_data_once_each_way), cmocka_unit_test(a_tree_begins_at_its_leaves),
        cmocka_unit_test(what_has_no_timeline_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
