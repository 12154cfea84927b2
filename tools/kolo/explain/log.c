/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/log_print.h"

#include <string.h>

static ncclResult_t read_files(const struct kl_explain_request *q, struct kl_log *log)
{
    for (int i = 0; i < q->logs.n; i++) KL_TRY(kl_log_add_file(log, q->logs.text[i]));
    for (int i = 0; i < q->nwords; i++) KL_TRY(kl_log_add_file(log, q->word[i]));
    return kl_log_finish(log);
}

ncclResult_t kl_explain_log(const struct kl_explain_request *q, FILE *to)
{
    struct kl_log_answer a = {.named = kl_cluster_is_named(&q->cluster)};
    ncclResult_t rc;

    kl_log_init(&a.log);
    KL_TRY_OR(rc, out, read_files(q, &a.log));
    KL_TRY_OR(rc, out, kl_log_findings_make(&a.log, &a.findings));
    KL_TRY_OR(rc, out, kl_log_compare_make(&a.log, &q->cluster, &a.compared));
    if (q->json)
        rc = kl_log_json(&a, to);
    else
        kl_log_text(&a, q->all, to);
out:
    kl_log_compare_fini(&a.compared);
    kl_log_findings_fini(&a.findings);
    kl_log_fini(&a.log);
    return rc;
}
