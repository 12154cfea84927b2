/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/timeline.h"

#include "base/error.h"
#include "plan/timeline_make.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_PER_CHUNK = 4, MOST_STEPS = 1 << 18 };

/* ---- the allowed amount of a flow ---- */

/* Whole chunks that have arrived, and the sender's own data. */
static double allowed(const struct kl_flows *f, const struct kl_flow *flow)
{
    double least = flow->total;

    for (int i = 0; i < flow->nafter; i++) {
        const struct kl_flow *before = &f->flow[flow->after[i]];
        double come = before->sent >= before->total * (1 - 1e-9) ? before->total
                                                                 : floor(before->sent / f->chunk + 1e-6) * f->chunk;

        if (come + flow->own < least) least = come + flow->own;
    }
    return least;
}

static double share_of(const struct kl_flows *f, const struct kl_flow *flow)
{
    double least = 1;

    for (int i = 0; i < flow->nlinks; i++) {
        int link = f->link[flow->first_link + i];
        double bw = f->bw[link];

        if (f->demand[link] > bw && bw / f->demand[link] < least) least = bw / f->demand[link];
    }
    return least;
}

/* ---- time ---- */

static void want(struct kl_flows *f, double dt)
{
    memset(f->demand, 0, (size_t)f->nlinks * sizeof *f->demand);
    for (int i = 0; i < f->nflows; i++) {
        struct kl_flow *flow = &f->flow[i];

        flow->rate = fmin(flow->most, fmax(0, (allowed(f, flow) - flow->sent) / dt));
        for (int k = 0; k < flow->nlinks && flow->rate > 0; k++) f->demand[f->link[flow->first_link + k]] += flow->rate;
    }
}

/* Add to the bins from one time to another, in proportion. */
static void add_to_bins(struct kl_flows *f, const struct kl_flow *flow, double bytes, double from, double to)
{
    double first = from * KL_TIMELINE_BINS, last = fmin(to * KL_TIMELINE_BINS, KL_TIMELINE_BINS);

    for (int bin = (int)first; bin < last; bin++) {
        double part = (fmin(bin + 1, last) - fmax(bin, first)) / (last - first);

        for (int k = 0; k < flow->nlinks; k++)
            f->carried[(size_t)f->link[flow->first_link + k] * KL_TIMELINE_BINS + (size_t)bin] += (float)(bytes * part);
    }
}

/* True if data moved. `whole`: the time that the bins divide; 0: nothing is recorded. */
static bool move(struct kl_flows *f, double now, double dt, double whole)
{
    bool moved = false;

    for (int i = 0; i < f->nflows; i++) {
        struct kl_flow *flow = &f->flow[i];
        double bytes = flow->rate * dt;

        if (bytes <= flow->total * 1e-12) continue;
        bytes *= share_of(f, flow);
        flow->sent += bytes;
        moved = true;
        if (whole > 0) add_to_bins(f, flow, bytes, now / whole, (now + dt) / whole);
    }
    return moved;
}

/* From the first chunk to the last; returns the end time. */
static ncclResult_t run(struct kl_flows *f, double whole, double *end)
{
    double most = 0, dt;
    int step = 0;

    for (int i = 0; i < f->nflows; i++) {
        f->flow[i].sent = 0;
        most = fmax(most, f->flow[i].most);
    }
    dt = f->chunk / most / STEPS_PER_CHUNK;
    for (; step < MOST_STEPS; step++) {
        want(f, dt);
        if (!move(f, step * dt, dt, whole)) break;
    }
    *end = step * dt;
    return step < MOST_STEPS
               ? ncclSuccess
               : KL_FAIL(ncclInternalError, "the model of an all-reduce did not finish in %d steps", step);
}

/* ---- */

static void free_flows(struct kl_flows *f)
{
    free(f->flow);
    free(f->link);
    free(f->bw);
    free(f->demand);
    free(f->carried);
    free(f->first_of_domain);
}

static ncclResult_t check(const struct kl_plan *p, int graph)
{
    const char *name = graph == KL_GRAPH_TREE ? "tree" : "ring";

    if (graph != KL_GRAPH_RING && graph != KL_GRAPH_TREE)
        return KL_FAIL(ncclInvalidUsage, "only rings and trees have a timeline: their ranks do all of the work");
    if (p->nranks < 2) return KL_FAIL(ncclInvalidUsage, "one rank sends nothing");
    if (p->nranks > KL_TIMELINE_RANKS)
        return KL_FAIL(ncclInvalidUsage,
                       "a timeline of the %s of %d ranks would take too long to find: at most %d ranks", name,
                       p->nranks, KL_TIMELINE_RANKS);
    if (p->connect->graph[graph].nchannels < 1) return KL_FAIL(ncclInvalidUsage, "there is no %s", name);
    return ncclSuccess;
}

ncclResult_t kl_timeline_create(const struct kl_plan *plan, int graph, int64_t bytes, struct kl_timeline **timeline)
{
    struct kl_flows f = {.plan = plan, .graph = graph};
    struct kl_timeline *t = NULL;
    ncclResult_t rc;

    KL_TRY(check(plan, graph));
    t = calloc(1, sizeof *t);
    if (!t) return KL_NOMEM("a timeline");
    t->graph = graph;
    t->bytes = bytes;
    KL_TRY_OR(rc, out, kl_flows_init(&f, bytes));
    KL_TRY_OR(rc, out, run(&f, 0, &t->us));
    KL_TRY_OR(rc, out, run(&f, t->us, &t->us));
    KL_TRY_OR(rc, out, kl_timeline_fold(&f, t));
out:
    free_flows(&f);
    if (rc)
        kl_timeline_free(t);
    else
        *timeline = t;
    return rc;
}

void kl_timeline_free(struct kl_timeline *t)
{
    if (!t) return;
    free(t->row);
    free(t);
}
