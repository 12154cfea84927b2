/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/backtrack.h"

#include "base/error.h"
#include "graph/bound.h"
#include "graph/placement.h"

#include <stdlib.h>
#include <string.h>

/* How the next GPU of a channel is chosen. */
enum mode {
    ANY_ORDER, /* all remaining GPUs, the most promising first */
    PCI_ORDER, /* the next index */
    REPLAY     /* as in the channel before */
};

static void start_channel(struct kl_backtrack *bt);

/* ---- steps ---- */

/* Count a visited GPU; false when there is no budget for it. */
static inline bool visit(struct kl_backtrack *bt)
{
    if (bt->budget <= 0) return false;
    bt->budget--;
    return true;
}

/* Follow a route and reserve the whole bandwidth; leave() releases it. */
static inline bool follow(struct kl_backtrack *bt, const struct kl_route *p, enum kl_charge charge, int limit)
{
    if (!kl_route_fits(bt, p, limit) || !kl_reserve_take(&bt->reserve, p, charge)) return false;
    bt->work->nhops += p->length;
    return true;
}

static inline void leave(struct kl_backtrack *bt, const struct kl_route *p, enum kl_charge charge)
{
    kl_reserve_give(&bt->reserve, p, charge);
    bt->work->nhops -= p->length;
}

/* ---- solutions ---- */

static bool better(const struct kl_backtrack *bt)
{
    const struct kl_graph *a = bt->work, *b = bt->best;
    float wa, wb;

    if (a->nchannels < a->min_channels) return false;
    if (a->pattern == KL_PATTERN_NVLS)
        return (a->nchannels > b->nchannels && a->nchannels <= bt->routes->ngpus) ||
               (float)a->nchannels * a->bw_inter > (float)b->nchannels * b->bw_inter;
    wa = (float)a->nchannels * a->bw_intra;
    wb = (float)b->nchannels * b->bw_intra;
    if (wa != wb) return wa > wb;
    return a->pattern == b->pattern && a->cross_nic == b->cross_nic && a->nhops < b->nhops;
}

static void channel_complete(struct kl_backtrack *bt)
{
    struct kl_graph *g = bt->work;

    g->nchannels++;
    if (g->nchannels > bt->most) bt->most = g->nchannels;
    if (better(bt)) {
        kl_graph_copy(bt->best, g);
        bt->stored = g->nchannels;
        if (g->nchannels == g->max_channels) {
            bt->steps -= bt->budget + 1; /* keeps the count right: the budget is set to KL_BUDGET_PERFECT */
            bt->budget = KL_BUDGET_PERFECT;
        }
    }
    if (g->nchannels < g->max_channels) start_channel(bt);
    g->nchannels--;
}

/* ---- placing a channel ---- */

/* Prepare to try the candidates of a stage. */
static inline void open_stage(struct kl_backtrack *bt, struct kl_channel_placement *l, const struct kl_stage *s,
                              enum mode mode, struct kl_frame *f, int gpu)
{
    f->gpu = gpu;
    f->next = 0;
    if (s->kind == KL_STAGE_NET) {
        f->n = kl_candidate_nets(bt, gpu, &f->list);
    } else if (mode == ANY_ORDER) {
        kl_candidate_gpus(bt, l, s, f);
    } else {
        f->own[0] = mode == PCI_ORDER ? l->step + 1 : l[-1].order[l->step + 1];
        f->list = f->own;
        f->n = 1;
    }
}

static inline bool try_gpu(struct kl_backtrack *bt, struct kl_channel_placement *l, struct kl_frame *f)
{
    int gpu = f->list[f->next++];
    const struct kl_route *p = kl_gpu_gpu(bt->routes, f->gpu, gpu);

    if (kl_reserve_is_shut(&bt->reserve, bt->routes->way_in[gpu]) ||
        !follow(bt, p, KL_CHARGE_INTRA, bt->work->type_intra))
        return false;
    f->taken = p;
    kl_channel_placement_toggle(l, gpu);
    return true;
}

