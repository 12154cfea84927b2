/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/inner.h"
#include "tools/kolo/explain/traffic_print.h"

static void print_text(const struct kl_traffic_answer *x, FILE *to)
{
    kl_print_preamble(x->asked.cluster, to);
    kl_traffic_text(x, to);
    kl_assumed_print(x->asked.cluster, "", to);
    kl_uncertain_print(x->asked.cluster, "", to);
}

enum { MOST_PODS = 256 };

static ncclResult_t read_question(const struct kl_explain_request *q, struct kl_traffic_question *u,
                                  int64_t pod[MOST_PODS])
{
    *u = (struct kl_traffic_question){.pod = pod};
    KL_TRY(kl_inner_operation(q, &u->op));
    KL_TRY(kl_inner_number("--root", q->root, &u->root));
    return kl_inner_list("--pod", q->pod, pod, MOST_PODS, &u->npods);
}

ncclResult_t kl_explain_traffic(const struct kl_explain_request *q, FILE *to)
{
    struct kl_traffic_question question;
    struct kl_traffic_answer x;
    int64_t pod[MOST_PODS];
    struct kl_opened opened;

    KL_TRY(read_question(q, &question, pod));
    KL_TRY(kl_cluster_options_open(&q->cluster, &opened));
    ncclResult_t rc = kl_traffic_answer_make(&question, &opened, &x);

    if (!rc && q->json)
        rc = kl_traffic_json(&x, to);
    else if (!rc)
        print_text(&x, to);
    kl_traffic_answer_fini(&x);
    kl_opened_fini(&opened);
    return rc;
}
