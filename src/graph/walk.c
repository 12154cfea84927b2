/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/walk.h"

#include "base/error.h"
#include "graph/bound.h"
#include "topo/paths.h"

#include <stdlib.h>
#include <string.h>

/* How the next GPU of a channel is chosen. */
enum mode {
    ANY_ORDER, /* all that are left, the most promising first */
    PCI_ORDER, /* the next index */
    REPLAY     /* as in the channel before */
};

enum stage_kind {
    STAGE_GPU,   /* to the next GPU */
    STAGE_NET,   /* back to the network; the GPU stays */
    STAGE_FIRST, /* back to the first GPU, which completes the channel */
    STAGE_HEADS, /* everybody to the head and back, which completes the channel */
    STAGE_DONE   /* the channel is complete */
};

struct kl_stage {
    uint8_t kind;
    bool last_exit;  /* GPU: the one chosen now returns to the network at once */
    bool nets_count; /* GPU: the way from the entry NET counts among candidates */
    bool same_exit;  /* NET: must be the one that the GPU before returned to */
};

/* Where a channel stands at one stage. */
struct frame {
    int gpu;  /* at which the stage begins */
    int next; /* candidate to try next */
    int n;
    const int32_t *list;          /* candidates: GPUs or NETs */
    const struct kl_route *taken; /* by the candidate under way */
    int32_t own[2];               /* room for a short list */
};

/* What one channel needs while it is laid. */
struct kl_lane {
    int32_t *order; /* in work */
    int64_t *nets;
    int step; /* GPUs in `order` so far, less one */
    struct frame *frame;
    uint64_t *used; /* bits of the GPUs in it */
    int32_t *pool;  /* room for lists of candidates: one per GPU in `order` */
};

static void start_channel(struct kl_walk *w);

/* ---- bandwidth ---- */

/* Take a column's need from a link, negative needs give back; false if the link refuses. */
static bool take_link(struct kl_walk *w, int link, int column)
{
    int to = kl_level_next(&w->routes->levels, w->routes->level[link], column);

    if (to < 0) return false;
    w->routes->level[link] = to;
    return true;
}

/* Give back what the first `n` hops took, first hop first: that order is part of results, because sums are rounded. */
static void give_hops(struct kl_walk *w, const struct kl_route *p, int n, enum kl_charge charge)
{
    for (uint32_t k = p->first; k < p->first + (uint32_t)n; k++) {
        const struct kl_back *b = &w->routes->back[k];

        take_link(w, w->routes->link[k], charge + KL_GIVE + w->routes->share[k]);
        if (b->link >= 0) take_link(w, b->link, charge + KL_GIVE + b->share);
    }
}

/* Can a hop give what it has to, in both directions? Then take it. */
static bool take_hop(struct kl_walk *w, uint32_t k, enum kl_charge charge)
{
    const struct kl_back *b = &w->routes->back[k];
    struct kl_levels *v = &w->routes->levels;

    if (b->link >= 0 && kl_level_next(v, w->routes->level[b->link], charge + b->share) < 0) return false;
    if (!take_link(w, w->routes->link[k], charge + w->routes->share[k])) return false;
    if (b->link >= 0) take_link(w, b->link, charge + b->share);
    return true;
}

static bool take_hops(struct kl_walk *w, const struct kl_route *p, enum kl_charge charge)
{
    for (int k = 0; k < p->hops; k++)
        if (!take_hop(w, p->first + (uint32_t)k, charge)) {
            w->refusals[w->routes->link[p->first + (uint32_t)k]]++;
            give_hops(w, p, k, charge);
            return false;
        }
    return true;
}

enum { PLAIN_HOPS = 12 }; /* longer routes take the general way */

/*
 * A plain route was looked up until hop `n` did not give a level. If that hop refuses, what the hops before it took is
 * given back, which changes nothing unless rounding does.
 */
static bool take_refused(struct kl_walk *w, const struct kl_route *p, enum kl_charge charge, const int *to, int n)
{
    const int32_t *link = w->routes->link + p->first, *next = w->routes->levels.next + charge + KL_GIVE;
    const uint8_t *share = w->routes->share + p->first;
    bool exact = to[n] == KL_LEVEL_REFUSED;

    for (int k = 0; k < n; k++) exact &= next[to[k] + share[k]] == w->routes->level[link[k]];
    if (!exact) return take_hops(w, p, charge);
    w->refusals[link[n]]++;
    return false;
}