static inline void undo_gpu(struct kl_backtrack *bt, struct kl_channel_placement *l, struct kl_frame *f)
{
    kl_channel_placement_toggle(l, f->list[f->next - 1]);
    leave(bt, f->taken, KL_CHARGE_INTRA);
}

static bool may_leave_through(struct kl_backtrack *bt, const struct kl_channel_placement *l, int net, bool same_exit)
{
    const struct kl_graph *g = bt->work;
    int64_t entry = l->nets[0], id = bt->routes->same_net[net];

    if (g->pattern == KL_PATTERN_TREE && id != entry) return false;
    if (!kl_routes_same_plane(bt->routes, (int)entry, net)) return false;
    if (g->pattern == KL_PATTERN_RING && g->cross_nic == 2) {
        if (g->nchannels % 2 && id != l[-1].nets[0]) return false;
    } else if (!g->cross_nic && !kl_routes_same_rail(bt->routes, (int)entry, net)) {
        return false;
    }
    return !same_exit || id == l->nets[1];
}

static bool try_net(struct kl_backtrack *bt, struct kl_channel_placement *l, const struct kl_stage *s,
                    struct kl_frame *f)
{
    int net = f->list[f->next++];
    const struct kl_route *p = kl_gpu_net(bt->routes, f->gpu, net);

    if (!may_leave_through(bt, l, net, s->same_exit)) return false;
    if (!follow(bt, p, kl_exit_charge(bt->work->pattern), bt->work->type_inter)) return false;
    f->taken = p;
    l->nets[1] = bt->routes->same_net[net];
    return true;
}

static void close_ring(struct kl_backtrack *bt, const struct kl_channel_placement *l, int gpu)
{
    const struct kl_route *p = kl_gpu_gpu(bt->routes, gpu, l->order[0]);

    if (!follow(bt, p, KL_CHARGE_INTRA, bt->work->type_intra)) return;
    if (visit(bt)) channel_complete(bt);
    leave(bt, p, KL_CHARGE_INTRA);
}

static void list_others(const struct kl_backtrack *bt, struct kl_channel_placement *l, int head)
{
    for (int g = 0, k = 1; g < bt->routes->ngpus; g++)
        if (g != head) l->order[k++] = bt->routes->same_rank[g];
}

/* Place a channel that has only a head. */
static void place_head(struct kl_backtrack *bt, struct kl_channel_placement *l, int head)
{
    int taken = kl_head_take(bt, head);

    if (taken == 2 * bt->routes->ngpus) {
        if (bt->work->pattern == KL_PATTERN_COLLNET_DIRECT) list_others(bt, l, head);
        if (visit(bt)) channel_complete(bt);
    }
    kl_head_give(bt, head, taken);
}

/* A stage that completes the channel. */
static void finish(struct kl_backtrack *bt, struct kl_channel_placement *l, enum kl_stage_kind kind, int gpu)
{
    if (kind == KL_STAGE_FIRST)
        close_ring(bt, l, gpu);
    else if (kind == KL_STAGE_HEADS)
        place_head(bt, l, gpu);
    else if (visit(bt))
        channel_complete(bt);
}

static inline bool is_final(const struct kl_stage *s)
{
    return s->kind >= KL_STAGE_FIRST;
}

/* Place a channel that begins at `gpu`, which is entered already: try all continuations. */
static void lay(struct kl_backtrack *bt, int gpu, enum mode mode)
{
    struct kl_channel_placement *l = &bt->placement[bt->work->nchannels];
    const struct kl_stage *s = bt->stage;
    struct kl_frame *f = l->frame;

    if (!visit(bt)) return;
    l->step = 0;
    l->order[0] = bt->routes->same_rank[gpu];
    if (is_final(s)) {
        finish(bt, l, s->kind, gpu);
        return;
    }
    open_stage(bt, l, s, mode, f, gpu);
    for (;;) {
        bool net = s->kind == KL_STAGE_NET;

        if (f->next == f->n) { /* all tried: back to the stage before */
            if (f == l->frame) break;
            f--, s--;
            net = s->kind == KL_STAGE_NET;
        } else if (!(net ? try_net(bt, l, s, f) : try_gpu(bt, l, f))) {
            continue;
        } else if (visit(bt)) {
            int to = net ? f->gpu : f->list[f->next - 1];

            if (!net) l->order[++l->step] = bt->routes->same_rank[to];
            if (!is_final(s + 1)) {
                f++, s++;
                open_stage(bt, l, s, mode, f, to);
                continue;
            }
            finish(bt, l, s[1].kind, to);
        } else if (!net) {
            l->step++; /* so that the undoing below is the same in all cases */
        }
        if (net) {
            leave(bt, f->taken, kl_exit_charge(bt->work->pattern));
        } else {
            undo_gpu(bt, l, f);
            l->step--;
        }
    }
}

