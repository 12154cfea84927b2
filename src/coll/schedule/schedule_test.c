/* SPDX-License-Identifier: Apache-2.0 */
/* Every schedule, proved on 1 to 64 simulated ranks before it moves a byte (test_schedule_sim.h). */
#include "coll/schedule/pat.h"
#include "coll/schedule/test_schedule_graphs.h"

#include "graph/connect.h"
#include "tests/kolo_test.h"

enum { MAX_CHANNELS = 4 };

static const int capacities[] = {1, KL_EDGE_STEPS, SIM_STEPS};

/* Chunks an edge must hold. Where all ranks send first and then receive to send, in a circle, one is not enough. */
static int least_steps(const struct kl_schedule *s)
{
    bool circle = s == &kl_allreduce_ring || s == &kl_allgather_ring || s == &kl_reducescatter_ring ||
                  s == &kl_allreduce_ordered || s == &kl_allreduce_ordered_ring || s == &kl_reduce_ordered_ring ||
                  s == &kl_reducescatter_ordered_ring;

    return circle ? KL_EDGE_STEPS : 1;
}

/* A tree of a communicator, as its ranks see it. */
static void connect_planned_tree(struct sim *sim, const struct kl_connect *plan, int channel)
{
    sim_disconnect(sim);
    for (int r = 0; r < sim->nranks; r++) {
        struct kl_tree_neighbours t = kl_connect_tree(plan, channel, r);
        struct sim_rank *rank = &sim->rank[r];

        rank->at.up = t.up >= 0;
        rank->to[KL_TREE_UP] = rank->from[KL_TREE_UP] = t.up;
        for (int i = 0; i < 3; i++) {
            rank->to[i] = rank->from[i] = t.down[i];
            rank->at.ndown += t.down[i] >= 0;
        }
    }
}

/* ---- one operation ---- */

/* A size, and how it is cut. */
struct size {
    size_t count, most, grain;
    int channels;
};

/* Empty ones, single elements, remainders, one loop and many, shares that differ. */
static const struct size chunk_sizes[] = {
    /* of nranks chunks per loop */
    {0, 4, 1, 1},  {1, 4, 1, 1},   {7, 1, 1, 1},   {7, 3, 1, 2},   {64, 64, 1, 1},
    {65, 2, 1, 3}, {129, 2, 2, 1}, {131, 7, 4, 4}, {150, 1, 1, 2},
};
static const struct size loop_sizes[] = {
    /* of one */
    {0, 4, 1, 1}, {1, 4, 1, 1}, {5, 1, 1, 1}, {7, 3, 1, 2}, {13, 4, 2, 3},
};

static size_t cases; /* runs of a channel */

static struct ordered_context ordered;

/* All kept results were computed as by a loop over the ranks. */
static void judge_order(struct sim *sim)
{
    struct sim_value want = sim_own(0);

    want.state = SIM_PARTIAL;
    for (int r = 1; r < sim->nranks; r++) want = sim_add(sim, r, want, sim_own(r));
    want = sim_end(sim, 0, want);
    for (int r = 0; r < sim->nranks; r++)
        for (size_t i = 0; i < result_elements(sim); i++) {
            const struct sim_value *v = sim_kept(sim, r, i);
            if (v->ranks && v->form != want.form) SIM_WRONG(sim, "rank %d has element %zu in another order", r, i);
        }
}

static void run(struct sim *sim, const struct size *size, int root, connect_fn *connect, void *context)
{
    sim->count = size->count;
    sim->most = size->most;
    sim->grain = size->grain;
    sim_forget(sim);
    for (int c = 0; c < size->channels; c++) {
        size_t share = size->count / (size_t)size->channels;
        sim->first = share * (size_t)c;
        sim->end = c == size->channels - 1 ? size->count : share * (size_t)(c + 1);
        connect(sim, c, context);
        cases++;
        if (*sim_run(sim)) break;
    }
    if (!*sim->wrong) judge(sim, root);
    if (!*sim->wrong && context == &ordered) judge_order(sim);
    if (*sim->wrong)
        fail_msg("%s of %zu in chunks of %zu, %d ranks, root %d, %d steps: %s", sim->schedule->name, size->count,
                 size->most, sim->nranks, root, sim->steps, sim->wrong);
}

