/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/pipeline/pipeline.h"

#include "base/error.h"
#include "base/ticks.h"
#include "coll/pipeline/edges.h"
#include "device/host/bulk_copy.h"

#include <string.h>

enum { PIECE_BYTES = 4096 }; /* bytes combined at a time, so that all operands stay in the nearest cache */
enum { GRAIN_BYTES = 16 };   /* of chunks of one loop, as NCCL cuts them */

/* ---- loops ---- */

/* Number of consecutive chunks of a loop in the buffers. */
static size_t chunks_per_loop(const struct kl_pipeline *op)
{
    return op->schedule->send == KL_LAYOUT_CHUNKS ? (size_t)kl_chunks_of(&op->position) : 1;
}

static void begin_loop(const struct kl_pipeline *op, struct kl_lane *lane)
{
    size_t chunks = chunks_per_loop(op), share = (op->share->end - lane->first + chunks - 1) / chunks;

    if (chunks > 1) { /* elements have 1, 2, 4 or 8 bytes */
        size_t grain = GRAIN_BYTES / op->share->elem_bytes;

        share = (share + grain - 1) & ~(grain - 1);
    }
    lane->chunk = share < op->most ? share : op->most;
    lane->hop = 0;
}

/* All connectors have the shape that the ranks agreed on: read it from any. */
static size_t step_bytes(const struct kl_pipeline *op)
{
    const struct kl_edges *l = op->edges;

    if (op->lines) return KL_LL_BYTES;
    for (int i = 0; i < l->nsend; i++)
        if (l->send[i]) return l->send[i]->tx.shape.slot_bytes;
    for (int i = 0; i < l->nrecv; i++)
        if (l->recv[i]) return l->recv[i]->rx.shape.slot_bytes;
    return KL_LL_BYTES;
}

/* All ranks find the same. */
static size_t chunk_bytes(const struct kl_pipeline *op)
{
    const size_t step = step_bytes(op), chain = op->share->chain_bytes;

    return kl_func_info[op->share->func].rooted && chain && chain < step ? chain : step;
}

void kl_pipeline_start(const struct kl_algorithm *a, void *memory, struct kl_edges *edges,
                       const struct kl_channel_work *share)
{
    struct kl_pipeline *op = memory;

    op->schedule = a->schedule[share->func];
    op->edges = edges;
    op->position = edges->position;
    op->share = share;
    op->lines = share->proto != KL_PROTO_SIMPLE;
    op->begun = false;
    op->most = chunk_bytes(op) / share->elem_bytes;
    if (kl_func_info[share->func].rooted) op->position.root = kl_root_of(&op->position, share->root);
    for (int i = 0; i < op->schedule->lanes; i++) {
        op->lane[i].first = share->first;
        op->lane[i].hops = op->schedule->hops(&op->position, i);
        op->lane[i].prepared = false;
        begin_loop(op, &op->lane[i]);
    }
}

/* ---- one hop ---- */

static size_t offset_of(const struct kl_pipeline *op, const struct kl_lane *lane, enum kl_layout layout, int place)
{
    const struct kl_position *p = &op->position;

    if (layout == KL_LAYOUT_CHUNKS) return lane->first + (size_t)place * lane->chunk;
    if (layout == KL_LAYOUT_WHOLE) return lane->first;
    int rank = p->order ? p->order[kl_wrap(place - p->index, p->nranks)] : place;
    return (size_t)rank * op->share->count + lane->first;
}

static size_t count_of(const struct kl_pipeline *op, const struct kl_lane *lane, int place)
{
    bool chunks = op->schedule->send == KL_LAYOUT_CHUNKS;
    size_t offset = chunks ? lane->first + (size_t)place * lane->chunk : lane->first;
    size_t left = op->share->end > offset ? op->share->end - offset : 0;

    return left < lane->chunk ? left : lane->chunk;
}

static struct kl_pipeline_move next_move(const struct kl_pipeline *op, int lane_number)
{
    const struct kl_lane *lane = &op->lane[lane_number];
    const struct kl_channel_work *s = op->share;
    struct kl_hop hop = op->schedule->hop(&op->position, lane_number, lane->hop);
    size_t count = count_of(op, lane, hop.own);

    return (struct kl_pipeline_move){
        .hop = hop,
        .own = (const char *)s->send + offset_of(op, lane, op->schedule->send, hop.own) * s->elem_bytes,
        .result = (char *)s->recv + offset_of(op, lane, op->schedule->recv, hop.result) * s->elem_bytes,
        .count = count,
        .bytes = count * s->elem_bytes,
        .lines = op->lines && count * s->elem_bytes > KL_FIFO_INLINE,
    };
}