/* ---- where a channel starts ---- */

/* Begin at a GPU, reached from a NET or (-1) from nowhere. */
static void enter(struct kl_backtrack *bt, int net, int gpu, enum mode mode)
{
    struct kl_channel_placement *l = &bt->placement[bt->work->nchannels];
    const struct kl_route *p = net < 0 ? NULL : kl_net_gpu(bt->routes, net, gpu);

    if (p && !follow(bt, p, KL_CHARGE_INTER, bt->work->type_inter)) return;
    kl_channel_placement_toggle(l, gpu);
    lay(bt, gpu, mode);
    kl_channel_placement_toggle(l, gpu);
    if (p) leave(bt, p, KL_CHARGE_INTER);
}

static void start_without_net(struct kl_backtrack *bt)
{
    const struct kl_graph *g = bt->work;
    int c = g->nchannels;

    if (g->pattern == KL_PATTERN_NVLS) {
        enter(bt, -1, c, ANY_ORDER);
        return;
    }
    if (c == 0)
        enter(bt, -1, 0, PCI_ORDER);
    else
        enter(bt, -1, bt->placement[c - 1].order[0], REPLAY);
    if (c > 0 && g->same_channels) return;
    for (int i = 0; i < bt->routes->ngpus; i++) enter(bt, -1, i, ANY_ORDER);
}

/* A reservation on a NET counts for all NETs of its port. */
static void charge_port(struct kl_backtrack *bt, int net, float bw)
{
    const struct kl_routes *r = bt->routes;

    for (int i = r->same_port[net]; i >= 0; i = r->next_port[i]) r->net_bw[i] -= bw;
}

/* The order of a PCI machine is tried first, with a budget of its own. */
enum { PCI_ORDER_BUDGET = 1 << 10 };

static void try_pci_order(struct kl_backtrack *bt, int net)
{
    int budget = bt->budget;

    bt->budget = PCI_ORDER_BUDGET;
    enter(bt, net, 0, PCI_ORDER);
    if (bt->budget == KL_BUDGET_PERFECT) {
        bt->steps += PCI_ORDER_BUDGET - budget;
    } else {
        bt->steps += PCI_ORDER_BUDGET - bt->budget;
        bt->budget = bt->nomem ? 0 : budget;
    }
}

/* Start at the GPUs that are nearest to the NET, in index order but from the channel's number on. */
static void try_nearest_gpus(struct kl_backtrack *bt, int net)
{
    const struct kl_nearest *near = &bt->routes->nearest[net];
    const int32_t *gpu = bt->routes->near_gpu + near->first;
    int first = bt->work->nchannels % bt->routes->ngpus, i = 0;

    if (near->bw < (float)bt->entry_bw) return;
    while (i < near->n && gpu[i] < first) i++;
    for (int k = i; k < near->n; k++) enter(bt, net, gpu[k], ANY_ORDER);
    for (int k = 0; k < i; k++) enter(bt, net, gpu[k], ANY_ORDER);
}

/* Start at the GPU that uses the NET first, then at the others near it in index order. False: it reaches none. */
static bool try_local_gpus(struct kl_backtrack *bt, int net)
{
    const struct kl_routes *r = bt->routes;
    const struct kl_nearest *near = &r->nearest[net];
    const int32_t *gpu = r->near_gpu + near->first;
    int local = kl_nccl_has(r->nccl, KL_CHANGE_START_LOCAL) ? r->local_gpu[net] : -1;

    if (near->type >= KL_PATH_DIS) return false;
    if (local >= 0) enter(bt, net, local, ANY_ORDER);
    for (int k = 0; k < near->n; k++)
        if (gpu[k] != local) enter(bt, net, gpu[k], ANY_ORDER);
    return true;
}

