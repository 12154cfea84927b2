/* SPDX-License-Identifier: Apache-2.0 */
/**
 * test_schedule_sim.h - for tests: all ranks of a schedule on one channel, over edges that hold a few chunks, without data.
 * A chunk is a symbol of its contents: the contributing ranks, the elements, and the order in which they were combined.
 * Ranks may have an edge into a network that reduces, and one out of it: the ranks of a group meet there, by node.
 *
 * A run ends with the first error, in words, or with an empty text: every rank did all hops, nothing is left in an
 * edge, both ends of every edge agreed on sizes, no rank's data were added twice, and all kept data were complete. The
 * caller knows the results that the operation has to leave, and checks `kept`.
 */
#ifndef KL_COLL_SCHEDULE_TEST_SCHEDULE_SIM_H
#define KL_COLL_SCHEDULE_TEST_SCHEDULE_SIM_H

#include "coll/schedule/schedule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIM_RANKS = 64, SIM_STEPS = 8, SIM_NET_STEPS = 2 * SIM_RANKS, SIM_NET = SIM_RANKS };

/** RAW: some rank's own data. PARTIAL: contributions of a reduction. COMPLETE: its result. */
enum sim_state { SIM_RAW, SIM_PARTIAL, SIM_COMPLETE };

/** The composition of elements. Elements with the same form have been computed alike, to the last bit. */
struct sim_value {
    uint64_t ranks; /* bits: the contributing ranks */
    uint64_t form;
    enum sim_state state;
};

struct sim_chunk {
    struct sim_value value;
    size_t at, count; /* elements of the operand: all parts one after the other, where there are parts */
};

struct sim_edge {
    struct sim_chunk *chunk; /* `steps` of them */
    int first, held, steps;
};

struct sim_lane {
    size_t first, chunk; /* of the loop: first element, elements of a chunk */
    int hop, hops;
    struct sim_value parked;
};

struct sim_rank {
    struct kl_position at;
    int to[KL_EDGES_MAX], from[KL_EDGES_MAX]; /* ranks by edge, SIM_NET for the network, -1 for none */
    uint32_t share_to, share_from;            /* edges that run beside another one between the same ranks */
    struct sim_lane lane[KL_LANES_MAX];
};

struct sim {
    const struct kl_schedule *schedule;
    int nranks, steps;        /* steps: capacity of an edge */
    size_t count, first, end; /* elements of the buffer or of a part of it, and the channel's share of them */
    size_t most, grain;       /* elements of a chunk: at most, and a multiple of */
    uint64_t seed;            /* the order in which ranks progress */
    struct sim_rank rank[SIM_RANKS];
    struct sim_edge edge[2][SIM_RANKS + 1]
                        [SIM_RANKS + 1]; /* beside another one; from, to; the last one is the network */
    struct sim_chunk room[2][SIM_RANKS][SIM_RANKS][SIM_STEPS], net_room[2][SIM_RANKS][SIM_NET_STEPS];
    int ngroups, nnodes;              /* of ranks that meet in the network; members of each */
    int member[SIM_RANKS][SIM_RANKS]; /* by group and node */
    struct sim_value *kept;           /* by rank and element of the result; without ranks: not kept */
    char wrong[200];
};

/* ---- making one ---- */

static uint64_t sim_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static uint64_t sim_random(uint64_t *seed, uint64_t below)
{
    return sim_mix(*seed += 0x9e3779b97f4a7c15) % below;
}

static bool sim_has_parts(const struct kl_schedule *s)
{
    return s->send == KL_LAYOUT_PARTS || s->recv == KL_LAYOUT_PARTS;
}

/** Elements of all parts together. */
static size_t sim_elements(const struct sim *sim)
{
    return sim_has_parts(sim->schedule) ? sim->count * (size_t)sim->nranks : sim->count;
}

/** Forget the kept data: before the first channel of an operation. */
static void sim_forget(struct sim *sim)
{
    free(sim->kept);
    sim->kept = calloc((size_t)sim->nranks * sim_elements(sim) + 1, sizeof *sim->kept);
}

static struct sim_value *sim_kept(const struct sim *sim, int rank, size_t element)
{
    return &sim->kept[(size_t)rank * sim_elements(sim) + element];
}

/** Ranks without edges. The caller connects them, and fills in their positions. */
static void sim_disconnect(struct sim *sim)
{
    sim->ngroups = 0;
    for (int r = 0; r < SIM_RANKS; r++) {
        sim->rank[r].share_to = sim->rank[r].share_from = 0;
        sim->rank[r].at = (struct kl_position){.nranks = sim->nranks, .rank = r, .steps = sim->steps};
        for (int e = 0; e < KL_EDGES_MAX; e++) sim->rank[r].to[e] = sim->rank[r].from[e] = -1;
    }
}

