/* SPDX-License-Identifier: Apache-2.0 */
/** search_make.h - shared by the search_*.c. Private to them. */
#ifndef KL_PLAN_SEARCH_MAKE_H
#define KL_PLAN_SEARCH_MAKE_H

#include "plan/search_report.h"

/** The faults of the machine, with a search without each; the report's graphs exist (search_faults.c). */
ncclResult_t kl_search_find_faults(struct kl_search_report *report);

/** Is `a` the heavier: does its removal help an earlier graph, or the same one more? (search_faults.c) */
bool kl_fault_outweighs(const struct kl_search_report *report, const struct kl_fault_cost *a,
                        const struct kl_fault_cost *b);

/** The loads of a graph's links, grouped (search_links.c). */
ncclResult_t kl_search_group_links(const struct kl_topo *topo, struct kl_graph_report *graph);

/** Choose the headline (search_headline.c). */
void kl_search_find_headline(struct kl_search_report *report);

#endif
