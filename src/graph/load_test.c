/* SPDX-License-Identifier: Apache-2.0 */
/* Load of channels on links: known numbers, and no graph of a search exceeds a link. */
#include "graph/load.h"

#include "graph/test_machine.h"

static struct kl_graph *search(const struct kl_topo *t, int id)
{
    struct kl_graph_request request = kl_graph_request_for((enum kl_graph_id)id);

    return searched(t, &request, NULL);
}

static struct kl_load *load_of(const struct kl_topo *t, const struct kl_graph *g)
{
    struct kl_load *l = NULL;

    assert_int_equal(kl_load_create(t, g, &l), ncclSuccess);
    return l;
}

/* 4 devices below one switch of 12 GB/s: the ring fills every link in both directions. */
static void a_ring_fills_every_link(void **state)
{
    struct kl_topo *t = host_devices(4);
    struct kl_graph *g = search(t, KL_GRAPH_RING);
    struct kl_load *l = load_of(t, g);

    (void)state;
    for (int i = 0; i < t->nlinks; i++) {
        bool gpu = t->node[t->link[i].from].type == KL_NODE_GPU || t->node[t->link[i].to].type == KL_NODE_GPU;

        assert_true(l->used[i] == (gpu ? 12 : 0));
        assert_true(kl_load_lacks(l, t, i) == (gpu ? 12 : 0));
    }
    assert_int_equal(l->limit, KL_LIMIT_LINKS);
    assert_int_equal(l->like, 0);
    kl_load_free(l);
    kl_graph_free(g);
    kl_topo_free(t);
}

/* A tree of the same: nothing flows into its first device, nor out of its last. */
static void a_chain_leaves_its_ends_free(void **state)
{
    struct kl_topo *t = host_devices(4);
    struct kl_graph_request request = kl_graph_request_for(KL_GRAPH_TREE);

    (void)state;
    request.max_channels = 1;
    struct kl_graph *g = searched(t, &request, NULL);
    struct kl_load *l = load_of(t, g);
    int first = kl_topo_at(t, KL_NODE_GPU, 0), last = kl_topo_at(t, KL_NODE_GPU, 3);

    for (int i = 0; i < t->nlinks; i++) {
        if (t->link[i].from == first || t->link[i].to == last) assert_true(l->used[i] == g->bw_intra);
        if (t->link[i].to == first || t->link[i].from == last) assert_true(l->used[i] == 0);
    }
    assert_int_equal(l->limit, KL_LIMIT_CHANNELS);
    kl_load_free(l);
    kl_graph_free(g);
    kl_topo_free(t);
}

#define CPU(vendor) "<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"" vendor "\" familyid=\"6\" modelid=\"85\">"
#define DEVICE(bus, class, body)                                                                                       \
    "<pci busid=\"0000:" bus ":00.0\" class=\"" class "\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">" body       \
                                                      "</pci>"
#define GPUS_OF(sm)                                                                                                    \
    DEVICE("01", "0x030200", "<gpu dev=\"0\" sm=\"" sm "\" rank=\"0\" gdr=\"1\"/>")                                    \
    DEVICE("02", "0x030200", "<gpu dev=\"1\" sm=\"" sm "\" rank=\"1\" gdr=\"1\"/>")
#define GPUS GPUS_OF("80")
#define NIC(bus, dev)                                                                                                  \
    DEVICE(bus, "0x020700",                                                                                            \
           "<nic><net name=\"n" dev "\" dev=\"" dev "\" speed=\"100000\" port=\"1\" guid=\"0x9\" gdr=\"1\"/></nic>")

/* The load of a ring on the link out of GPU 0, divided by the bandwidth of its channels. */
static float share_out_of_first(const char *text, int hosts)
{
    struct kl_topo *t = machine_of(text, hosts);
    struct kl_graph *g = search(t, KL_GRAPH_RING);
    struct kl_load *l = load_of(t, g);
    const struct kl_node *n = &t->node[kl_topo_at(t, KL_NODE_GPU, 0)];
    float share = l->used[n->first_link] / (g->bw_intra * (float)g->nchannels);

    kl_load_free(l);
    kl_graph_free(g);
    kl_topo_free(t);
    return share;
}

