/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/diff.h"

#include "base/error.h"
#include "plan/diff_make.h"

#include <stdlib.h>

ncclResult_t kl_diff_find(const struct kl_cluster_request *a, const struct kl_cluster_request *b, struct kl_diff *d)
{
    *d = (struct kl_diff){.verified = false};
    KL_TRY(kl_diff_side_open(a, &d->a));
    KL_TRY(kl_diff_side_open(b, &d->b));
    KL_TRY(kl_diff_side_match(&d->a, &d->b, &d->facts.comparable));
    KL_TRY(kl_diff_find_facts(&d->a, &d->b, &d->facts));
    KL_TRY(kl_diff_compare_rules(&d->a, &d->b, &d->rows));
    KL_TRY(kl_diff_compare_plans(&d->a, &d->b, &d->rows));
    KL_TRY(kl_diff_find_cause(d));
    KL_TRY(kl_diff_find_changes(d));
    kl_diff_find_effect(d);
    return ncclSuccess;
}

void kl_diff_fini(struct kl_diff *d)
{
    kl_diff_side_close(&d->a);
    kl_diff_side_close(&d->b);
    free(d->facts.fact);
    free(d->facts.op);
    free(d->rows.row);
    free(d->in_cause);
}