/* Every size, or with many ranks one, which `turn` chooses; on edges of every capacity. */
static void run_sizes(const struct kl_schedule *s, int nranks, int root, int turn, connect_fn *connect, void *context)
{
    const bool chunks = s->send == KL_LAYOUT_CHUNKS;
    const struct size *sizes = chunks ? chunk_sizes : loop_sizes;
    const int nsizes = (int)(chunks ? sizeof chunk_sizes : sizeof loop_sizes) / (int)sizeof *sizes;

    FOR_EACH_CASE(steps, capacities)
    {
        struct sim *sim = sim_new(s, nranks, *steps, (uint64_t)nranks * SIM_RANKS + (uint64_t)root);

        if (*steps < least_steps(s)) continue;
        for (int i = 0; i < nsizes; i++)
            if (nranks <= 16 || i == turn % nsizes) run(sim, &sizes[i], root, connect, context);
    }
}

/* ---- rings ---- */

static void rings(void **state)
{
    static const struct kl_schedule *const schedules[] = {&kl_allreduce_ring, &kl_allgather_ring,
                                                          &kl_reducescatter_ring};
    static struct ring_context context;

    (void)state;
    FOR_EACH_CASE(s, schedules)
    for (int n = 1; n <= SIM_RANKS; n++) run_sizes(*s, n, 0, n, ring_of, &context);
}

/* Otherwise KL_EDGE_STEPS would be 1. */
static void rings_need_room_for_two(void **state)
{
    static struct ring_context context;

    (void)state;
    for (int n = 2; n <= SIM_RANKS; n++) {
        struct sim *sim = sim_new(&kl_allreduce_ring, n, 1, 0);
        sim->first = 0;
        sim->count = sim->end = (size_t)n;
        sim->most = 1;
        sim_forget(sim);
        connect_ring(sim, context.orders, 0);
        assert_non_null(strstr(sim_run(sim), "waits for ever"));
    }
}

static void chains_from_and_to_every_root(void **state)
{
    static const struct kl_schedule *const schedules[] = {&kl_broadcast_ring, &kl_reduce_ring};
    static struct ring_context context;

    (void)state;
    FOR_EACH_CASE(s, schedules)
    for (int n = 1; n <= SIM_RANKS; n++)
        for (context.root = 0; context.root < n; context.root++)
            run_sizes(*s, n, context.root, context.root, ring_of, &context);
}

/* ---- in the order of ranks ---- */

static void loops_over_the_ranks(void **state)
{
    static const struct kl_schedule *const rings[] = {&kl_allreduce_ordered_ring, &kl_reducescatter_ordered_ring},
                                           *const direct[] = {&kl_allreduce_ordered, &kl_reducescatter_ordered};

    (void)state;
    ordered.root = 0;
    FOR_EACH_CASE(s, rings)
    for (int n = 1; n <= SIM_RANKS; n++) run_sizes(*s, n, 0, n, ordered_of, &ordered);
    FOR_EACH_CASE(s, direct)
    for (int n = 2; n <= KL_ORDERED_DIRECT_RANKS; n++) run_sizes(*s, n, 0, n, ordered_of, &ordered);
}

static void loops_over_the_ranks_for_every_root(void **state)
{
    (void)state;
    for (int n = 1; n <= SIM_RANKS; n++)
        for (ordered.root = 0; ordered.root < n; ordered.root++) {
            run_sizes(&kl_reduce_ordered_ring, n, ordered.root, ordered.root, ordered_of, &ordered);
            if (n < 2 || n > KL_ORDERED_DIRECT_RANKS) continue;
            run_sizes(&kl_reduce_ordered, n, ordered.root, ordered.root, ordered_of, &ordered);
        }
}