/* ---- loops and places, as the pipeline has them ---- */

static size_t sim_chunks_per_loop(const struct sim *sim)
{
    return sim->schedule->send == KL_LAYOUT_CHUNKS ? (size_t)kl_chunks_of(&sim->rank[0].at) : 1;
}

static void sim_begin_loop(const struct sim *sim, struct sim_lane *lane)
{
    size_t chunks = sim_chunks_per_loop(sim), share = (sim->end - lane->first + chunks - 1) / chunks;

    share = (share + sim->grain - 1) / sim->grain * sim->grain;
    lane->chunk = share < sim->most ? share : sim->most;
    lane->hop = 0;
}

/* The rank of a place's part. */
static size_t sim_part(const struct kl_position *at, int place)
{
    return (size_t)(at->order ? at->order[kl_wrap(place - at->index, at->nranks)] : place);
}

static size_t sim_offset(const struct sim *sim, const struct kl_position *at, const struct sim_lane *lane,
                         enum kl_layout layout, int place)
{
    if (layout == KL_LAYOUT_CHUNKS) return lane->first + (size_t)place * lane->chunk;
    if (layout == KL_LAYOUT_PARTS) return sim_part(at, place) * sim->count + lane->first;
    return lane->first;
}

static size_t sim_count(const struct sim *sim, const struct sim_lane *lane, int place)
{
    bool chunks = sim->schedule->send == KL_LAYOUT_CHUNKS;
    size_t offset = lane->first + (chunks ? (size_t)place * lane->chunk : 0);
    size_t left = sim->end > offset ? sim->end - offset : 0;

    return left < lane->chunk ? left : lane->chunk;
}

/* ---- values ---- */

/* The first error counts. */
#define SIM_WRONG(sim, ...)                                                                                            \
    do {                                                                                                               \
        if (!*(sim)->wrong) (void)snprintf((sim)->wrong, sizeof(sim)->wrong, __VA_ARGS__);                             \
    } while (0)

static struct sim_value sim_own(int rank)
{
    return (struct sim_value){.ranks = 1ull << rank, .form = sim_mix((uint64_t)rank + 1), .state = SIM_RAW};
}

static struct sim_value sim_add(struct sim *sim, int rank, struct sim_value a, struct sim_value b)
{
    if (a.state != SIM_PARTIAL) SIM_WRONG(sim, "rank %d adds to a value that is no partial result", rank);
    if (a.ranks & b.ranks) SIM_WRONG(sim, "rank %d adds a contribution twice", rank);
    return (struct sim_value){.ranks = a.ranks | b.ranks, .form = sim_mix(3 * a.form + b.form), .state = SIM_PARTIAL};
}

static struct sim_value sim_end(struct sim *sim, int rank, struct sim_value v)
{
    if (v.state != SIM_PARTIAL) SIM_WRONG(sim, "rank %d finishes a value that is no partial result", rank);
    return (struct sim_value){.ranks = v.ranks, .form = sim_mix(v.form + 5), .state = SIM_COMPLETE};
}

/* ---- a hop ---- */

struct sim_move {
    struct kl_hop hop;
    size_t own, result, count; /* elements: places in the operand and in the result */
};

static struct sim_move sim_next(const struct sim *sim, int rank, int lane)
{
    const struct kl_schedule *s = sim->schedule;
    const struct sim_rank *r = &sim->rank[rank];
    const struct sim_lane *l = &r->lane[lane];
    struct kl_hop hop = s->hop(&r->at, lane, l->hop);
    bool own_is_a_part = s->send != KL_LAYOUT_PARTS && s->recv == KL_LAYOUT_PARTS;

    return (struct sim_move){
        .hop = hop,
        .own = sim_offset(sim, &r->at, l, s->send, hop.own) + (own_is_a_part ? (size_t)rank * sim->count : 0),
        .result = sim_offset(sim, &r->at, l, s->recv, hop.result),
        .count = sim_count(sim, l, hop.own),
    };
}

/* The edge from or to a rank; NULL: an error. */
static struct sim_edge *sim_edge_at(struct sim *sim, int rank, uint32_t edge, bool sends)
{
    int peer = sends ? sim->rank[rank].to[edge] : sim->rank[rank].from[edge];

