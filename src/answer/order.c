/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/order.h"

#include "base/error.h"
#include "base/parse.h"

#include <stdlib.h>
#include <string.h>

static const int64_t example = (int64_t)64 << 20, largest = (int64_t)16 << 30;

/* ---- the question ---- */

static ncclResult_t check(const struct kl_order_question *q, const struct kl_coll_asked *a)
{
    if (a->func < 0 || !a->coll->reduces || kl_coll_id(a->coll) == KL_BARRIER)
        return KL_FAIL(ncclInvalidArgument, "%s adds nothing; expected all_reduce, reduce_scatter or reduce", a->title);
    if (q->ngroup < 0 || q->ngroup >= KL_ORDER_GROUP)
        return KL_FAIL(ncclInvalidArgument, "%d other operations of a group: at most %d", q->ngroup,
                       KL_ORDER_GROUP - 1);
    for (int i = 0; i < q->ngroup; i++)
        if (q->group[i] < 1)
            return KL_FAIL(ncclInvalidArgument, "a group with an operation of %lld bytes: a size is at least 1",
                           (long long)q->group[i]);
    return ncclSuccess;
}

static void take_sizes(struct kl_order_answer *x)
{
    const bool all = !x->question.op.first && !x->question.op.last;
    const int64_t bytes = all ? example : x->asked.last;
    const bool one = all || x->asked.first == x->asked.last;

    x->first = one ? 1 : x->asked.first;
    x->last = one && bytes < largest ? largest : bytes;
    x->asked.first = x->asked.last = bytes;
}

static struct kl_order_request request_of(const struct kl_order_answer *x, int64_t bytes)
{
    return (struct kl_order_request){.func = x->asked.func,
                                     .type = x->asked.type,
                                     .op = x->asked.op,
                                     .bytes = bytes,
                                     .first = x->first,
                                     .last = bytes > x->last ? bytes : x->last,
                                     .more = x->question.group,
                                     .nmore = x->question.ngroup,
                                     .root = x->question.root,
                                     .registered = x->question.registered};
}

/* ---- another size, setting or release ---- */

static ncclResult_t compare_orders(struct kl_order_answer *x, const struct kl_order *other)
{
    if (other->rules.nranks != x->order.rules.nranks)
        return KL_FAIL(ncclInvalidUsage, "--vs %s: %d ranks instead of %d", x->question.vs, other->rules.nranks,
                       x->order.rules.nranks);
    x->differs = kl_order_compare(&x->order, other);
    return ncclSuccess;
}

static ncclResult_t compare_with(struct kl_order_answer *x, struct kl_opened *o, int64_t bytes)
{
    const struct kl_order_request asked = request_of(x, bytes);
    struct kl_order other = {.request = {0}};

    ncclResult_t rc = kl_opened_plan(o);
    if (!rc) rc = kl_order_find(&asked, &o->cluster, &o->planned, &x->sums, &other);
    if (!rc) rc = compare_orders(x, &other);
    kl_order_fini(&other);
    return rc;
}

static ncclResult_t compare_cluster(struct kl_order_answer *x, const struct kl_cluster_request *request)
{
    struct kl_opened other;

    KL_TRY(kl_opened_init(request, &other));
    ncclResult_t rc = compare_with(x, &other, x->asked.last);
    kl_opened_fini(&other);
    return rc;
}

static ncclResult_t compare_setting(struct kl_order_answer *x, const struct kl_cluster_request *request)
{
    struct kl_cluster_request q = *request;
    const size_t n = (size_t)q.edits.with.n;
    const char **with = calloc(n + 1, sizeof *with);

    if (!with) return KL_NOMEM("settings");
    if (n) memcpy(with, q.edits.with.text, n * sizeof *with);
    with[n] = x->question.vs;
    q.edits.with = (struct kl_edit_list){with, (int)n + 1};
    ncclResult_t rc = compare_cluster(x, &q);

    free(with);
    return rc;
}

static ncclResult_t compare(struct kl_order_answer *x, const struct kl_cluster_request *request, struct kl_opened *o)
{
    const char *vs = x->question.vs;
    struct kl_cluster_request q = *request;
    uint64_t bytes;

    x->differs = (struct kl_order_difference){.element = -1};
    if (!vs) return ncclSuccess;
    if (strchr(vs, '=')) return compare_setting(x, request);
    q.nccl = vs;
    if (kl_nccl_parse(vs) >= 0) return compare_cluster(x, &q);
    if (kl_parse_size(vs, &bytes) && bytes && bytes < (uint64_t)INT64_MAX) return compare_with(x, o, (int64_t)bytes);
    return KL_FAIL(ncclInvalidArgument, "--vs %s: expected a size, NAME=VALUE, or a release of NCCL", vs);
}

/* ---- the answer ---- */

ncclResult_t kl_order_answer_make(const struct kl_order_question *q, const struct kl_cluster_request *request,
                                  struct kl_opened *o, struct kl_order_answer *x)
{
    memset(x, 0, sizeof *x);
    x->question = *q;
    KL_TRY(kl_coll_ask(&q->op, &x->asked));
    KL_TRY(check(q, &x->asked));
    take_sizes(x);
    KL_TRY(kl_coll_place(&x->asked, o));
    KL_TRY(kl_coll_check_type(&x->asked, &o->planned.plan->tuning));
    const struct kl_tuning_op op = kl_tuning_op_of(x->asked.func, x->asked.last, x->asked.type, x->asked.op);
    const struct kl_order_request asked = request_of(x, x->asked.last);

    kl_opened_about_tuning(o, &op);
    KL_TRY(kl_order_find(&asked, &o->cluster, &o->planned, &x->sums, &x->order));
    KL_TRY(compare(x, request, o));
    if (!q->lint) KL_TRY(kl_order_find_settings(&x->order, request));
    kl_order_find_lints(&x->order, &o->cluster);
    return ncclSuccess;
}

void kl_order_answer_fini(struct kl_order_answer *x)
{
    kl_order_fini(&x->order);
    kl_order_sums_fini(&x->sums);
}
