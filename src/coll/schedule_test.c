/* SPDX-License-Identifier: Apache-2.0 */
/* Every schedule, proved on 1 to 64 simulated ranks before it moves a byte (schedule_sim.h). */
#include "coll/direct.h"
#include "coll/pat.h"
#include "coll/schedule_sim.h"

#include "graph/connect.h"
#include "graph/tree.h"
#include "tests/kolo_test.h"

enum { MAX_CHANNELS = 4 };

static const int capacities[] = {1, KL_EDGE_STEPS, SIM_STEPS};

/* Chunks an edge must hold. Where all ranks send first and then receive to send, in a circle, one is not enough. */
static int least_steps(const struct kl_schedule *s)
{
    bool circle = s == &kl_allreduce_ring || s == &kl_allgather_ring || s == &kl_reducescatter_ring;

    return circle ? KL_EDGE_STEPS : 1;
}

/* ---- what an operation must leave behind ---- */

static uint64_t everybody(int nranks)
{
    return UINT64_MAX >> (64 - nranks);
}

static bool gathers(const struct kl_schedule *s)
{
    return s->send != KL_LAYOUT_PARTS && s->recv == KL_LAYOUT_PARTS;
}

/* Contributions in an element of a rank's result; 0: the rank keeps nothing. */
static uint64_t wanted(const struct sim *sim, int rank, int root, size_t element)
{
    if (gathers(sim->schedule)) return 1ull << element / sim->count;
    if (sim->schedule == &kl_broadcast_ring) return 1ull << root;
    if (sim->schedule == &kl_reduce_ring && rank != root) return 0;
    return everybody(sim->nranks);
}

static bool reduces(const struct kl_schedule *s)
{
    return !gathers(s) && s != &kl_broadcast_ring;
}

static size_t result_elements(const struct sim *sim)
{
    return sim->schedule->recv == KL_LAYOUT_PARTS ? sim->count * (size_t)sim->nranks : sim->count;
}

/* Returns what is wrong, or an empty text. */
static const char *judge(struct sim *sim, int root)
{
    bool alike = sim->schedule->recv != KL_LAYOUT_WHOLE || sim->schedule->send != KL_LAYOUT_PARTS;

    for (int r = 0; r < sim->nranks; r++) {
        for (size_t i = 0; i < result_elements(sim); i++) {
            const struct sim_value *v = sim_kept(sim, r, i), *first = sim_kept(sim, 0, i);
            uint64_t want = wanted(sim, r, root, i);

            if (v->ranks != want)
                SIM_WRONG(sim, "rank %d has in element %zu the ranks %#llx, not %#llx", r, i,
                          (unsigned long long)v->ranks, (unsigned long long)want);
            if (want && v->state != (reduces(sim->schedule) ? SIM_COMPLETE : SIM_RAW))
                SIM_WRONG(sim, "rank %d: element %zu is in state %d", r, i, v->state);
            if (alike && want && first->ranks && v->form != first->form)
                SIM_WRONG(sim, "ranks 0 and %d computed element %zu differently", r, i);
        }
    }
    return sim->wrong;
}

/* ---- graphs ---- */

/* One world is enough, and too large for the stack. */
static struct sim *sim_new(const struct kl_schedule *s, int nranks, int steps, uint64_t seed)
{
    static struct sim sim;

    sim.schedule = s;
    sim.nranks = nranks;
    sim.steps = steps;
    sim.grain = 1;
    sim.seed = seed;
    return &sim;
}

static void shuffle(int *values, int n, uint64_t *seed)
{
    for (int i = 0; i < n; i++) values[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int other = (int)sim_random(seed, (uint64_t)i + 1), kept = values[i];
        values[i] = values[other];
        values[other] = kept;
    }
}

