/* SPDX-License-Identifier: Apache-2.0 */
/* What graphs take from links: by hand where it is known, and never more than there is. */
#include "graph/load.h"

#include "graph/graphs.h"
#include "graph/test_machine.h"

#include <math.h>

static struct kl_topo *pair(const char *vendor, int hosts)
{
    char text[4096];

    snprintf(text, sizeof text,
             "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"%s\" familyid=\"6\" modelid=\"85\">"
             "<pci busid=\"0000:10:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
             "<gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/></pci>"
             "<pci busid=\"0000:20:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
             "<gpu dev=\"1\" sm=\"80\" rank=\"1\" gdr=\"1\"/></pci>"
             "<pci busid=\"0000:30:00.0\" class=\"0x020000\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
             "<nic><net name=\"n\" dev=\"0\" speed=\"40000\" port=\"1\" guid=\"0x1\" gdr=\"1\"/></nic></pci>"
             "</cpu></system>",
             vendor);
    return machine_of(text, hosts);
}

static double load_of(const struct kl_topo *t, const double *used, enum kl_node_type from, int i, enum kl_node_type to)
{
    const struct kl_node *n = &t->node[kl_topo_at(t, from, i)];

    for (int k = n->first_link; k < n->first_link + n->nlinks; k++)
        if (t->node[t->link[k].to].type == to) return used[k];
    fail_msg("no such link");
    return 0;
}

static double *ring_load(const struct kl_topo *t, struct kl_graph **graph)
{
    struct kl_graph_request request = kl_graph_request_for(KL_GRAPH_RING);
    double *used = calloc((size_t)t->nlinks, sizeof *used);

    assert_int_equal(kl_graph_search(t, &request, graph, NULL), ncclSuccess);
    assert_int_equal(kl_graph_load(t, *graph, used), ncclSuccess);
    return used;
}

/* Each channel goes up once and down once at each GPU; through an Intel host bridge PCI costs 6/5. */
static void a_ring_of_two_through_the_cpu(void **state)
{
    static const struct {
        const char *vendor;
        double cost;
    } cases[] = {{"AuthenticAMD", 1}, {"GenuineIntel", 1.2}};

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_topo *t = pair(c->vendor, 1);
        struct kl_graph *g = NULL;
        double *used = ring_load(t, &g), want = (double)g->bw_intra * g->nchannels * c->cost;

        assert_true(want > 0);
        for (int i = 0; i < 2; i++)
            expect_case(c->vendor, fabs(load_of(t, used, KL_NODE_GPU, i, KL_NODE_CPU) - want) < 0.01);
        kl_graph_free(g);
        free(used);
        kl_topo_free(t);
    }
}

/* In over the port, out over the port: each direction carries the channel once. */
static void the_network_is_entered_and_left_once(void **state)
{
    struct kl_topo *t = pair("AuthenticAMD", 2);
    struct kl_graph *g = NULL;
    double *used = ring_load(t, &g), want = (double)g->bw_inter * g->nchannels;

    (void)state;
    assert_true(want > 0);
    assert_true(fabs(load_of(t, used, KL_NODE_NET, 0, KL_NODE_NIC) - want) < 0.01);
    assert_true(fabs(load_of(t, used, KL_NODE_NIC, 0, KL_NODE_NET) - want) < 0.01);
    kl_graph_free(g);
    free(used);
    kl_topo_free(t);
}

/* What is searched fits. The search counts with three decimals, and a machine without a solution is not counted. */
static void check_fits(const struct kl_topo *t)
{
    struct kl_graphs_request request = {.nvls = kl_graphs_guess_multicast(t)};
    double *used = malloc((size_t)t->nlinks * sizeof *used);
    struct kl_graphs g;

    assert_int_equal(kl_graphs_compute(t, &request, &g), ncclSuccess);
    for (int i = 0; i < KL_GRAPHS; i++) {
        double all = 0;

        if (!g.graph[i] || !g.graph[i]->nchannels || g.why[i]->end == KL_END_FALLBACK) continue;
        memset(used, 0, (size_t)t->nlinks * sizeof *used);
        assert_int_equal(kl_graph_load(t, g.graph[i], used), ncclSuccess);
        for (int k = 0; k < t->nlinks; k++) {
            all += used[k];
            if (used[k] > (double)t->link[k].bw + 0.1) {
                char from[KL_NODE_TEXT], to[KL_NODE_TEXT];

                fail_msg("%s: %g of %g GB/s from %s to %s", kl_graph_name(i), used[k], (double)t->link[k].bw,
                         kl_node_text(&t->node[t->link[k].from], from), kl_node_text(&t->node[t->link[k].to], to));
            }
        }
        assert_true(all > 0 || t->count[KL_NODE_GPU] == 1);
    }
    kl_graphs_fini(&g);
    free(used);
}

static void no_link_carries_more_than_it_can(void **state)
{
    char *text = malloc(TEST_MACHINE_TEXT);

    (void)state;
    for (uint32_t seed = 1; seed <= 60; seed++)
        for (int hosts = 1; hosts <= 2; hosts++) {
            random_machine(seed, text);
            struct kl_topo *t = machine_of(text, hosts);

            check_fits(t);
            kl_topo_free(t);
        }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_of_two_through_the_cpu),
        cmocka_unit_test(the_network_is_entered_and_left_once),
        cmocka_unit_test(no_link_carries_more_than_it_can),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
