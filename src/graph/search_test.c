/* SPDX-License-Identifier: Apache-2.0 */
/* The search on machines with known answers, invariants on any machine, and that no proof changes a result. */
#include "graph/graphs.h"

#include "base/error.h"
#include "graph/run.h"
#include "graph/test_machine.h"

/* ---- known answers ---- */

static struct kl_graph *ring_of(const struct kl_topo *t, struct kl_graph_why **why)
{
    struct kl_graph_request request = kl_graph_request_for(KL_GRAPH_RING);

    return searched(t, &request, why);
}

static void host_devices_make_one_ring_in_order(void **state)
{
    (void)state;
    for (int n = 2; n <= 9; n++) {
        struct kl_topo *t = host_devices(n);
        struct kl_graph *g = ring_of(t, NULL);

        assert_int_equal(g->nchannels, 1);
        assert_true(g->bw_intra == 12 && g->bw_inter == 12);
        assert_int_equal(g->type_intra, KL_PATH_PIX);
        for (int i = 0; i < n; i++) assert_int_equal(g->intra[i], i);
        kl_graph_free(g);
        kl_topo_free(t);
    }
}

static void one_device_is_a_ring(void **state)
{
    struct kl_topo *t = host_devices(1);
    struct kl_graph *g = ring_of(t, NULL);

    (void)state;
    assert_int_equal(g->nchannels, 32);
    assert_int_equal(g->intra[0], 0);
    kl_graph_free(g);
    kl_topo_free(t);
}

static const char *nvswitch_machine(char *text)
{
    size_t used = (size_t)snprintf(text, TEST_MACHINE_TEXT,
                                   "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" "
                                   "familyid=\"6\" modelid=\"143\">");

    for (int g = 0; g < 8; g++)
        used += (size_t)snprintf(text + used, TEST_MACHINE_TEXT - used,
                                 "<pci busid=\"0000:%02x:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" "
                                 "link_width=\"16\"><gpu dev=\"%d\" sm=\"90\" rank=\"%d\" gdr=\"1\"><nvlink "
                                 "target=\"0000:f0:00.0\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>",
                                 0x10 + g, g, g);
    snprintf(text + used, TEST_MACHINE_TEXT - used, "</cpu></system>");
    return text;
}

static void eight_gpus_on_an_nvswitch(void **state)
{
    char *text = malloc(TEST_MACHINE_TEXT);
    struct kl_topo *t = machine_of(nvswitch_machine(text), 1);
    struct kl_graphs_request request = {.nvls = true};
    struct kl_graphs g;

    (void)state;
    assert_int_equal(kl_graphs_compute(t, &request, &g), ncclSuccess);
    const struct kl_graph *ring = g.graph[KL_GRAPH_RING], *tree = g.graph[KL_GRAPH_TREE],
                          *nvls = g.graph[KL_GRAPH_NVLS];
    assert_int_equal(ring->nchannels, 12);
    assert_true(ring->bw_intra == 30 && ring->bw_inter == 30);
    assert_int_equal(ring->same_channels, 1);
    for (int i = 0; i < 8; i++) assert_int_equal(ring->intra[i], i);
    assert_int_equal(tree->nchannels, 12);
    assert_true(tree->bw_intra == 30 && tree->pattern == KL_PATTERN_BALANCED_TREE);
    assert_int_equal(nvls->nchannels, 8);
    assert_true(nvls->bw_intra == 40 && nvls->bw_inter == 60);
    for (int c = 0; c < 8; c++) assert_int_equal(nvls->intra[c * 8], c);
    kl_graphs_fini(&g);
    kl_topo_free(t);
    free(text);
}

/* ---- why ---- */

static void attempts_say_what_was_tried(void **state)
{
    struct kl_topo *t = host_devices(4);
    struct kl_graph_why *why = NULL;
    struct kl_graph *g = ring_of(t, &why);

    (void)state;
    assert_int_equal(why->end, KL_END_SATURATED);
    assert_true(why->nattempts >= 2);
    assert_true(why->attempt[0].bw_intra == 12 && why->attempt[0].same_channels == 1);
    assert_int_equal(why->attempt[0].stored, 1);
    for (int i = 0; i < why->nattempts; i++) {
        const struct kl_attempt *a = &why->attempt[i];

        assert_true(a->steps >= 0 && a->limiting_link < t->nlinks);
        assert_true(a->refusals == 0 || a->limiting_link >= 0);
    }
    assert_null(why->refused);
    kl_graph_free(g);
    kl_graph_why_free(why);
    kl_topo_free(t);
}