/*
 * Take a channel's bandwidth from all hops of a route, or from none. The common case looks all hops up before it
 * changes any: nothing is to be undone then, and no look-up waits for another. The links of a plain route are all
 * different, so this is the same as hop by hop.
 */
static inline bool take(struct kl_walk *w, const struct kl_route *p, enum kl_charge charge)
{
    int32_t *level = w->routes->level;
    const int32_t *link = w->routes->link + p->first, *next = w->routes->levels.next + charge;
    const uint8_t *share = w->routes->share + p->first;
    int to[PLAIN_HOPS];

    if (!p->plain || p->hops > PLAIN_HOPS) return take_hops(w, p, charge);
    for (int k = 0; k < p->hops; k++) {
        to[k] = next[level[link[k]] + share[k]];
        if (to[k] >= 0) continue;
        if (to[k] != KL_LEVEL_REFUSED || !w->exact) return take_refused(w, p, charge, to, k);
        w->refusals[link[k]]++;
        return false;
    }
    for (int k = 0; k < p->hops; k++) level[link[k]] = to[k];
    return true;
}

static inline void give(struct kl_walk *w, const struct kl_route *p, enum kl_charge charge)
{
    int32_t *level = w->routes->level;
    const int32_t *link = w->routes->link + p->first, *next = w->routes->levels.next + charge + KL_GIVE;
    const uint8_t *share = w->routes->share + p->first;

    if (!p->plain) {
        give_hops(w, p, p->hops, charge);
        return;
    }
    for (int k = 0; k < p->hops; k++) {
        int to = next[level[link[k]] + share[k]];

        if (to < 0) {
            to = kl_level_next(&w->routes->levels, level[link[k]], charge + KL_GIVE + share[k]);
            next = w->routes->levels.next + charge + KL_GIVE; /* the table may have moved */
        }
        level[link[k]] = to;
    }
}

/* Is a route, and for trees also the way back, good enough? */
static inline bool type_fits(const struct kl_walk *w, const struct kl_route *p, int limit)
{
    return (w->tree ? p->both : p->type) <= limit;
}

/* Follow a route with the whole bandwidth; leave() takes it back. */
static inline bool follow(struct kl_walk *w, const struct kl_route *p, enum kl_charge charge, int limit)
{
    if (!type_fits(w, p, limit) || !take(w, p, charge)) return false;
    w->work->nhops += p->hops;
    return true;
}

static inline void leave(struct kl_walk *w, const struct kl_route *p, enum kl_charge charge)
{
    give(w, p, charge);
    w->work->nhops -= p->hops;
}

/* ---- steps ---- */

/* Count a visited GPU; false when there is no budget for it. */
static inline bool visit(struct kl_walk *w)
{
    if (w->budget <= 0) return false;
    w->budget--;
    return true;
}

static void out_of_memory(struct kl_walk *w)
{
    w->nomem = true;
    w->budget = 0; /* everything unwinds */
}

/* ---- NETs ---- */

/* Ordered NETs by type limit: for all GPUs (row 0) and each GPU (row 1 + g). Filled when first asked for. */
struct kl_net_lists {
    struct {
        int *count, *net; /* net: rows of nnets */
        bool filled, broken;
    } of[KL_PATH_TYPES];
};

static void fill_net_list(struct kl_walk *w, int type)
{
    struct kl_net_lists *l = w->lists;
    size_t nn = (size_t)w->routes->nnets, rows = (size_t)w->routes->ngpus + 1;
    int quiet = kl_error_quiet(1);

    l->of[type].filled = true;
    l->of[type].count = malloc(rows * sizeof(int));
    l->of[type].net = malloc(rows * nn * sizeof(int));
    l->of[type].broken = !l->of[type].count || !l->of[type].net;
    if (l->of[type].broken) out_of_memory(w);
    for (size_t i = 0; i < rows && !l->of[type].broken; i++)
        if (kl_topo_net_list(w->routes->topo, type, (int)i - 1, l->of[type].net + i * nn, &l->of[type].count[i]))
            l->of[type].broken = true;
    kl_error_quiet(quiet);
}

/* NETs in the order to try them, from a GPU or (-1) for all. A GPU without any NET leaves nothing to try for all. */
static int net_list(struct kl_walk *w, int gpu, const int **net)
{
    int type = w->work->type_inter;

    if (!w->lists->of[type].filled) fill_net_list(w, type);
    if (w->lists->of[type].broken) return 0;
    *net = w->lists->of[type].net + (size_t)(gpu + 1) * (size_t)w->routes->nnets;
    return w->lists->of[type].count[gpu + 1];
}

