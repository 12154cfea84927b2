/* SPDX-License-Identifier: Apache-2.0 */
/** diff_print.h - two plans side by side (answer/diff.h), for people. */
#ifndef KOLO_TOOL_EXPLAIN_DIFF_PRINT_H
#define KOLO_TOOL_EXPLAIN_DIFF_PRINT_H

#include "answer/diff.h"

void kl_diff_text(const struct kl_diff *diff, FILE *to);

#endif
