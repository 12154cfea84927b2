/* SPDX-License-Identifier: Apache-2.0 */
/** log_print.h - what a log says, as text and as JSON. */
#ifndef KOLO_TOOL_LOG_PRINT_H
#define KOLO_TOOL_LOG_PRINT_H

#include "logs/compare.h"
#include "logs/findings.h"
#include "logs/verdict.h"

#include <stdbool.h>
#include <stdio.h>

struct kl_log_answer {
    struct kl_log log;
    struct kl_log_findings findings;
    struct kl_log_compare compared;
    bool named; /* a machine was asked for */
};

/** `all`: every difference, and remarks. */
void kl_log_text(const struct kl_log_answer *answer, bool all, FILE *to);
ncclResult_t kl_log_json(const struct kl_log_answer *answer, FILE *to);

#endif
