/* SPDX-License-Identifier: Apache-2.0 */
/** log_print.h - the answer about a log (answer/log.h), for people. */
#ifndef KOLO_TOOL_LOG_PRINT_H
#define KOLO_TOOL_LOG_PRINT_H

#include "answer/log.h"
#include "logs/verdict.h"

/** `all`: every difference, and remarks. */
void kl_log_text(const struct kl_log_answer *answer, bool all, FILE *to);

#endif
