/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/diff_make.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum kl_diff_stage kl_row_stage(enum kl_diff_what what)
{
    static const enum kl_diff_stage stages[KL_ROW_WHATS] = {
        [KL_ROW_TRANSPORT] = KL_STAGE_RULES, [KL_ROW_RELAY] = KL_STAGE_RULES,       [KL_ROW_GDR] = KL_STAGE_RULES,
        [KL_ROW_GPU_GPU] = KL_STAGE_PATHS,   [KL_ROW_GPU_NET] = KL_STAGE_PATHS,     [KL_ROW_NET_GPU] = KL_STAGE_PATHS,
        [KL_ROW_GRAPH] = KL_STAGE_GRAPHS,    [KL_ROW_ORDER] = KL_STAGE_GRAPHS,      [KL_ROW_NIC] = KL_STAGE_NICS,
        [KL_ROW_SEND] = KL_STAGE_NICS,       [KL_ROW_CHANNELS] = KL_STAGE_CHANNELS, [KL_ROW_TUNING] = KL_STAGE_TUNING,
    };

    return stages[what];
}

/* ---- orders ---- */

int kl_diff_order_length(const struct kl_diff_order *o)
{
    return o->graph->pattern == KL_PATTERN_NVLS ? 1 : o->graph->ngpus;
}

int kl_diff_order_rank(const struct kl_diff_order *o, int i, bool *of_b)
{
    int rank = o->graph->intra[o->channel * o->graph->ngpus + i], in_a = o->to_a ? o->to_a[rank] : rank;

    *of_b = in_a < 0;
    return *of_b ? rank : in_a;
}

int kl_diff_order_net(const struct kl_diff_order *o, int end)
{
    return (int)kl_id_local((uint64_t)o->graph->inter[2 * o->channel + end]);
}

static bool same_order(const struct kl_diff_order *a, const struct kl_diff_order *b)
{
    int n = kl_diff_order_length(a);
    bool of_b, too;

    if (n != kl_diff_order_length(b) || a->nets != b->nets) return false;
    for (int end = 0; end < 2 && a->nets; end++)
        if (kl_diff_order_net(a, end) != kl_diff_order_net(b, end)) return false;
    for (int i = 0; i < n; i++)
        if (kl_diff_order_rank(a, i, &of_b) != kl_diff_order_rank(b, i, &too) || of_b != too) return false;
    return true;
}

/* ---- values ---- */

static bool same_relay(const struct kl_diff_relay *a, const struct kl_diff_relay *b)
{
    return a->used == b->used && (!a->used || (a->rank == b->rank && a->of_b == b->of_b));
}

static bool same_path(const union kl_diff_value *a, const union kl_diff_value *b)
{
    return a->path.type == b->path.type && a->path.bw == b->path.bw;
}

static bool same_gdr(const union kl_diff_value *a, const union kl_diff_value *b)
{
    return a->gdr.send == b->gdr.send && a->gdr.receive == b->gdr.receive && a->gdr.pci == b->gdr.pci;
}

static bool same_choice(const union kl_diff_value *a, const union kl_diff_value *b)
{
    if (a->choice.end != b->choice.end || a->choice.end != KL_CHOICE_MADE) return a->choice.end == b->choice.end;
    return a->choice.algo == b->choice.algo && a->choice.proto == b->choice.proto &&
           a->choice.nchannels == b->choice.nchannels && a->choice.time == b->choice.time &&
           a->choice.nthreads == b->choice.nthreads;
}

static bool same_value(enum kl_diff_what what, const union kl_diff_value *a, const union kl_diff_value *b)
{
    switch (what) {
    case KL_ROW_TRANSPORT:
        return a->transport.by == b->transport.by && same_relay(&a->transport.via, &b->transport.via);
    case KL_ROW_RELAY:
        return same_relay(&a->relay, &b->relay);
    case KL_ROW_GDR:
        return same_gdr(a, b);
    case KL_ROW_GRAPH:
        return a->number.none == b->number.none && (a->number.none || a->number.value == b->number.value);
    case KL_ROW_ORDER:
        return same_order(&a->order, &b->order);
    case KL_ROW_NIC:
        return a->nics.n == b->nics.n && !memcmp(a->nics.dev, b->nics.dev, (size_t)a->nics.n * sizeof a->nics.dev[0]);
    case KL_ROW_SEND:
        return a->send.net == b->send.net && (a->send.net < 0 || same_relay(&a->send.proxy, &b->send.proxy));
    case KL_ROW_CHANNELS:
        return a->count == b->count;
    case KL_ROW_TUNING:
        return same_choice(a, b);
    default:
        return same_path(a, b);
    }
}

/* The same but for the names in it. */
static bool alike(enum kl_diff_what what, const union kl_diff_value *a, const union kl_diff_value *b)
{
    switch (what) {
    case KL_ROW_TRANSPORT:
        return a->transport.by == b->transport.by && a->transport.via.used == b->transport.via.used;
    case KL_ROW_RELAY:
        return a->relay.used == b->relay.used;
    case KL_ROW_NIC:
        return a->nics.n == b->nics.n;
    case KL_ROW_SEND:
        return (a->send.net < 0) == (b->send.net < 0) && (a->send.net < 0 || a->send.proxy.used == b->send.proxy.used);
    default:
        return same_value(what, a, b);
    }
}

bool kl_rows_alike(const struct kl_diff_row *r, const struct kl_diff_row *s)
{
    return r->what == s->what && alike(r->what, &r->a, &s->a) && alike(r->what, &r->b, &s->b);
}

/* ---- the list ---- */

ncclResult_t kl_rows_compare(struct kl_diff_rows *rows, const struct kl_diff_row *row)
{
    rows->compared[row->what]++;
    if (same_value(row->what, &row->a, &row->b)) return ncclSuccess;
    if (++rows->changed[row->what] > KL_ROWS_LISTED) return ncclSuccess;
    if (rows->nrows == rows->max_rows) {
        int max = rows->max_rows ? 2 * rows->max_rows : 64;
        struct kl_diff_row *grown = realloc(rows->row, (size_t)max * sizeof *grown);

        if (!grown) return KL_NOMEM("differences");
        rows->row = grown;
        rows->max_rows = max;
    }
    rows->row[rows->nrows++] = *row;
    return ncclSuccess;
}