/* A ring in random order. orders: SIM_RANKS x SIM_RANKS. */
static void connect_ring(struct sim *sim, int (*orders)[SIM_RANKS], int root)
{
    int ring[SIM_RANKS], n = sim->nranks, zero = 0, at_root = 0;

    shuffle(ring, n, &sim->seed);
    sim_disconnect(sim);
    for (int i = 0; i < n; i++) {
        if (ring[i] == 0) zero = i;
        if (ring[i] == root) at_root = i;
    }
    for (int i = 0; i < n; i++) {
        struct sim_rank *r = &sim->rank[ring[i]];
        for (int k = 0; k < n; k++) orders[ring[i]][k] = ring[(i + k) % n];
        r->at.order = orders[ring[i]];
        r->at.index = kl_wrap(i - zero, n);
        r->at.root = kl_wrap(at_root - zero, n);
        r->to[0] = ring[(i + 1) % n];
        r->from[0] = ring[(i + n - 1) % n];
    }
}

static void connect_pat(struct sim *sim)
{
    int n = sim->nranks;

    sim_disconnect(sim);
    for (int r = 0; r < n; r++) {
        for (int e = 0; 1 << e < n; e++) {
            int up = (r + (1 << e)) % n, down = kl_wrap(r - (1 << e), n);
            sim->rank[r].from[e] = sim->schedule == &kl_allgather_pat ? up : down;
            sim->rank[r].to[e] = sim->schedule == &kl_allgather_pat ? down : up;
        }
    }
}

static void set_parent(struct sim *sim, int rank, int parent)
{
    struct sim_rank *r = &sim->rank[rank], *p = &sim->rank[parent];

    r->at.up = 1;
    r->to[KL_TREE_UP] = r->from[KL_TREE_UP] = parent;
    p->to[p->at.ndown] = p->from[p->at.ndown] = rank;
    p->at.ndown++;
}

/* One of the double trees over the ranks in random order. */
static void connect_double_tree(struct sim *sim, int tree)
{
    int name[SIM_RANKS], n = sim->nranks;

    shuffle(name, n, &sim->seed);
    sim_disconnect(sim);
    for (int r = 0; r < n; r++) {
        int up = kl_double_tree(n, r, tree).up;
        if (up >= 0) set_parent(sim, name[r], name[up]);
    }
}

/* Anything that is a tree with up to three children. */
static void connect_any_tree(struct sim *sim)
{
    int name[SIM_RANKS];

    shuffle(name, sim->nranks, &sim->seed);
    sim_disconnect(sim);
    for (int i = 1; i < sim->nranks; i++) {
        int parent;
        do parent = name[sim_random(&sim->seed, (uint64_t)i)];
        while (sim->rank[parent].at.ndown == 3);
        set_parent(sim, name[i], parent);
    }
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

/* How much, cut into what. */
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

/* Each channel moves its share, on a graph of its own that `connect` makes. */
typedef void connect_fn(struct sim *sim, int channel, void *context);

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
        struct sim *sim = sim_new(s, nranks, *steps, (uint64_t)(nranks * SIM_RANKS + root));

        if (*steps < least_steps(s)) continue;
        for (int i = 0; i < nsizes; i++)
            if (nranks <= 16 || i == turn % nsizes) run(sim, &sizes[i], root, connect, context);
    }
}

/* ---- rings ---- */

struct ring_context {
    int root;
    int orders[SIM_RANKS][SIM_RANKS];
};

static void ring_of(struct sim *sim, int channel, void *context)
{
    struct ring_context *c = context;

    (void)channel;
    connect_ring(sim, c->orders, c->root);
}

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

/* ---- trees ---- */

static void double_tree_of(struct sim *sim, int channel, void *context)
{
    (void)context;
    connect_double_tree(sim, channel % 2);
}

static void any_tree_of(struct sim *sim, int channel, void *context)
{
    (void)channel, (void)context;
    connect_any_tree(sim);
}

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

static void pat_of(struct sim *sim, int channel, void *context)
{
    (void)channel, (void)context;
    connect_pat(sim);
}

static void pat(void **state)
{
    (void)state;
    for (int n = 1; n <= SIM_RANKS; n++) {
        run_sizes(&kl_allgather_pat, n, 0, n, pat_of, NULL);
        run_sizes(&kl_reducescatter_pat, n, 0, n, pat_of, NULL);
    }
}

/* Chunks in an edge while all ranks go hop by hop, and who waits for whom: the argument of pat.h, for any number of ranks. */
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