    if (peer < 0) {
        SIM_WRONG(sim, "rank %d %s edge %u, which leads nowhere", rank, sends ? "sends to" : "receives from", edge);
        return NULL;
    }
    uint32_t shares = sends ? sim->rank[rank].share_to : sim->rank[rank].share_from;
    return sends ? &sim->edge[shares >> edge & 1][rank][peer] : &sim->edge[shares >> edge & 1][peer][rank];
}

/* Visit the edges of a set, lowest first. */
#define SIM_EACH_EDGE(e, set)                                                                                          \
    for (uint32_t left = (set), e; left && (e = (uint32_t)__builtin_ctz(left), true); left &= left - 1)

static bool sim_can_move(struct sim *sim, int rank, const struct kl_hop *hop)
{
    SIM_EACH_EDGE(e, hop->recv)
    {
        struct sim_edge *in = sim_edge_at(sim, rank, e, false);
        if (!in || !in->held) return false;
    }
    SIM_EACH_EDGE(e, hop->send)
    {
        struct sim_edge *out = sim_edge_at(sim, rank, e, true);
        if (!out || out->held == out->steps) return false;
    }
    return true;
}

static struct sim_chunk sim_take(struct sim_edge *edge)
{
    struct sim_chunk in = edge->chunk[edge->first];

    edge->first = (edge->first + 1) % edge->steps;
    edge->held--;
    return in;
}

/* The received and the own data, in the order of the line. */
static struct sim_chunk sim_meet(struct sim *sim, int rank, const struct sim_move *m, struct sim_value own)
{
    struct sim_chunk got = {.value = own, .at = m->own, .count = m->count};
    struct sim_value in_order[KL_EDGES_MAX + 1] = {own}, *next = in_order;
    int nth = 0;

    SIM_EACH_EDGE(e, m->hop.recv)
    {
        struct sim_chunk in = sim_take(sim_edge_at(sim, rank, e, false));
        if (in.count != m->count) SIM_WRONG(sim, "rank %d expects %zu elements and gets %zu", rank, m->count, in.count);
        if (in.at != m->own) SIM_WRONG(sim, "rank %d adds elements %zu to %zu", rank, in.at, m->own);
        if (nth++ == m->hop.before) *next++ = own;
        *next++ = in.value;
    }
    if (nth == m->hop.before) *next++ = own;
    if (next - in_order != nth + 1) SIM_WRONG(sim, "rank %d meets %d others, and stands behind more", rank, nth);
    got.value = in_order[0];
    for (int i = 1; i <= nth; i++) got.value = sim_add(sim, rank, got.value, in_order[i]);
    return got;
}

/* Receive edge by edge, and combine. */
static struct sim_chunk sim_receive(struct sim *sim, int rank, const struct sim_move *m)
{
    const bool reduce = m->hop.actions & KL_HOP_REDUCE;
    int nth = 0;
    struct sim_chunk got = {.value = sim_own(rank), .at = m->own, .count = m->count};

    if (!m->hop.recv && reduce) SIM_WRONG(sim, "rank %d adds, having received nothing", rank);
    if (m->hop.recv && m->hop.actions & KL_HOP_FIRST) SIM_WRONG(sim, "rank %d is not the first", rank);
    if (m->hop.actions & KL_HOP_FIRST) got.value.state = SIM_PARTIAL;
    SIM_EACH_EDGE(e, m->hop.recv)
    {
        struct sim_chunk in = sim_take(sim_edge_at(sim, rank, e, false));
        if (in.count != m->count) SIM_WRONG(sim, "rank %d expects %zu elements and gets %zu", rank, m->count, in.count);
        if (reduce && in.at != got.at) SIM_WRONG(sim, "rank %d adds elements %zu to %zu", rank, in.at, got.at);
        if (!reduce && nth) SIM_WRONG(sim, "rank %d receives twice without adding", rank);
        if (reduce)
            got.value = nth ? sim_add(sim, rank, got.value, in.value) : sim_add(sim, rank, in.value, got.value);
        else
            got = in;
        nth++;
    }
    return got;
}

/* The place of a result's element among the elements of the operand. */
static size_t sim_operand_of(const struct sim *sim, int rank, size_t element)
{
    bool own_part = sim->schedule->send == KL_LAYOUT_PARTS && sim->schedule->recv != KL_LAYOUT_PARTS;

    return element + (own_part ? (size_t)rank * sim->count : 0);
}

