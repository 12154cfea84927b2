/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "logs/bench_file.h"
#include "tools/kolo/explain/bench_print.h"
#include "tools/kolo/explain/explain.h"

static ncclResult_t read_files(const struct kl_explain_request *q, struct kl_bench *b)
{
    for (int i = 0; i < q->benches.n; i++) KL_TRY(kl_bench_add_file(b, q->benches.text[i]));
    for (int i = 0; i < q->nwords; i++) KL_TRY(kl_bench_add_file(b, q->word[i]));
    return kl_bench_finish(b, &q->cluster);
}

ncclResult_t kl_explain_bench(const struct kl_explain_request *q, FILE *to)
{
    struct kl_bench b;
    ncclResult_t rc;

    kl_bench_init(&b);
    rc = read_files(q, &b);
    if (!rc && q->json)
        rc = kl_bench_json(&b, to);
    else if (!rc)
        kl_bench_text(&b, q->all, to);
    kl_bench_fini(&b);
    return rc;
}
