/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/queue/compare.h"

#include "coll/algorithms/algorithms.h"
#include "comm/queue/launch.h"
#include "transport/tags.h"

void kl_compare_init(struct kl_compare *c, enum kl_check_mode mode, bool collnet)
{
    const bool each = mode == KL_CHECK_DEBUG_GLOBAL, all = each || mode == KL_CHECK_FIRST_USE;

    *c = (struct kl_compare){.on = all || collnet, .all = all, .each = each, .awaited = -1};
}

static bool is_wanted(const struct kl_compare *c, const struct kl_task *t)
{
    return c->all || kl_algorithms[t->choice.algorithm]->unsigned_data;
}

/* The place for calls like this. */
static uint64_t *place_of(struct kl_compare *c, const struct kl_task *t, uint64_t *signature)
{
    struct kl_call call = kl_call_of_task(t);

    call.what &= ((uint64_t)1 << KL_CALL_NUMBER) - 1; /* regardless of its number */
    *signature = kl_call_signature(&call);
    return &c->compared[*signature * 0x9e3779b97f4a7c15u >> 58]; /* KL_COMPARED */
}

static ncclResult_t refuse(ncclComm_t comm, const struct kl_task *t, const struct kl_call *theirs, int from)
{
    char one[KL_CALL_TEXT], other[KL_CALL_TEXT];

    return KL_FAIL(ncclInvalidUsage, "rank %d called %s where rank %d called %s", from,
                   kl_call_text(*theirs, t->number, one), comm->rank,
                   kl_call_text(kl_call_of_task(t), t->number, other));
}

/* A step. True: it is done. */
static bool exchange(ncclComm_t comm, const struct kl_task *t, ncclResult_t *rc)
{
    const struct kl_call mine = kl_call_of_task(t);
    struct kl_compare *c = &comm->compare;
    const int n = comm->nranks, far = 1 << c->step, to = (comm->rank + far) % n, from = (comm->rank - far + n) % n;
    const uint32_t tag = KL_TAG_CALL | (uint32_t)c->step;
    struct kl_call theirs;
    bool here;

    if (!c->posted && (*rc = kl_bootstrap_post(comm->bootstrap, to, tag, &mine, sizeof mine))) return false;
    c->posted = true;
    c->awaited = from;
    if ((*rc = kl_bootstrap_poll(comm->bootstrap, from, tag, &theirs, sizeof theirs, &here)) || !here) return false;
    if (theirs.what != mine.what || theirs.count != mine.count) {
        *rc = refuse(comm, t, &theirs, from);
        return false;
    }
    c->posted = false;
    return true;
}

enum kl_progress kl_compare_progress(ncclComm_t comm, const struct kl_task *t, ncclResult_t *rc)
{
    struct kl_compare *c = &comm->compare;
    uint64_t signature, *place = place_of(c, t, &signature);

    if (is_wanted(c, t) && (c->each || *place != signature))
        for (; 1 << c->step < comm->nranks; c->step++)
            if (!exchange(comm, t, rc)) return *rc ? KL_DONE : KL_STALLED;
    if (is_wanted(c, t)) *place = signature;
    c->number = t->number;
    c->step = 0;
    c->awaited = -1;
    return KL_DONE;
}
