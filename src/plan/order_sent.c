/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/order_ranges.h"

#include "base/error.h"
#include "device/host/redop.h"
#include "graph/tree.h"

#include <stdlib.h>

/* Elements and bytes of one chunk, as often as it is sent. */
struct amount {
    int64_t elements, wire, messages;
};

struct sender {
    const struct kl_order_rules *rules;
    const struct kl_order_wires *wires;
    const struct kl_order_group *group;
    const struct kl_order_op *op;
    int root, channel;
    int64_t size;              /* bytes of an element */
    struct amount all, *chunk; /* of this part: all chunks, and all chunks of one number */
    struct kl_order_sents *to;
};

/* Flags take as much of a line as data in LL, and 8 of 128 bytes in LL128, which sends whole blocks. */
static int64_t wire_of(const struct sender *s, int64_t elements)
{
    if (s->op->choice.proto == KL_PROTO_LL) return (elements + 8 / s->size - 1) / (8 / s->size) * 16;
    if (s->op->choice.proto == KL_PROTO_LL128) return (elements + 1920 / s->size - 1) / (1920 / s->size) * 2048;
    return elements * s->size;
}

static void add_amount(struct amount *to, const struct amount *one, int64_t times)
{
    to->elements += times * one->elements;
    to->wire += times * one->wire;
    to->messages += times * one->messages;
}

static ncclResult_t count_chunk(void *ctx, int k, int64_t first, int64_t count)
{
    struct sender *s = ctx;
    const struct amount one = {count, wire_of(s, count), 1};

    (void)first;
    add_amount(&s->all, &one, 1);
    add_amount(&s->chunk[k], &one, 1);
    return ncclSuccess;
}

static ncclResult_t add_sent(struct sender *s, int from, int to, const struct amount *x)
{
    struct kl_order_sents *list = s->to;

    if (list->n == list->room) {
        int room = list->room ? 2 * list->room : 64;
        struct kl_order_sent *sent = realloc(list->sent, (size_t)room * sizeof *sent);

        if (!sent) return KL_NOMEM("messages");
        list->sent = sent;
        list->room = room;
    }
    list->sent[list->n++] = (struct kl_order_sent){from, to, s->channel, x->elements, x->wire, x->messages};
    return ncclSuccess;
}

/* ---- algorithms: a part of a channel ---- */

/* To the next rank: each chunk twice but for the own and the next, which it sends once. */
static struct amount around_ring(const struct sender *s, int place)
{
    struct amount x = {0, 0, 0};

    add_amount(&x, &s->all, 2);
    add_amount(&x, &s->chunk[place], -1);
    add_amount(&x, &s->chunk[(place + 1) % s->rules->nranks], -1);
    return x;
}

static struct amount times(const struct amount *one, int64_t n)
{
    struct amount x = {0, 0, 0};

    add_amount(&x, one, n);
    return x;
}

/* Whether a rank sends to the next one, and how much. */
static bool ring_sends(const struct sender *s, int rank, int next, struct amount *x)
{
    int place = s->wires->place[(size_t)s->channel * (size_t)s->wires->nranks + (size_t)rank];

    switch (s->group->func) {
    case KL_FUNC_ALL_REDUCE:
        *x = around_ring(s, place);
        return true;
    case KL_FUNC_REDUCE:
        *x = s->all;
        return rank != s->root;
    case KL_FUNC_BROADCAST:
        *x = s->all;
        return next != s->root;
    default:
        *x = times(&s->all, s->rules->nranks - 1);
        return true;
    }
}

static ncclResult_t ring(struct sender *s)
{
    for (int r = 0; r < s->rules->nranks; r++) {
        int next = kl_order_ring_next(s->wires, s->channel, r, 1);
        struct amount x;

        if (ring_sends(s, r, next, &x)) KL_TRY(add_sent(s, r, next, &x));
    }
    return ncclSuccess;
}

static ncclResult_t tree(struct sender *s)
{
    const struct kl_tree_neighbours *t = kl_order_tree(s->wires, s->channel);

    for (int r = 0; r < s->rules->nranks; r++) {
        if (t[r].up >= 0) KL_TRY(add_sent(s, r, t[r].up, &s->all));
        for (int d = 0; d < 3; d++)
            if (t[r].down[d] >= 0) KL_TRY(add_sent(s, r, t[r].down[d], &s->all));
    }
    return ncclSuccess;
}

/* Up in reduce-scatter, down in all-gather. */
static ncclResult_t pat(struct sender *s)
{
    int n = s->rules->nranks, sign = s->group->func == KL_FUNC_ALL_GATHER ? -1 : 1;

    for (int r = 0; r < n; r++)
        for (int step = 1; step < n; step *= 2) {
            struct amount x = times(&s->all, (n - 1 - step) / (2 * step) + 1);

            KL_TRY(add_sent(s, r, (r + sign * step + n) % n, &x));
        }
    return ncclSuccess;
}

/* Between heads of a number, along the trees over nodes. */
static ncclResult_t switch_tree(struct sender *s)
{
    const struct kl_order_wires *w = s->wires;

    for (int node = 0; node < w->nnodes; node++) {
        int up = kl_double_tree(w->nnodes, node, s->channel % 2).up;

        for (int h = 0; up >= 0 && h < w->nheads; h++) {
            int a = w->head[node * w->nheads + h], b = w->head[up * w->nheads + h];

            KL_TRY(add_sent(s, a, b, &s->chunk[h]));
            KL_TRY(add_sent(s, b, a, &s->chunk[h]));
        }
    }
    return ncclSuccess;
}

static ncclResult_t send_part(struct sender *s, const struct kl_order_part *p, int nchunks)
{
    s->channel = p->channel;
    s->all = (struct amount){0, 0, 0};
    for (int k = 0; k < nchunks; k++) s->chunk[k] = s->all;
    KL_TRY(kl_order_chunks(s->rules, s->group, s->op, p, count_chunk, s));
    switch (s->op->choice.algo) {
    case KL_ALGO_RING:
        return ring(s);
    case KL_ALGO_TREE:
        return tree(s);
    case KL_ALGO_PAT:
        return pat(s);
    case KL_ALGO_NVLS_TREE:
        return switch_tree(s);
    default:
        return ncclSuccess;
    }
}

ncclResult_t kl_order_sent_of(const struct kl_order_rules *r, const struct kl_order_wires *w,
                              const struct kl_order_group *g, const struct kl_order_op *o, int root,
                              struct kl_order_sents *sents)
{
    int nchunks = r->nranks > r->nvls_heads ? r->nranks : r->nvls_heads;
    struct sender s = {.rules = r, .wires = w, .group = g, .op = o, .root = root, .to = sents};
    ncclResult_t rc = ncclSuccess;

    *sents = (struct kl_order_sents){.n = 0};
    s.size = (int64_t)kl_type_bytes(g->type);
    s.chunk = calloc((size_t)nchunks, sizeof *s.chunk);
    if (!s.chunk) return KL_NOMEM("chunks");
    for (int i = 0; !rc && i < o->nparts; i++) rc = send_part(&s, &o->part[i], nchunks);
    free(s.chunk);
    return rc;
}
