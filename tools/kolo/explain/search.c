/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/search.h"

#include "base/error.h"
#include "tools/kolo/graph_name.h"

#include <stdlib.h>
#include <string.h>

static ncclResult_t graphs_named(const struct kl_explain_request *q, unsigned *graphs)
{
    *graphs = kl_graphs_named(q->nwords ? q->word[0] : NULL);
    return *graphs ? ncclSuccess : KL_FAIL(ncclInvalidArgument, "no graph \"%s\": " KL_GRAPHS_NAMES, q->word[0]);
}

static ncclResult_t tell_graph(struct kl_search_told *told, int id)
{
    const struct kl_plan_domain *d = told->domain;
    struct kl_told_graph *g = &told->graph[told->ngraphs++];

    *g = (struct kl_told_graph){.id = id, .graph = d->graphs.graph[id], .why = d->graphs.why[id]};
    KL_TRY(kl_story_create(g->why, d->topo, &g->story));
    KL_TRY(kl_load_create(d->topo, g->graph, &g->load));
    return kl_tell_links(d->topo, g);
}

static ncclResult_t not_computed(const struct kl_explain_request *q, const struct kl_search_told *told)
{
    const struct kl_plan_domain *d = told->domain;
    enum kl_offload why = !strcmp(q->word[0], "nvls") ? d->no_nvls : d->no_collnet;

    return KL_FAIL(ncclInvalidUsage, "no %s graph was computed: %s", q->word[0], kl_offload_text(why));
}

static ncclResult_t tell_graphs(const struct kl_explain_request *q, struct kl_search_told *told)
{
    unsigned graphs;

    KL_TRY(graphs_named(q, &graphs));
    for (int i = 0; i < KL_GRAPHS; i++)
        if (graphs >> kl_graph_order[i] & 1 && told->domain->graphs.graph[kl_graph_order[i]])
            KL_TRY(tell_graph(told, kl_graph_order[i]));
    return told->ngraphs ? ncclSuccess : not_computed(q, told);
}

static ncclResult_t tell(const struct kl_explain_request *q, struct kl_search_told *told)
{
    unsigned graphs;

    KL_TRY(graphs_named(q, &graphs)); /* a wrong name is said before anything takes time */
    KL_TRY(kl_planned_init(told->cluster, &told->planned));
    told->domain = &told->planned.plan->domain[told->planned.plan->domain_of[0]];
    told->all = q->all;
    KL_TRY(tell_graphs(q, told));
    KL_TRY(kl_tell_causes(told));
    kl_tell_verdict(told);
    return ncclSuccess;
}

static void forget(struct kl_search_told *told)
{
    for (int i = 0; i < told->ngraphs; i++) {
        free(told->graph[i].story);
        kl_load_free(told->graph[i].load);
        free(told->graph[i].group);
    }
    free(told->cause);
    kl_plan_free(told->searched);
    kl_planned_fini(&told->planned);
}

ncclResult_t kl_explain_search(const struct kl_explain_request *q, FILE *to)
{
    struct kl_cluster cluster;
    struct kl_search_told told = {.cluster = &cluster};
    ncclResult_t rc;

    KL_TRY(kl_cluster_options_open(&q->cluster, &cluster));
    KL_TRY_OR(rc, out, tell(q, &told));
    if (q->json)
        rc = kl_search_told_json(&told, to);
    else
        kl_search_told_text(&told, to);
out:
    forget(&told);
    kl_cluster_close(&cluster);
    return rc;
}
