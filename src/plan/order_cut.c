/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/order_cut.h"

#include "base/error.h"
#include "device/host/redop.h"
#include "plan/order_chunk.h"

#include <stdlib.h>

enum { GRAIN = 16, LEAST = 16384, LEAST_NEW = 32768 }; /* bytes */

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t kl_order_traffic(int func, int nranks)
{
    if (func == KL_FUNC_ALL_REDUCE) return 2;
    return func == KL_FUNC_ALL_GATHER || func == KL_FUNC_REDUCE_SCATTER ? nranks : 1;
}

static bool is_nvls(int algo)
{
    return algo == KL_ALGO_NVLS || algo == KL_ALGO_NVLS_TREE;
}

bool kl_order_whole(int algo, int nnodes)
{
    return algo == KL_ALGO_COLLNET_DIRECT || algo == KL_ALGO_COLLNET_CHAIN || (algo == KL_ALGO_NVLS && nnodes > 1);
}

static int class_of(const struct kl_order_rules *r, const struct kl_order_op *o)
{
    return 2 * kl_order_whole(o->choice.algo, r->nnodes) + is_nvls(o->choice.algo);
}

/* ---- sorted, and chosen for ---- */

/* A code of 2 bits behind the leading one. */
static int bin_of(int64_t bytes)
{
    uint32_t x = (uint32_t)(least(bytes, (int64_t)1 << 30) >> 10);
    int e = 31 - __builtin_clz(x | 1), shift = e > 2 ? e - 2 : 0;

    return (e >= 2 ? e - 1 : 0) << 2 | (int)(x >> shift & 3);
}

/* Bytes that cross the channels. */
static int64_t traffic_of(const struct kl_order_rules *r, const struct kl_order_group *g, const struct kl_order_op *o)
{
    return o->count * (int64_t)kl_type_bytes(g->type) * kl_order_traffic(g->func, r->nranks);
}

static void sort(const struct kl_order_rules *r, struct kl_order_group *g)
{
    for (int i = 1; i < g->nops; i++) {
        struct kl_order_op op = g->ops[i];
        int at = i;

        for (; at && bin_of(traffic_of(r, g, &g->ops[at - 1])) > bin_of(traffic_of(r, g, &op)); at--)
            g->ops[at] = g->ops[at - 1];
        g->ops[at] = op;
    }
}

static ncclResult_t choose(const struct kl_order_rules *r, const struct kl_tuning *t, struct kl_order_group *g)
{
    for (int i = 0, end; i < g->nops; i = end) {
        int64_t count = 0, limit = 4 * traffic_of(r, g, &g->ops[i]), size = (int64_t)kl_type_bytes(g->type);
        bool blocks = g->func == KL_FUNC_ALL_GATHER || g->func == KL_FUNC_REDUCE_SCATTER;
        struct kl_tuning_choice choice;

        for (end = i; end < g->nops && (end == i || traffic_of(r, g, &g->ops[end]) < limit); end++)
            count += g->ops[end].count;
        struct kl_tuning_op op = kl_tuning_op_of(g->func, count * size * (blocks ? r->nranks : 1), g->type, g->op);

        op.npipe = (int)ceil_div(g->nops, r->nchannels);
        KL_TRY(kl_tuning_choose(t, &op, &choice, NULL));
        for (int k = i; k < end; k++) g->ops[k].choice = choice;
    }
    return ncclSuccess;
}

/* Classes one after the other, each in the order of before. */
static void by_class(const struct kl_order_rules *r, struct kl_order_group *g)
{
    for (int i = 1; i < g->nops; i++) {
        struct kl_order_op op = g->ops[i];
        int at = i;

        for (; at && class_of(r, &g->ops[at - 1]) > class_of(r, &op); at--) g->ops[at] = g->ops[at - 1];
        g->ops[at] = op;
    }
}

ncclResult_t kl_order_group_choose(const struct kl_order_rules *r, const struct kl_tuning *t,
                                   const struct kl_tuning_choice *forced, const int64_t *counts, int n,
                                   struct kl_order_group *g)
{
    ncclResult_t rc = ncclSuccess;

    g->ops = NULL;
    g->nops = 0;
    if (n < 1 || n > KL_ORDER_GROUP)
        return KL_FAIL(ncclInvalidArgument, "a group of %d operations: expected 1 to %d", n, KL_ORDER_GROUP);
    g->ops = calloc((size_t)n, sizeof *g->ops);
    if (!g->ops) return KL_NOMEM("operations");
    g->nops = n;
    for (int i = 0; i < n; i++) {
        g->ops[i].count = counts[i];
        g->ops[i].asked = i;
        if (forced) g->ops[i].choice = *forced;
    }
    sort(r, g);
    if (!forced) rc = choose(r, t, g);
    if (!rc) by_class(r, g);
    return rc;
}

void kl_order_group_fini(struct kl_order_group *g)
{
    free(g->ops);
    g->ops = NULL;
}

/* ---- cut ---- */

/* State of the distribution within a class. */
struct dealer {
    int64_t least, per_channel, used; /* bytes of traffic */
    int cursor, limit;                /* channels */
};

/* How many cells the first, each middle, and the last channel get. */
struct deal {
    int64_t cell, elements; /* bytes and elements of a cell */
    int64_t factor;         /* of traffic */
    int64_t cells, lo, mid, hi;
    int64_t mids;
};

/* Every channel has work from the dealer's least traffic on. */
static void deal(const struct kl_order_rules *r, const struct kl_order_group *g, const struct kl_order_op *o,
                 struct dealer *d, struct deal *x)
{
    int64_t size = (int64_t)kl_type_bytes(g->type);