/* The edges of a set, lowest first:  for (uint32_t set = hop.recv; set; set &= set - 1) use(first_edge(set)) */
static int first_edge(uint32_t set)
{
    return __builtin_ctz(set);
}

static bool is_there(const struct kl_pipeline_move *m, struct kl_connector *c)
{
    return m->lines ? kl_ll_ready(&c->rx) : kl_fifo_ready(&c->rx);
}

/* Have all data and room for the hop arrived? Nothing is changed before. */
static bool can_move(const struct kl_pipeline *op, const struct kl_pipeline_move *m)
{
    for (uint32_t set = m->hop.recv; set; set &= set - 1)
        if (!is_there(m, op->edges->recv[first_edge(set)])) return false;
    for (uint32_t set = m->hop.send; set; set &= set - 1)
        if (!kl_fifo_can_send(&op->edges->send[first_edge(set)]->tx)) return false;
    return true;
}

/* The received data belong to another call. */
static ncclResult_t refuse_call(const struct kl_pipeline *op, const struct kl_connector *from)
{
    return KL_FAIL(ncclInvalidUsage,
                   "%s: rank %d sent data of another call than rank %d: the ranks call with different "
                   "counts, types or operations",
                   kl_func_info[op->share->func].name, from->peer, op->position.rank);
}

/* It belongs to the same call, but has another size. */
static ncclResult_t refuse_form(const struct kl_pipeline *op, const struct kl_pipeline_move *m,
                                const struct kl_connector *from, size_t bytes)
{
    const char *name = kl_func_info[op->share->func].name;

    if (bytes == m->bytes)
        return KL_FAIL(ncclInvalidUsage,
                       "%s: rank %d sent by another protocol than rank %d expected: do they have the same settings "
                       "(NCCL_PROTO, NCCL_ALGO)?",
                       name, from->peer, op->position.rank);
    return KL_FAIL(ncclInvalidUsage,
                   "%s: rank %d sent %zu bytes where rank %d expected %zu: do they have the same settings "
                   "(NCCL_BUFFSIZE, NCCL_ALGO, NCCL_PROTO)?",
                   name, from->peer, bytes, op->position.rank, m->bytes);
}

/* A chunk of an edge, to be released; NULL with an error, or without one when it was revoked a moment ago. */
static const void *open_chunk(struct kl_pipeline *op, const struct kl_pipeline_move *m, int edge, ncclResult_t *rc)
{
    struct kl_connector *c = op->edges->recv[edge];
    size_t bytes;
    bool more;
    if (kl_fifo_signature(&c->rx) != op->share->signature) {
        *rc = refuse_call(op, c); /* nothing is claimed: the sender revokes it */
        return NULL;
    }
    const void *in = m->lines ? kl_ll_open(&c->rx, op->share->scratch, &bytes) : kl_fifo_open(&c->rx, &bytes, &more);

    if (in && bytes == m->bytes) return in;
    if (!in && kl_fifo_revoked(&c->rx)) return NULL;
    *rc = refuse_form(op, m, c, bytes);
    if (in) kl_fifo_release(&c->rx); /* the sender waits for its end */
    return NULL;
}

/* The hop's value without received data: the rank's own. */
static void take_own(const struct kl_redop *redop, const struct kl_pipeline_move *m, char *to)
{
    if (m->hop.actions & KL_HOP_FIRST && redop->first)
        redop->first(redop, to, m->own, m->count);
    else if (to != m->own)
        memcpy(to, m->own, m->bytes);
}

/* Is one chunk combined with the rank's own data into a send buffer that another rank has read last, by non-temporal
 * stores? */
static bool uses_nt_stores(const struct kl_pipeline *op, const struct kl_pipeline_move *m, const char *to)
{
    if (to == m->result || m->lines || m->hop.recv & (m->hop.recv - 1)) return false;
    return kl_copy_out_is_nontemporal(&op->edges->send[first_edge(m->hop.send)]->tx.out, m->bytes);
}

/* Piece by piece. */
static void combine_nt(struct kl_pipeline *op, const struct kl_pipeline_move *m, char *to, const char *in)
{
    const struct kl_redop *redop = op->share->redop;
    void *piece = op->share->scratch;
    const char *own = m->own;

    for (size_t left = m->bytes, some; left; left -= some, to += some, in += some, own += some) {
        some = left < PIECE_BYTES ? left : PIECE_BYTES;
        redop->combine(redop, piece, in, own, some / redop->elem_bytes);
        kl_copy_nontemporal(to, piece, some, NULL);
    }
    kl_nontemporal_fence();
}

