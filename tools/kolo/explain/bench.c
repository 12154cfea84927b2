/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "tools/kolo/explain/bench_print.h"
#include "tools/kolo/explain/explain.h"

#include <stdlib.h>

ncclResult_t kl_explain_bench(const struct kl_explain_request *q, FILE *to)
{
    struct kl_named_text *file = kl_explain_texts(&q->benches, q);
    struct kl_bench b;
    ncclResult_t rc;

    if (!file) return KL_NOMEM("names of files");
    rc = kl_bench_answer_make(file, q->benches.n + q->nwords, &q->cluster, &b);
    if (!rc && q->json)
        rc = kl_bench_json(&b, to);
    else if (!rc)
        kl_bench_text(&b, q->all, to);
    kl_bench_fini(&b);
    free(file);
    return rc;
}
