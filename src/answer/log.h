/* SPDX-License-Identifier: Apache-2.0 */
/**
 * log.h - logs of NCCL: findings (logs/findings.h), and the log beside the plan (logs/compare.h).
 *
 * Errors: ncclSystemError for a file that cannot be read; ncclInvalidArgument for a request that names no machine.
 */
#ifndef KL_ANSWER_LOG_H
#define KL_ANSWER_LOG_H

#include "answer/texts.h"
#include "logs/compare.h"
#include "logs/findings.h"

#include <stdbool.h>
#include <stdio.h>

struct kl_log_answer {
    struct kl_log log;
    struct kl_log_findings findings;
    struct kl_log_compare compared;
    bool named; /* a machine was asked for */
};

/** Read and judge; `request` as kl_log_compare_make takes it. Free with kl_log_answer_fini, also after a failure. */
ncclResult_t kl_log_answer_make(const struct kl_named_text *text, int n, const struct kl_cluster_request *request,
                                struct kl_log_answer *answer);
void kl_log_answer_fini(struct kl_log_answer *answer);
ncclResult_t kl_log_json(const struct kl_log_answer *answer, FILE *to);

#endif
