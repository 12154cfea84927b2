/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/connect.h"

#include "tests/kolo_test.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 256 };

/* A cluster made by hand: hosts with the same orders, or each its own. */
struct cluster {
    struct kl_graph *ring, *tree;
    struct kl_rank_record record[MAX_RANKS];
    struct kl_ranks ranks;
    struct kl_connect_request request;
};

static struct kl_graph *graph_of(int id, int pattern, int nchannels, int ngpus, const int *orders)
{
    struct kl_graph *g;

    assert_int_equal(kl_graph_create(nchannels, ngpus, &g), ncclSuccess);
    g->id = id;
    g->pattern = pattern;
    g->nchannels = nchannels;
    g->bw_intra = g->bw_inter = 20;
    for (int i = 0; i < nchannels * ngpus; i++) g->intra[i] = orders[i];
    return g;
}

/* Records of the ranks of one host; its graphs have these orders for both ring and tree. */
static void add_host(struct cluster *c, int pattern, int nchannels, int ngpus, const int *orders)
{
    struct kl_graphs graphs = {0};

    graphs.graph[KL_GRAPH_RING] = graph_of(KL_GRAPH_RING, KL_PATTERN_RING, nchannels, ngpus, orders);
    graphs.graph[KL_GRAPH_TREE] = graph_of(KL_GRAPH_TREE, pattern, nchannels, ngpus, orders);
    for (int i = 0; i < ngpus; i++)
        kl_connect_record(&graphs, orders[i], KL_ARCH_X86, KL_VENDOR_INTEL, &c->record[orders[i]]);
    c->ranks.nranks += ngpus;
    c->ranks.nrecords = c->ranks.nranks;
    c->ranks.record = c->record;
    kl_graph_free(graphs.graph[KL_GRAPH_RING]);
    kl_graph_free(graphs.graph[KL_GRAPH_TREE]);
}

static struct cluster *cluster_new(void)
{
    struct cluster *c = calloc(1, sizeof *c);

    c->request = (struct kl_connect_request){.min_sm = 80, .min_ctas = 1, .max_ctas = 64, .params = KL_CHANNEL_PARAMS};
    return c;
}

static struct kl_connect *connect_all(struct cluster *c)
{
    struct kl_connect *all = NULL;

    assert_int_equal(kl_connect_create(&c->ranks, &c->request, &all), ncclSuccess);
    return all;
}

/* ---- rings ---- */

static const int host_a[] = {0, 7, 6, 3, 2, 5, 4, 1}, host_b[] = {10, 9, 8, 13, 12, 15, 14, 11};

static void two_hosts_make_one_ring(void **state)
{
    static const int want[] = {0, 7, 6, 3, 2, 5, 4, 1, 10, 9, 8, 13, 12, 15, 14, 11};
    struct cluster *c = cluster_new();
    int32_t order[16];

    (void)state;
    add_host(c, KL_PATTERN_BALANCED_TREE, 1, 8, host_a);
    add_host(c, KL_PATTERN_BALANCED_TREE, 1, 8, host_b);
    struct kl_connect *all = connect_all(c);
    assert_int_equal(all->nodes.nnodes, 2);
    assert_int_equal(all->nodes.head[1], 10);
    assert_int_equal(all->nchannels, 2);
    for (int channel = 0; channel < 2; channel++) {
        assert_int_equal(kl_connect_ring_order(all, channel, 0, order), ncclSuccess);
        for (int i = 0; i < 16; i++) assert_int_equal(order[i], want[i]);
        for (int i = 0; i < 16; i++) {
            assert_int_equal(kl_connect_ring(all, channel, want[i]).next, want[(i + 1) % 16]);
            assert_int_equal(kl_connect_ring(all, channel, want[i]).prev, want[(i + 15) % 16]);
        }
    }
    kl_connect_free(all);
    free(c);
}