/* Start at the GPU that the NET belongs to, unless it is a head already; false if nothing was tried. */
static bool try_head(struct kl_backtrack *bt, int net, int nlist)
{
    int gpu = bt->work->nchannels < nlist ? kl_head_of_net(bt, net) : -1;

    if (gpu >= 0) enter(bt, net, gpu, ANY_ORDER);
    return gpu >= 0;
}

static bool may_enter_through(const struct kl_backtrack *bt, int net)
{
    const struct kl_graph *g = bt->work;
    int c = g->nchannels;

    if (g->collnet && !kl_routes_net(bt->routes, net)->net.coll) return false;
    if (bt->routes->net_bw[net] < (float)bt->entry_bw) return false;
    if (g->pattern != KL_PATTERN_RING || g->cross_nic != 2 || c % 2 == 0) return true;
    return bt->routes->same_net[net] == bt->placement[c - 1].nets[1];
}

/*
 * PCI order has a budget of its own, so it can only change the best solution and the rounding errors on links. If nothing
 * can be better and there are no rounding errors, it is skipped. The number of channels that it would have completed, in
 * orders with other starts, stays unknown then.
 */
static void try_pci_order_if_it_may_win(struct kl_backtrack *bt, int net)
{
    if (bt->routes->nvs) return;
    if (bt->bound < 0 || kl_bound_can_improve(bt->work, bt->best, bt->bound, 0))
        try_pci_order(bt, net);
    else if (bt->bound > bt->most)
        bt->most = bt->bound;
}

/* Only before any reservation; if PCI order is tried from many NETs, or cannot win. */
static void set_bound(struct kl_backtrack *bt)
{
    if (bt->routes->nvs || !bt->reserve.exact || (bt->routes->nnets < 8 && !bt->best->nchannels)) return;
    bt->bound = kl_bound_channels(bt->routes, bt->work);
}

/* False: the reservation on the NET's port stays. */
static bool start_at_net(struct kl_backtrack *bt, int net)
{
    const struct kl_graph *g = bt->work;
    int c = g->nchannels;
    bool replay = c > 0 && (g->same_channels || !kl_nccl_has(bt->routes->nccl, KL_CHANGE_START_LOCAL));

    if (replay) enter(bt, net, bt->placement[c - 1].order[0], REPLAY);
    if (c > 0 && g->same_channels) return true;
    if (c == 0) try_pci_order_if_it_may_win(bt, net);
    if (kl_nccl_has(bt->routes->nccl, KL_CHANGE_START_NEAREST)) return try_local_gpus(bt, net);
    try_nearest_gpus(bt, net);
    return true;
}

static void start_from_net(struct kl_backtrack *bt)
{
    struct kl_graph *g = bt->work;
    bool heads = kl_has_heads(g->pattern), found = false;
    int c = g->nchannels;
    const int *list = NULL;
    int n = kl_candidate_nets(bt, -1, &list);

    if (c == 0) set_bound(bt);
    for (int i = 0; i < n && !(heads && found); i++) {
        int net = list[(c + i) % n];

        if (!may_enter_through(bt, net)) continue;
        bt->placement[c].nets[0] = bt->routes->same_net[net];
        g->latency_inter = kl_routes_net(bt->routes, net)->net.latency;
        charge_port(bt, net, (float)bt->entry_bw);
        if (heads) {
            found = try_head(bt, net, n);
        } else if (!start_at_net(bt, net)) {
            bt->version++; /* no later round is like an earlier one */
            continue;
        }
        charge_port(bt, net, -(float)bt->entry_bw);
    }
}