/* ---- trees ---- */

static void trees(void **state)
{
    (void)state;
    for (int n = 1; n <= SIM_RANKS; n++) {
        run_sizes(&kl_allreduce_tree, n, 0, n, double_tree_of, NULL);
        run_sizes(&kl_allreduce_tree, n, 0, n, any_tree_of, NULL);
    }
}

/* A plan for `nodes` hosts of `local` ranks each, in random orders. */
static struct kl_connect *plan_of(int nodes, int local, int pattern, struct kl_rank_record *record, uint64_t *seed)
{
    struct kl_ranks ranks = {.nranks = nodes * local, .nrecords = nodes * local, .record = record};
    struct kl_connect_request request = {.min_sm = 80, .min_ctas = 1, .max_ctas = 64, .params = KL_CHANNEL_PARAMS};
    struct kl_connect *plan;

    for (int node = 0; node < nodes; node++) {
        struct kl_graph *g;
        assert_int_equal(kl_graph_create(1, local, &g), ncclSuccess);
        g->nchannels = 1;
        g->bw_intra = g->bw_inter = 20;
        shuffle(g->intra, local, seed);
        for (int i = 0; i < local; i++) g->intra[i] += node * local;
        struct kl_graphs graphs = {.graph = {[KL_GRAPH_RING] = g, [KL_GRAPH_TREE] = g}};
        g->pattern = pattern;
        for (int i = 0; i < local; i++)
            kl_connect_record(&graphs, node * local + i, KL_ARCH_X86, KL_VENDOR_INTEL, &record[node * local + i]);
        kl_graph_free(g);
    }
    assert_int_equal(kl_connect_create(&ranks, &request, &plan), ncclSuccess);
    return plan;
}

static void planned_tree_of(struct sim *sim, int channel, void *context)
{
    const struct kl_connect *plan = context;

    connect_planned_tree(sim, plan, channel % plan->nchannels);
}

static void trees_of_a_communicator(void **state)
{
    static const int patterns[] = {KL_PATTERN_TREE, KL_PATTERN_BALANCED_TREE, KL_PATTERN_SPLIT_TREE};
    static struct kl_rank_record record[SIM_RANKS];
    uint64_t seed = 5;

    (void)state;
    FOR_EACH_CASE(pattern, patterns)
    for (int nodes = 1; nodes <= SIM_RANKS; nodes++)
        for (int local = 1; nodes * local <= SIM_RANKS; local++) {
            struct kl_connect *plan = plan_of(nodes, local, *pattern, record, &seed);
            run_sizes(&kl_allreduce_tree, nodes * local, 0, nodes, planned_tree_of, plan);
            kl_connect_free(plan);
        }
}

/* Chunks come down while others go up: the deepest rank need not be done before the root sends. */
static void tree_overlaps_both_ways(void **state)
{
    const struct kl_position inner = {.nranks = 8, .ndown = 2, .up = 1}, root = {.nranks = 8, .ndown = 3};

    (void)state;
    for (int lane = 0; lane < 2; lane++) assert_int_equal(kl_allreduce_tree.hops(&inner, lane), 1);
    assert_int_equal(kl_allreduce_tree.hop(&inner, 0, 0).send, 1 << KL_TREE_UP);
    assert_int_equal(kl_allreduce_tree.hop(&inner, 1, 0).recv, 1 << KL_TREE_UP);
    assert_int_equal(kl_allreduce_tree.hops(&root, 1), 0);
}

/* ---- PAT ---- */

static void pat(void **state)
{
    (void)state;
    for (int n = 1; n <= SIM_RANKS; n++) {
        run_sizes(&kl_allgather_pat, n, 0, n, pat_of, NULL);
        run_sizes(&kl_reducescatter_pat, n, 0, n, pat_of, NULL);
    }
}

