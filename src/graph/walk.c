/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/walk.h"

#include "base/error.h"
#include "topo/paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How the next GPU of a channel is chosen. */
enum mode {
    ANY_ORDER, /* all that are left, the most promising first */
    PCI_ORDER, /* the next index */
    REPLAY     /* as in the channel before */
};

/* At which steps a channel returns to the network, or to its first GPU; -1 for never. */
struct marks {
    int net, first;
};

static const struct marks nowhere = {-1, -1};

static void visit(struct kl_walk *w, int gpu, int step, struct marks marks, enum mode mode);
static void start_channel(struct kl_walk *w);

/* ---- bandwidth ---- */

/* What is left of a link is kept to three decimals. */
static inline float round3(float x)
{
    return roundf(x * 1000) / 1000;
}

/* Take `bw` from the first `n` hops of a route; negative gives back. Returns how many could. */
static int consume(struct kl_walk *w, const struct kl_route *p, int n, float bw)
{
    const struct kl_hop *hop = w->routes->hop + p->first;
    float *left = w->routes->link_bw;
    float pci = p->costly ? bw * 6 / 5 : bw;

    for (int k = 0; k < n; k++) {
        float need = hop[k].pci ? pci : bw;
        float back = hop[k].back == KL_BACK_EIGHTH ? need / 8 : hop[k].back == KL_BACK_FULL ? need : 0;

        if (left[hop[k].link] < need || (back != 0 && left[hop[k].reverse] < back)) {
            w->refusals[hop[k].link]++;
            return k;
        }
        left[hop[k].link] = round3(left[hop[k].link] - need);
        if (back != 0) left[hop[k].reverse] = round3(left[hop[k].reverse] - back);
    }
    return n;
}

/* Follow a route with `m` times the bandwidth; m < 0 takes it back. */
static bool follow(struct kl_walk *w, const struct kl_route *p, float bw, float m)
{
    bw *= m;
    int taken = consume(w, p, p->hops, bw);
    if (taken < p->hops) {
        consume(w, p, taken, -bw);
        return false;
    }
    w->work->nhops = (int)((float)w->work->nhops + m * (float)p->hops);
    return true;
}

static bool is_tree(int pattern)
{
    return pattern == KL_PATTERN_BALANCED_TREE || pattern == KL_PATTERN_SPLIT_TREE || pattern == KL_PATTERN_TREE;
}

/* May a route, whose way back is `back`, be followed at all? */
static bool type_fits(const struct kl_walk *w, const struct kl_route *p, const struct kl_route *back, int limit)
{
    return p->type <= limit && (!is_tree(w->work->pattern) || back->type <= limit);
}

static bool take(struct kl_walk *w, const struct kl_route *p, const struct kl_route *back, float bw, int limit)
{
    return type_fits(w, p, back, limit) && follow(w, p, bw, 1);
}

/* ---- NETs ---- */

static inline uint64_t *used_by(struct kl_walk *w, int channel)
{
    return w->used + (size_t)channel * (size_t)w->used_words;
}

static inline bool is_used(struct kl_walk *w, int gpu)
{
    return used_by(w, w->work->nchannels)[gpu / 64] >> (gpu % 64) & 1;
}

static inline void toggle_used(struct kl_walk *w, int gpu)
{
    used_by(w, w->work->nchannels)[gpu / 64] ^= (uint64_t)1 << (gpu % 64);
}

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
    w->nomem |= !l->of[type].count || !l->of[type].net;
    l->of[type].broken = w->nomem;
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
    if (better(w)) {
        kl_graph_copy(w->best, g);
        w->stored = g->nchannels;
        if (g->nchannels == g->max_channels) w->budget = KL_WALK_PERFECT;
    }
    if (g->nchannels < g->max_channels) start_channel(w);
    g->nchannels--;
}

/* ---- from GPU to GPU ---- */

static inline int32_t *order(struct kl_walk *w, int channel)
{
    return w->work->intra + (size_t)channel * (size_t)w->routes->ngpus;
}

static inline int64_t *nets(struct kl_walk *w, int channel)
{
    return w->work->inter + 2 * (size_t)channel;
}

