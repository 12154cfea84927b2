/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/pair_print.h"
#include "tools/kolo/output.h"

ncclResult_t kl_explain_pair(const struct kl_explain_request *q, FILE *to)
{
    struct kl_cluster cluster;
    struct kl_pair_route route = {.nlegs = 0};
    ncclResult_t rc;

    KL_TRY(kl_cluster_options_open(&q->cluster, &cluster));
    KL_TRY_OR(rc, out, kl_pair_route_find(&cluster, q->word[0], q->word[1], &route));
    if (!q->json) kl_print_preamble(&cluster, to);
    if (q->json)
        rc = kl_output_json(kl_pair_json(&route, &cluster), to);
    else
        kl_pair_text(&route, &cluster, to);
    if (!q->json) kl_assumed_print(&cluster, "", to);
    if (!q->json) kl_uncertain_print(&cluster, "", to);
out:
    kl_pair_route_fini(&route);
    kl_cluster_close(&cluster);
    return rc;
}