/* A ring 0 7 6 3 2 5 4 1: even ranks share a core, odd ones another. */
static void chains_keep_ranks_of_a_core_together(void **state)
{
    static const int32_t core[] = {0, 1, 0, 1, 0, 1, 0, 1}, want[] = {0, 6, 2, 4, 7, 3, 5, 1};
    struct cluster *c = cluster_new();
    int32_t order[8];

    (void)state;
    add_host(c, KL_PATTERN_BALANCED_TREE, 1, 8, host_a);
    c->request.core = core;
    struct kl_connect *all = connect_all(c);
    for (int first = 0; first < 8; first++) { /* all ranks see one chain */
        assert_int_equal(kl_connect_chain_order(all, 0, want[first], order), ncclSuccess);
        for (int i = 0; i < 8; i++) assert_int_equal(order[i], want[(first + i) % 8]);
    }
    kl_connect_free(all);
    free(c);
}

/* With several nodes, or without shared cores, a chain is the ring. */
static void chains_are_rings_elsewhere(void **state)
{
    static const int32_t core[16] = {0};

    (void)state;
    for (int nodes = 1; nodes <= 2; nodes++) {
        struct cluster *c = cluster_new();
        int32_t chain[16], ring[16];

        add_host(c, KL_PATTERN_BALANCED_TREE, 1, 8, host_a);
        if (nodes == 2) add_host(c, KL_PATTERN_BALANCED_TREE, 1, 8, host_b);
        if (nodes == 2) c->request.core = core;
        struct kl_connect *all = connect_all(c);
        assert_int_equal(kl_connect_chain_order(all, 0, 5, chain), ncclSuccess);
        assert_int_equal(kl_connect_ring_order(all, 0, 5, ring), ncclSuccess);
        for (int i = 0; i < 8 * nodes; i++) assert_int_equal(chain[i], ring[i]);
        kl_connect_free(all);
        free(c);
    }
}

static void two_hosts_make_a_double_tree(void **state)
{
    static const struct {
        int channel, rank, up, down[3];
    } cases[] = {
        {0, 0, -1, {7, 10, -1}}, {0, 7, 0, {6, -1, -1}}, {0, 10, 0, {9, -1, -1}}, {0, 9, 10, {8, -1, -1}},
        {1, 0, 10, {7, -1, -1}}, {1, 7, 0, {6, -1, -1}}, {1, 10, -1, {9, 0, -1}}, {1, 9, 10, {8, -1, -1}},
        {0, 1, 4, {-1, -1, -1}}, {1, 6, 7, {3, -1, -1}},
    };
    struct cluster *c = cluster_new();

    (void)state;
    add_host(c, KL_PATTERN_BALANCED_TREE, 1, 8, host_a);
    add_host(c, KL_PATTERN_BALANCED_TREE, 1, 8, host_b);
    struct kl_connect *all = connect_all(c);
    assert_int_equal(kl_connect_tree_depth(all), 8);
    FOR_EACH_CASE(k, cases)
    {
        struct kl_tree_neighbours t = kl_connect_tree(all, k->channel, k->rank);

        assert_int_equal(t.up, k->up);
        for (int i = 0; i < 3; i++) assert_int_equal(t.down[i], k->down[i]);
    }
    kl_connect_free(all);
    free(c);
}

static void four_nodes_of_two(void **state)
{
    static const struct {
        int up[2], down[2][3];
    } want[] = {
        {{-1, 2}, {{1, 4, -1}, {1, -1, -1}}}, {{0, 0}, {{-1, -1, -1}, {-1, -1, -1}}},
        {{5, 6}, {{3, -1, -1}, {3, 0, -1}}},  {{2, 2}, {{-1, -1, -1}, {4, -1, -1}}},
        {{0, 3}, {{5, 6, -1}, {5, -1, -1}}},  {{4, 4}, {{2, -1, -1}, {-1, -1, -1}}},
        {{4, -1}, {{7, -1, -1}, {7, 2, -1}}}, {{6, 6}, {{-1, -1, -1}, {-1, -1, -1}}},
    };
    struct cluster *c = cluster_new();

    (void)state;
    for (int h = 0; h < 4; h++) add_host(c, KL_PATTERN_BALANCED_TREE, 1, 2, (int[]){2 * h, 2 * h + 1});
    struct kl_connect *all = connect_all(c);
    for (int rank = 0; rank < 8; rank++)
        for (int channel = 0; channel < 2; channel++) {
            struct kl_tree_neighbours t = kl_connect_tree(all, channel, rank);

            assert_int_equal(t.up, want[rank].up[channel]);
            for (int i = 0; i < 3; i++) assert_int_equal(t.down[i], want[rank].down[channel][i]);
        }
    kl_connect_free(all);
    free(c);
}

