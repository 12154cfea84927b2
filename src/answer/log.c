/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/log.h"

#include "base/error.h"

#include <string.h>

static ncclResult_t read_text(struct kl_log *log, const struct kl_named_text *t)
{
    return t->text ? kl_log_add_text(log, t->name, t->text, t->bytes) : kl_log_add_file(log, t->name);
}

ncclResult_t kl_log_answer_make(const struct kl_named_text *text, int n, const struct kl_cluster_request *request,
                                struct kl_log_answer *a)
{
    memset(a, 0, sizeof *a);
    a->named = kl_cluster_is_named(request);
    kl_log_init(&a->log);
    for (int i = 0; i < n; i++) KL_TRY(read_text(&a->log, &text[i]));
    KL_TRY(kl_log_finish(&a->log));
    KL_TRY(kl_log_findings_make(&a->log, &a->findings));
    return kl_log_compare_make(&a->log, request, &a->compared);
}

void kl_log_answer_fini(struct kl_log_answer *a)
{
    kl_log_compare_fini(&a->compared);
    kl_log_findings_fini(&a->findings);
    kl_log_fini(&a->log);
}
