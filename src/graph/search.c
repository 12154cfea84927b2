/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graph.h"

#include "base/error.h"
#include "base/log.h"
#include "graph/graph_xml.h"
#include "graph/routes.h"
#include "graph/walk.h"
#include "topo/paths.h"

#include <stdlib.h>
#include <string.h>

enum {
    BUDGET_GLOBAL = 1 << 19,
    BUDGET_ROUND = 1 << 14,
    BUDGET_SAME = 1 << 8 /* when all channels have the same order */
};

struct kl_search {
    struct kl_routes *routes;
};

/* Bandwidths per channel that are tried, fastest first, in GB/s. */
struct speeds {
    const float *speed;
    int n;
};

/* One search: a nest of loops, written as what to change next. */
struct run {
    struct kl_search *s;
    struct kl_walk *walk;
    struct kl_graph *work, *best; /* the walk's */
    struct speeds speeds;
    int idx; /* in speeds */
    int pass;
    int budget; /* left by the last round */
    int global_budget;
    int cross_nic; /* preference: 0 never, 1 always, 2 if better */
    bool try_same;
    int min_intra, max_intra, min_inter, max_inter;
    struct kl_graph_why *why;
    int max_attempts;
};

ncclResult_t kl_search_create(const struct kl_topo *topo, struct kl_search **search)
{
    ncclResult_t rc;
    struct kl_search *s = calloc(1, sizeof *s);

    if (!s) return KL_NOMEM("a graph search");
    rc = kl_routes_create(topo, &s->routes);
    if (rc) {
        free(s);
        return rc;
    }
    *search = s;
    return ncclSuccess;
}

void kl_search_free(struct kl_search *s)
{
    if (!s) return;
    kl_routes_free(s->routes);
    free(s);
}

/* ---- speeds ---- */