/* Chunks in an edge while all ranks go hop by hop, and the ranks they wait for: the argument of pat.h, for any number
 * of ranks. */
static void pat_fills_no_edge_and_is_short(void **state)
{
    static const struct {
        int nranks, steps, row; /* hops that wait for one another, the first one included */
    } rows[] = {{8, 1, 5}, {8, 8, 4}, {16, 8, 5}, {32, 8, 6}, {64, 8, 8}, {64, 1, 33}, {1024, 8, 68}};
    enum { MOST = 1100 };
    static int row[MOST];

    (void)state;
    for (int n = 1; n <= MOST; n += n < 70 ? 1 : 106)
        for (int steps = 0; steps <= 16; steps++) {
            const struct kl_position p = {.nranks = n, .steps = steps};
            int held[KL_EDGES_MAX] = {0}, longest = 0;

            memset(row, 0, sizeof row);
            for (int place = 0; place < n; place++) {
                int distance = kl_pat_distance(&p, place);
                uint32_t up = kl_pat_parent(distance), down = kl_pat_children(n, distance);

                assert_in_range(distance, 0, n - 1);
                assert_int_equal(row[distance], 0); /* every distance once */
                if (up) assert_true(row[distance - (int)up] && held[__builtin_ctz(up)]-- > 0);
                row[distance] = 1 + (up ? row[distance - (int)up] : 0);
                if (row[distance] < longest) row[distance] = longest;
                longest = row[distance];
                SIM_EACH_EDGE(e, down) assert_true(++held[e] <= (steps ? steps : 1));
            }
            for (int e = 0; e < KL_EDGES_MAX; e++) assert_int_equal(held[e], 0);
            FOR_EACH_CASE(r, rows)
            if (r->nranks == n && r->steps == steps) assert_int_equal(longest, r->row);
        }
}

/* ---- grids ---- */

/* Every grid that up to 64 ranks on up to 64 nodes make. */
static void lines_of_grids(void **state)
{
    int grids = 0;

    (void)state;
    for (int nodes = 1; nodes <= SIM_RANKS; nodes++)
        for (int local = 1; nodes * local <= SIM_RANKS; local++) {
            grid = kl_grid_of(nodes * local, nodes, local);
            if (nodes * local == 1 || !grid.dimensions) continue;
            run_sizes(&kl_allreduce_oneshot, nodes * local, 0, nodes, grid_of, NULL);
            grids++;
        }
    assert_true(grids > 200);
}

static void recursive_doubling_is_a_grid(void **state)
{
    (void)state;
    grid = (struct kl_grid){.dimensions = 6, .side = {2, 2, 2, 2, 2, 2}};
    run_sizes(&kl_allreduce_oneshot, 64, 0, 1, grid_of, NULL);
}

/* ---- CollNet ---- */

static void chains_to_the_network(void **state)
{
    (void)state;
    for (int nnodes = 1; nnodes <= SIM_RANKS; nnodes += 1 + nnodes / 8)
        for (int local = 1; local * nnodes <= SIM_RANKS; local += 1 + local / 8) {
            struct cluster c = {.nnodes = nnodes, .local = local};
            run_sizes(&kl_allreduce_chain, nnodes * local, 0, nnodes, chain_of, &c);
        }
}

static void heads_that_meet_in_the_network(void **state)
{
    (void)state;
    for (int nnodes = 1; nnodes <= SIM_RANKS; nnodes += 1 + nnodes / 4)
        for (int local = 1; local <= 8 && local * nnodes <= SIM_RANKS; local++)
            for (int nheads = 1; nheads <= local; nheads += nheads > 1 && nheads < local - 1 ? local - 1 - nheads : 1) {
                struct cluster c = {.nnodes = nnodes, .local = local, .nheads = nheads};
                run_sizes(&kl_allreduce_direct, nnodes * local, 0, nnodes + nheads, direct_of, &c);
                if (nheads < local) continue;
                run_sizes(&kl_allgather_direct, nnodes * local, 0, nnodes, direct_of, &c);
                run_sizes(&kl_reducescatter_direct, nnodes * local, 0, nnodes, direct_of, &c);
            }
}

