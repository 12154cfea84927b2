/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/record_print.h"

#include <stdlib.h>

ncclResult_t kl_explain_record(const struct kl_explain_request *q, FILE *to)
{
    struct kl_named_text *file = kl_explain_texts(&q->logs, q);
    struct kl_record_answer *a = calloc(1, sizeof *a);
    ncclResult_t rc = file && a ? ncclSuccess : KL_NOMEM("names of files");

    if (!rc) rc = kl_record_answer_make(file, q->logs.n + q->nwords, a);
    if (!rc && q->json)
        rc = kl_record_json(a, to);
    else if (!rc)
        kl_record_print(a, q->all, to);
    if (a) kl_record_answer_fini(a);
    free(a);
    free(file);
    return rc;
}