/* With crossing NICs the odd node uses channels 0 and 1 the other way round, in rings but not in trees. */
static void crossing_rings_swap_pairs_on_odd_nodes(void **state)
{
    static const int a[] = {0, 1, 2, 2, 1, 0}, b[] = {3, 4, 5, 5, 4, 3};
    struct cluster *c = cluster_new();

    (void)state;
    add_host(c, KL_PATTERN_TREE, 2, 3, a);
    add_host(c, KL_PATTERN_TREE, 2, 3, b);
    for (int r = 0; r < 6; r++) c->record[r].graph[KL_GRAPH_RING].cross_nic = 2;
    struct kl_connect *all = connect_all(c);
    assert_int_equal(kl_connect_ring(all, 0, 2).next, 5);
    assert_int_equal(kl_connect_ring(all, 0, 3).next, 0);
    assert_int_equal(kl_connect_ring(all, 1, 0).next, 3);
    assert_int_equal(kl_connect_tree(all, 0, 4).up, 3);
    kl_connect_free(all);
    free(c);
}

/* Before 2.28.3 a ring that crosses NICs on one rank counted for all; since then ranks look at their own. */
static void crossing_is_a_matter_of_each_rank(void **state)
{
    static const int a[] = {0, 1, 2, 2, 1, 0}, b[] = {3, 4, 5, 5, 4, 3};
    static const struct {
        const char *nccl;
        int next; /* of rank 2 in channel 0 */
    } cases[] = {{"2.27.7", 5}, {"2.28.3", 3}};

    (void)state;
    FOR_EACH_CASE(k, cases)
    {
        struct cluster *c = cluster_new();

        add_host(c, KL_PATTERN_TREE, 2, 3, a);
        add_host(c, KL_PATTERN_TREE, 2, 3, b);
        for (int r = 0; r < 6; r++) {
            c->record[r].nccl = kl_nccl_parse(k->nccl);
            c->record[r].graph[KL_GRAPH_RING].cross_nic = r < 3 ? 2 : 0;
        }
        struct kl_connect *all = connect_all(c);
        assert_int_equal(kl_connect_ring(all, 0, 2).next, k->next);
        kl_connect_free(all);
        free(c);
    }
}

/* NCCL_P2P_SCHEDULE_GROUP_SIZE, made a divisor of every node's ranks; 0 before 2.28.7. */
static void groups_divide_all_nodes(void **state)
{
    static const struct {
        const char *nccl;
        int asked, nodes, ranks[3], group;
    } cases[] = {
        {"2.28.3", 8, 2, {8, 8}, 0}, {"2.28.7", 8, 2, {8, 8}, 8}, {"2.28.7", 8, 2, {4, 4}, 4},
        {"2.28.7", 8, 1, {6}, 2},    {"2.28.7", 8, 2, {8, 4}, 4}, {"2.28.7", 8, 2, {8, 3}, 1},
        {"2.28.7", 2, 2, {8, 8}, 2}, {"2.28.7", 16, 1, {12}, 4},
    };

    (void)state;
    FOR_EACH_CASE(k, cases)
    {
        struct cluster *c = cluster_new();
        int first = 0;

        c->request.params.p2p_group = k->asked;
        for (int n = 0; n < k->nodes; n++) {
            int order[16];

            for (int i = 0; i < k->ranks[n]; i++) order[i] = first + i;
            add_host(c, KL_PATTERN_TREE, 1, k->ranks[n], order);
            first += k->ranks[n];
        }
        for (int r = 0; r < first; r++) c->record[r].nccl = kl_nccl_parse(k->nccl);
        struct kl_connect *all = connect_all(c);
        assert_int_equal(all->p2p_group, k->group);
        kl_connect_free(all);
        free(c);
    }
}

