/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/diff_make.h"

#include "base/error.h"

#include <stdlib.h>

/*
 * Every change is reverted in B and added to A, by planning with a mix of both releases. Most have no consequence, so
 * ranges of them are tried first, and halved where they have one.
 */

enum { MAX_RANKS_TRIED = 128 }; /* of a machine, as in diff_cause.c: this is some dozen plans */

bool kl_diff_change_matters(const struct kl_diff_change *c)
{
    return c->needed || c->alone == KL_EFFECT_ALL || c->alone == KL_EFFECT_PART;
}

/* ---- one plan ---- */

/* Is there any row between two sides with the same ranks? */
static ncclResult_t differ(const struct kl_diff_side *x, const struct kl_diff_side *y, bool *yes)
{
    struct kl_diff_rows rows = {.row = NULL};
    ncclResult_t rc = kl_diff_compare_rules(x, y, &rows);

    if (!rc) rc = kl_diff_compare_plans(x, y, &rows);
    *yes = rows.nrows > 0;
    free(rows.row);
    return rc;
}

static ncclResult_t unlike(const struct kl_diff_side *side, const struct kl_diff_side *mixed, bool *yes)
{
    return side->to_b ? differ(side, mixed, yes) : differ(mixed, side, yes);
}

/* Plan side `of` with some changes as in `other`. A machine that cannot be planned is different from both. */
static ncclResult_t try_mix(const struct kl_diff_side *of, const struct kl_diff_side *other, int first, int last,
                            bool *unlike_of, bool *unlike_other)
{
    struct kl_cluster_request request = *of->request;
    struct kl_diff_side mixed = {.request = &request};
    ncclResult_t rc = ncclSuccess;

    request.release = kl_nccl_mix(of->cluster.options.nccl, other->cluster.options.nccl, first, last);
    *unlike_of = *unlike_other = true;
    int quiet = kl_error_quiet(1);

    if (!kl_cluster_open(&request, &mixed.cluster)) {
        mixed.to_b = of->to_b ? of->to_b : other->to_b; /* A's: all three have its ranks */
        bool planned = !kl_planned_init(&mixed.cluster, &mixed.planned);

        if (planned && mixed.planned.plan->nranks == of->planned.plan->nranks) {
            rc = unlike(of, &mixed, unlike_of);
            if (!rc) rc = unlike(other, &mixed, unlike_other);
        }
        kl_planned_fini(&mixed.planned);
        kl_cluster_close(&mixed.cluster);
    }
    kl_error_quiet(quiet);
    return rc;
}

/* ---- which of them ---- */

static struct kl_diff_change *change_at(struct kl_diff *d, int change)
{
    for (int i = 0; i < d->nchanges; i++)
        if ((int)d->change[i].change == change) return &d->change[i];
    return NULL;
}

static bool any_between(const struct kl_diff *d, int first, int last)
{
    for (int i = 0; i < d->nchanges; i++)
        if ((int)d->change[i].change >= first && (int)d->change[i].change < last) return true;
    return false;
}

static ncclResult_t take_back(struct kl_diff *d, int first, int last)
{
    bool unlike_a, unlike_b;

    if (!any_between(d, first, last)) return ncclSuccess;
    KL_TRY(try_mix(&d->b, &d->a, first, last, &unlike_b, &unlike_a));
    if (!unlike_b) return ncclSuccess;
    if (last - first == 1) return change_at(d, first)->needed = true, ncclSuccess;
    KL_TRY(take_back(d, first, (first + last) / 2));
    return take_back(d, (first + last) / 2, last);
}

static ncclResult_t add(struct kl_diff *d, int first, int last)
{
    bool unlike_a, unlike_b;

    if (!any_between(d, first, last)) return ncclSuccess;
    KL_TRY(try_mix(&d->a, &d->b, first, last, &unlike_a, &unlike_b));
    if (!unlike_a) return ncclSuccess;
    if (last - first == 1) return change_at(d, first)->alone = unlike_b ? KL_EFFECT_PART : KL_EFFECT_ALL, ncclSuccess;
    KL_TRY(add(d, first, (first + last) / 2));
    return add(d, (first + last) / 2, last);
}

ncclResult_t kl_diff_find_changes(struct kl_diff *d)
{
    int a = d->a.cluster.options.nccl, b = d->b.cluster.options.nccl;

    for (int i = 0; i < KL_CHANGES; i++)
        if (kl_nccl_has(a, (enum kl_change)i) != kl_nccl_has(b, (enum kl_change)i))
            d->change[d->nchanges++] = (struct kl_diff_change){.change = (enum kl_change)i};
    if (!d->nchanges || d->facts.nfacts || !d->facts.comparable) return ncclSuccess;
    if (d->a.planned.plan->ranks_per_host > MAX_RANKS_TRIED) return ncclSuccess;
    d->changes_tried = true;
    for (int i = 0; i < d->nchanges; i++) d->change[i].alone = KL_EFFECT_NOTHING;
    if (!d->rows.nrows) return ncclSuccess;
    KL_TRY(take_back(d, 0, KL_CHANGES));
    return add(d, 0, KL_CHANGES);
}