/* Go to a GPU, from a GPU (`from`), or from a NET (`net`), or from nowhere (both -1), and on from there. */
static void try_gpu(struct kl_walk *w, int net, int from, int gpu, int step, struct marks marks, enum mode mode)
{
    const struct kl_graph *g = w->work;
    const struct kl_route *p = NULL;
    float bw = from >= 0 ? g->bw_intra : g->bw_inter;

    if (from >= 0) {
        p = kl_gpu_gpu(w->routes, from, gpu);
        if (!take(w, p, kl_gpu_gpu(w->routes, gpu, from), bw, g->type_intra)) return;
    } else if (net >= 0) {
        p = kl_net_gpu(w->routes, net, gpu);
        if (!take(w, p, kl_gpu_net(w->routes, gpu, net), bw, g->type_inter)) return;
    }
    toggle_used(w, gpu);
    visit(w, gpu, step, marks, mode);
    toggle_used(w, gpu);
    if (p) follow(w, p, bw, -1);
}

struct score {
    int gpu, start, hops, bw, net_hops, net_bw, pci_bw;
};

static int compare_scores(const struct score *a, const struct score *b)
{
    if (a->net_bw != b->net_bw) return a->net_bw > b->net_bw ? -1 : 1;
    if (a->pci_bw != b->pci_bw) return a->pci_bw > b->pci_bw ? -1 : 1;
    if (a->net_hops != b->net_hops) return a->net_hops < b->net_hops ? -1 : 1;
    if (a->bw != b->bw) return a->bw > b->bw ? -1 : 1;
    if (a->hops != b->hops) return a->hops < b->hops ? -1 : 1;
    return a->start < b->start ? -1 : 1;
}

static int pci_left(const struct kl_walk *w, int gpu)
{
    const float *left = w->routes->link_bw;
    int up = w->routes->pci_up[gpu], down = w->routes->pci_down[gpu];

    if (up < 0 || down < 0) return -1;
    return (int)(left[up] < left[down] ? left[up] : left[down]);
}

static struct score score_of(const struct kl_walk *w, int from, int gpu, int start, int entry)
{
    const struct kl_route *p = kl_gpu_gpu(w->routes, from, gpu);
    struct score s = {.gpu = gpu, .start = start, .hops = p->hops, .bw = (int)p->bw};

    if (entry >= 0) {
        const struct kl_route *q = kl_net_gpu(w->routes, entry, gpu);

        s.net_hops = q->hops;
        s.net_bw = (int)q->bw;
        s.pci_bw = pci_left(w, gpu);
    }
    return s;
}

static int all_alike(const struct score *s, int n)
{
    for (int i = 1; i < n; i++)
        if (s[i].bw != s[0].bw || s[i].hops != s[0].hops) return 0;
    return 1;
}

/* With an NVSwitch only neighbours by index are tried; what is found last comes first. */
static int keep_neighbours(const struct kl_walk *w, int from, int32_t *gpu, int n)
{
    int ng = w->routes->ngpus, kept = 0, want[2], nwant = 2;
    int prev = (from - 1 + ng) % ng, next = (from + 1) % ng;

    switch (w->work->pattern) {
    case KL_PATTERN_RING:
        want[0] = next, want[1] = prev;
        break;
    case KL_PATTERN_SPLIT_TREE:
    case KL_PATTERN_BALANCED_TREE:
        want[0] = prev, want[1] = next;
        break;
    default:
        want[0] = next, nwant = 1;
    }
    if (nwant == 2 && want[0] == want[1]) nwant = 1;
    for (int k = 0; k < nwant; k++)
        for (int i = 0; i < n; i++)
            if (gpu[i] == want[k]) {
                memmove(gpu + 1, gpu, (size_t)i * sizeof *gpu);
                gpu[0] = want[k];
                kept++;
                break;
            }
    return kept;
}

static bool reserve_candidates(struct kl_walk *w, int n)
{
    int max = w->max_candidates ? w->max_candidates : 256;
    int32_t *more;

    if (w->ncandidates + n <= w->max_candidates) return true;
    while (max < w->ncandidates + n) max *= 2;
    more = realloc(w->candidate, (size_t)max * sizeof *more);
    if (!more) return !(w->nomem = true);
    w->candidate = more;
    w->max_candidates = max;
    return true;
}

/* Append the GPUs that may follow `from`, best first; returns how many. */
static int add_candidates(struct kl_walk *w, int from, int net_mode)
{
    int ng = w->routes->ngpus, n = 0;
    int entry = net_mode ? (int)nets(w, w->work->nchannels)[0] : -1;
    struct score s[256];

    if (!reserve_candidates(w, ng)) return 0;
    for (int i = 1; i < ng; i++) {
        int g = (from + i) % ng, k;
        struct score one;

        if (!kl_gpu_gpu(w->routes, from, g)->hops || is_used(w, g)) continue;
        one = score_of(w, from, g, i, entry);
        for (k = n++; k > 0 && compare_scores(&one, &s[k - 1]) < 0; k--) s[k] = s[k - 1];
        s[k] = one;
    }
    int32_t *out = w->candidate + w->ncandidates;
    int reverse = net_mode == -1 && all_alike(s, n);
    for (int i = 0; i < n; i++) out[i] = s[reverse ? n - 1 - i : i].gpu;
    if (w->routes->nvs) n = keep_neighbours(w, from, out, n);
    w->ncandidates += n;
    return n;
}

