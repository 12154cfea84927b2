/* SPDX-License-Identifier: Apache-2.0 */
/** schedule_graphs.h - for tests of schedules: graphs that join simulated ranks (schedule_sim.h), and the expected
 * results of operations. */
#ifndef KL_COLL_SCHEDULE_GRAPHS_H
#define KL_COLL_SCHEDULE_GRAPHS_H

#include "coll/direct.h"
#include "coll/ordered.h"
#include "coll/schedule_sim.h"
#include "graph/tree.h"
#include "tests/kolo_test.h"

/* ---- expected results of an operation ---- */

static inline uint64_t everybody(int nranks)
{
    return UINT64_MAX >> (64 - nranks);
}

static inline bool gathers(const struct kl_schedule *s)
{
    return s->send != KL_LAYOUT_PARTS && s->recv == KL_LAYOUT_PARTS;
}

static inline bool is_rooted_reduce(const struct kl_schedule *s)
{
    return s == &kl_reduce_ring || s == &kl_reduce_ordered || s == &kl_reduce_ordered_ring;
}

/* Contributions in an element of a rank's result; 0: the rank keeps nothing. */
static inline uint64_t wanted(const struct sim *sim, int rank, int root, size_t element)
{
    if (gathers(sim->schedule)) return 1ull << element / sim->count;
    if (sim->schedule == &kl_broadcast_ring) return 1ull << root;
    if (is_rooted_reduce(sim->schedule) && rank != root) return 0;
    return everybody(sim->nranks);
}

static inline bool reduces(const struct kl_schedule *s)
{
    return !gathers(s) && s != &kl_broadcast_ring;
}

static inline size_t result_elements(const struct sim *sim)
{
    return sim->schedule->recv == KL_LAYOUT_PARTS ? sim->count * (size_t)sim->nranks : sim->count;
}

/* Returns the error, or an empty text. */
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
static inline struct sim *sim_new(const struct kl_schedule *s, int nranks, int steps, uint64_t seed)
{
    static struct sim sim;

    sim.schedule = s;
    sim.nranks = nranks;
    sim.steps = steps;
    sim.grain = 1;
    sim.seed = seed;
    return &sim;
}

static inline void shuffle(int *values, int n, uint64_t *seed)
{
    for (int i = 0; i < n; i++) values[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int other = (int)sim_random(seed, (uint64_t)i + 1), kept = values[i];
        values[i] = values[other];
        values[other] = kept;
    }
}

/* A ring in random order. orders: SIM_RANKS x SIM_RANKS. */
static inline void connect_ring(struct sim *sim, int (*orders)[SIM_RANKS], int root)
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

struct ordered_context {
    int root;
};

/* The ranks themselves, in their order: to all others, or in a ring. */
static inline void connect_ordered(struct sim *sim, int root)
{
    int n = sim->nranks;
    bool ring = sim->schedule == &kl_allreduce_ordered_ring || sim->schedule == &kl_reduce_ordered_ring ||
                sim->schedule == &kl_reducescatter_ordered_ring;

    sim_disconnect(sim);
    for (int r = 0; r < n; r++) {
        struct sim_rank *rank = &sim->rank[r];
        rank->at.root = root;
        for (int i = 1; i < n && !ring; i++) {
            int peer = kl_wrap(r + i, n), edge = kl_ordered_edge(r, peer);
            rank->to[edge] = rank->from[edge] = peer;
        }
        if (ring) rank->to[0] = kl_wrap(r + 1, n);
        if (ring) rank->from[0] = kl_wrap(r - 1, n);
    }
}

static inline void ordered_of(struct sim *sim, int channel, void *context)
{
    (void)channel;
    connect_ordered(sim, ((struct ordered_context *)context)->root);
}

static inline void connect_pat(struct sim *sim)
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

static inline void set_parent(struct sim *sim, int rank, int parent)
{
    struct sim_rank *r = &sim->rank[rank], *p = &sim->rank[parent];

    r->at.up = 1;
    r->to[KL_TREE_UP] = r->from[KL_TREE_UP] = parent;
    p->to[p->at.ndown] = p->from[p->at.ndown] = rank;
    p->at.ndown++;
}

/* One of the double trees over the ranks in random order. */
static inline void connect_double_tree(struct sim *sim, int tree)
{
    int name[SIM_RANKS], n = sim->nranks;

    shuffle(name, n, &sim->seed);
    sim_disconnect(sim);
    for (int r = 0; r < n; r++) {
        int up = kl_double_tree(n, r, tree).up;
        if (up >= 0) set_parent(sim, name[r], name[up]);
    }
}

/* Any tree with up to three children. */
static inline void connect_any_tree(struct sim *sim)
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

/* Each channel moves its share, on a graph of its own that `connect` makes. */
typedef void connect_fn(struct sim *sim, int channel, void *context);

/* ---- graphs by the name of a case ---- */

struct ring_context {
    int root;
    int orders[SIM_RANKS][SIM_RANKS];
};

static inline void ring_of(struct sim *sim, int channel, void *context)
{
    struct ring_context *c = context;

    (void)channel;
    connect_ring(sim, c->orders, c->root);
}

static inline void double_tree_of(struct sim *sim, int channel, void *context)
{
    (void)context;
    connect_double_tree(sim, channel % 2);
}

static inline void any_tree_of(struct sim *sim, int channel, void *context)
{
    (void)channel, (void)context;
    connect_any_tree(sim);
}

static inline void pat_of(struct sim *sim, int channel, void *context)
{
    (void)channel, (void)context;
    connect_pat(sim);
}

static struct kl_grid grid;

static inline void grid_of(struct sim *sim, int channel, void *context)
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

/* Nodes of `local` ranks each, in random order; node k has names [k * local, (k + 1) * local). */
struct cluster {
    int nnodes, local, nheads;
    int name[SIM_RANKS];
};

static inline void meet(struct sim *sim, int group, int node, int rank, int edge)
{
    sim->member[group][node] = rank;
    sim->rank[rank].to[edge] = sim->rank[rank].from[edge] = SIM_NET;
}

static inline void chain_of(struct sim *sim, int channel, void *context)
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
static inline void join_head(struct sim *sim, int head, int number, int rank)
{
    struct sim_rank *h = &sim->rank[head], *r = &sim->rank[rank];
    int down = KL_DIRECT_DOWN + h->at.ndown++;

    h->from[down] = rank;
    h->to[down] = rank;
    r->from[number] = r->to[number] = head;
    h->share_from |= 1u << down;
    r->share_to |= 1u << number;
}

static inline void direct_node(struct sim *sim, const struct cluster *c, int node)
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

static inline void direct_of(struct sim *sim, int channel, void *context)
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

#endif
