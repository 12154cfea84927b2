/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/record.h"
#include "base/error.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/log_print.h"

#include <stdlib.h>

ncclResult_t kl_explain_log(const struct kl_explain_request *q, FILE *to)
{
    struct kl_named_text *file = kl_explain_texts(&q->logs, q);
    struct kl_log_answer a;
    ncclResult_t rc;

    if (!file) return KL_NOMEM("names of files");
    if (kl_record_answer_suits(file, q->logs.n + q->nwords)) {
        free(file);
        return kl_explain_record(q, to);
    }
    rc = kl_log_answer_make(file, q->logs.n + q->nwords, &q->cluster, &a);
    if (!rc && q->json)
        rc = kl_log_json(&a, to);
    else if (!rc)
        kl_log_text(&a, q->all, to);
    kl_log_answer_fini(&a);
    free(file);
    return rc;
}