static void next_gpu(struct kl_walk *w, int gpu, int step, struct marks marks, enum mode mode)
{
    int channel = w->work->nchannels, first = w->ncandidates, n;

    if (mode == PCI_ORDER) {
        try_gpu(w, -1, gpu, step + 1, step + 1, marks, mode);
        return;
    }
    if (mode == REPLAY) {
        try_gpu(w, -1, gpu, order(w, channel - 1)[step + 1], step + 1, marks, mode);
        return;
    }
    n = add_candidates(w, gpu, marks.net == -1 ? 0 : marks.net == step + 1 ? 1 : -1);
    for (int i = 0; i < n; i++) try_gpu(w, -1, gpu, w->candidate[first + i], step + 1, marks, mode);
    w->ncandidates = first;
}

/* ---- back to the network ---- */

static bool may_leave_through(struct kl_walk *w, int net, int step)
{
    const struct kl_graph *g = w->work;
    int c = g->nchannels;
    int entry = (int)nets(w, c)[0], id = w->routes->same_net[net];

    if (g->pattern == KL_PATTERN_TREE && id != entry) return false;
    if (g->pattern == KL_PATTERN_RING && g->cross_nic == 2) {
        if (c % 2 && id != nets(w, c - 1)[0]) return false;
    } else if (!g->cross_nic && w->routes->same_port[net] != w->routes->same_port[entry]) {
        return false;
    }
    return g->pattern != KL_PATTERN_BALANCED_TREE || step == 0 || id == nets(w, c)[1];
}

static void back_to_net(struct kl_walk *w, int gpu, int step, struct marks marks, enum mode mode)
{
    const struct kl_graph *g = w->work;
    bool balanced = g->pattern == KL_PATTERN_BALANCED_TREE;
    float bw = balanced ? g->bw_inter / 2 : g->bw_inter;
    const int *list = NULL;
    int n = w->routes->nnets ? net_list(w, gpu, &list) : 0;

    marks.net = balanced && step == 0 ? 1 : -1;
    for (int i = 0; i < n; i++) {
        const struct kl_route *p = kl_gpu_net(w->routes, gpu, list[i]);

        if (!may_leave_through(w, list[i], step)) continue;
        if (!take(w, p, kl_net_gpu(w->routes, list[i], gpu), bw, g->type_inter)) continue;
        nets(w, g->nchannels)[1] = w->routes->same_net[list[i]];
        visit(w, gpu, step, marks, mode);
        follow(w, p, bw, -1);
    }
}

static void back_to_first(struct kl_walk *w, int gpu, int step, enum mode mode)
{
    const struct kl_graph *g = w->work;
    int first = order(w, g->nchannels)[0];
    const struct kl_route *p = kl_gpu_gpu(w->routes, gpu, first);

    if (!take(w, p, kl_gpu_gpu(w->routes, first, gpu), g->bw_intra, g->type_intra)) return;
    visit(w, first, step + 1, nowhere, mode);
    follow(w, p, g->bw_intra, -1);
}

/* ---- heads: no chain of GPUs, but a test that everybody reaches the head ---- */

/* Follow or undo one of the 2 * ngpus routes of a head's test. */
static bool head_route(struct kl_walk *w, int head, int i, int sign)
{
    const struct kl_graph *g = w->work;
    struct kl_routes *r = w->routes;
    int ng = r->ngpus, d = i % ng;
    bool direct = g->pattern == KL_PATTERN_COLLNET_DIRECT, down = i < ng;
    float m = direct ? 1 / (float)(ng - 1) : d == head ? 2 : 1;
    const struct kl_route *to = direct ? kl_gpu_gpu(r, head, d) : &r->nvs_gpu[d];
    const struct kl_route *back = direct ? kl_gpu_gpu(r, d, head) : &r->gpu_nvs[d];

    if (sign > 0 && m == 1 && !type_fits(w, down ? to : back, down ? back : to, g->type_intra)) return false;
    return follow(w, down ? to : back, g->bw_intra, (float)sign * m);
}