static void pci_through_intel_costs_a_fifth_more(void **state)
{
    (void)state;
    assert_true(share_out_of_first("<system version=\"1\">" CPU("GenuineIntel") GPUS "</cpu></system>", 1) == 1.2f);
    assert_true(share_out_of_first("<system version=\"1\">" CPU("AuthenticAMD") GPUS "</cpu></system>", 1) == 1);
}

/* Data into a GPU before sm 80 is acknowledged against its own traffic. */
static void old_gpus_acknowledge_an_eighth(void **state)
{
    (void)state;
    assert_true(share_out_of_first("<system version=\"1\">" CPU("AuthenticAMD") GPUS_OF("70")
                                       NIC("03", "0") "</cpu></system>",
                                   2) == 1.125f);
    assert_true(
        share_out_of_first("<system version=\"1\">" CPU("AuthenticAMD") GPUS NIC("03", "0") "</cpu></system>", 2) == 1);
}

/* Two NETs of one chip and port: an entry through one reduces both. */
static void nets_of_one_port_share_it(void **state)
{
    struct kl_topo *t = machine_of(
        "<system version=\"1\">" CPU("AuthenticAMD") GPUS NIC("03", "0") NIC("04", "1") "</cpu></system>", 2);
    struct kl_graph *g = search(t, KL_GRAPH_RING);
    struct kl_load *l = load_of(t, g);

    (void)state;
    assert_int_equal(t->count[KL_NODE_NET], 2);
    assert_true(l->port_used[0] > 0 && l->port_used[0] == l->port_used[1]);
    assert_true(l->port_used[0] == (float)(int)g->bw_inter * (float)g->nchannels);
    kl_load_free(l);
    kl_graph_free(g);
    kl_topo_free(t);
}

/* Graph files may claim reductions in an NVSwitch where there is none. */
static void an_nvswitch_that_is_not_there_carries_nothing(void **state)
{
    struct kl_topo *t =
        machine_of("<system version=\"1\">" CPU("AuthenticAMD") GPUS NIC("03", "0") "</cpu></system>", 2);
    struct kl_graph *g;

    (void)state;
    assert_int_equal(kl_graph_create(1, t->count[KL_NODE_GPU], &g), ncclSuccess);
    g->id = KL_GRAPH_NVLS;
    g->pattern = KL_PATTERN_NVLS;
    g->nchannels = 1;
    g->bw_intra = g->bw_inter = 10;
    struct kl_load *l = load_of(t, g);
    assert_true(l->port_used[0] == 10);
    for (int i = 0; i < t->nlinks; i++)
        if (t->node[t->link[i].to].type == KL_NODE_GPU) assert_true(l->used[i] <= 10);
    kl_load_free(l);
    kl_graph_free(g);
    kl_topo_free(t);
}

static bool is_found(const struct kl_graph *g)
{
    return g->nchannels && g->bw_intra > 0.1f;
}

static void no_link_carries_more_than_it_can(void **state)
{
    static const int ids[] = {KL_GRAPH_RING, KL_GRAPH_TREE, KL_GRAPH_NVLS};
    static char text[TEST_MACHINE_TEXT];

    (void)state;
    for (uint32_t seed = 1; seed <= 150; seed++) {
        random_machine(seed, text);
        struct kl_topo *t = machine_of(text, 1 + (int)(seed % 2));

        FOR_EACH_CASE(id, ids)
        {
            struct kl_graph *g = search(t, *id);
            struct kl_load *l = load_of(t, g);

            for (int i = 0; i < t->nlinks && is_found(g); i++)
                if (l->used[i] > t->link[i].bw + 0.01f * (float)g->nchannels)
                    fail_msg("seed %u, %s: link %d carries %g of %g", seed, kl_graph_name(*id), i, (double)l->used[i],
                             (double)t->link[i].bw);
            kl_load_free(l);
            kl_graph_free(g);
        }
        kl_topo_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_fills_every_link),
        cmocka_unit_test(a_chain_leaves_its_ends_free),
        cmocka_unit_test(pci_through_intel_costs_a_fifth_more),
        cmocka_unit_test(old_gpus_acknowledge_an_eighth),
        cmocka_unit_test(nets_of_one_port_share_it),
        cmocka_unit_test(an_nvswitch_that_is_not_there_carries_nothing),
        cmocka_unit_test(no_link_carries_more_than_it_can),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
