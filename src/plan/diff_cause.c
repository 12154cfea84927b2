/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/diff_make.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS_TRIED = 128 }; /* of a machine: larger ones are planned twice, not a dozen times */

/* ---- are two plans the same? ---- */

static bool same_graph(const struct kl_graph *x, const struct kl_graph *y)
{
    if (!x || !y) return x == y;
    size_t n = (size_t)x->nchannels;

    return x->pattern == y->pattern && x->cross_nic == y->cross_nic && x->nchannels == y->nchannels &&
           x->bw_intra == y->bw_intra && x->bw_inter == y->bw_inter && x->type_intra == y->type_intra &&
           x->type_inter == y->type_inter && x->same_channels == y->same_channels && x->ngpus == y->ngpus &&
           !memcmp(x->intra, y->intra, n * (size_t)x->ngpus * sizeof *x->intra) &&
           !memcmp(x->inter, y->inter, 2 * n * sizeof *x->inter);
}

static bool same_plan(const struct kl_plan *x, const struct kl_plan *y)
{
    if (x->nranks != y->nranks || x->ndomains != y->ndomains) return false;
    for (int d = 0; d < x->ndomains; d++)
        for (int g = 0; g < KL_GRAPHS; g++)
            if (!same_graph(x->domain[d].graphs.graph[g], y->domain[d].graphs.graph[g])) return false;
    return x->connect->nchannels == y->connect->nchannels && x->connect->coll_channels == y->connect->coll_channels &&
           x->connect->nvls_channels == y->connect->nvls_channels && x->p2p.n == y->p2p.n &&
           x->p2p.per_peer == y->p2p.per_peer &&
           !memcmp(x->tuning.bandwidth, y->tuning.bandwidth, sizeof x->tuning.bandwidth) &&
           !memcmp(x->tuning.latency, y->tuning.latency, sizeof x->tuning.latency) &&
           !memcmp(x->tuning.max_threads, y->tuning.max_threads, sizeof x->tuning.max_threads) &&
           !memcmp(x->tuning.threshold, y->tuning.threshold, sizeof x->tuning.threshold);
}

/* ---- plans in which only some facts differ ---- */

/* `with` has room for all of them. */
static struct kl_edit_list take_settings(const struct kl_diff *d, const bool *use, const char **with)
{
    int n = 0;

    for (int i = 0; i < d->facts.nfacts; i++)
        if (use[i] && d->facts.fact[i].setting >= 0)
            with[n++] = d->b.request->edits.with.text[d->facts.fact[i].setting];
    return (struct kl_edit_list){with, n};
}

/* A's machine: read again where settings decide its visible parts, else the document with some of the facts. */
static struct kl_cluster_request request_like(const struct kl_diff *d, const struct kl_xml *document)
{
    bool fused = d->a.cluster.machine.hosts > 1;
    struct kl_cluster_request request = {.hosts = fused ? 1 : d->a.cluster.hosts,
                                         .mnnvl = d->a.cluster.options.mnnvl && !fused,
                                         .constants = d->a.cluster.constants,
                                         .nccl = d->a.request->nccl,
                                         .document = document};

    if (d->facts.same_source) request = *d->a.request;
    request.edits = (struct kl_edits){.params = d->a.cluster.params};
    return request;
}

/* Plan for A with some of the facts. A failure to plan is part of an explanation, not an error. */
static ncclResult_t try_facts(const struct kl_diff *d, const bool *use, enum kl_fact_effect *effect)
{
    struct kl_planned planned = {.plan = NULL};
    struct kl_cluster_request request;
    struct kl_xml *document = NULL;
    struct kl_cluster cluster;

    const char **with = calloc((size_t)d->facts.nfacts + 1, sizeof *with);
    ncclResult_t rc = with ? kl_facts_apply(&d->facts, &d->a, &d->b, use, &document) : KL_NOMEM("settings");

    if (rc) {
        free(with);
        return rc;
    }
    *effect = KL_EFFECT_PART;
    request = request_like(d, document);
    request.edits.with = take_settings(d, use, with);
    int quiet = kl_error_quiet(1);

    if (!kl_cluster_open(&request, &cluster)) {
        if (!kl_planned_init(&cluster, &planned)) {
            if (same_plan(planned.plan, d->a.planned.plan)) *effect = KL_EFFECT_NOTHING;
            if (same_plan(planned.plan, d->b.planned.plan)) *effect = KL_EFFECT_ALL;
        }
        kl_planned_fini(&planned);
        kl_cluster_close(&cluster);
    }
    kl_error_quiet(quiet);
    kl_xml_free(document);
    free(with);
    return ncclSuccess;
}

static ncclResult_t try_each(struct kl_diff *d, bool *use, int *all)
{
    *all = -1;
    for (int i = 0; i < d->facts.nfacts; i++) {
        use[i] = true;
        KL_TRY(try_facts(d, use, &d->facts.fact[i].alone));
        use[i] = false;
        if (*all < 0 && d->facts.fact[i].alone == KL_EFFECT_ALL) *all = i;
    }
    return ncclSuccess;
}

/* Leave out one after the other, as long as the rest still has the whole consequence. */
static ncclResult_t reduce(struct kl_diff *d, bool *use)
{
    enum kl_fact_effect effect;

    memset(use, true, (size_t)d->facts.nfacts);
    KL_TRY(try_facts(d, use, &effect));
    d->verified = effect == KL_EFFECT_ALL;
    for (int i = 0; i < d->facts.nfacts; i++) {
        if (!d->verified) {
            use[i] = d->facts.fact[i].alone != KL_EFFECT_NOTHING;
            continue;
        }
        use[i] = false;
        KL_TRY(try_facts(d, use, &effect));
        use[i] = effect != KL_EFFECT_ALL;
    }
    return ncclSuccess;
}

/* The smallest set of facts that turns A's plan into B's, as found by leaving facts out. */
static ncclResult_t find_set(struct kl_diff *d)
{
    int n = d->facts.nfacts, all = -1;

    if (n < 2 || n > KL_FACTS_TRIED || d->a.planned.plan->ranks_per_host > MAX_RANKS_TRIED || !d->facts.comparable ||
        same_plan(d->a.planned.plan, d->b.planned.plan)) {
        memset(d->in_cause, true, (size_t)n);
        d->verified = n == 1;
        return ncclSuccess;
    }
    KL_TRY(try_each(d, d->in_cause, &all));
    if (all < 0) return reduce(d, d->in_cause);
    d->in_cause[all] = d->verified = true;
    return ncclSuccess;
}

ncclResult_t kl_diff_find_cause(struct kl_diff *d)
{
    d->in_cause = calloc((size_t)d->facts.nfacts + 1, sizeof *d->in_cause);
    if (!d->in_cause) return KL_NOMEM("differences");
    d->nothing_changes = true;
    for (int w = 0; w < KL_ROW_WHATS; w++)
        if (d->rows.changed[w] && kl_row_stage((enum kl_diff_what)w) != KL_STAGE_PATHS) d->nothing_changes = false;
    return find_set(d);
}

bool kl_diff_leads(const struct kl_diff *d, int fact, int *n)
{
    *n = 0;
    for (int i = 0; i < d->facts.nfacts; i++) {
        if (!d->in_cause[i] || (i != fact && !kl_fact_alike(&d->facts.fact[i], &d->facts.fact[fact]))) continue;
        if (i < fact) return false;
        *n += d->facts.fact[i].nmerged;
    }
    return true;
}
