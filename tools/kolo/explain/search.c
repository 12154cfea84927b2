/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/graph_name.h"
#include "base/error.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/search_print.h"

static void print_text(const struct kl_search_report *report, bool all, FILE *to)
{
    kl_print_preamble(report->cluster, to);
    kl_search_text(report, all, to);
    kl_assumed_print(report->cluster, "", to);
    kl_uncertain_print(report->cluster, "", to);
}

ncclResult_t kl_explain_search(const struct kl_explain_request *q, FILE *to)
{
    unsigned graphs;
    struct kl_opened opened;
    struct kl_search_report report;
    ncclResult_t rc;

    KL_TRY(kl_graphs_read(q->nwords ? q->word[0] : NULL, &graphs));
    KL_TRY(kl_cluster_options_open(&q->cluster, &opened));
    rc = kl_search_report_make(&opened.cluster, graphs, &report);
    if (!rc && q->json)
        rc = kl_search_json(&report, q->all, to);
    else if (!rc)
        print_text(&report, q->all, to);
    kl_search_report_fini(&report);
    kl_opened_fini(&opened);
    return rc;
}