/* ---- properties over random clusters ---- */

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void shuffle(int *order, int first, int n, unsigned *seed)
{
    for (int i = 0; i < n; i++) order[i] = first + i;
    for (int i = n - 1; i > 0; i--) {
        int k = (int)(next_random(seed) % (unsigned)(i + 1)), swapped = order[i];

        order[i] = order[k];
        order[k] = swapped;
    }
}

static void check_rings(const struct kl_connect *all)
{
    int32_t order[MAX_RANKS];

    for (int ch = 0; ch < all->nchannels; ch++) {
        assert_int_equal(kl_connect_ring_order(all, ch, 0, order), ncclSuccess);
        for (int r = 0; r < all->ranks.nranks; r++)
            assert_int_equal(kl_connect_ring(all, ch, kl_connect_ring(all, ch, r).next).prev, r);
    }
}

/* Every rank but one has a parent that lists it as a child, and the way up ends. */
static void check_tree(const struct kl_connect *all, int ch)
{
    int roots = 0, children = 0;

    for (int r = 0; r < all->ranks.nranks; r++) {
        struct kl_tree_neighbours t = kl_connect_tree(all, ch, r);
        int hops = 0;

        roots += t.up < 0;
        for (int i = 0; i < 3; i++) {
            if (t.down[i] < 0) continue;
            children++;
            assert_int_equal(kl_connect_tree(all, ch, t.down[i]).up, r);
            assert_true(i == 0 || t.down[i - 1] >= 0);
        }
        for (int up = t.up; up >= 0; up = kl_connect_tree(all, ch, up).up) assert_true(++hops < all->ranks.nranks);
    }
    assert_int_equal(roots, 1);
    assert_int_equal(children, all->ranks.nranks - 1);
}

static void any_cluster_has_rings_and_trees(void **state)
{
    unsigned seed = 1;

    (void)state;
    for (int run = 0; run < 200; run++) {
        struct cluster *c = cluster_new();
        int nodes = 1 + (int)(next_random(&seed) % 20), nch = 1 + (int)(next_random(&seed) % 6), first = 0;
        int pattern = 1 + (int)(next_random(&seed) % 3), cross = (int)(next_random(&seed) % 3);

        for (int n = 0; n < nodes; n++) {
            int gpus = 1 + (int)(next_random(&seed) % 8), orders[8 * 6];

            for (int ch = 0; ch < nch; ch++) shuffle(orders + ch * gpus, first, gpus, &seed);
            add_host(c, pattern, nch, gpus, orders);
            first += gpus;
        }
        for (int r = 0; r < first; r++) c->record[r].graph[KL_GRAPH_RING].cross_nic = cross;
        struct kl_connect *all = connect_all(c);
        assert_int_equal(all->nodes.nnodes, nodes);
        check_rings(all);
        for (int ch = 0; ch < all->nchannels; ch++) check_tree(all, ch);
        kl_connect_free(all);
        free(c);
    }
}

/* ---- channel counts ---- */

static const struct count_case {
    const char *label;
    int graph_channels, min, max, min_ctas, max_ctas, parent;
    int want;
    const char *rules; /* that changed the number after doubling */
} counts[] = {
    {"doubled", 4, -2, -2, 1, 64, 0, 8, ""},
    {"at most 64", 32, -2, -2, 1, 64, 0, 64, ""},
    {"upper limit", 4, -2, 3, 1, 64, 0, 3, " max_channels"},
    {"lower limit", 4, 20, -2, 1, 64, 0, 20, " min_channels"},
    {"first fewer, then more", 4, 8, 2, 1, 64, 0, 8, " max_channels min_channels"},
    {"upper limit below one", 4, -2, 0, 1, 64, 0, 1, " max_channels"},
    {"beyond the maximum", 4, 100, -2, 1, 64, 0, 64, " min_channels"},
    {"configured limits", 4, -2, -2, 12, 64, 0, 12, " min_channels"},
    {"configured maximum", 4, -2, -2, 1, 5, 0, 5, " max_ctas"},
    {"as many as the parent", 4, -2, -2, 1, 64, 6, 6, " parent"},
    {"the parent limits growth", 4, 32, -2, 1, 64, 16, 16, " min_channels"},
};