static struct kl_grid grid;

static void grid_of(struct sim *sim, int channel, void *context)
{
    (void)channel, (void)context;
    sim_disconnect(sim);
    for (int r = 0; r < sim->nranks; r++) {
        int edge = 0;

        sim->rank[r].at.grid = &grid;
        sim->rank[r].at.index = r;
        for (int d = 0; d < grid.dimensions; d++)
            for (int place = 0; place < grid.side[d]; place++) {
                int peer = kl_grid_index(&grid, d, r, place);
                if (peer != r) sim->rank[r].to[edge] = sim->rank[r].from[edge] = peer, edge++;
            }
    }
}

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

/* Nodes of `local` ranks each, in random order; node k has names [k * local, (k + 1) * local). */
struct cluster {
    int nnodes, local, nheads;
    int name[SIM_RANKS];
};

static void meet(struct sim *sim, int group, int node, int rank, int edge)
{
    sim->member[group][node] = rank;
    sim->rank[rank].to[edge] = sim->rank[rank].from[edge] = SIM_NET;
}

static void chain_of(struct sim *sim, int channel, void *context)
{
    struct cluster *c = context;

    (void)channel;
    shuffle(c->name, sim->nranks, &sim->seed);
    sim_disconnect(sim);
    sim->ngroups = 1;
    sim->nnodes = c->nnodes;
    for (int i = 0; i < sim->nranks; i++) {
        struct kl_position *at = &sim->rank[c->name[i]].at;
        at->up = 1;
        at->head = i % c->local ? -1 : 0;
        if (i % c->local)
            set_parent(sim, c->name[i], c->name[i - 1]);
        else
            meet(sim, 0, i / c->local, c->name[i], KL_TREE_UP);
    }
}

/* The edges between a head and another rank of its node. */
static void join_head(struct sim *sim, int head, int number, int rank)
{
    struct sim_rank *h = &sim->rank[head], *r = &sim->rank[rank];
    int down = KL_DIRECT_DOWN + h->at.ndown++;

    h->from[down] = rank;
    h->to[down] = rank;
    r->from[number] = r->to[number] = head;
    h->share_from |= 1u << down;
    r->share_to |= 1u << number;
}

static void direct_node(struct sim *sim, const struct cluster *c, int node)
{
    const int *name = &c->name[node * c->local];

    for (int i = 0; i < c->local; i++) {
        struct kl_position *at = &sim->rank[name[i]].at;
        at->nheads = c->nheads;
        at->nnodes = c->nnodes;
        at->head = i < c->nheads ? i : -1;
        at->shift = i % c->nheads;
    }
    for (int h = 0; h < c->nheads; h++) {
        meet(sim, h, node, name[h], KL_DIRECT_NET);
        for (int i = 0; i < c->local; i++)
            if (i != h) join_head(sim, name[h], h, name[i]);
    }
}

static void direct_of(struct sim *sim, int channel, void *context)
{
    static int order[SIM_RANKS];
    struct cluster *c = context;

    (void)channel;
    shuffle(c->name, sim->nranks, &sim->seed);
    sim_disconnect(sim);
    sim->ngroups = c->nheads;
    sim->nnodes = c->nnodes;
    for (int node = 0; node < c->nnodes; node++) direct_node(sim, c, node);
    for (int i = 0; i < sim->nranks; i++) order[i % c->local * c->nnodes + i / c->local] = c->name[i];
    for (int r = 0; r < sim->nranks; r++) sim->rank[r].at.order = c->nheads == c->local ? order : NULL;
}

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
        {0, 1, KL_HOP_FIRST, 0, 0, 0},
        {1, 1, KL_HOP_REDUCE, 2, 2, 0},
        {1, 1, KL_HOP_REDUCE | KL_HOP_FINISH | KL_HOP_KEEP, 1, 1, 0},
        {1, 1, KL_HOP_KEEP, 0, 0, 0},
        {1, 0, KL_HOP_KEEP, 2, 2, 0},
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

/* ---- the simulator sees what is wrong ---- */