/* ---- solutions ---- */

static bool better(const struct kl_walk *w)
{
    const struct kl_graph *a = w->work, *b = w->best;
    float wa, wb;

    if (a->nchannels < a->min_channels) return false;
    if (a->pattern == KL_PATTERN_NVLS)
        return (a->nchannels > b->nchannels && a->nchannels <= w->routes->ngpus) ||
               (float)a->nchannels * a->bw_inter > (float)b->nchannels * b->bw_inter;
    wa = (float)a->nchannels * a->bw_intra;
    wb = (float)b->nchannels * b->bw_intra;
    if (wa != wb) return wa > wb;
    return a->pattern == b->pattern && a->cross_nic == b->cross_nic && a->nhops < b->nhops;
}

static void channel_complete(struct kl_walk *w)
{
    struct kl_graph *g = w->work;

    g->nchannels++;
    if (g->nchannels > w->most) w->most = g->nchannels;
    if (better(w)) {
        kl_graph_copy(w->best, g);
        w->stored = g->nchannels;
        if (g->nchannels == g->max_channels) {
            w->steps -= w->budget + 1; /* kept right: what is left will read as KL_WALK_PERFECT */
            w->budget = KL_WALK_PERFECT;
        }
    }
    if (g->nchannels < g->max_channels) start_channel(w);
    g->nchannels--;
}

/* ---- candidates ---- */

static inline bool is_used(const struct kl_lane *l, int gpu)
{
    return l->used[gpu / 64] >> (gpu % 64) & 1;
}

static inline void toggle_used(struct kl_lane *l, int gpu)
{
    l->used[gpu / 64] ^= (uint64_t)1 << (gpu % 64);
}

/* Append a candidate that is free and can be reached. */
static inline void add_if_free(const struct kl_walk *w, const struct kl_lane *l, struct frame *f, int gpu)
{
    f->own[f->n] = gpu;
    f->n += !is_used(l, gpu) && kl_gpu_gpu(w->routes, f->gpu, gpu)->hops;
}

/* With an NVSwitch only neighbours by index follow: rings look back first, balanced trees ahead. */
static inline void list_neighbours(const struct kl_walk *w, const struct kl_lane *l, struct frame *f)
{
    int ng = w->routes->ngpus, prev = f->gpu ? f->gpu - 1 : ng - 1, next = f->gpu + 1 < ng ? f->gpu + 1 : 0;
    bool ring = w->work->pattern == KL_PATTERN_RING, chain = w->work->pattern == KL_PATTERN_TREE;

    f->list = f->own;
    f->n = 0;
    add_if_free(w, l, f, ring ? prev : next);
    if (prev != next && !chain && !kl_has_heads(w->work->pattern)) add_if_free(w, l, f, ring ? next : prev);
}

static inline int pci_left(const struct kl_routes *r, int gpu)
{
    const int32_t *whole = r->levels.next + KL_LEVEL_WHOLE;
    int up, down;

    if (r->pci_up[gpu] < 0 || r->pci_down[gpu] < 0) return -1;
    up = whole[r->level[r->pci_up[gpu]]];
    down = whole[r->level[r->pci_down[gpu]]];
    return up < down ? up : down;
}

static void reverse(int32_t *list, int n)
{
    for (int i = 0, k = n - 1; i < k; i++, k--) {
        int32_t swapped = list[i];

        list[i] = list[k];
        list[k] = swapped;
    }
}

/* The entries of an order whose GPUs are free, as indices into it; `left` of them at most. */
static inline int list_free(const struct kl_lane *l, const struct kl_order *o, int left, int32_t *list)
{
    int n = 0;

    for (int i = 0; i < o->n && n < left; i++) {
        list[n] = i;
        n += !is_used(l, o->entry[i].gpu);
    }
    return n;
}

static bool are_alike(const struct kl_order *o, const int32_t *list, int n)
{
    for (int i = 1; i < n; i++)
        if (o->entry[list[i]].alike != o->entry[list[0]].alike) return false;
    return true;
}

/*
 * Sort by what is left of the candidates' PCI links, behind the bandwidth from the entry NET: a stable insertion into
 * the order that everything else decides.
 */