static void test_head(struct kl_walk *w, int head)
{
    int ng = w->routes->ngpus, done = 0;
    int32_t *intra = order(w, w->work->nchannels);

    while (done < 2 * ng && head_route(w, head, done, 1)) done++;
    if (done == 2 * ng) {
        if (w->work->pattern == KL_PATTERN_COLLNET_DIRECT)
            for (int g = 0, k = 1; g < ng; g++)
                if (g != head) intra[k++] = w->routes->same_rank[g];
        visit(w, -1, ng, nowhere, ANY_ORDER);
    }
    while (done--) head_route(w, head, done, -1);
}

/* ---- */

static void visit(struct kl_walk *w, int gpu, int step, struct marks marks, enum mode mode)
{
    const struct kl_graph *g = w->work;
    int ng = w->routes->ngpus;

    if (w->budget <= 0 || w->nomem) return;
    w->budget--;
    w->steps++;
    if (step == ng) {
        channel_complete(w);
        return;
    }
    order(w, g->nchannels)[step] = w->routes->same_rank[gpu];
    if (step == marks.net)
        back_to_net(w, gpu, step, marks, mode);
    else if (g->pattern == KL_PATTERN_NVLS || g->pattern == KL_PATTERN_COLLNET_DIRECT)
        test_head(w, gpu);
    else if (step < ng - 1)
        next_gpu(w, gpu, step, marks, mode);
    else if (step == marks.first)
        back_to_first(w, gpu, step, mode);
    else
        visit(w, gpu, ng, nowhere, mode);
}

/* ---- where a channel starts ---- */

static struct marks marks_of(const struct kl_walk *w)
{
    bool net = w->routes->nnets > 0;
    int last = w->routes->ngpus - 1;

    if (w->work->pattern == KL_PATTERN_RING) return (struct marks){net ? last : -1, net ? -1 : last};
    if (!net) return nowhere;
    return (struct marks){w->work->pattern == KL_PATTERN_SPLIT_TREE ? 1 : 0, -1};
}

static void start_without_net(struct kl_walk *w)
{
    const struct kl_graph *g = w->work;
    struct marks marks = marks_of(w);
    int c = g->nchannels;

    if (g->pattern == KL_PATTERN_NVLS) {
        try_gpu(w, -1, -1, c, 0, marks, ANY_ORDER);
        return;
    }
    if (c == 0)
        try_gpu(w, -1, -1, 0, 0, marks, PCI_ORDER);
    else
        try_gpu(w, -1, -1, order(w, c - 1)[0], 0, marks, REPLAY);
    if (c > 0 && g->same_channels) return;
    for (int i = 0; i < w->routes->ngpus; i++) try_gpu(w, -1, -1, i, 0, marks, ANY_ORDER);
}

/* What a channel takes from a NET itself is whole GB/s, and from all NETs of the port. */
static void charge_port(struct kl_walk *w, int net, int bw)
{
    const struct kl_routes *r = w->routes;

    for (int i = 0; i < r->nnets; i++)
        if (r->same_port[i] == r->same_port[net]) r->net_bw[i] -= (float)bw;
}

/* The order of a PCI machine is tried first, with a budget of its own. */
enum { PCI_ORDER_BUDGET = 1 << 10 };

static void try_pci_order(struct kl_walk *w, int net, struct marks marks)
{
    int budget = w->budget;

    w->budget = PCI_ORDER_BUDGET;
    try_gpu(w, net, -1, 0, 0, marks, PCI_ORDER);
    w->budget = w->budget == KL_WALK_PERFECT ? KL_WALK_PERFECT : budget;
}

/* Start at the GPUs that are nearest to the NET, by bandwidth and then by hops. */
static void try_nearest_gpus(struct kl_walk *w, int net, int bw, struct marks marks)
{
    int ng = w->routes->ngpus, min_hops = 0x0fffffff;
    const struct kl_route *q = kl_net_gpu(w->routes, net, 0);
    float max_bw = 0;

    for (int g = 0; g < ng; g++) {
        if (q[g].bw > max_bw)
            max_bw = q[g].bw, min_hops = q[g].hops;
        else if (q[g].bw == max_bw && q[g].hops > 0 && q[g].hops < min_hops)
            min_hops = q[g].hops;
    }
    if (max_bw < (float)bw) return;
    for (int i = 0; i < ng; i++) {
        int g = (w->work->nchannels + i) % ng;

        if (q[g].bw == max_bw && q[g].hops == min_hops) try_gpu(w, net, -1, g, 0, marks, ANY_ORDER);
    }
}