/* Each step begins where the one before ended, and the last ends at the number of channels. */
static void check_steps(const struct kl_connect *all, const struct count_case *k)
{
    char rules[128] = "";
    int n = 0;

    for (int i = 0; i < all->nsteps; i++) {
        expect_case(k->label, all->step[i].before == n);
        n = all->step[i].after;
        if (all->step[i].reason <= KL_CHANNELS_TWICE) continue;
        strcat(rules, " ");
        strcat(rules, kl_channel_reason_name(all->step[i].reason));
    }
    expect_case(k->label, n == all->nchannels);
    if (strcmp(rules, k->rules) != 0) fail_msg("%s:%s", k->label, rules);
}

static void limits_apply_in_order(void **state)
{
    static const int orders[32 * 2] = {0};

    (void)state;
    FOR_EACH_CASE(k, counts)
    {
        struct cluster *c = cluster_new();
        int pairs[64];

        for (int i = 0; i < 64; i++) pairs[i] = orders[i] + i % 2;
        add_host(c, KL_PATTERN_BALANCED_TREE, k->graph_channels, 2, pairs);
        c->request.params.min_channels = k->min;
        c->request.params.max_channels = k->max;
        c->request.min_ctas = k->min_ctas;
        c->request.max_ctas = k->max_ctas;
        c->request.parent_channels = k->parent;
        struct kl_connect *all = connect_all(c);
        expect_case(k->label, all->nchannels == k->want);
        check_steps(all, k);
        check_rings(all);
        kl_connect_free(all);
        free(c);
    }
}

/* "At most 2, at least 8" uses the first two channels four times each: both have tree 0. */
static void copies_of_copies(void **state)
{
    struct cluster *c = cluster_new();

    (void)state;
    add_host(c, KL_PATTERN_BALANCED_TREE, 2, 2, (int[]){0, 1, 1, 0});
    add_host(c, KL_PATTERN_BALANCED_TREE, 2, 2, (int[]){2, 3, 3, 2});
    c->request.params.max_channels = 2;
    c->request.params.min_channels = 8;
    struct kl_connect *all = connect_all(c);
    for (int ch = 0; ch < 8; ch++) assert_int_equal(all->source[ch], ch % 2);
    kl_connect_free(all);
    free(c);
}

/* ---- CollNet ---- */

/* A host of four ranks: chains begin at the first two, which are also heads; of `heads` channels. */
static void add_reducing_host(struct cluster *c, int first, int heads)
{
    const int a = first, orders[] = {a, a + 1, a + 2, a + 3, a + 1, a + 3, a, a + 2};
    const int directs[] = {a, a + 1, a + 2, a + 3, a + 1, a, a + 2, a + 3};
    struct kl_graphs graphs = {0};

    graphs.graph[KL_GRAPH_RING] = graph_of(KL_GRAPH_RING, KL_PATTERN_RING, 2, 4, orders);
    graphs.graph[KL_GRAPH_TREE] = graph_of(KL_GRAPH_TREE, KL_PATTERN_TREE, 2, 4, orders);
    graphs.graph[KL_GRAPH_COLLNET_CHAIN] = graph_of(KL_GRAPH_COLLNET_CHAIN, KL_PATTERN_TREE, 2, 4, orders);
    graphs.graph[KL_GRAPH_COLLNET_DIRECT] =
        graph_of(KL_GRAPH_COLLNET_DIRECT, KL_PATTERN_COLLNET_DIRECT, heads, 4, directs);
    for (int r = first; r < first + 4; r++) kl_connect_record(&graphs, r, KL_ARCH_X86, KL_VENDOR_INTEL, &c->record[r]);
    c->ranks.nranks = c->ranks.nrecords = first + 4;
    c->ranks.record = c->record;
    for (int g = 0; g < KL_GRAPHS; g++) kl_graph_free(graphs.graph[g]);
    c->request.collnet = true;
}

/* NVLS finds other heads: the last two ranks. */
static void add_nvls_heads(struct cluster *c, int first, int nccl)
{
    for (int r = first; r < first + 4; r++) {
        struct kl_rank_record *record = &c->record[r];

        record->nccl = nccl;
        record->graph[KL_GRAPH_NVLS].nchannels = 2;
        record->nheads = 2;
        record->head[0] = first + 3;
        record->head[1] = first + 2;
    }
    c->request.nvls = true;
    c->request.nvls_channels = 16;
}