static inline void sort_by_pci(struct kl_walk *w, const struct kl_order *o, int32_t *list, int n)
{
    int64_t *key = w->key;

    for (int i = 0; i < n; i++) {
        const struct kl_order_entry *e = &o->entry[list[i]];
        int64_t k = (int64_t)e->net_bw * ((int64_t)1 << 32) + pci_left(w->routes, e->gpu);
        int32_t moved = list[i];
        int at = i;

        for (; at > 0 && key[at - 1] < k; at--) key[at] = key[at - 1], list[at] = list[at - 1];
        key[at] = k;
        list[at] = moved;
    }
}

/* Does the only link into a GPU, or out of it, refuse? Then its routes need not be tried. */
static inline bool is_shut(struct kl_walk *w, int link)
{
    if (link < 0 || w->routes->levels.next[w->routes->level[link] + KL_CHARGE_INTRA] != KL_LEVEL_REFUSED || !w->exact)
        return false;
    w->refusals[link]++;
    return true;
}

/* The one GPU that is left. */
static inline void list_last(const struct kl_walk *w, const struct kl_lane *l, struct frame *f)
{
    int words = (w->routes->ngpus + 63) / 64, k = 0;

    while (k < words - 1 && l->used[k] == UINT64_MAX) k++;
    f->list = f->own;
    f->n = 0;
    add_if_free(w, l, f, 64 * k + __builtin_ctzll(~l->used[k]));
}

/* GPUs that are all alike are tried last first, while a return to the network is ahead but not next. */
static void list_gpus(struct kl_walk *w, struct kl_lane *l, const struct kl_stage *s, struct frame *f)
{
    int32_t *list = l->pool + l->step * w->routes->ngpus;
    const struct kl_order *o;
    int left = w->routes->ngpus - 1 - l->step;

    if (w->routes->nvs) {
        list_neighbours(w, l, f);
        return;
    }
    if (left == 1) {
        list_last(w, l, f);
        return;
    }
    f->n = 0;
    if (is_shut(w, w->routes->way_out[f->gpu])) return;
    o = kl_order_after(w->routes, &w->orders, f->gpu, s->nets_count ? (int)l->nets[0] : -1);
    if (!o) {
        out_of_memory(w);
        return;
    }
    int n = list_free(l, o, left, list);
    if (s->nets_count && n > 1) {
        sort_by_pci(w, o, list, n);
        if (!s->last_exit && (o->all_alike || are_alike(o, list, n))) reverse(list, n);
    }
    for (int i = 0; i < n; i++) list[i] = o->entry[list[i]].gpu;
    f->list = list;
    f->n = n;
}

/* ---- laying a channel ---- */

/* Prepare to try what may follow at a stage. */
static inline void open_stage(struct kl_walk *w, struct kl_lane *l, const struct kl_stage *s, enum mode mode,
                              struct frame *f, int gpu)
{
    f->gpu = gpu;
    f->next = 0;
    if (s->kind == STAGE_NET) {
        f->n = net_list(w, gpu, &f->list);
    } else if (mode == ANY_ORDER) {
        list_gpus(w, l, s, f);
    } else {
        f->own[0] = mode == PCI_ORDER ? l->step + 1 : l[-1].order[l->step + 1];
        f->list = f->own;
        f->n = 1;
    }
}

static inline bool try_gpu(struct kl_walk *w, struct kl_lane *l, struct frame *f)
{
    int gpu = f->list[f->next++];
    const struct kl_route *p = kl_gpu_gpu(w->routes, f->gpu, gpu);

    if (is_shut(w, w->routes->way_in[gpu]) || !follow(w, p, KL_CHARGE_INTRA, w->work->type_intra)) return false;
    f->taken = p;
    toggle_used(l, gpu);
    return true;
}

static inline void undo_gpu(struct kl_walk *w, struct kl_lane *l, struct frame *f)
{
    toggle_used(l, f->list[f->next - 1]);
    leave(w, f->taken, KL_CHARGE_INTRA);
}

static bool may_leave_through(struct kl_walk *w, const struct kl_lane *l, int net, bool same_exit)
{
    const struct kl_graph *g = w->work;
    int64_t entry = l->nets[0], id = w->routes->same_net[net];

    if (g->pattern == KL_PATTERN_TREE && id != entry) return false;
    if (g->pattern == KL_PATTERN_RING && g->cross_nic == 2) {
        if (g->nchannels % 2 && id != l[-1].nets[0]) return false;
    } else if (!g->cross_nic && w->routes->same_port[net] != w->routes->same_port[entry]) {
        return false;
    }
    return !same_exit || id == l->nets[1];
}

