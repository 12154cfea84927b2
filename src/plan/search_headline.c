/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/search_make.h"

#include "topo/paths.h"

const char *kl_search_headline_name(enum kl_search_headline headline)
{
    static const char *const names[KL_HEADLINES] = {
        [KL_HEADLINE_FAULT] = "fault",         [KL_HEADLINE_REFUSED] = "graph_file_refused",
        [KL_HEADLINE_INJECTED] = "graph_file", [KL_HEADLINE_FALLBACK] = "fallback",
        [KL_HEADLINE_NONE] = "no_graph",       [KL_HEADLINE_LIMIT] = "limit",
    };

    return names[headline];
}

static const struct kl_fault_cost *worst_fault(const struct kl_search_report *r)
{
    const struct kl_fault_cost *worst = NULL;

    for (int i = 0; i < r->nfaults; i++)
        if (r->fault[i].costs && (!worst || kl_fault_outweighs(r, &r->fault[i], worst))) worst = &r->fault[i];
    return worst;
}

/* Where no fault is known to cost anything: the first with an unknown cost, else the first. */
static const struct kl_fault_cost *first_suspect(const struct kl_search_report *r)
{
    for (int i = 0; i < r->nfaults; i++)
        if (!r->fault[i].mended) return &r->fault[i];
    return r->nfaults ? &r->fault[0] : NULL;
}

/* Two GPUs that cannot reach each other. */
static void find_apart(const struct kl_topo *t, int apart[2])
{
    for (int i = 0; i < t->count[KL_NODE_GPU]; i++)
        for (int k = 0; k < t->count[KL_NODE_GPU]; k++) {
            if (i == k || kl_path_between(t, KL_NODE_GPU, i, KL_NODE_GPU, k)->type < KL_PATH_NET) continue;
            apart[0] = kl_topo_at(t, KL_NODE_GPU, i);
            apart[1] = kl_topo_at(t, KL_NODE_GPU, k);
            return;
        }
}

static const struct kl_graph_report *first_refused(const struct kl_search_report *r)
{
    for (int i = 0; i < r->ngraphs; i++)
        if (r->graph[i].why->refused) return &r->graph[i];
    return NULL;
}

static const struct kl_graph_report *first_fallback(const struct kl_search_report *r)
{
    for (int i = 0; i < r->ngraphs; i++)
        if (r->graph[i].why->end == KL_END_FALLBACK) return &r->graph[i];
    return NULL;
}

/* For a machine without a fault that costs anything. */
static enum kl_search_headline headline_of(const struct kl_search_report *r, const struct kl_graph_report **about)
{
    const struct kl_graph_report *first = &r->graph[0];

    if ((*about = first_refused(r))) return KL_HEADLINE_REFUSED;
    *about = first;
    if (first->why->end == KL_END_INJECTED) return KL_HEADLINE_INJECTED;
    if ((*about = first_fallback(r))) return KL_HEADLINE_FALLBACK;
    *about = first;
    return first->graph->nchannels ? KL_HEADLINE_LIMIT : KL_HEADLINE_NONE;
}

void kl_search_find_headline(struct kl_search_report *r)
{
    r->about = &r->graph[0];
    r->apart[0] = r->apart[1] = -1;
    r->worst = worst_fault(r);
    if (r->worst) return; /* KL_HEADLINE_FAULT */
    r->suspect = first_suspect(r);
    r->headline = headline_of(r, &r->about);
    if (r->headline == KL_HEADLINE_FALLBACK) find_apart(r->domain->topo, r->apart);
}
