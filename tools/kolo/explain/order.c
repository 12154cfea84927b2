/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/inner.h"
#include "tools/kolo/explain/order_print.h"

enum { MOST_ELEMENTS = 64 };

struct question {
    struct kl_order_question order;
    int64_t group[KL_ORDER_GROUP], element[MOST_ELEMENTS];
    int nelements;
};

static ncclResult_t read_question(const struct kl_explain_request *q, struct question *u)
{
    *u = (struct question){
        .order = {.group = u->group, .registered = q->registered || q->captured, .lint = q->lint, .vs = q->vs}};
    KL_TRY(kl_inner_operation(q, &u->order.op));
    KL_TRY(kl_inner_list("--group", q->group, u->group, KL_ORDER_GROUP - 1, &u->order.ngroup));
    KL_TRY(kl_inner_list("--element", q->element, u->element, MOST_ELEMENTS, &u->nelements));
    return kl_inner_number("--root", q->root, &u->order.root);
}

static void print_text(const struct kl_order_answer *x, const struct question *u, FILE *to)
{
    kl_print_preamble(x->asked.cluster, to);
    kl_order_text(x, u->element, u->nelements, to);
    kl_assumed_print(x->asked.cluster, "", to);
    kl_uncertain_print(x->asked.cluster, "", to);
}

ncclResult_t kl_explain_order(const struct kl_explain_request *q, FILE *to)
{
    struct kl_order_answer x;
    struct question u;
    struct kl_opened opened;

    KL_TRY(read_question(q, &u));
    KL_TRY(kl_cluster_options_open(&q->cluster, &opened));
    ncclResult_t rc = kl_order_answer_make(&u.order, &q->cluster, &opened, &x);

    if (!rc && q->json)
        rc = kl_order_json(&x, to);
    else if (!rc)
        print_text(&x, &u, to);
    kl_order_answer_fini(&x);
    kl_opened_fini(&opened);
    return rc;
}
