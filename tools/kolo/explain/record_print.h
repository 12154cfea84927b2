/* SPDX-License-Identifier: Apache-2.0 */
/** record_print.h - answers about records of calls, for people. */
#ifndef KOLO_TOOL_EXPLAIN_RECORD_PRINT_H
#define KOLO_TOOL_EXPLAIN_RECORD_PRINT_H

#include "answer/record.h"

#include <stdbool.h>
#include <stdio.h>

/** `all`: every rank, also of many. */
void kl_record_print(const struct kl_record_answer *answer, bool all, FILE *to);

#endif
