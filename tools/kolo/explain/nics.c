/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/nics_print.h"
#include "tools/kolo/nic_skips.h"

static void print_text(const struct kl_nics *n, const struct kl_cluster *cluster, FILE *to)
{
    struct kl_cluster asked = *cluster;

    asked.hosts = n->hosts; /* one more may be assumed */
    kl_print_preamble(cluster, to);
    kl_nics_text(n, &asked, to);
    kl_assumed_print(cluster, "", to);
    kl_uncertain_print(cluster, "", to);
    kl_nic_skips_text(cluster->skip, cluster->nskips, to);
}

ncclResult_t kl_explain_nics(const struct kl_explain_request *q, FILE *to)
{
    struct kl_opened opened;
    struct kl_nics n = {0};
    ncclResult_t rc;

    KL_TRY(kl_cluster_options_open(&q->cluster, &opened));
    rc = kl_nics_find(&opened.cluster, q->cluster.hosts > 0, &n);
    if (!rc && q->json)
        rc = kl_nics_json(&n, &opened.cluster, to);
    else if (!rc)
        print_text(&n, &opened.cluster, to);
    kl_nics_fini(&n);
    kl_opened_fini(&opened);
    return rc;
}
