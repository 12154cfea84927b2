/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/pair_print.h"

static void print_text(const struct kl_pair_route *route, const struct kl_cluster *cluster, FILE *to)
{
    kl_print_preamble(cluster, to);
    kl_pair_text(route, cluster, to);
    kl_assumed_print(cluster, "", to);
    kl_uncertain_print(cluster, "", to);
}

ncclResult_t kl_explain_pair(const struct kl_explain_request *q, FILE *to)
{
    struct kl_opened opened;
    struct kl_pair_route route = {.nsegments = 0};
    ncclResult_t rc;

    KL_TRY(kl_cluster_options_open(&q->cluster, &opened));
    rc = kl_pair_route_find(&opened.cluster, q->word[0], q->word[1], &route);
    if (!rc && q->json)
        rc = kl_pair_json(&route, &opened.cluster, to);
    else if (!rc)
        print_text(&route, &opened.cluster, to);
    kl_pair_route_fini(&route);
    kl_opened_fini(&opened);
    return rc;
}
