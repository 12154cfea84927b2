/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/traffic.h"

#include "base/error.h"
#include "base/text.h"
#include "plan/order.h"
#include "plan/topo_name.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

const char *kl_traffic_link_text(const struct kl_traffic_answer *x, const struct kl_op_traffic_link *l,
                                 char text[KL_LINK_TEXT])
{
    const struct kl_topo *t = x->plan->domain[l->domain].topo;
    char from[KL_NODE_TEXT], to[KL_NODE_TEXT];

    snprintf(text, KL_LINK_TEXT, "%s -> %s", kl_topo_name(t, t->link[l->link].from, from),
             kl_topo_name(t, t->link[l->link].to, to));
    return text;
}

/* "6 collectives of 1 kind in 1 group, 3 all-to-alls, 8 messages (2 known by one side only)" */
static void calls_text(const struct kl_traffic_trace *t, struct kl_text *to)
{
    const int64_t alone = t->sends_alone + t->receives_alone;
    const char *sep = "";

    if (t->operations || (!t->all_to_alls && !t->messages)) {
        kl_text_add(to, "%lld collective%s of %d kind%s in %d group%s", (long long)t->operations,
                    kl_plural(t->operations), t->kinds, kl_plural(t->kinds), t->groups, kl_plural(t->groups));
        sep = ", ";
    }
    if (t->all_to_alls) {
        kl_text_add(to, "%s%lld all-to-all%s", sep, (long long)t->all_to_alls, kl_plural(t->all_to_alls));
        sep = ", ";
    }
    if (t->messages) kl_text_add(to, "%s%lld message%s", sep, (long long)t->messages, kl_plural(t->messages));
    if (alone) kl_text_add(to, " (%lld known by one side only)", (long long)alone);
}

void kl_traffic_summary(const struct kl_traffic_answer *x, struct kl_text *to)
{
    const struct kl_op_traffic *l = &x->traffic;
    char text[KL_LINK_TEXT];

    if (x->is_trace)
        calls_text(&x->trace, to);
    else
        kl_text_add(to, "%s %s", kl_algo_name[l->group.ops[0].choice.algo],
                    kl_proto_name[l->group.ops[0].choice.proto]);
    if (l->busiest_nic >= 0) {
        const struct kl_op_traffic_nic *n = &l->nic[l->busiest_nic];

        kl_text_add(to, "; busiest NIC NET/%d of host %d: %.1f MB out, %.1f in, %.0f us at %g GB/s", n->dev, n->host,
                    kl_megabytes(n->flow.wire[0]), kl_megabytes(n->flow.wire[1]), kl_op_traffic_nic_us(n),
                    (double)n->bw);
    }
    if (l->nlinks)
        kl_text_add(to, "; busiest link %s of host %d: %.1f MB, %.0f us at %g GB/s",
                    kl_traffic_link_text(x, &l->link[0], text), l->link[0].host, kl_megabytes(l->link[0].wire),
                    kl_op_traffic_us(l->link[0].wire, l->link[0].bw), (double)l->link[0].bw);
    if (x->is_trace && x->trace.skipped)
        kl_text_add(to, "; %lld call%s not counted", (long long)x->trace.skipped, kl_plural(x->trace.skipped));
    if (l->nhosts > 1 && l->nidle) kl_text_add(to, "; %d of %d NICs idle", l->nidle, l->nnics);
}

/* ---- the answer ---- */

static ncclResult_t check(const struct kl_traffic_question *q, const struct kl_coll_asked *a)
{
    if (a->func < 0)
        return KL_FAIL(ncclInvalidArgument, "%s: expected all_reduce, all_gather, reduce_scatter, broadcast or reduce",
                       a->title);
    if (a->first != a->last)
        return KL_FAIL(ncclInvalidArgument, "traffic of %s: expected one size, as in traffic %s 64M", a->title,
                       a->coll->name);
    if (a->last > KL_ORDER_BYTES)
        return KL_FAIL(ncclInvalidArgument, "traffic of %lld bytes: operations are cut for up to 1024 GiB",
                       (long long)a->last);
    if (q->npods < 0) return KL_FAIL(ncclInvalidArgument, "%d pods: expected a number, or one for each host", q->npods);
    return ncclSuccess;
}

ncclResult_t kl_traffic_make_pods(struct kl_traffic_answer *x)
{
    const struct kl_traffic_question *q = &x->question;
    const int nhosts = x->plan->nranks / x->plan->ranks_per_host;

    if (!q->npods) return ncclSuccess;
    if (q->npods > 1 && q->npods != nhosts)
        return KL_FAIL(ncclInvalidUsage, "pods of %d hosts are listed for a cluster of %d", q->npods, nhosts);
    if (q->npods == 1 && q->pod[0] < 1)
        return KL_FAIL(ncclInvalidArgument, "pods of %lld hosts: expected at least 1", (long long)q->pod[0]);
    x->pod = calloc((size_t)nhosts, sizeof *x->pod);
    if (!x->pod) return KL_NOMEM("pods");
    for (int h = 0; h < nhosts; h++) {
        int64_t pod = q->npods == 1 ? h / q->pod[0] : q->pod[h];

        if (pod < 0 || pod > INT_MAX)
            return KL_FAIL(ncclInvalidArgument, "host %d in pod %lld: pods are numbered from 0", h, (long long)pod);
        x->pod[h] = (int)pod;
    }
    return ncclSuccess;
}

ncclResult_t kl_traffic_answer_make(const struct kl_traffic_question *q, struct kl_opened *o,
                                    struct kl_traffic_answer *x)
{
    memset(x, 0, sizeof *x);
    x->question = *q;
    KL_TRY(kl_coll_ask(&q->op, &x->asked));
    KL_TRY(check(q, &x->asked));
    KL_TRY(kl_coll_place(&x->asked, o));
    KL_TRY(kl_coll_check_type(&x->asked, &o->planned.plan->tuning));
    x->plan = o->planned.plan;
    KL_TRY(kl_traffic_make_pods(x));
    const struct kl_tuning_op op = kl_tuning_op_of(x->asked.func, x->asked.last, x->asked.type, x->asked.op);
    const struct kl_op_traffic_request asked = {.func = x->asked.func,
                                                .type = x->asked.type,
                                                .op = x->asked.op,
                                                .bytes = x->asked.last,
                                                .root = q->root,
                                                .pod = x->pod};

    kl_opened_about_tuning(o, &op);
    return kl_op_traffic_find(&asked, &o->cluster, &o->planned, &x->traffic);
}

void kl_traffic_answer_fini(struct kl_traffic_answer *x)
{
    kl_op_traffic_fini(&x->traffic);
    free(x->pod);
    x->pod = NULL;
}