/* Two GPUs without any link between them that P2P or SHM could use fall back to their order. */
static void nothing_found_falls_back(void **state)
{
    static const char text[] =
        "<system version=\"1\">"
        "<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">"
        "<pci busid=\"0000:10:00.0\" class=\"0x030200\" link_speed=\"2.5 GT/s PCIe\" link_width=\"1\">"
        "<gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/></pci>"
        "<pci busid=\"0000:11:00.0\" class=\"0x030200\" link_speed=\"2.5 GT/s PCIe\" link_width=\"1\">"
        "<gpu dev=\"1\" sm=\"80\" rank=\"1\" gdr=\"1\"/></pci></cpu></system>";
    struct kl_topo *t = machine_of(text, 1);
    struct kl_graph_why *why = NULL;
    struct kl_graph *g = ring_of(t, &why);

    (void)state;
    assert_int_equal(why->end, KL_END_FALLBACK);
    assert_int_equal(g->nchannels, 1);
    assert_true(g->bw_intra == 0.1f && g->type_intra == KL_PATH_SYS);
    assert_int_equal(g->intra[0], 0);
    assert_int_equal(g->intra[1], 1);
    kl_graph_free(g);
    kl_graph_why_free(why);
    kl_topo_free(t);
}

/* ---- invariants on any machine ---- */

static void visits_every_rank_once(const struct kl_graph *g)
{
    for (int c = 0; c < g->nchannels; c++) {
        uint64_t seen = 0;

        for (int i = 0; i < g->ngpus; i++) seen |= (uint64_t)1 << g->intra[c * g->ngpus + i];
        assert_int_equal(__builtin_popcountll(seen), g->ngpus);
    }
}

static void load(const struct kl_topo *t, const struct kl_path *p, float bw, double *used)
{
    for (int k = 0; k < p->hops; k++) used[kl_path_hops(t, p)[k]] += (double)bw;
}

static int gpu_at(const struct kl_topo *t, const struct kl_graph *g, int c, int i)
{
    return kl_topo_gpu_of_rank(t, g->intra[c * g->ngpus + i]);
}

static int net_at(const struct kl_topo *t, const struct kl_graph *g, int c, int end)
{
    return kl_topo_index(t, kl_topo_find(t, KL_NODE_NET, (uint64_t)g->inter[2 * c + end]));
}

static void load_channel(const struct kl_topo *t, const struct kl_graph *g, int c, double *used)
{
    int n = g->ngpus;
    bool nets = kl_topo_needs_net(t), ring = g->pattern == KL_PATTERN_RING;

    for (int i = 0; i + 1 < n; i++)
        load(t, kl_path_between(t, KL_NODE_GPU, gpu_at(t, g, c, i), KL_NODE_GPU, gpu_at(t, g, c, i + 1)), g->bw_intra,
             used);
    if (ring && !nets && n > 1)
        load(t, kl_path_between(t, KL_NODE_GPU, gpu_at(t, g, c, n - 1), KL_NODE_GPU, gpu_at(t, g, c, 0)), g->bw_intra,
             used);
    if (!nets) return;
    load(t, kl_path_between(t, KL_NODE_NET, net_at(t, g, c, 0), KL_NODE_GPU, gpu_at(t, g, c, 0)), g->bw_inter, used);
    if (ring)
        load(t, kl_path_between(t, KL_NODE_GPU, gpu_at(t, g, c, n - 1), KL_NODE_NET, net_at(t, g, c, 1)), g->bw_inter,
             used);
}

/* Except for rounding to thousandths, and for the fallback, which reserves nothing. */
static void no_link_carries_too_much(const struct kl_topo *t, const struct kl_graph *g)
{
    double *used = calloc((size_t)t->nlinks + 1, sizeof *used);

    if (g->bw_intra > 0.1f)
        for (int c = 0; c < g->nchannels; c++) load_channel(t, g, c, used);
    for (int l = 0; l < t->nlinks; l++) assert_true(used[l] <= (double)t->link[l].bw + 0.05);
    free(used);
}

static void same_graph(const struct kl_graph *a, const struct kl_graph *b)
{
    assert_int_equal(a->nchannels, b->nchannels);
    assert_int_equal(a->pattern, b->pattern);
    assert_true(a->bw_intra == b->bw_intra && a->bw_inter == b->bw_inter);
    assert_int_equal(a->type_intra, b->type_intra);
    assert_int_equal(a->type_inter, b->type_inter);
    assert_int_equal(a->nhops, b->nhops);
    assert_int_equal(a->same_channels, b->same_channels);
    assert_int_equal(a->cross_nic, b->cross_nic);
    if (a->pattern != KL_PATTERN_NVLS)
        assert_memory_equal(a->intra, b->intra, (size_t)(a->nchannels * a->ngpus) * sizeof a->intra[0]);
    assert_memory_equal(a->inter, b->inter, (size_t)(2 * a->nchannels) * sizeof a->inter[0]);
}

enum { SEARCHES = 4 };

/*
 * Ring, tree on the rings' channels, tree, and NVLS of a machine, with proofs that save attempts and steps wherever they
 * can, or without.
 */