static void schedules_agree_with_the_drawings(void **state)
{
    static const struct kl_hop ring_of_3[] = {
        {0, 1, KL_HOP_FIRST, 2, 2, 0},
        {1, 1, KL_HOP_REDUCE, 1, 1, 0},
        {1, 1, KL_HOP_REDUCE | KL_HOP_FINISH | KL_HOP_KEEP, 0, 0, 0},
        {1, 1, KL_HOP_KEEP, 2, 2, 0},
        {1, 0, KL_HOP_KEEP, 1, 1, 0},
    };
    static const int in_a_row[] = {0, 1, 2, 3, 4, 5, 6, 7}, in_pairs[] = {0, 4, 1, 5, 2, 6, 3, 7},
                     all_at_once[] = {0, 4, 2, 6, 1, 5, 3, 7};
    const struct kl_position p = {.nranks = 3}, one = {.nranks = 8}, two = {.nranks = 8, .steps = 2},
                             eight = {.nranks = 8, .steps = 8};

    (void)state;
    assert_int_equal(kl_allreduce_ring.hops(&p, 0), 5);
    for (int hop = 0; hop < 5; hop++) {
        struct kl_hop h = kl_allreduce_ring.hop(&p, 0, hop);
        assert_memory_equal(&h, &ring_of_3[hop], sizeof h);
    }
    for (int place = 0; place < 8; place++) {
        assert_int_equal(kl_pat_distance(&one, place), in_a_row[place]);
        assert_int_equal(kl_pat_distance(&two, place), in_pairs[place]);
        assert_int_equal(kl_pat_distance(&eight, place), all_at_once[place]);
    }
    assert_int_equal(kl_pat_children(8, 4), 3);
    assert_int_equal(kl_pat_children(6, 4), 1);
    assert_int_equal(kl_pat_parent(6), 2);
}

static void a_line_is_reduced_in_order(void **state)
{
    struct kl_grid two_by_three = {.dimensions = 2, .inside = 1, .side = {2, 3}};
    const struct kl_position p = {.nranks = 6, .rank = 3, .index = 3, .grid = &two_by_three};
    struct kl_hop first = kl_allreduce_oneshot.hop(&p, 0, 0), meet = kl_allreduce_oneshot.hop(&p, 1, 0),
                  last = kl_allreduce_oneshot.hop(&p, 1, 1);

    (void)state;
    assert_int_equal(kl_allreduce_oneshot.hops(&p, 0), 1);
    assert_int_equal(kl_allreduce_oneshot.hops(&p, 1), 2);
    assert_true(first.send == 1 && meet.recv == 1 && meet.before == 1 && meet.send == 6);
    assert_true(last.recv == 6 && last.before == 1 && !last.send && last.actions & KL_HOP_RESUME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings),
        cmocka_unit_test(rings_need_room_for_two),
        cmocka_unit_test(chains_from_and_to_every_root),
        cmocka_unit_test(loops_over_the_ranks),
        cmocka_unit_test(loops_over_the_ranks_for_every_root),
        cmocka_unit_test(trees),
        cmocka_unit_test(trees_of_a_communicator),
        cmocka_unit_test(tree_overlaps_both_ways),
        cmocka_unit_test(pat),
        cmocka_unit_test(pat_fills_no_edge_and_is_short),
        cmocka_unit_test(lines_of_grids),
        cmocka_unit_test(recursive_doubling_is_a_grid),
        cmocka_unit_test(chains_to_the_network),
        cmocka_unit_test(heads_that_meet_in_the_network),
        cmocka_unit_test(a_line_is_reduced_in_order),
        cmocka_unit_test(schedules_agree_with_the_drawings),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    print_message("%zu channels run\n", cases);
    return failed;
}