    x->factor = kl_order_traffic(g->func, r->nranks) * (o->choice.proto == KL_PROTO_LL ? 4 : 1);
    x->cell = ceil_div(ceil_div(d->least, x->factor), GRAIN) * GRAIN;
    x->elements = x->cell / size;
    x->cells = ceil_div(o->count * size, x->cell);
    x->mid = least(x->cells, ceil_div(d->per_channel, x->cell * x->factor));
    x->lo = d->cursor + 1 == d->limit
                ? x->cells
                : least(x->cells, ceil_div(most(d->per_channel - d->used, 0), x->cell * x->factor));
    x->mids = (x->cells - x->lo) / x->mid;
    x->hi = (x->cells - x->lo) % x->mid;
    if (d->cursor + (x->lo != 0) + x->mids + (x->hi != 0) > d->limit) {
        x->mids = d->limit - d->cursor - 2;
        x->mid = (x->cells - x->lo) / (x->mids + 1);
        x->hi = x->mid + (x->cells - x->lo) % (x->mids + 1);
    }
    if (!x->hi && x->mids) x->hi = x->mid, x->mids--;
    if (x->lo) return;
    d->cursor++, d->used = 0; /* the channel before is full */
    if (!x->mids)
        x->lo = x->hi, x->hi = 0;
    else
        x->lo = x->mid, x->mids--;
}

static void add_part(struct kl_order_op *o, int64_t count)
{
    struct kl_order_part *last = o->nparts ? &o->part[o->nparts - 1] : NULL;

    if (count <= 0 || o->nparts == KL_MAX_CHANNELS) return;
    o->part[o->nparts] = (struct kl_order_part){
        .channel = o->first_channel + o->nparts, .first = last ? last->first + last->count : 0, .count = count};
    o->nparts++;
}

/* The next operation goes on where this one ended. */
static void advance(struct dealer *d, const struct deal *x, int nparts, int64_t size)
{
    if (x->hi) {
        d->cursor += nparts - 1;
        d->used = x->hi * x->elements * size * x->factor;
    } else if (x->mids) {
        d->cursor += nparts;
        d->used = 0;
    } else {
        d->used += x->lo * x->elements * size * x->factor;
    }
    if (d->used >= d->per_channel && d->cursor + 1 != d->limit) d->cursor++, d->used = 0;
}

static void cut_parts(const struct kl_order_rules *r, const struct kl_order_group *g, struct kl_order_op *o,
                      struct dealer *d)
{
    int64_t size = (int64_t)kl_type_bytes(g->type);
    struct deal x;

    deal(r, g, o, d, &x);
    int64_t excess = x.cells * x.elements - o->count;

    o->first_channel = d->cursor;
    o->nparts = 0;
    add_part(o, x.lo * x.elements - (x.hi ? 0 : excess));
    for (int64_t i = 0; i < x.mids; i++) add_part(o, x.mid * x.elements);
    add_part(o, x.hi * x.elements - (x.hi ? excess : 0));
    o->last_channel = d->cursor + o->nparts - 1;
    for (int i = 0; i < o->nparts; i++)
        o->part[i].chunk = kl_order_chunk(r, g->func, g->type, &o->choice, 1, o->part[i].count);
    advance(d, &x, o->nparts, size);
}

static void cut_whole(const struct kl_order_rules *r, const struct kl_order_group *g, struct kl_order_op *o)
{
    o->first_channel = o->nparts = 0;
    o->last_channel = o->choice.nchannels - 1;
    o->chunk = kl_order_chunk(r, g->func, g->type, &o->choice, o->choice.nchannels, o->count);
}

static int limit_of(const struct kl_order_rules *r, int class)
{
    if (!(class & 1)) return r->nchannels;
    bool fewer = class == 3 && kl_nccl_has(r->nccl, KL_CHANGE_NVLS_SIZE) && r->nchannels < r->nvls_channels;

    return fewer ? r->nchannels : r->nvls_channels;
}

/* Begin a class: operations [from, end). */
static struct dealer dealer_of(const struct kl_order_rules *r, const struct kl_order_group *g, int from, int end)
{
    const bool new = kl_nccl_has(r->nccl, KL_CHANGE_CUT_32K);
    struct dealer d = {.least = new ? LEAST_NEW : LEAST, .limit = limit_of(r, class_of(r, &g->ops[from]))};
    int64_t traffic = 0, channels = 0;

    for (int i = from; i < end; i++) {
        int64_t ll = g->ops[i].choice.proto == KL_PROTO_LL ? 4 : 1;

        traffic += most(d.least, traffic_of(r, g, &g->ops[i]) * ll);
        channels += g->ops[i].choice.nchannels;
    }
    channels = most(least(channels, d.limit), 1);
    d.per_channel = new ? ceil_div(traffic / channels, GRAIN) * GRAIN : most(LEAST, traffic / channels);
    return d;
}

void kl_order_group_cut(const struct kl_order_rules *r, struct kl_order_group *g)
{
    for (int i = 0, end; i < g->nops; i = end) {
        int class = class_of(r, &g->ops[i]);

        for (end = i + 1; end < g->nops && class_of(r, &g->ops[end]) == class; end++) continue;
        struct dealer d = dealer_of(r, g, i, end);

        for (int k = i; k < end; k++) {
            g->ops[k].chunk = 0;
            if (kl_order_whole(g->ops[k].choice.algo, r->nnodes))
                cut_whole(r, g, &g->ops[k]);
            else
                cut_parts(r, g, &g->ops[k], &d);
        }
    }
}