/* The state of a channel is allocated when the search first reaches it. */
static bool make_placement(struct kl_backtrack *bt, int channel)
{
    struct kl_channel_placement *l = &bt->placement[channel];
    size_t ng = (size_t)bt->routes->ngpus, words = (ng + 63) / 64, pool = bt->routes->nvs ? 0 : ng * ng;
    size_t frames = (ng + 3) * sizeof *l->frame;

    l->frame = calloc(1, frames + words * sizeof *l->used + pool * sizeof *l->pool);
    if (!l->frame) return false;
    l->used = (uint64_t *)(l->frame + ng + 3);
    l->pool = (int32_t *)(l->used + words);
    l->order = bt->work->intra + (size_t)channel * ng;
    l->nets = bt->work->inter + 2 * (size_t)channel;
    return true;
}

static void start_channel(struct kl_backtrack *bt)
{
    if (!bt->placement[bt->work->nchannels].frame && !make_placement(bt, bt->work->nchannels))
        kl_backtrack_out_of_memory(bt);
    else if (bt->routes->nnets)
        start_from_net(bt);
    else
        start_without_net(bt);
}

/* ---- rounds ---- */

static void set_charges(struct kl_backtrack *bt)
{
    const struct kl_graph *g = bt->work;

    bt->tree = kl_is_tree(g->pattern);
    bt->entry_bw = kl_entry_demand(g->bw_inter);
    bt->head_share = kl_head_share(bt->routes, g->pattern);
    kl_stages_charge(bt->routes, g->pattern, g->bw_intra, g->bw_inter);
}

ncclResult_t kl_backtrack_round(struct kl_backtrack *bt, int budget)
{
    size_t levels = (size_t)bt->routes->topo->nlinks * sizeof *bt->before;
    struct kl_round_limits limits = kl_round_limits_of(bt->work);

    bt->work->nchannels = 0;
    bt->budget = budget;
    bt->stored = bt->steps = bt->most = 0;
    bt->bound = -1;
    bt->reserve.exact = !bt->thorough && kl_is_exact(bt->routes, &limits);
    set_charges(bt);
    kl_stages_write(bt->routes, bt->work->pattern, bt->stage);
    memset(bt->reserve.refusals, 0, (size_t)bt->routes->topo->nlinks * sizeof *bt->reserve.refusals);
    memcpy(bt->before, bt->routes->level, levels);
    start_channel(bt);
    bt->steps += budget - bt->budget;
    bt->version += memcmp(bt->before, bt->routes->level, levels) != 0;
    return bt->nomem || bt->routes->levels.nomem ? KL_NOMEM("a graph search") : ncclSuccess;
}

ncclResult_t kl_backtrack_create(struct kl_routes *routes, int max_channels, struct kl_backtrack **backtrack)
{
    ncclResult_t rc = ncclSuccess;
    struct kl_backtrack *bt = calloc(1, sizeof *bt);
    size_t nlinks = (size_t)routes->topo->nlinks + 1;

    if (!bt) return KL_NOMEM("a graph search");
    bt->routes = bt->reserve.routes = routes;
    bt->max_channels = max_channels;
    bt->placement = calloc((size_t)max_channels, sizeof *bt->placement);
    bt->stage = calloc((size_t)routes->ngpus + 3, sizeof *bt->stage);
    bt->reserve.refusals = malloc(nlinks * sizeof *bt->reserve.refusals);
    bt->before = malloc(nlinks * sizeof *bt->before);
    if (!bt->placement || !bt->stage || !bt->reserve.refusals || !bt->before) {
        rc = KL_NOMEM("a graph search");
        goto out;
    }
    KL_TRY_OR(rc, out, kl_candidates_init(bt));
    KL_TRY_OR(rc, out, kl_graph_create(max_channels, routes->ngpus, &bt->work));
    KL_TRY_OR(rc, out, kl_graph_create(max_channels, routes->ngpus, &bt->best));
    *backtrack = bt;
    bt = NULL;
out:
    kl_backtrack_free(bt);
    return rc;
}

void kl_backtrack_free(struct kl_backtrack *bt)
{
    if (!bt) return;
    kl_candidates_fini(bt);
    for (int c = 0; bt->placement && c < bt->max_channels; c++) free(bt->placement[c].frame);
    kl_graph_free(bt->work);
    kl_graph_free(bt->best);
    free(bt->placement);
    free(bt->stage);
    free(bt->reserve.refusals);
    free(bt->before);
    free(bt);
}