typedef void spoil_fn(const struct kl_position *p, int lane, int hop, struct kl_hop *h);

static void keeps_nothing(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (p->rank == 1) h->actions &= ~(uint32_t)KL_HOP_KEEP;
}

static void keeps_elsewhere(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (p->rank == 1) h->result = kl_wrap(h->result + 1, p->nranks);
}

static void never_finishes(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)p, (void)lane, (void)hop;
    h->actions &= ~(uint32_t)KL_HOP_FINISH;
}

static void finishes_early(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane;
    if (p->rank == 1 && hop == 0) h->actions |= KL_HOP_FINISH;
}

static void adds_the_result(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane;
    if (p->rank == 1 && hop == p->nranks) h->actions |= KL_HOP_REDUCE;
}

static void adds_other_data(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane;
    if (p->rank == 1 && hop == 1) h->own = kl_wrap(h->own + 1, p->nranks);
}

static void adds_nothing(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane;
    if (p->rank == 1 && hop == 1) h->actions &= ~(uint32_t)KL_HOP_REDUCE;
}

static void sends_too_much(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane;
    if (p->rank == 1 && hop == 2 * p->nranks - 2) h->send = 1;
}

static void forgets_a_child(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)hop;
    if (lane == 0 && p->ndown > 1) h->recv &= ~1u;
}

static void tells_one_child_only(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (p->ndown > 1 && h->actions & KL_HOP_KEEP) h->send = 1;
}

static void root_has_a_parent(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (!p->up) h->send |= 1u << KL_TREE_UP;
}

static void stands_elsewhere(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (p->rank == 3 && h->actions & KL_HOP_MEET) h->before = 0;
}

static void stands_behind_nobody(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (p->rank == 3 && h->actions & KL_HOP_MEET) h->before = 7;
}

static void misses_one(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (p->rank == 3 && h->actions & KL_HOP_MEET) h->recv &= ~1u, h->before--;
}

static void parks_for_ever(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (p->rank == 3 && h->actions & KL_HOP_KEEP) h->actions ^= KL_HOP_KEEP | KL_HOP_PARK | KL_HOP_FINISH;
}

static void resumes_too_early(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)hop;
    if (p->rank == 3 && lane == 1) h->actions |= KL_HOP_RESUME;
}

static void chain_never_finishes(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)p, (void)lane, (void)hop;
    h->actions &= ~(uint32_t)KL_HOP_FINISH;
}

static void brings_the_share_of_another(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)hop;
    if (p->rank == 1 && !lane) h->own = kl_wrap(h->own + 1, p->nheads);
}

static void keeps_it_from_the_others(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)hop;
    if (p->rank == 1 && lane) h->send = 0;
}

static void takes_no_result(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)hop;
    if (p->rank == 1 && lane) h->recv &= ~(1u << KL_DIRECT_NET);
}

static const struct broken {
    const struct kl_schedule *healthy;
    connect_fn *connect;
    spoil_fn *spoil;
    const char *says;
} broken[] = {
    {&kl_allreduce_ring, ring_of, keeps_nothing, "has in element"},
    {&kl_allreduce_ring, ring_of, keeps_elsewhere, "keeps elements"},
    {&kl_allreduce_ring, ring_of, never_finishes, "keeps an incomplete result"},
    {&kl_allreduce_ring, ring_of, finishes_early, "is no partial result"},
    {&kl_allreduce_ring, ring_of, adds_the_result, "adds to what is no partial result"},
    {&kl_allreduce_ring, ring_of, adds_other_data, "adds elements"},
    {&kl_allreduce_ring, ring_of, adds_nothing, "has in element"},
    {&kl_allreduce_ring, ring_of, sends_too_much, "what nobody receives"},
    {&kl_allreduce_tree, double_tree_of, keeps_nothing, "has in element"},
    {&kl_allreduce_tree, double_tree_of, forgets_a_child, "what nobody receives"},
    {&kl_allreduce_tree, double_tree_of, tells_one_child_only, "waits for ever"},
    {&kl_allreduce_tree, double_tree_of, root_has_a_parent, "which leads nowhere"},
    {&kl_reducescatter_pat, pat_of, adds_other_data, "adds elements"},
    {&kl_reducescatter_pat, pat_of, never_finishes, "keeps an incomplete result"},
    {&kl_allreduce_chain, chain_of, chain_never_finishes, "keeps an incomplete result"},
    {&kl_allreduce_direct, direct_of, brings_the_share_of_another, "adds elements"},
    {&kl_allgather_direct, direct_of, keeps_it_from_the_others, "waits for ever"},
    {&kl_allgather_direct, direct_of, takes_no_result, "does not take all results"},
    {&kl_allreduce_oneshot, grid_of, stands_elsewhere, "computed element"},
    {&kl_allreduce_oneshot, grid_of, stands_behind_nobody, "stands behind more"},
    {&kl_allreduce_oneshot, grid_of, misses_one, "what nobody receives"},
    {&kl_allreduce_oneshot, grid_of, never_finishes, "keeps an incomplete result"},
    {&kl_allreduce_oneshot, grid_of, parks_for_ever, "has in element"},
    {&kl_allreduce_oneshot, grid_of, resumes_too_early, "not parked"},
};