static void combine_own(struct kl_pipeline *op, const struct kl_pipeline_move *m, char *to, const void *in)
{
    if (uses_nt_stores(op, m, to))
        combine_nt(op, m, to, in);
    else
        op->share->redop->combine(op->share->redop, to, in, m->own, m->count);
}

/* `in` is the first chunk received, or (`later`) another one, which is combined with the contents of `to`. */
static void take_in(struct kl_pipeline *op, const struct kl_pipeline_move *m, char *to, const void *in, bool later)
{
    const struct kl_redop *redop = op->share->redop;

    if (later)
        redop->merge(redop, to, to, in, m->count);
    else if (m->hop.actions & KL_HOP_REDUCE)
        combine_own(op, m, to, in);
    else if (to != in)
        memcpy(to, in, m->bytes);
}

/* ---- exchanges: all partial results are open at once, and merged in the order of the line ---- */

/* The rank's own contribution, `from` on, as a partial result that stays while `to` is written. */
static const void *own_partial(struct kl_pipeline *op, const struct kl_pipeline_move *m, const char *to, size_t from,
                               size_t count)
{
    const struct kl_redop *redop = op->share->redop;
    const char *own = (m->hop.actions & KL_HOP_RESUME ? m->result : m->own) + from * redop->elem_bytes;

    if (!(m->hop.actions & KL_HOP_RESUME) && redop->first) {
        redop->first(redop, op->share->scratch, own, count);
        return op->share->scratch;
    }
    if (own != to || !m->hop.before) return own;
    return memcpy(op->share->scratch, own, count * redop->elem_bytes);
}

static void merge_partials(struct kl_pipeline *op, const struct kl_pipeline_move *m, char *to, const void *partials[])
{
    const struct kl_redop *redop = op->share->redop;
    const size_t most = PIECE_BYTES / redop->elem_bytes;
    size_t n = 1 + (size_t)__builtin_popcount(m->hop.recv), count;

    for (size_t from = 0; from < m->count; from += count, to += count * redop->elem_bytes) {
        count = m->count - from < most ? m->count - from : most;
        partials[m->hop.before] = own_partial(op, m, to, from, count);
        kl_redop_merge_all(redop, to, partials, n, count);
        for (size_t i = 0; i < n; i++) partials[i] = (const char *)partials[i] + count * redop->elem_bytes;
    }
}

static bool meet(struct kl_pipeline *op, const struct kl_pipeline_move *m, char *to, ncclResult_t *rc)
{
    const void *partials[KL_EDGES_MAX + 1];
    uint32_t left = m->hop.recv;

    for (int n = 0; left; left &= left - 1, n++) {
        const void *in = open_chunk(op, m, first_edge(left), rc);
        if (!in) break; /* the sender of the others still waits for their end */
        partials[n + (n >= m->hop.before)] = in;
    }
    if (!left) merge_partials(op, m, to, partials);
    for (uint32_t set = m->hop.recv & ~left; set; set &= set - 1)
        kl_fifo_release(&op->edges->recv[first_edge(set)]->rx);
    return !left;
}

/* ---- the value of a hop ---- */

static bool combine(struct kl_pipeline *op, const struct kl_pipeline_move *m, char *to, ncclResult_t *rc)
{
    for (uint32_t set = m->hop.recv; set; set &= set - 1) {
        const void *in = open_chunk(op, m, first_edge(set), rc);
        if (!in) return false;
        take_in(op, m, to, in, set != m->hop.recv);
        kl_fifo_release(&op->edges->recv[first_edge(set)]->rx);
    }
    return true;
}

static bool produce(struct kl_pipeline *op, const struct kl_pipeline_move *m, char *to, ncclResult_t *rc)
{
    const struct kl_redop *redop = op->share->redop;

    if (!m->hop.recv) take_own(redop, m, to);
    if (m->hop.actions & KL_HOP_MERGE ? !meet(op, m, to, rc) : !combine(op, m, to, rc)) return false;
    if (m->hop.actions & KL_HOP_FINISH && redop->last) redop->last(redop, to, m->count);
    return true;
}

/* ---- the place of the value, and its sending ---- */