static struct cluster *two_hosts_with_nvls(int nccl)
{
    struct cluster *c = cluster_new();

    for (int node = 0; node < 2; node++) {
        add_reducing_host(c, 4 * node, 2);
        add_nvls_heads(c, 4 * node, nccl);
    }
    return c;
}

static void rubin_has_more_channels_for_nvls(void **state)
{
    static const struct {
        int sm, nccl, one, several;
    } rows[] = {{107, 23102, 24, 32}, {107, 23203, 48, 64}, {103, 23203, 24, 32}};

    (void)state;
    FOR_EACH_CASE(row, rows)
    {
        struct cluster *c = two_hosts_with_nvls(row->nccl);

        assert_int_equal(kl_nvls_channels(row->sm, false, row->nccl, &c->request), row->one);
        c->request.nvls_channels = kl_nvls_channels(row->sm, true, row->nccl, &c->request);
        assert_int_equal(c->request.nvls_channels, row->several);
        c->request.min_sm = row->sm;
        for (int r = 0; r < 8; r++) c->record[r].net_bw = 20;
        struct kl_connect *all = connect_all(c);

        assert_int_equal(all->nvls_channels, row->several);
        kl_connect_free(all);
        free(c);
    }
}

static void heads_of_nvls_are_those_of_collnet(void **state)
{
    static const struct {
        int nccl, head[2], heads_of_6[2];
        bool chains;
    } rows[] = {{22707, {4, 5}, {4, 5}, true}, {22803, {7, 6}, {6, 7}, false}, {23007, {7, 6}, {6, 7}, false}};
    static const int downs_of_6[] = {4, 5, 7};

    (void)state;
    FOR_EACH_CASE(row, rows)
    {
        struct cluster *c = two_hosts_with_nvls(row->nccl);
        struct kl_connect *all = connect_all(c);
        struct kl_collnet_links l = kl_connect_collnet(all, 0, 6);

        assert_true(all->collnet && all->nvls);
        assert_int_equal(kl_connect_collnet_heads(all), 2);
        for (int h = 0; h < 2; h++) assert_int_equal(kl_connect_direct_head(all, h, 1), row->head[h]);
        assert_int_equal(l.head, row->nccl == 22707 ? -1 : 1);
        for (int h = 0; h < 2; h++) assert_int_equal(l.heads[h], row->heads_of_6[h]);
        assert_int_equal(l.ndown, row->nccl == 22707 ? 0 : 3);
        for (int i = 0; i < l.ndown; i++) assert_int_equal(l.down[i], downs_of_6[i]);
        assert_int_equal(kl_connect_chains_begin_at_heads(all), row->chains);
        kl_connect_free(all);
        free(c);
    }
}

static void heads_of_nvls_may_differ(void **state)
{
    static const struct {
        int nccl;
        enum kl_offload want;
    } rows[] = {{22707, KL_OFFLOAD_OK}, {22803, KL_OFFLOAD_HEADS_DIFFER}};

    (void)state;
    FOR_EACH_CASE(row, rows)
    {
        struct cluster *c = two_hosts_with_nvls(row->nccl);

        for (int r = 4; r < 8; r++) c->record[r].nheads = 1;
        struct kl_connect *all = connect_all(c);
        assert_int_equal(all->no_collnet, row->want);
        kl_connect_free(all);
        free(c);
    }
}