static void search_all(const struct kl_topo *t, bool thorough, struct kl_graph *g[SEARCHES])
{
    static const enum kl_graph_id ids[SEARCHES] = {KL_GRAPH_RING, KL_GRAPH_TREE, KL_GRAPH_TREE, KL_GRAPH_NVLS};
    struct kl_search *s;

    assert_int_equal(kl_search_create(t, &s), ncclSuccess);
    s->thorough = thorough;
    s->few_steps = 0;
    for (int i = 0; i < SEARCHES; i++) {
        struct kl_graph_request request = kl_graph_request_for(ids[i]);

        if (i == 1) request.min_channels = request.max_channels = g[0]->nchannels;
        assert_int_equal(kl_search_run(s, &request, NULL, &g[i], NULL), ncclSuccess);
    }
    kl_search_free(s);
}

static void check_machine(const struct kl_topo *t)
{
    struct kl_graph *quick[SEARCHES], *again[SEARCHES], *thorough[SEARCHES];

    search_all(t, false, quick);
    search_all(t, false, again);
    search_all(t, true, thorough);
    for (int i = 0; i < SEARCHES; i++) {
        if (i < 3) visits_every_rank_once(quick[i]);
        if (i < 3) no_link_carries_too_much(t, quick[i]);
        same_graph(quick[i], again[i]);
        same_graph(quick[i], thorough[i]);
        kl_graph_free(quick[i]);
        kl_graph_free(again[i]);
        kl_graph_free(thorough[i]);
    }
}

static void any_machine_gets_sound_graphs(void **state)
{
    char *text = malloc(TEST_MACHINE_TEXT);

    (void)state;
    for (uint32_t seed = 1; seed <= 60; seed++) {
        random_machine(seed, text);
        for (int hosts = 1; hosts <= 2; hosts++) {
            struct kl_topo *t = machine_of(text, hosts);

            check_machine(t);
            kl_topo_free(t);
        }
    }
    free(text);
}

/*
 * Two hosts in one document with only the network between them: there is no path to the NETs of the other host, so no GPU
 * is near them, and only PCI order enters through them. Rounds that skip PCI order must not count as finding nothing.
 */
static void nets_out_of_reach(void **state)
{
#define HOST(hash, bus)                                                                                                \
    "<cpu numaid=\"0\" host_hash=\"" hash                                                                              \
    "\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"143\" modelid=\"49\">"                                      \
    "<pci busid=\"0000:" bus "1:00.0\" class=\"0x020000\"><nic><net name=\"a" bus "\" dev=\"0\" speed=\"100000\" "     \
    "guid=\"0x1\"/></nic></pci></cpu>"                                                                                 \
    "<cpu numaid=\"1\" host_hash=\"" hash "\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">"  \
    "<pci busid=\"0000:" bus "2:00.0\" class=\"0x020000\" link_speed=\"8.0 GT/s PCIe\" link_width=\"16\">"             \
    "<nic><net name=\"b" bus "\" dev=\"1\" speed=\"100000\" guid=\"0x65\"/></nic></pci></cpu>"                         \
    "<cpu numaid=\"2\" host_hash=\"" hash "\" arch=\"arm64\"><pci busid=\"0000:" bus "3:00.0\" class=\"0x030200\" "    \
    "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu sm=\"80\"><c2c bw=\"44000\" count=\"1\"/></gpu></pci></cpu>"
    struct kl_topo *t = machine_of("<system version=\"1\">" HOST("0x1", "1") HOST("0x2", "2") "</system>", 2);
#undef HOST

    (void)state;
    assert_int_equal(t->count[KL_NODE_GPU], 1);
    assert_int_equal(t->count[KL_NODE_NET], 4);
    check_machine(t);
    kl_topo_free(t);
}

/* Searches leave the topology alone, and one search after another sees the same machine but for rounding. */
static void the_topology_is_only_read(void **state)
{
    char *text = malloc(TEST_MACHINE_TEXT);
    struct kl_topo *t = machine_of(nvswitch_machine(text), 1);
    struct kl_link *before = malloc((size_t)t->nlinks * sizeof *before);

    (void)state;
    memcpy(before, t->link, (size_t)t->nlinks * sizeof *before);
    kl_graph_free(ring_of(t, NULL));
    assert_memory_equal(before, t->link, (size_t)t->nlinks * sizeof *before);
    free(before);
    kl_topo_free(t);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_devices_make_one_ring_in_order),
        cmocka_unit_test(one_device_is_a_ring),
        cmocka_unit_test(eight_gpus_on_an_nvswitch),
        cmocka_unit_test(attempts_say_what_was_tried),
        cmocka_unit_test(nothing_found_falls_back),
        cmocka_unit_test(any_machine_gets_sound_graphs),
        cmocka_unit_test(nets_out_of_reach),
        cmocka_unit_test(the_topology_is_only_read),
    };

    kl_error_quiet(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