static struct speeds speeds_of(const struct kl_routes *r)
{
    static const float intra[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
    static const float intra90[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
    static const float intra100[] = {90, 80, 70, 60, 50, 40, 30, 24, 20, 19};
    static const float inter[] = {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4f, 1.2f, 0.24f, 0.12f};
    static const float inter90[] = {48, 45, 42, 40, 30, 24, 22, 20, 17.5f, 15, 12, 6, 3, 2.4f, 1.2f, 0.24f, 0.12f};
#define SPEEDS(table) ((struct speeds){(table), (int)(sizeof(table) / sizeof((table)[0]))})

    if (r->nnets) return r->min_sm >= 90 ? SPEEDS(inter90) : SPEEDS(inter);
    return r->min_sm >= 100 ? SPEEDS(intra100) : r->min_sm >= 90 ? SPEEDS(intra90) : SPEEDS(intra);
#undef SPEEDS
}

static bool last_speed(const struct run *run)
{
    return run->idx == run->speeds.n - 1;
}

static void set_speed(struct run *run)
{
    run->work->bw_intra = run->work->bw_inter = run->speeds.speed[run->idx];
}

/* The fastest speed that a path of the machine can have. */
static void fastest_speed(struct run *run)
{
    for (run->idx = 0; !last_speed(run) && run->speeds.speed[run->idx] > run->s->routes->topo->max_bw;) run->idx++;
    set_speed(run);
}

static void first_speed(struct run *run)
{
    const struct kl_topo *t = run->s->routes->topo;
    int ng = run->work->ngpus;
    float total = t->total_bw;

    if (ng > 1 && run->work->pattern != KL_PATTERN_RING) total = (float)(total * ((double)ng / (ng - 1)));
    for (run->idx = 0; !last_speed(run); run->idx++) {
        float speed = run->speeds.speed[run->idx];

        if (speed <= t->max_bw && speed * (float)run->work->min_channels <= total) break;
    }
    set_speed(run);
}

/* ---- the record of attempts ---- */

static struct kl_attempt *last_attempt(struct run *run)
{
    return &run->why->attempt[run->why->nattempts - 1];
}

static ncclResult_t begin_attempt(struct run *run, int budget)
{
    struct kl_graph_why *why = run->why;
    const struct kl_graph *w = run->work;

    if (why->nattempts == run->max_attempts) {
        int max = run->max_attempts ? 2 * run->max_attempts : 32;
        struct kl_attempt *more = realloc(why->attempt, (size_t)max * sizeof *more);

        if (!more) return KL_NOMEM("the record of a graph search");
        why->attempt = more;
        run->max_attempts = max;
    }
    why->attempt[why->nattempts++] = (struct kl_attempt){.pass = run->pass,
                                                         .pattern = w->pattern,
                                                         .cross_nic = w->cross_nic,
                                                         .same_channels = w->same_channels,
                                                         .type_intra = w->type_intra,
                                                         .type_inter = w->type_inter,
                                                         .bw_intra = w->bw_intra,
                                                         .bw_inter = w->bw_inter,
                                                         .budget = budget,
                                                         .repeats = -1,
                                                         .limiting_link = -1};
    return ncclSuccess;
}

static void end_attempt(struct run *run)
{
    struct kl_attempt *a = last_attempt(run);
    const struct kl_walk *w = run->walk;

    a->steps = w->steps;
    a->left = w->budget;
    a->version = w->version;
    a->stored = w->stored;
    a->end = w->budget == KL_WALK_PERFECT ? KL_ATTEMPT_PERFECT : w->budget ? KL_ATTEMPT_EXHAUSTED : KL_ATTEMPT_TIMEOUT;
    for (int l = 0; l < run->s->routes->topo->nlinks; l++)
        if ((int)w->refusals[l] > a->refusals) a->refusals = (int)w->refusals[l], a->limiting_link = l;
}

static unsigned types_up_to(unsigned types, int limit)
{
    return types & ((2u << limit) - 1);
}

/* ---- first pass: what to give up next ---- */

static bool relax_same_channels(struct run *run)
{
    struct kl_graph *w = run->work;

    if (w->same_channels && !(run->s->routes->amd && w->type_intra == KL_PATH_SYS)) {
        w->same_channels = 0;
        return true;
    }
    w->same_channels = run->try_same;
    return false;
}

static bool relax_pattern(struct run *run)
{
    struct kl_graph *w = run->work;

    if (run->s->routes->min_sm >= 90 && w->pattern == KL_PATTERN_BALANCED_TREE) {
        w->pattern = KL_PATTERN_TREE;
        return true;
    }
    w->pattern = run->best->pattern;
    return false;
}

static bool relax_type_intra(struct run *run)
{
    struct kl_graph *w = run->work, *b = run->best;
    int limit = run->s->routes->nnets ? w->type_inter : run->max_intra;

    if (w->type_intra < limit && (!b->nchannels || w->type_intra < b->type_intra)) {
        w->type_intra++;
        return true;
    }
    w->type_intra = run->min_intra;
    return false;
}

static bool relax_type_inter(struct run *run)
{
    struct kl_graph *w = run->work, *b = run->best;

    if (run->s->routes->nnets && w->type_inter < run->max_inter &&
        (!b->nchannels || w->type_inter < b->type_inter || w->type_inter < KL_PATH_PXN)) {
        w->type_inter++;
        return true;
    }
    w->type_inter = run->min_inter;
    return false;
}

static bool relax_cross_nic(struct run *run)
{
    struct kl_graph *w = run->work;
    int pattern = run->best->pattern;

    if (run->cross_nic == 2 && !w->cross_nic && (pattern == KL_PATTERN_RING || pattern == KL_PATTERN_BALANCED_TREE)) {
        w->cross_nic = 2;
        return true;
    }
    w->cross_nic = run->cross_nic == 1;
    return false;
}

static bool relax_speed(struct run *run)
{
    const struct kl_graph *b = run->best;

    if (!last_speed(run) && (!b->nchannels || (double)(run->speeds.speed[run->idx + 1] / b->bw_inter) > 0.49)) {
        run->idx++;
        set_speed(run);
        return true;
    }
    fastest_speed(run);
    return false;
}

static bool budget_spent(struct run *run)
{
    run->global_budget += run->budget;
    return run->global_budget < 0 && run->best->nchannels > 0;
}

/* Change the wishes for another round; KL_RELAX_NONE when the first pass is over. */
static int relax(struct run *run)
{
    if (relax_same_channels(run)) return KL_RELAX_SAME_CHANNELS;
    if (budget_spent(run)) {
        run->why->end = KL_END_BUDGET;
        return KL_RELAX_NONE;
    }
    if (relax_pattern(run)) return KL_RELAX_PATTERN;
    if (relax_type_intra(run)) return KL_RELAX_TYPE_INTRA;
    if (relax_type_inter(run)) return KL_RELAX_TYPE_INTER;
    if (relax_cross_nic(run)) return KL_RELAX_CROSS_NIC;
    if (relax_speed(run)) return KL_RELAX_SPEED;
    run->why->end = KL_END_SLOW;
    return KL_RELAX_NONE;
}

/* ---- second pass: raise the bandwidth of the solution ---- */

/* Where a machine has bandwidth to spare, use every order twice. */
static void duplicate_channels(const struct kl_routes *r, struct kl_graph *g)
{
    int n = g->nchannels, dup = 2 * n < g->max_channels ? 2 * n : g->max_channels;
    int shares = n ? (dup + n - 1) / n : 1;

    if (!n || g->pattern == KL_PATTERN_NVLS || g->bw_intra < 25) return;
    if (r->min_sm > 80 && g->bw_intra < 50 && n > 4) return;
    for (int c = n; c < dup; c++) {
        for (int i = 0; i < g->ngpus; i++) g->intra[c * g->ngpus + i] = g->intra[(c - n) * g->ngpus + i];
        for (int i = 0; i < 2; i++) g->inter[2 * c + i] = g->inter[2 * (c - n) + i];
    }
    g->bw_intra /= (float)shares;
    g->bw_inter /= (float)shares;
    g->nchannels = dup;
}

static void begin_second_pass(struct run *run)
{
    struct kl_graph *best = run->best;

    run->budget = KL_WALK_PERFECT;
    duplicate_channels(run->s->routes, best);
    kl_graph_copy(run->work, best);
    for (run->idx = 0; !last_speed(run) && run->speeds.speed[run->idx] > best->bw_inter;) run->idx++;
    set_speed(run);
    run->work->min_channels = best->nchannels;
    run->pass = 2;
}

/* Raise the wishes; false when the search is over. */
static bool raise_speed(struct run *run)
{
    struct kl_graph *w = run->work, *b = run->best;

    if (!run->budget || !run->idx) return false;
    if (b->pattern == KL_PATTERN_RING) {
        run->idx--;
        set_speed(run);
        return true;
    }
    if (b->pattern == KL_PATTERN_NVLS && w->bw_inter == b->bw_inter && w->bw_inter < 2 * w->bw_intra) {
        w->min_channels = w->max_channels = b->nchannels;
        w->bw_inter = run->speeds.speed[--run->idx];
        return true;
    }
    if (w->bw_intra == b->bw_intra && w->bw_intra < 2 * w->bw_inter) {
        w->bw_intra = run->speeds.speed[--run->idx];
        return true;
    }
    return false;
}

/* ---- all of it ---- */

/*
 * An attempt with the same wishes as an earlier one of this pass takes the same steps to the same solutions, none of
 * which can be better than what is stored: each was compared when it was found, and what is stored only gets better. So
 * it is not made, but accounted for. Path types that no path of the machine has make no difference between wishes;
 * that is what makes repetitions frequent, because types are relaxed one number at a time.
 */
static bool is_repetition(const struct run *run, const struct kl_attempt *a, const struct kl_attempt *b)
{
    const struct kl_routes *r = run->s->routes;
    unsigned intra = types_up_to(r->intra_types, a->type_intra) ^ types_up_to(r->intra_types, b->type_intra);
    unsigned inter = types_up_to(r->inter_types, a->type_inter) ^ types_up_to(r->inter_types, b->type_inter);

    return !intra && !inter && a->pattern == b->pattern && a->cross_nic == b->cross_nic &&
           a->same_channels == b->same_channels && a->bw_intra == b->bw_intra && a->bw_inter == b->bw_inter &&
           b->repeats < 0 && b->version == run->walk->version;
}

static bool repeat_attempt(struct run *run)
{
    struct kl_attempt *a = last_attempt(run);

    if (run->pass != 1) return false;
    for (int i = run->why->nattempts - 2; i >= 0; i--) {
        const struct kl_attempt *b = &run->why->attempt[i];

        if (!is_repetition(run, a, b)) continue;
        a->repeats = i;
        a->steps = b->steps;
        a->end = b->end;
        a->left = run->budget = b->left;
        return true;
    }
    return false;
}

static ncclResult_t round_of(struct run *run)
{
    int budget = run->work->same_channels ? BUDGET_SAME : BUDGET_ROUND;

    KL_TRY(begin_attempt(run, budget));
    run->global_budget -= budget;
    if (repeat_attempt(run)) return ncclSuccess;
    KL_TRY(kl_walk_round(run->walk, budget));
    run->budget = run->walk->budget;
    end_attempt(run);
    return ncclSuccess;
}

/* Is the solution as good as any can be? Then there is nothing to relax. */
static bool satisfied(struct run *run)
{
    const struct kl_graph *b = run->best;
    bool saturated = (float)b->nchannels * b->bw_inter >= run->s->routes->topo->total_bw;

    if (run->pass == 1) run->why->end = run->budget == KL_WALK_PERFECT ? KL_END_PERFECT : KL_END_SATURATED;
    return run->budget == KL_WALK_PERFECT || saturated;
}

static ncclResult_t search_loop(struct run *run)
{
    run->pass = 1;
    run->global_budget = BUDGET_GLOBAL;
    for (;;) {
        KL_TRY(round_of(run));
        if (!satisfied(run) && run->pass == 1) {
            last_attempt(run)->next = relax(run);
            if (last_attempt(run)->next) continue;
        }
        if (run->pass == 1) begin_second_pass(run);
        if (!raise_speed(run)) return ncclSuccess;
        last_attempt(run)->next = KL_RELAX_FASTER;
    }
}

/* Nothing found: the devices as they come, so that a communicator can be made at all. */
static void fall_back(struct run *run)
{
    struct kl_graph *b = run->best;

    if (b->nchannels || b->collnet || b->pattern == KL_PATTERN_NVLS) return;
    KL_WARN("no %s was found on this machine: falling back to the GPUs in their order at 0.1 GB/s",
            kl_graph_pattern_name(b->pattern));
    for (int g = 0; g < b->ngpus; g++) b->intra[g] = g;
    b->inter[0] = b->inter[1] = -1;
    b->bw_intra = b->bw_inter = 0.1f;
    b->type_intra = b->type_inter = KL_PATH_SYS;
    b->nchannels = 1;
    run->why->end = KL_END_FALLBACK;
}

static void set_types(struct run *run)
{
    const struct kl_topo *t = run->s->routes->topo;

    run->min_intra = KL_PATH_LOC;
    run->min_inter = KL_PATH_PIX;
    run->max_intra = run->max_inter = KL_PATH_SYS;
    if (run->s->routes->ngpus > 1) {
        run->min_intra = kl_path_min_type(t, KL_NODE_GPU);
        run->max_intra = kl_path_max_type(t, KL_NODE_GPU);
    }
    if (run->s->routes->nnets) {
        run->min_inter = kl_path_min_type(t, KL_NODE_NET);
        run->max_inter = kl_path_max_type(t, KL_NODE_NET);
        run->max_intra = run->max_inter;
    }
}

static void set_wishes(struct run *run, const struct kl_graph_request *q)
{
    const struct kl_routes *r = run->s->routes;
    struct kl_graph *w = run->work;
    bool crossable =
        q->pattern == KL_PATTERN_RING || q->pattern == KL_PATTERN_BALANCED_TREE || q->pattern == KL_PATTERN_SPLIT_TREE;

    w->id = q->id;
    w->pattern = q->pattern;
    w->collnet = q->collnet;
    w->min_channels = q->min_channels;
    w->max_channels = q->max_channels;
    run->cross_nic = r->nnets > 1 && crossable ? r->topo->options.cross_nic : 0;
    w->cross_nic = run->cross_nic == 1;
    set_types(run);
    w->type_intra = run->min_intra;
    w->type_inter = run->min_inter;
    run->try_same = q->pattern != KL_PATTERN_NVLS;
    w->same_channels = run->try_same;
}

static int at_most(int a, int b)
{
    return a < b ? a : b;
}

static void adapt_to_machine(struct run *run)
{
    const struct kl_routes *r = run->s->routes;
    struct kl_graph *w = run->work;

    if (w->pattern == KL_PATTERN_NVLS) w->max_channels = at_most(32, r->ngpus);
    if (w->pattern == KL_PATTERN_COLLNET_DIRECT) w->max_channels = at_most(8, r->ngpus);
    if (r->ngpus == 1 && w->pattern != KL_PATTERN_RING) w->pattern = KL_PATTERN_TREE;
    if (!r->nnets && w->pattern == KL_PATTERN_NVLS) w->min_channels = w->max_channels;
    if (w->pattern == KL_PATTERN_RING && w->max_channels >= 2 && w->min_channels == 1 && kl_topo_split_nvlink(r->topo))
        w->min_channels = 2;
}

static ncclResult_t run_search(struct run *run)
{
    const struct kl_routes *r = run->s->routes;

    if (run->work->pattern == KL_PATTERN_NVLS && (!r->nvs || r->min_sm < 90)) {
        run->why->end = KL_END_NOT_ASKED;
        kl_graph_copy(run->best, run->work);
        return ncclSuccess;
    }
    adapt_to_machine(run);
    kl_graph_copy(run->best, run->work);
    run->speeds = speeds_of(r);
    first_speed(run);
    KL_TRY(search_loop(run));
    fall_back(run);
    return ncclSuccess;
}

/* The solution with ranks and NET ids in place of indices. */
static ncclResult_t publish(const struct run *run, struct kl_graph **graph)
{
    const struct kl_graph *b = run->best;
    const struct kl_routes *r = run->s->routes;
    struct kl_graph *g;

    KL_TRY(kl_graph_create(b->nchannels, b->ngpus, &g));
    kl_graph_copy(g, b);
    for (int i = 0; i < g->nchannels * g->ngpus; i++) g->intra[i] = kl_routes_gpu(r, g->intra[i])->gpu.rank;
    for (int i = 0; i < 2 * g->nchannels; i++)
        g->inter[i] = r->nnets && b->inter[i] >= 0 ? (int64_t)kl_routes_net(r, (int)b->inter[i])->id : 0;
    *graph = g;
    return ncclSuccess;
}

/* A graph of a file replaces the search, if it fits. */
static ncclResult_t take_injected(struct run *run, const struct kl_graph_request *request, const struct kl_xml *file,
                                  struct kl_graph **graph)
{
    char reason[KL_GRAPH_REASON];

    KL_TRY(kl_graph_from_xml(file, run->s->routes->topo, request, graph, reason));
    if (*graph) run->why->end = KL_END_INJECTED;
    if (!reason[0]) return ncclSuccess;
    KL_WARN("the %s of the graph file is not used, a search replaces it: %s", kl_graph_name(request->id), reason);
    run->why->refused = strdup(reason);
    return run->why->refused ? ncclSuccess : KL_NOMEM("the reason why a graph file is not used");
}

ncclResult_t kl_search_run(struct kl_search *s, const struct kl_graph_request *request, const struct kl_xml *file,
                           struct kl_graph **graph, struct kl_graph_why **why)
{
    ncclResult_t rc = ncclSuccess;
    struct run run = {.s = s};
    struct kl_graph *injected = NULL;

    run.why = calloc(1, sizeof *run.why);
    if (!run.why) return KL_NOMEM("a graph search");
    if (file) KL_TRY_OR(rc, out, take_injected(&run, request, file, &injected));
    if (injected) {
        *graph = injected;
        goto done;
    }
    KL_TRY_OR(rc, out, kl_walk_create(s->routes, request->max_channels, &run.walk));
    run.work = run.walk->work;
    run.best = run.walk->best;
    set_wishes(&run, request);
    KL_TRY_OR(rc, out, run_search(&run));
    KL_TRY_OR(rc, out, publish(&run, graph));
done:
    if (why) {
        *why = run.why;
        run.why = NULL;
    }
out:
    kl_walk_free(run.walk);
    kl_graph_why_free(run.why);
    return rc;
}

struct kl_graph_request kl_graph_request_for(enum kl_graph_id id)
{
    static const struct kl_graph_request request[] = {
        [KL_GRAPH_RING] = {KL_GRAPH_RING, KL_PATTERN_RING, 0, 1, KL_MAX_CHANNELS / 2},
        [KL_GRAPH_TREE] = {KL_GRAPH_TREE, KL_PATTERN_BALANCED_TREE, 0, 1, KL_MAX_CHANNELS},
        [KL_GRAPH_COLLNET_CHAIN] = {KL_GRAPH_COLLNET_CHAIN, KL_PATTERN_TREE, 1, 1, KL_MAX_CHANNELS},
        [KL_GRAPH_NVLS] = {KL_GRAPH_NVLS, KL_PATTERN_NVLS, 0, 1, KL_MAX_CHANNELS},
        [KL_GRAPH_COLLNET_DIRECT] = {KL_GRAPH_COLLNET_DIRECT, KL_PATTERN_COLLNET_DIRECT, 1, 1, KL_MAX_CHANNELS},
    };

    return request[id];
}

ncclResult_t kl_graph_search(const struct kl_topo *topo, const struct kl_graph_request *request,
                             struct kl_graph **graph, struct kl_graph_why **why)
{
    struct kl_search *s;
    ncclResult_t rc;

    KL_TRY(kl_search_create(topo, &s));
    rc = kl_search_run(s, request, NULL, graph, why);
    kl_search_free(s);
    return rc;
}