/* Its own data unchanged: nothing to compute before they are sent. */
static bool is_plain(const struct kl_pipeline *op, const struct kl_hop *hop)
{
    return !hop->recv && !(hop->actions & KL_HOP_KEEP) &&
           !(hop->actions & (KL_HOP_FIRST | KL_HOP_FINISH) && op->share->redop && op->share->redop->first);
}

/* The place of the value: in the result, or in a send slot. */
static char *target_of(struct kl_pipeline *op, const struct kl_pipeline_move *m)
{
    if (m->hop.actions & (KL_HOP_KEEP | KL_HOP_PARK)) return m->result;
    if (m->lines) return (char *)op->share->scratch + KL_SCRATCH_BYTES / 2;
    return kl_fifo_reserve(&op->edges->send[first_edge(m->hop.send)]->tx, m->bytes);
}

static void send_value(struct kl_pipeline *op, const struct kl_pipeline_move *m, struct kl_connector *c,
                       const char *value, bool lasts)
{
    c->tx.signature = op->share->signature;
    if (m->lines)
        kl_ll_publish(&c->tx, value, m->bytes, op->share->wide);
    else
        kl_edges_send_step(&c->tx, value, m->bytes, lasts);
}

static bool try_move(struct kl_pipeline *op, const struct kl_pipeline_move *m, ncclResult_t *rc)
{
    bool plain = is_plain(op, &m->hop);
    const char *value = m->own;

    if (!can_move(op, m)) return false;
    if (!plain) {
        char *to = target_of(op, m);
        if (!produce(op, m, to, rc)) return false;
        value = to;
    }
    bool kept = m->hop.actions & KL_HOP_KEEP, fleeting = m->hop.actions & KL_HOP_RESULT_REUSED;
    bool lasts = fleeting ? plain && value != m->result : plain || kept;
    for (uint32_t set = m->hop.send; set; set &= set - 1)
        send_value(op, m, op->edges->send[first_edge(set)], value, lasts);
    return true;
}

/* ---- progress ---- */

/* A chunk that is only kept may be received into its final place. */
static void want_result(const struct kl_pipeline *op, const struct kl_pipeline_move *m)
{
    const bool one = m->hop.recv && !(m->hop.recv & (m->hop.recv - 1));

    if (!one || op->lines || m->hop.actions & (KL_HOP_REDUCE | KL_HOP_MERGE) || !(m->hop.actions & KL_HOP_KEEP)) return;
    struct kl_connector *c = op->edges->recv[first_edge(m->hop.recv)];
    if (c->rx.places) kl_fifo_want(&c->rx, m->result, m->bytes);
}

/* Hops without elements are at the end of the last loop: the other ends skip them too. */
static void prepare(struct kl_pipeline *op, int number)
{
    struct kl_lane *lane = &op->lane[number];

    lane->move = next_move(op, number);
    lane->prepared = lane->move.count;
    if (lane->prepared && op->edges->moved_here) want_result(op, &lane->move);
}

/* ---- counting ---- */

static void count_loop(const struct kl_pipeline *op, int number, struct kl_pipeline_steps *steps)
{
    for (int hop = 0; hop < op->lane[number].hops; hop++) {
        struct kl_pipeline at = *op;
        at.lane[number].hop = hop;
        const struct kl_pipeline_move m = next_move(&at, number);
        for (uint32_t set = m.count ? m.hop.recv : 0; set; set &= set - 1) steps->recv[first_edge(set)]++;
        for (uint32_t set = m.count ? m.hop.send : 0; set; set &= set - 1) steps->send[first_edge(set)]++;
    }
}

void kl_pipeline_count(const void *memory, struct kl_pipeline_steps *steps)
{
    struct kl_pipeline op = *(const struct kl_pipeline *)memory;

    memset(steps, 0, sizeof *steps);
    for (int i = 0; i < op.schedule->lanes; i++) {
        struct kl_lane *lane = &op.lane[i];
        while (lane->hops && lane->first < op.share->end) {
            count_loop(&op, i, steps);
            lane->first += lane->chunk * chunks_per_loop(&op);
            if (lane->first < op.share->end) begin_loop(&op, lane);
        }
    }
}

/* ---- lanes ---- */

/* Must the lane before this one go on first? */
static bool is_ahead(const struct kl_pipeline *op, int number)
{
    return op->schedule->follows && number && op->lane[number].first >= op->lane[0].first;
}

static int first_rank(struct kl_connector *const *by_edge, uint32_t set)
{
    return set ? by_edge[first_edge(set)]->peer : -1;
}