static enum kl_charge exit_charge(const struct kl_walk *w)
{
    return w->work->pattern == KL_PATTERN_BALANCED_TREE ? KL_CHARGE_HALF : KL_CHARGE_INTER;
}

static bool try_net(struct kl_walk *w, struct kl_lane *l, const struct kl_stage *s, struct frame *f)
{
    int net = f->list[f->next++];
    const struct kl_route *p = kl_gpu_net(w->routes, f->gpu, net);

    if (!may_leave_through(w, l, net, s->same_exit)) return false;
    if (!follow(w, p, exit_charge(w), w->work->type_inter)) return false;
    f->taken = p;
    l->nets[1] = w->routes->same_net[net];
    return true;
}

static void close_ring(struct kl_walk *w, const struct kl_lane *l, int gpu)
{
    const struct kl_route *p = kl_gpu_gpu(w->routes, gpu, l->order[0]);

    if (!follow(w, p, KL_CHARGE_INTRA, w->work->type_intra)) return;
    if (visit(w)) channel_complete(w);
    leave(w, p, KL_CHARGE_INTRA);
}

static void test_heads(struct kl_walk *w, struct kl_lane *l, int head);

/* A stage that completes the channel. */
static void finish(struct kl_walk *w, struct kl_lane *l, enum stage_kind kind, int gpu)
{
    if (kind == STAGE_FIRST)
        close_ring(w, l, gpu);
    else if (kind == STAGE_HEADS)
        test_heads(w, l, gpu);
    else if (visit(w))
        channel_complete(w);
}

static inline bool is_final(const struct kl_stage *s)
{
    return s->kind >= STAGE_FIRST;
}

/* Lay a channel that begins at `gpu`, which is reached: all ways on from there. */
static void lay(struct kl_walk *w, int gpu, enum mode mode)
{
    struct kl_lane *l = &w->lane[w->work->nchannels];
    const struct kl_stage *s = w->stage;
    struct frame *f = l->frame;

    if (!visit(w)) return;
    l->step = 0;
    l->order[0] = w->routes->same_rank[gpu];
    if (is_final(s)) {
        finish(w, l, s->kind, gpu);
        return;
    }
    open_stage(w, l, s, mode, f, gpu);
    for (;;) {
        bool net = s->kind == STAGE_NET;

        if (f->next == f->n) { /* all tried: back to the stage before */
            if (f == l->frame) break;
            f--, s--;
            net = s->kind == STAGE_NET;
        } else if (!(net ? try_net(w, l, s, f) : try_gpu(w, l, f))) {
            continue;
        } else if (visit(w)) {
            int to = net ? f->gpu : f->list[f->next - 1];

            if (!net) l->order[++l->step] = w->routes->same_rank[to];
            if (!is_final(s + 1)) {
                f++, s++;
                open_stage(w, l, s, mode, f, to);
                continue;
            }
            finish(w, l, s[1].kind, to);
        } else if (!net) {
            l->step++; /* so that the undoing below is the same in all cases */
        }
        if (net) {
            leave(w, f->taken, exit_charge(w));
        } else {
            undo_gpu(w, l, f);
            l->step--;
        }
    }
}

/* ---- heads: no chain of GPUs, but a test that everybody reaches the head and back ---- */

/* One of the 2 * ngpus routes of a head's test: the first half leads from the head, or the switch, to every GPU. */
struct spoke {
    const struct kl_route *route;
    enum kl_charge charge;
    float m; /* times the bandwidth */
};

static struct spoke spoke_of(struct kl_walk *w, int head, int i)
{
    const struct kl_routes *r = w->routes;
    int ng = r->ngpus, d = i % ng;

    if (w->work->pattern == KL_PATTERN_NVLS)
        return (struct spoke){i < ng ? &r->nvs_gpu[d] : &r->gpu_nvs[d], d == head ? KL_CHARGE_HEADS : KL_CHARGE_INTRA,
                              d == head ? w->head_share : 1};
    return (struct spoke){i < ng ? kl_gpu_gpu(r, head, d) : kl_gpu_gpu(r, d, head), KL_CHARGE_HEADS, w->head_share};
}

/* Hops count by their share, in whole numbers, each time: that is not exact, and part of results. */
static void count_hops(struct kl_walk *w, const struct spoke *s, int sign)
{
    w->work->nhops = (int)((float)w->work->nhops + (float)sign * s->m * (float)s->route->hops);
}