/* Nine ranks are one too many; the chain is there, and so is the number of heads. */
static void large_nodes_have_no_direct_links(void **state)
{
    static const int releases[] = {22707, 22803}, order[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};

    (void)state;
    FOR_EACH_CASE(nccl, releases)
    {
        struct cluster *c = cluster_new();

        add_host(c, KL_PATTERN_TREE, 1, 9, order);
        for (int r = 0; r < 9; r++) {
            struct kl_rank_record *record = &c->record[r];

            record->nccl = *nccl;
            record->graph[KL_GRAPH_COLLNET_CHAIN].nchannels = 1;
            record->channel[0].chain_prev = r - 1;
            record->channel[0].chain_next = r < 8 ? r + 1 : -1;
            record->ndirect = 1;
        }
        c->request.collnet = true;
        c->request.params.collnet_node_threshold = 1;
        struct kl_connect *all = connect_all(c);
        struct kl_collnet_links l = kl_connect_collnet(all, 0, 4);

        assert_int_equal(kl_connect_collnet_heads(all), 1);
        assert_int_equal(l.nheads, *nccl == 22707);
        assert_true(l.chain_up == 3 && l.chain_down == 5);
        kl_connect_free(all);
        free(c);
    }
}

static void heads_of_all_nodes_are_known(void **state)
{
    static const int chain_heads[2][3] = {{0, 4, 8}, {1, 5, 9}}, up_of_6[2] = {5, 4};
    struct cluster *c = cluster_new();

    (void)state;
    for (int node = 0; node < 3; node++) add_reducing_host(c, 4 * node, 2);
    struct kl_connect *all = connect_all(c);
    assert_true(all->collnet);
    for (int channel = 0; channel < all->nchannels; channel++)
        for (int node = 0; node < 3; node++)
            assert_int_equal(kl_connect_chain_head(all, channel, node), chain_heads[channel % 2][node]);
    for (int channel = 0; channel < 2; channel++) {
        struct kl_collnet_links l = kl_connect_collnet(all, channel, 6), head = kl_connect_collnet(all, channel, 5);

        assert_int_equal(l.chain_up, up_of_6[channel]);
        assert_int_equal(head.chain_up, channel ? 12 : 4);
        assert_int_equal(l.head, -1);
        assert_int_equal(l.nheads, 2);
        assert_int_equal(head.head, 1);
        assert_int_equal(head.ndown, 3);
        assert_int_equal(head.down[0], 4);
        assert_int_equal(head.down[2], 7);
    }
    assert_int_equal(kl_connect_direct_head(all, 1, 2), 9);
    kl_connect_free(all);
    free(c);
}

static void no_collnet_where_nodes_differ(void **state)
{
    static const struct {
        int nodes, other, threshold;
        enum kl_offload want;
    } rows[] = {{2, 2, 2, KL_OFFLOAD_OK},
                {2, 1, 2, KL_OFFLOAD_HEADS_DIFFER},
                {1, 2, 2, KL_OFFLOAD_FEW_NODES},
                {2, 2, 3, KL_OFFLOAD_FEW_NODES}};

    (void)state;
    FOR_EACH_CASE(row, rows)
    {
        struct cluster *c = cluster_new();

        add_reducing_host(c, 0, 2);
        if (row->nodes > 1) add_reducing_host(c, 4, row->other);
        c->request.params.collnet_node_threshold = row->threshold;
        struct kl_connect *all = connect_all(c);
        assert_int_equal(all->no_collnet, row->want);
        assert_int_equal(kl_connect_collnet(all, 0, 0).nheads, row->want ? 0 : 2);
        kl_connect_free(all);
        free(c);
    }
}

/* ---- records of others are not trusted ---- */

static void records_out_of_range_are_refused(void **state)
{
    struct cluster *c = cluster_new();
    struct kl_connect *all = NULL;

    (void)state;
    add_host(c, KL_PATTERN_BALANCED_TREE, 1, 8, host_a);
    add_host(c, KL_PATTERN_BALANCED_TREE, 1, 8, host_b);
    for (int field = 0; field < 9; field++) {
        int32_t *value = (int32_t *)&c->record[5].channel[0] + field, before = *value;

        *value = 16;
        assert_int_equal(kl_connect_create(&c->ranks, &c->request, &all), ncclInternalError);
        *value = -2;
        assert_int_equal(kl_connect_create(&c->ranks, &c->request, &all), ncclInternalError);
        *value = before;
    }
    c->record[3].ndirect = KL_COLLNET_HEADS + 1;
    assert_int_equal(kl_connect_create(&c->ranks, &c->request, &all), ncclInternalError);
    c->record[3].ndirect = 1;
    c->record[3].direct[0] = 16;
    assert_int_equal(kl_connect_create(&c->ranks, &c->request, &all), ncclInternalError);
    c->record[3].ndirect = 0;
    c->record[3].direct_down[0] = 16;
    assert_int_equal(kl_connect_create(&c->ranks, &c->request, &all), ncclInternalError);
    c->record[3].direct_down[0] = -1;
    c->record[3].nheads = KL_GRAPH_CHANNELS + 1;
    assert_int_equal(kl_connect_create(&c->ranks, &c->request, &all), ncclInternalError);
    c->record[3].nheads = 0;
    c->record[3].graph[KL_GRAPH_RING].nchannels = KL_GRAPH_CHANNELS + 1;
    assert_int_equal(kl_connect_create(&c->ranks, &c->request, &all), ncclInternalError);
    assert_null(all);
    free(c);
}

