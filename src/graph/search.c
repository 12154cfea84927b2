/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graph.h"

#include "base/error.h"
#include "base/log.h"
#include "graph/graph_xml.h"
#include "graph/routes.h"
#include "graph/run.h"
#include "topo/paths.h"

#include <stdlib.h>
#include <string.h>

ncclResult_t kl_search_create(const struct kl_topo *topo, struct kl_search **search)
{
    ncclResult_t rc;
    struct kl_search *s = calloc(1, sizeof *s);

    if (!s) return KL_NOMEM("a graph search");
    s->few_steps = 500;
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

/* Is the solution as good as any can be? Then there is nothing to relax. */
static bool satisfied(struct kl_run *run)
{
    const struct kl_graph *b = run->best;
    bool saturated = (float)b->nchannels * b->bw_inter >= run->routes->topo->total_bw;

    if (run->pass == 1) run->why->end = run->budget == KL_BUDGET_PERFECT ? KL_END_PERFECT : KL_END_SATURATED;
    return run->budget == KL_BUDGET_PERFECT || saturated;
}

static ncclResult_t search_loop(struct kl_run *run)
{
    run->pass = 1;
    run->global_budget = KL_BUDGET_GLOBAL;
    for (;;) {
        KL_TRY(kl_run_attempt(run));
        if (!satisfied(run) && run->pass == 1) {
            kl_run_last(run)->next = kl_run_relax(run);
            if (kl_run_last(run)->next) continue;
        }
        if (run->pass == 1) kl_run_second_pass(run);
        if (!kl_run_raise(run)) return ncclSuccess;
        kl_run_last(run)->next = KL_RELAX_FASTER;
    }
}

/* The NETs of the first and the last GPU; older releases do not use them. */
static void fall_back_nets(struct kl_run *run)
{
    const struct kl_routes *r = run->routes;
    struct kl_graph *b = run->best;
    int entry, exit, quiet = kl_error_quiet(1);

    b->inter[0] = b->inter[1] = -1;
    if (r->nnets && kl_nccl_has(r->nccl, KL_CHANGE_FALLBACK_NETS)) {
        if (!kl_topo_local_net(r->topo, 0, 0, &entry) && !kl_topo_local_net(r->topo, r->ngpus - 1, 0, &exit)) {
            b->inter[0] = entry;
            b->inter[1] = exit;
        } else {
            b->bw_inter = 0;
            b->type_inter = KL_PATH_DIS;
        }
    }
    kl_error_quiet(quiet);
}

/* No solution: the devices in their order, so that a communicator can be made at all. */
static void fall_back(struct kl_run *run)
{
    struct kl_graph *b = run->best;

    if (b->nchannels || b->collnet || b->pattern == KL_PATTERN_NVLS) return;
    KL_WARN("no %s was found on this machine: falling back to the GPUs in their order at 0.1 GB/s",
            kl_graph_pattern_name(b->pattern));
    for (int g = 0; g < b->ngpus; g++) b->intra[g] = g;
    b->bw_intra = b->bw_inter = 0.1f;
    b->type_intra = b->type_inter = KL_PATH_SYS;
    fall_back_nets(run);
    b->nchannels = 1;
    run->why->end = KL_END_FALLBACK;
}

static void set_types(struct kl_run *run)
{
    const struct kl_topo *t = run->routes->topo;

    run->min_intra = KL_PATH_LOC;
    run->min_inter = KL_PATH_PIX;
    run->max_intra = run->max_inter = KL_PATH_SYS;
    if (run->routes->ngpus > 1) {
        run->min_intra = kl_path_min_type(t, KL_NODE_GPU);
        run->max_intra = kl_path_max_type(t, KL_NODE_GPU);
    }
    if (run->routes->nnets) {
        run->min_inter = kl_path_min_type(t, KL_NODE_NET);
        run->max_intra = run->max_inter = kl_path_max_type(t, KL_NODE_NET);
        if (run->routes->min_sm < 90 && kl_nccl_has(run->routes->nccl, KL_CHANGE_INTER_UP_TO_SYS))
            run->max_inter = KL_PATH_SYS;
    }
}

static void set_wishes(struct kl_run *run, const struct kl_graph_request *q)
{
    const struct kl_routes *r = run->routes;
    struct kl_graph *w = run->work;
    bool crossable =
        q->pattern == KL_PATTERN_RING || q->pattern == KL_PATTERN_BALANCED_TREE || q->pattern == KL_PATTERN_SPLIT_TREE;

    w->id = q->id;
    w->pattern = q->pattern;
    w->collnet = q->collnet;
    w->min_channels = q->min_channels;
    w->max_channels = q->max_channels;
    run->cross_nic = r->all_nets > 1 && crossable ? r->topo->options.cross_nic : 0;
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

static void adapt_to_machine(struct kl_run *run)
{
    const struct kl_routes *r = run->routes;
    struct kl_graph *w = run->work;

    if (w->pattern == KL_PATTERN_NVLS) w->max_channels = at_most(32, r->ngpus);
    if (w->pattern == KL_PATTERN_COLLNET_DIRECT) w->max_channels = at_most(8, r->ngpus);
    if (r->ngpus == 1 && w->pattern != KL_PATTERN_RING) w->pattern = KL_PATTERN_TREE;
    if (!r->nnets && w->pattern == KL_PATTERN_NVLS) w->min_channels = w->max_channels;
    if (w->pattern == KL_PATTERN_RING && w->max_channels >= 2 && w->min_channels == 1 && kl_topo_split_nvlink(r->topo))
        w->min_channels = 2;
}

static ncclResult_t run_search(struct kl_run *run)
{
    const struct kl_routes *r = run->routes;

    if (run->work->pattern == KL_PATTERN_NVLS && (!r->nvs || r->min_sm < 90)) {
        run->why->end = KL_END_NOT_ASKED;
        kl_graph_copy(run->best, run->work);
        return ncclSuccess;
    }
    adapt_to_machine(run);
    kl_graph_copy(run->best, run->work);
    kl_run_first_speed(run);
    KL_TRY(search_loop(run));
    fall_back(run);
    return ncclSuccess;
}

/* The solution with ranks and NET ids in place of indices. */
static ncclResult_t publish(const struct kl_run *run, struct kl_graph **graph)
{
    const struct kl_graph *b = run->best;
    const struct kl_routes *r = run->routes;
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
static ncclResult_t take_injected(struct kl_run *run, const struct kl_graph_request *request, const struct kl_xml *file,
                                  struct kl_graph **graph)
{
    char reason[KL_GRAPH_REASON];

    KL_TRY(kl_graph_from_xml(file, run->routes->topo, request, graph, reason));
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
    struct kl_run run = {.routes = s->routes, .thorough = s->thorough, .few_steps = s->few_steps};
    struct kl_graph *injected = NULL;

    run.why = calloc(1, sizeof *run.why);
    if (!run.why) return KL_NOMEM("a graph search");
    if (file) KL_TRY_OR(rc, out, take_injected(&run, request, file, &injected));
    if (injected) {
        *graph = injected;
        goto done;
    }
    KL_TRY_OR(rc, out, kl_backtrack_create(s->routes, request->max_channels, &run.backtrack));
    run.backtrack->thorough = s->thorough;
    run.work = run.backtrack->work;
    run.best = run.backtrack->best;
    set_wishes(&run, request);
    KL_TRY_OR(rc, out, run_search(&run));
    KL_TRY_OR(rc, out, publish(&run, graph));
done:
    if (why) {
        *why = run.why;
        run.why = NULL;
    }
out:
    free(run.outcome);
    free(run.unique);
    kl_sums_free(run.sums);
    kl_backtrack_free(run.backtrack);
    kl_graph_why_free(run.why);
    return rc;
}
