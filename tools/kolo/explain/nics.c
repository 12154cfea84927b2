/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/nics_print.h"
#include "tools/kolo/nic_skips.h"
#include "tools/kolo/output.h"

ncclResult_t kl_explain_nics(const struct kl_explain_request *q, FILE *to)
{
    struct kl_cluster cluster;
    struct kl_nics n = {0};
    ncclResult_t rc;

    KL_TRY(kl_cluster_options_open(&q->cluster, &cluster));
    KL_TRY_OR(rc, out, kl_nics_find(&cluster, q->cluster.hosts > 0, &n));
    if (!q->json) kl_print_preamble(&cluster, to);
    if (q->json)
        rc = kl_output_json(kl_nics_json(&n, &cluster), to);
    else
        kl_nics_text(&n, &cluster, to);
    if (!q->json) kl_assumed_print(&cluster, "", to);
    if (!q->json) kl_uncertain_print(&cluster, "", to);
    if (!q->json) kl_nic_skips_text(cluster.skip, cluster.nskips, to);
out:
    kl_nics_fini(&n);
    kl_cluster_close(&cluster);
    return rc;
}
