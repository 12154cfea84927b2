/* SPDX-License-Identifier: Apache-2.0 */
/** search_print.h - the course of a search (answer/search.h), for people. */
#ifndef KOLO_TOOL_EXPLAIN_SEARCH_PRINT_H
#define KOLO_TOOL_EXPLAIN_SEARCH_PRINT_H

#include "answer/search.h"

/** `all`: every attempt and every kind of link, nothing merged. */
void kl_search_text(const struct kl_search_report *report, bool all, FILE *to);

#endif
