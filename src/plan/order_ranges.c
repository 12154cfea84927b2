/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/order_ranges.h"

#include "base/error.h"
#include "device/host/redop.h"

#include <stdlib.h>

/* ---- chunks ---- */

/* Chunks of a loop that lie behind one another: as many as ranks of a ring's all-reduce, or heads. */
static int chunks_of(const struct kl_order_rules *r, const struct kl_order_group *g, int algo)
{
    if (algo == KL_ALGO_RING && g->func == KL_FUNC_ALL_REDUCE) return r->nranks;
    return algo == KL_ALGO_NVLS_TREE || (algo == KL_ALGO_NVLS && g->func == KL_FUNC_ALL_REDUCE) ? r->nvls_heads : 1;
}

/* Bytes that chunks of the last loop are rounded up to. */
static int64_t grain_of(int algo)
{
    return algo == KL_ALGO_NVLS ? 16384 : 16;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static ncclResult_t visit_loop(int64_t first, int64_t count, int64_t chunk, int n, kl_order_visit *visit, void *ctx)
{
    for (int k = 0; k < n; k++) {
        int64_t at = k * chunk < count ? k * chunk : count, end = at + chunk < count ? at + chunk : count;

        KL_TRY(visit(ctx, k, first + at, end - at));
    }
    return ncclSuccess;
}

ncclResult_t kl_order_chunks(const struct kl_order_rules *r, const struct kl_order_group *g,
                             const struct kl_order_op *o, const struct kl_order_part *p, kl_order_visit *visit,
                             void *ctx)
{
    int64_t size = (int64_t)kl_type_bytes(g->type), chunk = p->chunk / size, grain = grain_of(o->choice.algo) / size;
    int n = chunks_of(r, g, o->choice.algo);

    for (int64_t at = 0; at < p->count; at += n * chunk) {
        int64_t left = p->count - at, most = left < n * chunk ? left : n * chunk, each = chunk;

        if (n > 1 && left < n * chunk) each = ceil_div(ceil_div(left, n), grain) * grain;
        KL_TRY(visit_loop(p->first + at, most, each, n, visit, ctx));
    }
    return ncclSuccess;
}

/* ---- ranges ---- */

struct maker {
    const struct kl_order_rules *rules;
    const struct kl_order_wires *wires;
    struct kl_order_sums *sums;
    struct kl_order_ranges *to;
    int algo, func, channel, block, root;
    int *chain; /* of a ring's all-reduce: sums of this channel by chunk, -1 where not made yet */
};

/* Extends the range before if it has the same sum and head. */
static ncclResult_t add_range(struct maker *m, int64_t first, int64_t count, int sum, int head, int end)
{
    struct kl_order_ranges *to = m->to;
    struct kl_order_range *last = to->n ? &to->range[to->n - 1] : NULL;

    if (sum < 0) return KL_NOMEM("sums");
    if (!count) return ncclSuccess;
    if (last && last->channel == m->channel && last->block == m->block && last->sum == sum && last->head == head &&
        last->first + last->count == first) {
        last->count += count;
        if (last->end != end) last->end = -1;
        return ncclSuccess;
    }
    if (to->n == to->room) {
        int room = to->room ? 2 * to->room : 64;
        struct kl_order_range *range = realloc(to->range, (size_t)room * sizeof *range);

        if (!range) return KL_NOMEM("ranges");
        to->range = range;
        to->room = room;
    }
    to->range[to->n++] = (struct kl_order_range){first, count, m->channel, m->block, sum, head, end};
    return ncclSuccess;
}

/* Chunk k of a ring's all-reduce begins behind the rank with place k: `end`, which completes it. */
static int chunk_sum(struct maker *m, int k, int end)
{
    if (m->chain[k] < 0) m->chain[k] = kl_order_sum_at(m->rules, m->wires, m->sums, m->algo, m->channel, end);
    return m->chain[k];
}

static ncclResult_t visit_chunk(void *ctx, int k, int64_t first, int64_t count)
{
    struct maker *m = ctx;

    if (!count) return ncclSuccess;
    if (m->algo == KL_ALGO_NVLS) return add_range(m, first, count, kl_order_leaf(m->sums, KL_LEAF_SWITCH, 0), k, -1);
    int end = kl_order_ring(m->wires, m->channel)[k];

    return add_range(m, first, count, chunk_sum(m, k, end), -1, end);
}

int kl_order_sum_at(const struct kl_order_rules *r, const struct kl_order_wires *w, struct kl_order_sums *sums,
                    int algo, int channel, int end)
{
    switch (algo) {
    case KL_ALGO_TREE:
        return kl_order_tree_sum(sums, w, channel);
    case KL_ALGO_PAT:
        return kl_order_pat(sums, r->nranks, end);
    case KL_ALGO_NVLS_TREE:
        return kl_order_switch_tree(sums, r->nnodes, channel % 2);
    case KL_ALGO_NVLS:
        return kl_order_leaf(sums, KL_LEAF_SWITCH, 0);
    case KL_ALGO_RING:
        return kl_order_chain(sums, w, channel, kl_order_ring_next(w, channel, end, 1));
    default:
        return kl_order_leaf(sums, KL_LEAF_NETWORK, 0);
    }
}

/* The rank that completes the sum of a whole part; -1: no rank does. */
static int part_end(const struct maker *m)
{
    if (m->algo == KL_ALGO_TREE) return kl_order_tree_root(m->wires, m->channel);
    if (m->algo != KL_ALGO_RING && m->algo != KL_ALGO_PAT) return -1;
    return m->func == KL_FUNC_REDUCE ? m->root : m->block;
}

static ncclResult_t add_part(struct maker *m, int64_t first, int64_t count)
{
    int end = part_end(m);

    return add_range(m, first, count, kl_order_sum_at(m->rules, m->wires, m->sums, m->algo, m->channel, end), -1, end);
}

static ncclResult_t part_ranges(struct maker *m, const struct kl_order_group *g, const struct kl_order_op *o,
                                const struct kl_order_part *p)
{
    bool chunks = m->func == KL_FUNC_ALL_REDUCE && (m->algo == KL_ALGO_RING || m->algo == KL_ALGO_NVLS);

    m->channel = p->channel;
    for (int k = 0; m->chain && k < m->rules->nranks; k++) m->chain[k] = -1;
    if (chunks) return kl_order_chunks(m->rules, g, o, p, visit_chunk, m);
    return add_part(m, p->first, p->count);
}

ncclResult_t kl_order_ranges_of(const struct kl_order_rules *r, const struct kl_order_wires *w,
                                const struct kl_order_group *g, const struct kl_order_op *o, int root,
                                struct kl_order_sums *sums, struct kl_order_ranges *ranges)
{
    struct maker m = {.rules = r, .wires = w, .sums = sums, .to = ranges};
    ncclResult_t rc = ncclSuccess;

    *ranges = (struct kl_order_ranges){.n = 0};
    m.algo = o->choice.algo, m.func = g->func, m.root = root;
    m.chain = malloc((size_t)r->nranks * sizeof *m.chain);
    if (!m.chain) return KL_NOMEM("sums");
    int blocks = g->func == KL_FUNC_REDUCE_SCATTER ? r->nranks : 1;

    for (m.block = 0; !rc && m.block < blocks; m.block++) {
        if (kl_order_whole(m.algo, r->nnodes)) rc = add_part(&m, 0, o->count);
        for (int i = 0; !rc && i < o->nparts; i++) rc = part_ranges(&m, g, o, &o->part[i]);
    }
    free(m.chain);
    return rc;
}
