/* SPDX-License-Identifier: Apache-2.0 */
/**
 * search_print.h - how a search went (plan/search_report.h), for people and for programs.
 *
 *     search_words.c      parts of sentences
 *     search_headline.c   the first line
 *     search_text.c       all of it for people
 *     search_json.c       and for programs
 */
#ifndef KOLO_TOOL_EXPLAIN_SEARCH_PRINT_H
#define KOLO_TOOL_EXPLAIN_SEARCH_PRINT_H

#include "base/text.h"
#include "plan/search_report.h"

#include <stdio.h>

/** "8 channels of 20 GB/s". */
void kl_search_add_result(const struct kl_graph_result *result, struct kl_text *text);

/** What the machine is called for which the cost of a fault was tried. */
const char *kl_search_mended(const struct kl_fault_cost *fault);

/** "GPU/0 → NVS/0-0 (NVL) and 2 like it", or "all 8 links GPU → NVS (NVL)": what a group is. */
void kl_search_add_links(const struct kl_topo *topo, const struct kl_link_group *group, struct kl_text *text);

/** The first line. */
void kl_search_add_headline(const struct kl_search_report *report, struct kl_text *text);
enum { KL_HEADLINE_TEXT = 1024 };

/** `all`: every attempt and every kind of link, nothing merged. */
void kl_search_text(const struct kl_search_report *report, bool all, FILE *to);
ncclResult_t kl_search_json(const struct kl_search_report *report, bool all, FILE *to);

#endif