static bool try_spoke(struct kl_walk *w, const struct spoke *s)
{
    if (s->m == 1 && !type_fits(w, s->route, w->work->type_intra)) return false;
    if (!take(w, s->route, s->charge)) return false;
    count_hops(w, s, 1);
    return true;
}

static void list_others(const struct kl_walk *w, struct kl_lane *l, int head)
{
    for (int g = 0, k = 1; g < w->routes->ngpus; g++)
        if (g != head) l->order[k++] = w->routes->same_rank[g];
}

static void test_heads(struct kl_walk *w, struct kl_lane *l, int head)
{
    int n = 2 * w->routes->ngpus, done = 0;
    struct spoke s = spoke_of(w, head, 0);

    while (try_spoke(w, &s) && ++done < n) s = spoke_of(w, head, done);
    if (done == n) {
        if (w->work->pattern == KL_PATTERN_COLLNET_DIRECT) list_others(w, l, head);
        if (visit(w)) channel_complete(w);
    }
    while (done--) {
        s = spoke_of(w, head, done);
        give(w, s.route, s.charge);
        count_hops(w, &s, -1);
    }
}

/* ---- where a channel starts ---- */

/* Begin at a GPU, reached from a NET or (-1) from nowhere. */
static void enter(struct kl_walk *w, int net, int gpu, enum mode mode)
{
    struct kl_lane *l = &w->lane[w->work->nchannels];
    const struct kl_route *p = net < 0 ? NULL : kl_net_gpu(w->routes, net, gpu);

    if (p && !follow(w, p, KL_CHARGE_INTER, w->work->type_inter)) return;
    toggle_used(l, gpu);
    lay(w, gpu, mode);
    toggle_used(l, gpu);
    if (p) leave(w, p, KL_CHARGE_INTER);
}

static void start_without_net(struct kl_walk *w)
{
    const struct kl_graph *g = w->work;
    int c = g->nchannels;

    if (g->pattern == KL_PATTERN_NVLS) {
        enter(w, -1, c, ANY_ORDER);
        return;
    }
    if (c == 0)
        enter(w, -1, 0, PCI_ORDER);
    else
        enter(w, -1, w->lane[c - 1].order[0], REPLAY);
    if (c > 0 && g->same_channels) return;
    for (int i = 0; i < w->routes->ngpus; i++) enter(w, -1, i, ANY_ORDER);
}

/* What a channel takes from a NET itself is taken from all NETs of the port. */
static void charge_port(struct kl_walk *w, int net, float bw)
{
    const struct kl_routes *r = w->routes;

    for (int i = r->same_port[net]; i >= 0; i = r->next_port[i]) r->net_bw[i] -= bw;
}

/* The order of a PCI machine is tried first, with a budget of its own. */
enum { PCI_ORDER_BUDGET = 1 << 10 };

static void try_pci_order(struct kl_walk *w, int net)
{
    int budget = w->budget;

    w->budget = PCI_ORDER_BUDGET;
    enter(w, net, 0, PCI_ORDER);
    if (w->budget == KL_WALK_PERFECT) {
        w->steps += PCI_ORDER_BUDGET - budget;
    } else {
        w->steps += PCI_ORDER_BUDGET - w->budget;
        w->budget = w->nomem ? 0 : budget;
    }
}

/* Start at the GPUs that are nearest to the NET, in index order but from the channel's number on. */
static void try_nearest_gpus(struct kl_walk *w, int net)
{
    const struct kl_nearest *near = &w->routes->nearest[net];
    const int32_t *gpu = w->routes->near_gpu + near->first;
    int first = w->work->nchannels % w->routes->ngpus, i = 0;

    if (near->bw < (float)w->entry_bw) return;
    while (i < near->n && gpu[i] < first) i++;
    for (int k = i; k < near->n; k++) enter(w, net, gpu[k], ANY_ORDER);
    for (int k = 0; k < i; k++) enter(w, net, gpu[k], ANY_ORDER);
}

/* Start at the GPU that the NET belongs to, unless it is a head already; false if nothing was tried. */
static bool try_head(struct kl_walk *w, int net, int nlist)
{
    int c = w->work->nchannels, gpu;

    if (c >= nlist) return false;
    gpu = kl_topo_local_gpu(w->routes->topo, net);
    if (gpu < 0) return false;
    for (int k = 0; k < c; k++)
        if (w->lane[k].order[0] == w->routes->same_rank[gpu]) return false;
    enter(w, net, gpu, ANY_ORDER);
    return true;
}

