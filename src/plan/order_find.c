/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "device/host/redop.h"
#include "plan/order.h"
#include "plan/order_rules.h"
#include "topo/paths.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- sums that never depend on the order ---- */

static bool is_exact(const struct kl_order_request *q)
{
    bool floats = q->type == ncclFloat16 || q->type == ncclBfloat16 || q->type == ncclFloat32 ||
                  q->type == ncclFloat64 || q->type == ncclFloat8e4m3 || q->type == ncclFloat8e5m2;

    return !floats || q->op == ncclMin || q->op == ncclMax;
}

/* ---- one size ---- */

static int64_t count_of(const struct kl_order *o, int64_t bytes)
{
    int64_t n = bytes / (int64_t)kl_type_bytes(o->request.type);

    if (o->request.func == KL_FUNC_REDUCE_SCATTER) n /= o->rules.nranks;
    return n > 0 ? n : 1;
}

static int count_sums(const struct kl_order *o)
{
    bool *seen = calloc((size_t)o->sums->nterms + 1, sizeof *seen);
    int n = 0;

    for (int i = 0; seen && i < o->ranges.n; i++)
        if (!seen[o->ranges.range[i].sum]) seen[o->ranges.range[i].sum] = true, n++;
    free(seen);
    return n;
}

static ncclResult_t cut(struct kl_order *o, const struct kl_tuning *t, int64_t bytes,
                        const struct kl_tuning_choice *forced)
{
    const struct kl_order_request *q = &o->request;
    int64_t counts[KL_ORDER_GROUP];
    int n = 1 + q->nmore;

    if (n > KL_ORDER_GROUP)
        return KL_FAIL(ncclInvalidArgument, "a group of %d operations: at most %d", n, KL_ORDER_GROUP);
    counts[0] = count_of(o, bytes);
    for (int i = 1; i < n; i++) counts[i] = count_of(o, q->more[i - 1]);
    o->group = (struct kl_order_group){.func = q->func, .type = q->type, .op = q->op};
    KL_TRY(kl_order_group_choose(&o->rules, t, forced, counts, n, &o->group));
    for (int i = 0; i < n; i++) {
        if (!o->group.ops[i].asked) o->op = &o->group.ops[i];
        if (q->registered && o->fewer_registered && o->group.ops[i].choice.nchannels <= 24 &&
            o->group.ops[i].choice.nchannels > 16)
            o->group.ops[i].choice.nchannels = 16;
    }
    kl_order_group_cut(&o->rules, &o->group);
    KL_TRY(kl_order_ranges_of(&o->rules, &o->wires, &o->group, o->op, q->root, o->sums, &o->ranges));
    o->nsums = count_sums(o);
    return ncclSuccess;
}

ncclResult_t kl_order_again(const struct kl_order *o, const struct kl_tuning *t, int64_t bytes,
                            const struct kl_tuning_choice *forced, struct kl_order *other)
{
    *other = *o;
    other->group.ops = NULL;
    other->ranges = (struct kl_order_ranges){.n = 0};
    ncclResult_t rc = cut(other, t, bytes, forced);

    other->wires = (struct kl_order_wires){.nranks = o->rules.nranks}; /* borrowed */
    other->choice = NULL;
    return rc;
}

/* ---- channels that are alike ---- */

static int alike(const struct kl_order *o, bool trees)
{
    int n = 0, first = -1;

    for (; n < o->wires.nchannels; n++) {
        int sum = trees ? kl_order_tree_sum(o->sums, &o->wires, n) : kl_order_chain(o->sums, &o->wires, n, 0);

        if (!n) first = sum;
        if (sum != first) break;
    }
    return n;
}

static int most_used(const struct kl_order *o, const struct kl_tuning *t)
{
    int most = 1;

    for (int i = 0; i < o->nchoices; i++) {
        struct kl_order other;

        if (o->choice[i].choice.algo < 0) continue;
        if (!kl_order_again(o, t, o->choice[i].last, NULL, &other) && other.op->last_channel + 1 > most)
            most = other.op->last_channel + 1;
        kl_order_fini(&other);
    }
    return most;
}