static void sim_keep(struct sim *sim, int rank, const struct sim_move *m, const struct sim_chunk *c)
{
    if (sim_operand_of(sim, rank, m->result) != c->at)
        SIM_WRONG(sim, "rank %d keeps elements %zu as %zu", rank, c->at, m->result);
    if (c->value.state == SIM_PARTIAL) SIM_WRONG(sim, "rank %d keeps an incomplete result", rank);
    for (size_t i = 0; i < m->count && !*sim->wrong; i++) {
        struct sim_value *kept = sim_kept(sim, rank, m->result + i);
        if (kept->ranks) SIM_WRONG(sim, "rank %d keeps element %zu twice", rank, m->result + i);
        *kept = c->value;
    }
}

static void sim_send(struct sim *sim, int rank, uint32_t edges, const struct sim_chunk *c)
{
    SIM_EACH_EDGE(e, edges)
    {
        struct sim_edge *edge = sim_edge_at(sim, rank, e, true);
        edge->chunk[(edge->first + edge->held++) % edge->steps] = *c;
    }
}

/* The value of a hop. A value parked at the end of a loop is lost, and resuming needs a parked value. */
static struct sim_chunk sim_value_of(struct sim *sim, int rank, struct sim_lane *l, const struct sim_move *m)
{
    const uint32_t actions = m->hop.actions;
    struct sim_value own = sim_own(rank);

    if (!(actions & KL_HOP_MERGE)) return sim_receive(sim, rank, m);
    own.state = SIM_PARTIAL;
    if (actions & KL_HOP_RESUME) own = l->parked;
    if (!own.ranks) SIM_WRONG(sim, "rank %d resumes without a parked value", rank);
    return sim_meet(sim, rank, m, own);
}

/* Do the next hop of a lane, if it has one and it can be done. */
static bool sim_step(struct sim *sim, int rank, int lane)
{
    struct sim_lane *l = &sim->rank[rank].lane[lane];

    if (l->first >= sim->end) return false;
    if (sim->schedule->follows && lane && l->first >= sim->rank[rank].lane[0].first) return false;
    if (l->hop < l->hops) {
        struct sim_move m = sim_next(sim, rank, lane);
        if (m.count && !sim_can_move(sim, rank, &m.hop)) return false;
        if (m.count) {
            struct sim_chunk c = sim_value_of(sim, rank, l, &m);
            l->parked = m.hop.actions & KL_HOP_PARK ? c.value : (struct sim_value){.ranks = 0};
            if (m.hop.actions & KL_HOP_FINISH) c.value = sim_end(sim, rank, c.value);
            if (m.hop.actions & KL_HOP_KEEP) sim_keep(sim, rank, &m, &c);
            sim_send(sim, rank, m.hop.send, &c);
        }
        l->hop++;
    } else {
        l->first += l->chunk * sim_chunks_per_loop(sim);
        if (l->first < sim->end) sim_begin_loop(sim, l);
    }
    return !*sim->wrong;
}

/* ---- the network: a step of a group is one request of all its members ---- */

static struct sim_edge *sim_to_net(struct sim *sim, int rank)
{
    return &sim->edge[0][rank][SIM_NET];
}

static struct sim_edge *sim_from_net(struct sim *sim, int rank)
{
    return &sim->edge[0][SIM_NET][rank];
}

static struct sim_chunk sim_out_of(struct sim_edge *e)
{
    struct sim_chunk c = e->chunk[e->first];

    e->first = (e->first + 1) % e->steps;
    e->held--;
    return c;
}

static void sim_into(struct sim_edge *e, const struct sim_chunk *c)
{
    e->chunk[(e->first + e->held++) % e->steps] = *c;
}

/* The members' next values, added up in their order. */
static struct sim_chunk sim_net_add(struct sim *sim, const int *member)
{
    struct sim_chunk sum = sim_out_of(sim_to_net(sim, member[0]));

    for (int k = 1; k < sim->nnodes; k++) {
        struct sim_chunk c = sim_out_of(sim_to_net(sim, member[k]));
        if (c.at != sum.at || c.count != sum.count)
            SIM_WRONG(sim, "the network adds elements %zu to %zu", c.at, sum.at);
        sum.value = sim_add(sim, member[k], sum.value, c.value);
    }
    return sum;
}

static bool sim_net_can(struct sim *sim, const int *member, int takes, int makes)
{
    for (int k = 0; k < sim->nnodes; k++) {
        const struct sim_edge *out = sim_to_net(sim, member[k]), *in = sim_from_net(sim, member[k]);
        if (out->held < takes || in->steps - in->held < makes) return false;
    }
    return true;
}