static bool may_enter_through(const struct kl_walk *w, int net)
{
    const struct kl_graph *g = w->work;
    int c = g->nchannels;

    if (g->collnet && !kl_routes_net(w->routes, net)->net.coll) return false;
    if (w->routes->net_bw[net] < (float)w->entry_bw) return false;
    if (g->pattern != KL_PATTERN_RING || g->cross_nic != 2 || c % 2 == 0) return true;
    return w->routes->same_net[net] == w->lane[c - 1].nets[1];
}

/*
 * All that PCI order can change is the best solution, its budget being its own, and what rounding leaves behind. So
 * where nothing can be better and rounding leaves no traces, it need not be tried.
 */
static bool pci_order_may_win(const struct kl_walk *w)
{
    return !w->routes->nvs && (w->bound < 0 || kl_bound_can_win(w->work, w->best, w->bound, 0));
}

/* Before anything is taken; where PCI order is tried from many NETs, or not going to win at all. */
static void set_bound(struct kl_walk *w)
{
    if (w->routes->nvs || !w->exact || (w->routes->nnets < 8 && !w->best->nchannels)) return;
    w->bound = kl_bound_channels(w->routes, w->work);
}

static void start_at_net(struct kl_walk *w, int net)
{
    const struct kl_graph *g = w->work;
    int c = g->nchannels;

    if (c > 0) enter(w, net, w->lane[c - 1].order[0], REPLAY);
    if (c > 0 && g->same_channels) return;
    if (c == 0 && pci_order_may_win(w)) try_pci_order(w, net);
    try_nearest_gpus(w, net);
}

static void start_from_net(struct kl_walk *w)
{
    struct kl_graph *g = w->work;
    bool heads = kl_has_heads(g->pattern), found = false;
    int c = g->nchannels;
    const int *list = NULL;
    int n = net_list(w, -1, &list);

    if (c == 0) set_bound(w);
    for (int i = 0; i < n && !(heads && found); i++) {
        int net = list[(c + i) % n];

        if (!may_enter_through(w, net)) continue;
        w->lane[c].nets[0] = w->routes->same_net[net];
        g->latency_inter = kl_routes_net(w->routes, net)->net.latency;
        charge_port(w, net, (float)w->entry_bw);
        if (heads)
            found = try_head(w, net, n);
        else
            start_at_net(w, net);
        charge_port(w, net, -(float)w->entry_bw);
    }
}

/* Lanes are made when a channel is first reached. */
static bool make_lane(struct kl_walk *w, int channel)
{
    struct kl_lane *l = &w->lane[channel];
    size_t ng = (size_t)w->routes->ngpus, words = (ng + 63) / 64, pool = w->routes->nvs ? 0 : ng * ng;
    size_t frames = (ng + 3) * sizeof *l->frame;

    l->frame = calloc(1, frames + words * sizeof *l->used + pool * sizeof *l->pool);
    if (!l->frame) return false;
    l->used = (uint64_t *)(l->frame + ng + 3);
    l->pool = (int32_t *)(l->used + words);
    l->order = w->work->intra + (size_t)channel * ng;
    l->nets = w->work->inter + 2 * (size_t)channel;
    return true;
}

static void start_channel(struct kl_walk *w)
{
    if (!w->lane[w->work->nchannels].frame && !make_lane(w, w->work->nchannels))
        out_of_memory(w);
    else if (w->routes->nnets)
        start_from_net(w);
    else
        start_without_net(w);
}

/* ---- rounds ---- */

static struct kl_stage net_stage(bool same_exit)
{
    return (struct kl_stage){.kind = STAGE_NET, .same_exit = same_exit};
}

/* At which step a channel returns to the network; -1 for never. */
static int exit_step(const struct kl_walk *w)
{
    if (!w->routes->nnets) return -1;
    if (w->work->pattern == KL_PATTERN_RING) return w->routes->ngpus - 1;
    return w->work->pattern == KL_PATTERN_SPLIT_TREE ? 1 : 0;
}

