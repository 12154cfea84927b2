/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/graph.h"

#include "topo/warn.h"

#include <stdio.h>

ncclResult_t kl_graph_answer_make(struct kl_opened *o, unsigned graphs, struct kl_plan_view *view)
{
    ncclResult_t rc = kl_opened_plan(o);

    if (rc) return rc;
    kl_opened_about_tuning(o, NULL);
    *view = (struct kl_plan_view){&o->cluster, o->planned.plan, graphs, o->search_ms, NULL};
    return ncclSuccess;
}

/* ---- warnings ---- */

static void collect(void *ctx, const char *text)
{
    json_array_append_new(ctx, json_string(text));
}

static void warn_of_fallback(const struct kl_plan_domain *d, json_t *warnings)
{
    for (int i = 0; i < KL_GRAPHS; i++) {
        char text[256];

        if (!d->graphs.why[i] || d->graphs.why[i]->end != KL_END_FALLBACK) continue;
        snprintf(text, sizeof text,
                 "no %s could be found for the GPUs with rank %d: they are taken in their order at 0.1 GB/s; see `kolo "
                 "topo` for the paths between them",
                 kl_graph_name(i), d->rank);
        collect(warnings, text);
    }
}

json_t *kl_graph_warnings(const struct kl_plan_view *view)
{
    const struct kl_cluster *cluster = view->cluster;
    const struct kl_plan *plan = view->plan;
    json_t *warnings = json_array();
    struct kl_topo *topo = NULL;
    struct kl_xml *document = NULL;

    if (!warnings || kl_cluster_whole(cluster, &topo, &document)) {
        json_decref(warnings);
        return NULL;
    }
    kl_topo_warn(document, cluster->options.nccl, cluster->file ? NULL : &cluster->facts.cpu, collect, warnings);
    for (int i = 0; i < plan->ndomains; i++) warn_of_fallback(&plan->domain[i], warnings);
    kl_topo_free(topo);
    kl_xml_free(document);
    return warnings;
}

ncclResult_t kl_graph_json(const struct kl_plan_view *view, FILE *to)
{
    json_t *warnings = kl_graph_warnings(view);

    return warnings ? kl_plan_json(view, warnings, to) : ncclSystemError;
}
