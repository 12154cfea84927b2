/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/diff.h"

#include "base/error.h"
#include "plan/finding.h"

#include <string.h>

static void look_at_unread(struct kl_diff_side *side)
{
    kl_uncertain_machine(&side->cluster);
    kl_uncertain_tuning(&side->planned, NULL, &side->cluster);
}

ncclResult_t kl_diff_answer_make(const struct kl_cluster_request *a, const struct kl_cluster_request *b,
                                 struct kl_diff *d)
{
    memset(d, 0, sizeof *d);
    KL_TRY(kl_diff_find(a, b, d));
    KL_TRY(kl_finding_look(a, &d->a.cluster, &d->a.cluster.finding));
    KL_TRY(kl_finding_look(b, &d->b.cluster, &d->b.cluster.finding));
    look_at_unread(&d->a);
    look_at_unread(&d->b);
    return ncclSuccess;
}
