/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/search_report.h"

#include "base/error.h"
#include "plan/search_make.h"

#include <stdlib.h>

static ncclResult_t report_graph(struct kl_search_report *r, int id)
{
    const struct kl_plan_domain *d = r->domain;
    struct kl_graph_report *g = &r->graph[r->ngraphs++];

    *g = (struct kl_graph_report){.id = id, .graph = d->graphs.graph[id], .why = d->graphs.why[id]};
    KL_TRY(kl_search_log_create(g->why, d->topo, &g->log));
    KL_TRY(kl_load_create(d->topo, g->graph, &g->load));
    return kl_search_group_links(d->topo, g);
}

static ncclResult_t not_computed(const struct kl_plan_domain *d, unsigned graphs)
{
    bool nvls = graphs >> KL_GRAPH_NVLS & 1;

    return KL_FAIL(ncclInvalidUsage, "no %s graph was computed: %s", nvls ? "nvls" : "collnet",
                   kl_offload_text(nvls ? d->no_nvls : d->no_collnet));
}

static ncclResult_t report_graphs(struct kl_search_report *r, unsigned graphs)
{
    for (int i = 0; i < KL_GRAPHS; i++)
        if (graphs >> kl_graph_order[i] & 1 && r->domain->graphs.graph[kl_graph_order[i]])
            KL_TRY(report_graph(r, kl_graph_order[i]));
    return r->ngraphs ? ncclSuccess : not_computed(r->domain, graphs);
}

/* A search in place of the graph file, to find the file's cost. */
static ncclResult_t search_instead(struct kl_search_report *r)
{
    struct kl_plan_request request = kl_planned_request(r->cluster, &r->planned);

    request.file = NULL;
    return r->planned.graph_file ? kl_plan_create(&request, &r->searched) : ncclSuccess;
}

ncclResult_t kl_search_report_make(const struct kl_cluster *cluster, unsigned graphs, struct kl_search_report *r)
{
    *r = (struct kl_search_report){.cluster = cluster};
    KL_TRY(kl_planned_init(cluster, &r->planned));
    r->domain = &r->planned.plan->domain[r->planned.plan->domain_of[0]];
    KL_TRY(report_graphs(r, graphs));
    KL_TRY(search_instead(r));
    KL_TRY(kl_search_find_faults(r));
    kl_search_find_headline(r);
    return ncclSuccess;
}

void kl_search_report_fini(struct kl_search_report *r)
{
    for (int i = 0; i < r->ngraphs; i++) {
        free(r->graph[i].log);
        kl_load_free(r->graph[i].load);
        free(r->graph[i].group);
    }
    free(r->fault);
    kl_plan_free(r->searched);
    kl_planned_fini(&r->planned);
}