/* Write down how channels are laid. While a return to the network is ahead, it counts in the choice of GPUs. */
static void write_stages(struct kl_walk *w)
{
    struct kl_stage *s = w->stage;
    int pattern = w->work->pattern, ng = w->routes->ngpus, exit = exit_step(w);

    for (int step = 0; step < ng; step++) {
        if (step == exit) {
            *s++ = net_stage(pattern == KL_PATTERN_BALANCED_TREE && step > 0);
            exit = pattern == KL_PATTERN_BALANCED_TREE && step == 0 ? 1 : -1;
        }
        if (kl_has_heads(pattern)) {
            *s = (struct kl_stage){.kind = STAGE_HEADS};
            return;
        }
        if (step < ng - 1)
            *s++ = (struct kl_stage){.kind = STAGE_GPU, .last_exit = exit == step + 1, .nets_count = exit >= 0};
    }
    s->kind = pattern == KL_PATTERN_RING && !w->routes->nnets ? STAGE_FIRST : STAGE_DONE;
}

static void set_charges(struct kl_walk *w)
{
    const struct kl_graph *g = w->work;

    w->tree = kl_is_tree(g->pattern);
    w->entry_bw = (int)g->bw_inter;
    w->head_share = kl_head_share(g->pattern, w->routes->ngpus);
    kl_levels_begin(&w->routes->levels);
    kl_routes_charge(w->routes, KL_CHARGE_INTRA, g->bw_intra);
    kl_routes_charge(w->routes, KL_CHARGE_INTER, g->bw_inter);
    if (kl_has_heads(g->pattern))
        kl_routes_charge(w->routes, KL_CHARGE_HEADS, g->bw_intra * w->head_share);
    else
        kl_routes_charge(w->routes, KL_CHARGE_HALF, g->bw_inter / 2);
}

ncclResult_t kl_walk_round(struct kl_walk *w, int budget)
{
    size_t levels = (size_t)w->routes->topo->nlinks * sizeof *w->before;
    struct kl_wishes wishes = kl_wishes_of(w->work);

    w->work->nchannels = 0;
    w->budget = budget;
    w->stored = w->steps = w->most = 0;
    w->bound = -1;
    w->exact = !w->thorough && kl_is_exact(w->routes, &wishes);
    set_charges(w);
    write_stages(w);
    memset(w->refusals, 0, (size_t)w->routes->topo->nlinks * sizeof *w->refusals);
    memcpy(w->before, w->routes->level, levels);
    start_channel(w);
    w->steps += budget - w->budget;
    w->version += memcmp(w->before, w->routes->level, levels) != 0;
    return w->nomem || w->routes->levels.nomem ? KL_NOMEM("a graph search") : ncclSuccess;
}

ncclResult_t kl_walk_create(struct kl_routes *routes, int max_channels, struct kl_walk **walk)
{
    ncclResult_t rc = ncclSuccess;
    struct kl_walk *w = calloc(1, sizeof *w);
    size_t nlinks = (size_t)routes->topo->nlinks + 1, ng = (size_t)routes->ngpus;

    if (!w) return KL_NOMEM("a graph search");
    w->routes = routes;
    w->max_channels = max_channels;
    w->lane = calloc((size_t)max_channels, sizeof *w->lane);
    w->stage = calloc(ng + 3, sizeof *w->stage);
    w->key = malloc(ng * sizeof *w->key);
    w->lists = calloc(1, sizeof *w->lists);
    w->refusals = malloc(nlinks * sizeof *w->refusals);
    w->before = malloc(nlinks * sizeof *w->before);
    if (!w->lane || !w->stage || !w->key || !w->lists || !w->refusals || !w->before) {
        rc = KL_NOMEM("a graph search");
        goto out;
    }
    KL_TRY_OR(rc, out, kl_orders_init(routes, &w->orders));
    KL_TRY_OR(rc, out, kl_graph_create(max_channels, routes->ngpus, &w->work));
    KL_TRY_OR(rc, out, kl_graph_create(max_channels, routes->ngpus, &w->best));
    *walk = w;
    w = NULL;
out:
    kl_walk_free(w);
    return rc;
}

void kl_walk_free(struct kl_walk *w)
{
    if (!w) return;
    if (w->lists)
        for (int t = 0; t < KL_PATH_TYPES; t++) {
            free(w->lists->of[t].count);
            free(w->lists->of[t].net);
        }
    for (int c = 0; w->lane && c < w->max_channels; c++) free(w->lane[c].frame);
    kl_orders_fini(w->routes, &w->orders);
    kl_graph_free(w->work);
    kl_graph_free(w->best);
    free(w->lane);
    free(w->stage);
    free(w->key);
    free(w->lists);
    free(w->refusals);
    free(w->before);
    free(w);
}