static void report_step(const struct kl_pipeline *op, const struct kl_pipeline_move *m, uint64_t begun)
{
    const struct kl_step step = {.channel = op->share->channel,
                                 .from = first_rank(op->edges->recv, m->hop.recv),
                                 .to = first_rank(op->edges->send, m->hop.send),
                                 .bytes = m->bytes,
                                 .begun = begun};

    op->share->steps->step(op->share->steps->ctx, &step);
}

/* True: the lane has ended. *rc is set on failure. */
static bool progress_lane(struct kl_pipeline *op, int number, bool *moved, ncclResult_t *rc)
{
    struct kl_lane *lane = &op->lane[number];

    if (!lane->hops) return true;
    while (lane->first < op->share->end) {
        if (is_ahead(op, number)) return false;
        for (; lane->hop < lane->hops; lane->hop++) {
            if (!lane->prepared) prepare(op, number);
            if (!lane->prepared) continue;
            uint64_t begun = op->share->steps ? kl_ticks() : 0;
            if (!try_move(op, &lane->move, rc)) return false;
            if (op->share->steps) report_step(op, &lane->move, begun);
            lane->prepared = false;
            *moved = true;
        }
        lane->first += lane->chunk * chunks_per_loop(op);
        if (lane->first < op->share->end) begin_loop(op, lane);
    }
    return true;
}

enum kl_progress kl_pipeline_progress(void *memory, ncclResult_t *rc)
{
    struct kl_pipeline *op = memory;
    bool here = op->edges->moved_here, moved = false, all = true;

    /* Each poll of a network is a system call: send first, and poll again only if more is expected. */
    if (here && op->begun) moved = kl_edges_progress_receive(op->edges, rc);
    op->begun = true;
    for (int i = 0; i < op->schedule->lanes && !*rc; i++) all &= progress_lane(op, i, &moved, rc);
    if (here && !*rc) moved |= kl_edges_progress_send(op->edges, rc);
    if (*rc || (all && kl_edges_drained(op->edges))) return KL_DONE;
    return moved ? KL_MOVED : KL_STALLED;
}

/* ---- sleeping ---- */

static bool sleep_on_lane(const struct kl_pipeline *op, const struct kl_lane *lane)
{
    const struct kl_pipeline_move *m = &lane->move;
    bool all = true;

    if (!lane->prepared) return true;
    for (uint32_t set = m->hop.recv; set; set &= set - 1) {
        struct kl_connector *c = op->edges->recv[first_edge(set)];
        if (!is_there(m, c)) all &= kl_edges_sleep_on(c);
    }
    for (uint32_t set = m->hop.send; set; set &= set - 1) {
        struct kl_connector *c = op->edges->send[first_edge(set)];
        if (!kl_fifo_can_send(&c->tx)) all &= kl_edges_sleep_on(c);
    }
    return all;
}

/* Data that have not left yet have to leave, whatever the lanes wait for. */
bool kl_pipeline_sleep_on(void *memory)
{
    struct kl_pipeline *op = memory;
    bool all = op->edges->moved_here;

    if (!all) return false;
    for (int i = 0; i < op->schedule->lanes; i++) all &= sleep_on_lane(op, &op->lane[i]);
    for (int i = 0; i < op->edges->nsend; i++) {
        struct kl_connector *c = op->edges->send[i];
        if (c && !kl_fifo_drained(&c->tx)) all &= kl_edges_sleep_on(c);
    }
    return all;
}

/* ---- diagnosis ---- */

static int waits_for_data(const struct kl_pipeline *op, const struct kl_pipeline_move *m, bool gone)
{
    for (uint32_t set = m->hop.recv; set; set &= set - 1) {
        struct kl_connector *c = op->edges->recv[first_edge(set)];
        if (gone ? kl_fifo_sender_gone(&c->rx) : !is_there(m, c) || kl_fifo_revoked(&c->rx)) return c->peer;
    }
    return -1;
}

int kl_pipeline_blocked_on(void *memory, bool gone)
{
    struct kl_pipeline *op = memory;
    int peer = -1;

    for (int i = 0; i < op->schedule->lanes && peer < 0; i++) {
        const struct kl_lane *lane = &op->lane[i];
        struct kl_pipeline_move m = lane->prepared ? lane->move : (struct kl_pipeline_move){.count = 0};
        peer = waits_for_data(op, &m, gone);
        if (peer < 0) peer = kl_edges_waits_for_room(op->edges, m.hop.send, gone);
    }
    return peer;
}
