/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/search_print.h"
#include "tools/kolo/graph_name.h"

ncclResult_t kl_explain_search(const struct kl_explain_request *q, FILE *to)
{
    unsigned graphs = kl_graphs_named(q->nwords ? q->word[0] : NULL);
    struct kl_cluster cluster;
    struct kl_search_report report;
    ncclResult_t rc;

    if (!graphs) return KL_FAIL(ncclInvalidArgument, "no graph \"%s\": " KL_GRAPHS_NAMES, q->word[0]);
    KL_TRY(kl_cluster_options_open(&q->cluster, &cluster));
    KL_TRY_OR(rc, out, kl_search_report_make(&cluster, graphs, &report));
    if (!q->json) kl_print_preamble(&cluster, to);
    if (q->json)
        rc = kl_search_json(&report, q->all, to);
    else
        kl_search_text(&report, q->all, to);
    if (!q->json) kl_assumed_print(&cluster, "", to);
    if (!q->json) kl_uncertain_print(&cluster, "", to);
out:
    kl_search_report_fini(&report);
    kl_cluster_close(&cluster);
    return rc;
}
