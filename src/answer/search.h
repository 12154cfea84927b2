/* SPDX-License-Identifier: Apache-2.0 */
/**
 * search.h - the course of a search (plan/search_report.h).
 *
 *     search_words.c      parts of sentences
 *     search_headline.c   the first line
 *     search_json.c       all of it as JSON
 */
#ifndef KL_ANSWER_SEARCH_H
#define KL_ANSWER_SEARCH_H

#include "base/text.h"
#include "plan/search_report.h"

#include <stdio.h>

/** "8 channels of 20 GB/s". */
void kl_search_add_result(const struct kl_graph_result *result, struct kl_text *text);

/** The name of the machine for which the cost of a fault was tried. */
const char *kl_search_mended(const struct kl_fault_cost *fault);

/** "GPU/0 → NVS/0-0 (NVL) and 2 like it", or "all 8 links GPU → NVS (NVL)": the links of a group. */
void kl_search_add_links(const struct kl_topo *topo, const struct kl_link_group *group, struct kl_text *text);

/** The first line. */
void kl_search_add_headline(const struct kl_search_report *report, struct kl_text *text);
enum { KL_HEADLINE_TEXT = 1024 };

/** `all`: with every attempt. */
ncclResult_t kl_search_json(const struct kl_search_report *report, bool all, FILE *to);

#endif