static void a_broken_ring_is_reported(void **state)
{
    struct cluster *c = cluster_new();
    int32_t order[16];

    (void)state;
    add_host(c, KL_PATTERN_BALANCED_TREE, 1, 8, host_a);
    add_host(c, KL_PATTERN_BALANCED_TREE, 1, 8, host_b);
    c->record[6].channel[0].ring_next = 7;
    struct kl_connect *all = connect_all(c);
    assert_int_equal(kl_connect_ring_order(all, 0, 0, order), ncclInternalError);
    kl_connect_free(all);
    free(c);
}

/* One record per rank of a host serves all hosts. */
static void shifted_records_equal_own_ones(void **state)
{
    struct cluster *own = cluster_new(), *shared = cluster_new();
    int32_t which[64], shift[64];

    (void)state;
    add_host(shared, KL_PATTERN_SPLIT_TREE, 1, 8, host_a);
    for (int h = 0; h < 8; h++) {
        int orders[8];

        for (int i = 0; i < 8; i++) {
            orders[i] = host_a[i] + 8 * h;
            which[8 * h + i] = i;
            shift[8 * h + i] = 8 * h;
        }
        add_host(own, KL_PATTERN_SPLIT_TREE, 1, 8, orders);
    }
    shared->ranks.nranks = 64;
    shared->ranks.which = which;
    shared->ranks.shift = shift;
    struct kl_connect *a = connect_all(own), *b = connect_all(shared);
    for (int ch = 0; ch < a->nchannels; ch++)
        for (int r = 0; r < 64; r++) {
            struct kl_tree_neighbours s = kl_connect_tree(a, ch, r), t = kl_connect_tree(b, ch, r);

            assert_int_equal(kl_connect_ring(a, ch, r).prev, kl_connect_ring(b, ch, r).prev);
            assert_int_equal(kl_connect_ring(a, ch, r).next, kl_connect_ring(b, ch, r).next);
            assert_memory_equal(&s, &t, sizeof s);
        }
    kl_connect_free(a);
    kl_connect_free(b);
    free(own);
    free(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_hosts_make_one_ring),
        cmocka_unit_test(chains_keep_ranks_of_a_core_together),
        cmocka_unit_test(chains_are_rings_elsewhere),
        cmocka_unit_test(two_hosts_make_a_double_tree),
        cmocka_unit_test(four_nodes_of_two),
        cmocka_unit_test(crossing_rings_swap_pairs_on_odd_nodes),
        cmocka_unit_test(crossing_is_a_matter_of_each_rank),
        cmocka_unit_test(groups_divide_all_nodes),
        cmocka_unit_test(any_cluster_has_rings_and_trees),
        cmocka_unit_test(limits_apply_in_order),
        cmocka_unit_test(copies_of_copies),
        cmocka_unit_test(heads_of_all_nodes_are_known),
        cmocka_unit_test(heads_of_nvls_are_those_of_collnet),
        cmocka_unit_test(rubin_has_more_channels_for_nvls),
        cmocka_unit_test(heads_of_nvls_may_differ),
        cmocka_unit_test(large_nodes_have_no_direct_links),
        cmocka_unit_test(no_collnet_where_nodes_differ),
        cmocka_unit_test(records_out_of_range_are_refused),
        cmocka_unit_test(a_broken_ring_is_reported),
        cmocka_unit_test(shifted_records_equal_own_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
