/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/bench.h"

#include "base/error.h"
#include "logs/bench_file.h"

static ncclResult_t read_text(struct kl_bench *b, const struct kl_named_text *t)
{
    return t->text ? kl_bench_add_any(b, t->name, t->text, t->bytes) : kl_bench_add_file(b, t->name);
}

ncclResult_t kl_bench_answer_make(const struct kl_named_text *text, int n, const struct kl_cluster_request *request,
                                  struct kl_bench *b)
{
    kl_bench_init(b);
    for (int i = 0; i < n; i++) KL_TRY(read_text(b, &text[i]));
    return kl_bench_finish(b, request);
}