static bool sim_net_step(struct sim *sim, const int *member)
{
    const bool gathers = sim->schedule->recv == KL_LAYOUT_PARTS, scatters = sim->schedule->send == KL_LAYOUT_PARTS;

    if (!sim_net_can(sim, member, scatters ? sim->nnodes : 1, gathers ? sim->nnodes : 1)) return false;
    for (int k = 0; k < sim->nnodes && (gathers || scatters); k++) {
        struct sim_chunk c = gathers ? sim_out_of(sim_to_net(sim, member[k])) : sim_net_add(sim, member);
        for (int to = 0; to < sim->nnodes; to++)
            if (gathers || to == k) sim_into(sim_from_net(sim, member[to]), &c);
    }
    if (gathers || scatters) return true;
    struct sim_chunk c = sim_net_add(sim, member);
    for (int k = 0; k < sim->nnodes; k++) sim_into(sim_from_net(sim, member[k]), &c);
    return true;
}

static bool sim_net_round(struct sim *sim)
{
    bool moved = false;

    for (int g = 0; g < sim->ngroups && !*sim->wrong; g++) moved |= sim_net_step(sim, sim->member[g]);
    return moved;
}

/* ---- a run ---- */

static void sim_clear_net(struct sim *sim, int rank)
{
    int steps = sim_has_parts(sim->schedule) ? 2 * sim->nnodes : sim->steps;

    *sim_to_net(sim, rank) = (struct sim_edge){.chunk = sim->net_room[0][rank], .steps = steps};
    *sim_from_net(sim, rank) = (struct sim_edge){.chunk = sim->net_room[1][rank], .steps = steps};
}

static void sim_clear_edge(struct sim *sim, int from, int edge)
{
    int to = sim->rank[from].to[edge];
    uint32_t share = sim->rank[from].share_to >> edge & 1;

    if (to == SIM_NET)
        sim_clear_net(sim, from);
    else if (to >= 0)
        sim->edge[share][from][to] = (struct sim_edge){.chunk = sim->room[share][from][to], .steps = sim->steps};
}

static void sim_start(struct sim *sim)
{
    *sim->wrong = '\0';
    for (int r = 0; r < sim->nranks; r++) {
        for (int e = 0; e < KL_EDGES_MAX; e++) sim_clear_edge(sim, r, e);
        for (int l = 0; l < sim->schedule->lanes; l++) {
            struct sim_lane *lane = &sim->rank[r].lane[l];
            *lane = (struct sim_lane){.first = sim->first, .hops = sim->schedule->hops(&sim->rank[r].at, l)};
            if (lane->first < sim->end) sim_begin_loop(sim, lane);
        }
    }
}

/* Each rank once, from a random start, and as many hops of each as chance, or `all`, allows. */
static bool sim_round(struct sim *sim, bool all)
{
    int actors = sim->nranks * sim->schedule->lanes, begin = (int)sim_random(&sim->seed, (uint64_t)actors);
    bool moved = false;

    for (int i = 0; i < actors; i++) {
        int actor = (begin + i) % actors;
        uint64_t hops = all ? UINT64_MAX : sim_random(&sim->seed, 4);
        while (hops-- && sim_step(sim, actor % sim->nranks, actor / sim->nranks)) moved = true;
    }
    if (all || sim_random(&sim->seed, 2)) moved |= sim_net_round(sim);
    return moved;
}

static void sim_expect_end(struct sim *sim)
{
    for (int r = 0; r < sim->nranks; r++) {
        for (int l = 0; l < sim->schedule->lanes; l++) {
            if (sim->rank[r].lane[l].first < sim->end)
                SIM_WRONG(sim, "rank %d waits for ever at hop %d of lane %d", r, sim->rank[r].lane[l].hop, l);
        }
    }
    for (int i = 0; i < sim->nranks * KL_EDGES_MAX && !*sim->wrong; i++) {
        int from = i / KL_EDGES_MAX, edge = i % KL_EDGES_MAX, to = sim->rank[from].to[edge];
        if (to >= 0 && sim_edge_at(sim, from, (uint32_t)edge, true)->held)
            SIM_WRONG(sim, "rank %d sends rank %d data that no rank receives", from, to);
        if (to == SIM_NET && sim_from_net(sim, from)->held) SIM_WRONG(sim, "rank %d does not take all results", from);
    }
}

/** Run the channel to its end. Returns the error, or an empty text. */
static const char *sim_run(struct sim *sim)
{
    sim_start(sim);
    while (!*sim->wrong && (sim_round(sim, false) || sim_round(sim, true))) continue;
    if (!*sim->wrong) sim_expect_end(sim);
    return sim->wrong;
}

#endif