/* ---- registration ---- */

static bool all_direct(const struct kl_planned *planned)
{
    const struct kl_plan *p = planned->plan;
    int shift;

    if (p->connect->nodes.nnodes > 1 || p->ndomains > 1) return false;
    const struct kl_plan_domain *d = kl_plan_domain_of(p, 0, &shift);

    for (int a = 0; a < p->nranks; a++)
        for (int b = 0; b < p->nranks; b++) {
            struct kl_p2p answer;

            if (a != b && (kl_topo_p2p(d->topo, a, b, &answer) || !answer.p2p || answer.via >= 0)) return false;
        }
    return true;
}

/* ---- the whole answer ---- */

static ncclResult_t check(const struct kl_order_request *q, const struct kl_plan *p)
{
    if (q->func != KL_FUNC_ALL_REDUCE && q->func != KL_FUNC_REDUCE_SCATTER && q->func != KL_FUNC_REDUCE)
        return KL_FAIL(ncclInvalidUsage, "%s adds nothing; expected all_reduce, reduce_scatter or reduce",
                       kl_func_name[q->func]);
    if (p->nranks > KL_ORDER_RANKS)
        return KL_FAIL(ncclInvalidUsage, "%d ranks: orders of summation are listed for up to %d; use fewer --hosts",
                       p->nranks, KL_ORDER_RANKS);
    if (q->bytes > KL_ORDER_BYTES)
        return KL_FAIL(ncclInvalidUsage, "%" PRId64 " bytes: orders of summation are listed for up to 1024 GiB",
                       q->bytes);
    if (q->root < 0 || q->root >= p->nranks)
        return KL_FAIL(ncclInvalidUsage, "root %d: there are ranks 0 to %d", q->root, p->nranks - 1);
    return ncclSuccess;
}

ncclResult_t kl_order_derive(const struct kl_order_request *q, const struct kl_cluster *cluster,
                             const struct kl_planned *planned, struct kl_order_sums *sums, struct kl_order *o)
{
    const struct kl_tuning *t = &planned->plan->tuning;
    const struct kl_tuning_op op = kl_tuning_op_of(q->func, q->bytes, q->type, q->op);

    *o = (struct kl_order){.request = *q, .sums = sums, .exact = is_exact(q)};
    KL_TRY(check(q, planned->plan));
    KL_TRY(kl_order_rules_of(cluster, planned, &o->rules));
    KL_TRY(kl_order_wires_of(planned->plan->connect, &o->wires));
    o->fewer_registered = all_direct(planned) && q->func == KL_FUNC_ALL_REDUCE;
    KL_TRY(cut(o, t, q->bytes, NULL));
    KL_TRY(kl_tuning_ranges(t, &op, q->first, q->last, &o->choice, &o->nchoices));
    o->alike_rings = alike(o, false);
    o->alike_trees = alike(o, true);
    o->most_used = most_used(o, t);
    return ncclSuccess;
}

void kl_order_fini(struct kl_order *o)
{
    free(o->ranges.range);
    free(o->choice);
    kl_order_group_fini(&o->group);
    if (o->wires.ring) kl_order_wires_fini(&o->wires);
    o->ranges.range = NULL;
    o->choice = NULL;
}

/* ---- comparison ---- */

struct kl_order_difference kl_order_compare(const struct kl_order *a, const struct kl_order *b)
{
    const struct kl_order_range *x = a->ranges.range, *xend = x + a->ranges.n;
    const struct kl_order_range *y = b->ranges.range, *yend = y + b->ranges.n;

    while (x < xend && y < yend) {
        int64_t from = x->first > y->first ? x->first : y->first;
        bool before = x->block < y->block || (x->block == y->block && x->first + x->count <= y->first + y->count);

        if (x->block == y->block && x->sum != y->sum && from < x->first + x->count && from < y->first + y->count)
            return (struct kl_order_difference){.element = from, .block = x->block, .a = x->sum, .b = y->sum};
        if (before)
            x++;
        else
            y++;
    }
    return (struct kl_order_difference){.element = -1};
}
