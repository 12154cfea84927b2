/* SPDX-License-Identifier: Apache-2.0 */
/** diff_make.h - shared by the diff*.c. Private to them. */
#ifndef KL_PLAN_DIFF_MAKE_H
#define KL_PLAN_DIFF_MAKE_H

#include "plan/diff.h"

/* ---- diff_list.c ---- */

/** Append an empty fact; NULL when memory is short. */
struct kl_fact *kl_facts_add(struct kl_facts *facts, enum kl_fact_kind kind, enum kl_fact_change change);
ncclResult_t kl_facts_add_op(struct kl_facts *facts, int fact, int a, int b, const char *key);

/** Merge fact `from` into fact `to`, or drop it (-1); later ones move up. */
void kl_facts_drop(struct kl_facts *facts, int from, int to);

/** Apply the facts with use[i] to a clone of A's document. */
ncclResult_t kl_facts_apply(const struct kl_facts *facts, const struct kl_diff_side *a, const struct kl_diff_side *b,
                            const bool *use, struct kl_xml **document);

/* ---- diff_links.c ---- */

ncclResult_t kl_diff_compare_links(const struct kl_xml *a, const struct kl_xml *b, int gpu_a, int gpu_b, int nccl,
                                   struct kl_facts *facts);

/* ---- diff_document.c, diff_facts.c ---- */

ncclResult_t kl_diff_compare_documents(const struct kl_diff_side *a, const struct kl_diff_side *b,
                                       struct kl_facts *facts);
ncclResult_t kl_diff_find_facts(const struct kl_diff_side *a, const struct kl_diff_side *b, struct kl_facts *facts);

/* ---- diff_side.c ---- */

/** Open one side; then, with both open, match the GPUs. `comparable`: is it the same machine, more or less? */
ncclResult_t kl_diff_side_open(const struct kl_cluster_request *request, struct kl_diff_side *side);
ncclResult_t kl_diff_side_match(struct kl_diff_side *a, struct kl_diff_side *b, bool *comparable);

/** Is it one machine, looked at twice? */
bool kl_diff_same_source(const struct kl_diff_side *a, const struct kl_diff_side *b);
void kl_diff_side_close(struct kl_diff_side *side);

/** The topology a rank plans with, and its index there. */
const struct kl_topo *kl_diff_topo(const struct kl_diff_side *side, int rank, int *gpu);

/* ---- diff_rows.c, diff_rules.c, diff_plans.c ---- */

/** Count a comparison, and keep the row if its answers differ. */
ncclResult_t kl_rows_compare(struct kl_diff_rows *rows, const struct kl_diff_row *row);

ncclResult_t kl_diff_compare_rules(const struct kl_diff_side *a, const struct kl_diff_side *b,
                                   struct kl_diff_rows *rows);
ncclResult_t kl_diff_compare_plans(const struct kl_diff_side *a, const struct kl_diff_side *b,
                                   struct kl_diff_rows *rows);

/* ---- diff_cause.c, diff_release.c, diff_effect.c ---- */

ncclResult_t kl_diff_find_cause(struct kl_diff *diff);
ncclResult_t kl_diff_find_changes(struct kl_diff *diff);
void kl_diff_find_effect(struct kl_diff *diff);

#endif
