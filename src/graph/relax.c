/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/run.h"

/* ---- speeds ---- */

/* A speed that is tried from one change on, and until another. */
enum { ALWAYS = -1, NEVER = KL_CHANGES };

struct dated {
    float speed;
    int since, until;
};

static void choose_dated(struct kl_run *run, const struct dated *table, int n)
{
    run->speed = run->own_speed;
    run->nspeeds = 0;
    for (int i = 0; i < n && run->nspeeds < KL_RUN_SPEEDS; i++) {
        if (table[i].since != ALWAYS && !kl_nccl_has(run->routes->nccl, table[i].since)) continue;
        if (table[i].until != NEVER && kl_nccl_has(run->routes->nccl, table[i].until)) continue;
        run->own_speed[run->nspeeds++] = table[i].speed;
    }
}

static void set_speeds(struct kl_run *run)
{
    const struct kl_routes *r = run->routes;
    static const float intra[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
    static const float intra90[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
    static const float inter[] = {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4f, 1.2f, 0.24f, 0.12f};
    static const float inter90[] = {48, 45, 42, 40, 30, 24, 22, 20, 17.5f, 15, 12, 6, 3, 2.4f, 1.2f, 0.24f, 0.12f};
    static const struct dated intra100[] = {{90, ALWAYS, NEVER}, {80, ALWAYS, NEVER}, {70, ALWAYS, NEVER},
                                            {60, ALWAYS, NEVER}, {50, ALWAYS, NEVER}, {45, KL_CHANGE_INTRA_45, NEVER},
                                            {40, ALWAYS, NEVER}, {30, ALWAYS, NEVER}, {24, ALWAYS, NEVER},
                                            {20, ALWAYS, NEVER}, {19, ALWAYS, NEVER}, {18, KL_CHANGE_INTRA_18, NEVER}};
    static const struct dated inter100[] = {{96, KL_CHANGE_INTER_96, NEVER},
                                            {86, KL_CHANGE_INTER_86, NEVER},
                                            {80, KL_CHANGE_INTER_80, NEVER},
                                            {48, ALWAYS, KL_CHANGE_INTER_47_9},
                                            {48, KL_CHANGE_INTER_45_1, NEVER},
                                            {47.9f, KL_CHANGE_INTER_47_9, KL_CHANGE_INTER_45_1},
                                            {45.1f, KL_CHANGE_INTER_45_1, NEVER},
                                            {45, ALWAYS, KL_CHANGE_INTER_45_1},
                                            {42, ALWAYS, NEVER},
                                            {40, ALWAYS, NEVER},
                                            {30, ALWAYS, NEVER},
                                            {24, ALWAYS, NEVER},
                                            {22, ALWAYS, NEVER},
                                            {20, ALWAYS, NEVER},
                                            {17.5f, ALWAYS, NEVER},
                                            {15, ALWAYS, NEVER},
                                            {12, ALWAYS, NEVER},
                                            {6, ALWAYS, NEVER},
                                            {3, ALWAYS, NEVER},
                                            {2.4f, ALWAYS, NEVER},
                                            {1.2f, ALWAYS, NEVER},
                                            {0.24f, ALWAYS, NEVER},
                                            {0.12f, ALWAYS, NEVER}};
#define DATED(table)  choose_dated(run, (table), (int)(sizeof(table) / sizeof((table)[0])))
#define SPEEDS(table) run->speed = (table), run->nspeeds = (int)(sizeof(table) / sizeof((table)[0]))

    if (r->nnets && r->min_sm >= 100)
        DATED(inter100);
    else if (r->nnets && r->min_sm >= 90)
        SPEEDS(inter90);
    else if (r->nnets)
        SPEEDS(inter);
    else if (r->min_sm >= 100)
        DATED(intra100);
    else if (r->min_sm >= 90)
        SPEEDS(intra90);
    else
        SPEEDS(intra);
#undef SPEEDS
#undef DATED
}

static bool last_speed(const struct kl_run *run)
{
    return run->idx == run->nspeeds - 1;
}

static void set_speed(struct kl_run *run)
{
    run->work->bw_intra = run->work->bw_inter = run->speed[run->idx];
}

/* The fastest speed that a path of the machine can have. */
static void fastest_speed(struct kl_run *run)
{
    for (run->idx = 0; !last_speed(run) && run->speed[run->idx] > run->routes->topo->max_bw;) run->idx++;
    set_speed(run);
}

void kl_run_first_speed(struct kl_run *run)
{
    const struct kl_topo *t = run->routes->topo;
    int ng = run->work->ngpus;
    float total = t->total_bw;

    set_speeds(run);
    if (ng > 1 && run->work->pattern != KL_PATTERN_RING) total = (float)(total * ((double)ng / (ng - 1)));
    for (run->idx = 0; !last_speed(run); run->idx++) {
        float speed = run->speed[run->idx];

        if (speed <= t->max_bw && speed * (float)run->work->min_channels <= total) break;
    }
    set_speed(run);
}

/* ---- first pass: the next limit to relax ---- */

static bool relax_same_channels(struct kl_run *run)
{
    struct kl_graph *w = run->work;

    if (w->same_channels && !(run->routes->amd && w->type_intra == KL_PATH_SYS)) {
        w->same_channels = 0;
        return true;
    }
    w->same_channels = run->try_same;
    return false;
}

static bool relax_pattern(struct kl_run *run)
{
    struct kl_graph *w = run->work;

    if (run->routes->min_sm >= 90 && w->pattern == KL_PATTERN_BALANCED_TREE) {
        w->pattern = KL_PATTERN_TREE;
        return true;
    }
    w->pattern = run->best->pattern;
    return false;
}

static int next_type(const struct kl_run *run, int type)
{
    bool p2c = kl_nccl_has(run->routes->nccl, KL_CHANGE_P2C);

    return type + 1 == KL_PATH_P2C && !p2c ? KL_PATH_P2C + 1 : type + 1;
}

/* Older releases also allow a missing path. */
static bool is_way(const struct kl_run *run, int type)
{
    return type < KL_PATH_DIS || !kl_nccl_has(run->routes->nccl, KL_CHANGE_NO_WAY_DIS);
}

static bool relax_type_intra(struct kl_run *run)
{
    struct kl_graph *w = run->work, *b = run->best;
    int limit = run->routes->nnets ? w->type_inter : run->max_intra;

    if (w->type_intra < limit && (!b->nchannels || w->type_intra < b->type_intra)) {
        w->type_intra = next_type(run, w->type_intra);
        if (is_way(run, w->type_intra)) return true;
    }
    w->type_intra = run->min_intra;
    return false;
}

static bool relax_type_inter(struct kl_run *run)
{
    struct kl_graph *w = run->work, *b = run->best;

    if (run->routes->nnets && w->type_inter < run->max_inter &&
        (!b->nchannels || w->type_inter < b->type_inter || w->type_inter < KL_PATH_PXN)) {
        w->type_inter = next_type(run, w->type_inter);
        if (is_way(run, w->type_inter)) return true;
    }
    w->type_inter = run->min_inter;
    return false;
}

static bool relax_cross_nic(struct kl_run *run)
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

static bool relax_speed(struct kl_run *run)
{
    const struct kl_graph *b = run->best;

    if (!last_speed(run) && (!b->nchannels || (double)(run->speed[run->idx + 1] / b->bw_inter) > 0.49)) {
        run->idx++;
        set_speed(run);
        return true;
    }
    fastest_speed(run);
    return false;
}

static bool budget_spent(struct kl_run *run)
{
    run->global_budget += run->budget;
    return run->global_budget < 0 && run->best->nchannels > 0;
}

int kl_run_relax(struct kl_run *run)
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

static int doubling_of(const struct kl_routes *r, const struct kl_graph *g)
{
    if (!g->nchannels) return KL_DOUBLING_NOT_ASKED;
    if (g->pattern == KL_PATTERN_NVLS) return KL_DOUBLING_HEADS;
    if (g->bw_intra < 25) return KL_DOUBLING_SLOW;
    if (r->min_sm > 80 && g->bw_intra < 50 && g->nchannels > 4) return KL_DOUBLING_ENOUGH;
    return g->nchannels < g->max_channels ? KL_DOUBLING_DONE : KL_DOUBLING_FULL;
}

/* Where a machine has bandwidth to spare, use every order twice. */
static int duplicate_channels(const struct kl_routes *r, struct kl_graph *g)
{
    int n = g->nchannels, dup = 2 * n < g->max_channels ? 2 * n : g->max_channels;
    int shares = n ? (dup + n - 1) / n : 1, doubling = doubling_of(r, g);

    if (doubling != KL_DOUBLING_DONE) return doubling;
    for (int c = n; c < dup; c++) {
        for (int i = 0; i < g->ngpus; i++) g->intra[c * g->ngpus + i] = g->intra[(c - n) * g->ngpus + i];
        for (int i = 0; i < 2; i++) g->inter[2 * c + i] = g->inter[2 * (c - n) + i];
    }
    g->bw_intra /= (float)shares;
    g->bw_inter /= (float)shares;
    g->nchannels = dup;
    return doubling;
}

void kl_run_second_pass(struct kl_run *run)
{
    struct kl_graph *best = run->best;

    run->budget = KL_BUDGET_PERFECT;
    run->why->found = best->nchannels;
    run->why->doubling = duplicate_channels(run->routes, best);
    kl_graph_copy(run->work, best);
    for (run->idx = 0; !last_speed(run) && run->speed[run->idx] > best->bw_inter;) run->idx++;
    set_speed(run);
    run->work->min_channels = best->nchannels;
    run->pass = 2;
}

bool kl_run_raise(struct kl_run *run)
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
        w->bw_inter = run->speed[--run->idx];
        return true;
    }
    if (w->bw_intra == b->bw_intra && w->bw_intra < 2 * w->bw_inter) {
        w->bw_intra = run->speed[--run->idx];
        return true;
    }
    return false;
}