static const struct broken *now_broken;

static struct kl_hop broken_hop(const struct kl_position *p, int lane, int hop)
{
    struct kl_hop h = now_broken->healthy->hop(p, lane, hop);

    now_broken->spoil(p, lane, hop, &h);
    return h;
}

/* Seven elements of each chunk on seven ranks, with what is wrong in the end. */
static const char *run_seven(const struct kl_schedule *s, connect_fn *connect, void *context)
{
    struct sim *sim = sim_new(s, 7, KL_EDGE_STEPS, 3);

    sim->first = 0;
    sim->count = sim->end = 49;
    sim->most = s->send == KL_LAYOUT_CHUNKS ? 7 : 49;
    sim_forget(sim);
    connect(sim, 0, context);
    return *sim_run(sim) ? sim->wrong : judge(sim, 0);
}

static void broken_rules_are_seen(void **state)
{
    static struct ring_context ring;
    static struct cluster node = {.nnodes = 1, .local = 7, .nheads = 7};

    (void)state;
    grid = kl_grid_of(7, 1, 7);
    FOR_EACH_CASE(b, broken)
    {
        struct kl_schedule s = *b->healthy;
        void *context = b->connect == ring_of ? (void *)&ring : &node;

        expect_case(b->says, !*run_seven(&s, b->connect, context));
        now_broken = b;
        s.hop = broken_hop;
        expect_case(b->says, strstr(run_seven(&s, b->connect, context), b->says));
    }
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

/* A rank that calls with another count. */
static void sizes_that_differ_are_seen(void **state)
{
    struct sim *sim = sim_new(&kl_allreduce_tree, 2, 1, 0);

    (void)state;
    sim->first = 0;
    sim->count = sim->end = sim->most = 8;
    sim_forget(sim);
    connect_double_tree(sim, 0);
    sim_start(sim);
    sim->rank[1].lane[0].chunk = sim->rank[1].lane[1].chunk = 7;
    while (!*sim->wrong && sim_round(sim, true)) continue;
    assert_non_null(strstr(sim->wrong, "expects"));
}

/* PAT that takes edges to hold more than they do. */
static void pat_depends_on_the_room(void **state)
{
    struct sim *sim = sim_new(&kl_allgather_pat, SIM_RANKS, 2, 0);

    (void)state;
    sim->first = 0;
    sim->count = sim->end = sim->most = 1;
    sim_forget(sim);
    connect_pat(sim);
    for (int r = 0; r < SIM_RANKS; r++) sim->rank[r].at.steps = SIM_STEPS;
    assert_non_null(strstr(sim_run(sim), "waits for ever"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings),
        cmocka_unit_test(rings_need_room_for_two),
        cmocka_unit_test(chains_from_and_to_every_root),
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
        cmocka_unit_test(broken_rules_are_seen),
        cmocka_unit_test(sizes_that_differ_are_seen),
        cmocka_unit_test(pat_depends_on_the_room),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    print_message("%zu channels run\n", cases);
    return failed;
}