/* Start at the GPU that the NET belongs to, unless it is a head already; false if nothing was tried. */
static bool try_head(struct kl_walk *w, int net, int nlist, struct marks marks)
{
    int c = w->work->nchannels, gpu;

    if (c >= nlist) return false;
    gpu = kl_topo_local_gpu(w->routes->topo, net);
    if (gpu < 0) return false;
    for (int k = 0; k < c; k++)
        if (order(w, k)[0] == w->routes->same_rank[gpu]) return false;
    try_gpu(w, net, -1, gpu, 0, marks, ANY_ORDER);
    return true;
}

static bool may_enter_through(struct kl_walk *w, int net, int bw)
{
    const struct kl_graph *g = w->work;
    int c = g->nchannels;

    if (g->collnet && !kl_routes_net(w->routes, net)->net.coll) return false;
    if (w->routes->net_bw[net] < (float)bw) return false;
    if (g->pattern != KL_PATTERN_RING || g->cross_nic != 2 || c % 2 == 0) return true;
    return w->routes->same_net[net] == nets(w, c - 1)[1];
}

static void start_at_net(struct kl_walk *w, int net, int bw)
{
    const struct kl_graph *g = w->work;
    struct marks marks = marks_of(w);
    int c = g->nchannels;

    if (c > 0) try_gpu(w, net, -1, order(w, c - 1)[0], 0, marks, REPLAY);
    if (c > 0 && g->same_channels) return;
    if (c == 0 && !w->routes->nvs) try_pci_order(w, net, marks);
    try_nearest_gpus(w, net, bw, marks);
}

static void start_from_net(struct kl_walk *w)
{
    struct kl_graph *g = w->work;
    bool heads = g->pattern == KL_PATTERN_NVLS || g->pattern == KL_PATTERN_COLLNET_DIRECT, found = false;
    int c = g->nchannels, bw = (int)g->bw_inter;
    const int *list = NULL;
    int n = net_list(w, -1, &list);

    for (int i = 0; i < n && !(heads && found); i++) {
        int net = list[(c + i) % n];

        if (!may_enter_through(w, net, bw)) continue;
        nets(w, c)[0] = w->routes->same_net[net];
        g->latency_inter = kl_routes_net(w->routes, net)->net.latency;
        charge_port(w, net, bw);
        if (heads)
            found = try_head(w, net, n, marks_of(w));
        else
            start_at_net(w, net, bw);
        charge_port(w, net, -bw);
    }
}

static void start_channel(struct kl_walk *w)
{
    if (w->routes->nnets)
        start_from_net(w);
    else
        start_without_net(w);
}

ncclResult_t kl_walk_round(struct kl_walk *w, int budget)
{
    size_t nbw = ((size_t)w->routes->topo->nlinks + (size_t)w->routes->nnets) * sizeof *w->before;

    w->work->nchannels = 0;
    w->budget = budget;
    w->steps = 0;
    w->stored = 0;
    memset(w->refusals, 0, (size_t)w->routes->topo->nlinks * sizeof *w->refusals);
    memcpy(w->before, w->routes->link_bw, nbw);
    start_channel(w);
    w->version += memcmp(w->before, w->routes->link_bw, nbw) != 0;
    return w->nomem ? KL_NOMEM("a graph search") : ncclSuccess;
}

ncclResult_t kl_walk_create(struct kl_routes *routes, int max_channels, struct kl_walk **walk)
{
    ncclResult_t rc = ncclSuccess;
    struct kl_walk *w = calloc(1, sizeof *w);

    if (!w) return KL_NOMEM("a graph search");
    w->routes = routes;
    w->used_words = (routes->ngpus + 63) / 64;
    w->used = calloc((size_t)max_channels * (size_t)w->used_words, sizeof *w->used);
    w->lists = calloc(1, sizeof *w->lists);
    w->refusals = calloc((size_t)routes->topo->nlinks + 1, sizeof *w->refusals);
    w->before = malloc(((size_t)routes->topo->nlinks + (size_t)routes->nnets + 1) * sizeof *w->before);
    if (!w->used || !w->before || !w->lists || !w->refusals) {
        rc = KL_NOMEM("a graph search");
        goto out;
    }
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
    free(w->lists);
    kl_graph_free(w->work);
    kl_graph_free(w->best);
    free(w->used);
    free(w->candidate);
    free(w->refusals);
    free(w->before);
    free(w);
}
