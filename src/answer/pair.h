/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pair.h - the connection of two ends (plan/pair.h).
 *
 *     pair_summary.c   in one sentence
 *     pair_json.c      all of it as JSON
 */
#ifndef KL_ANSWER_PAIR_H
#define KL_ANSWER_PAIR_H

#include "base/text.h"
#include "plan/pair.h"

#include <stdio.h>

/** The answer in one sentence, without its full stop. */
void kl_pair_summary(const struct kl_pair_route *route, struct kl_text *to);

ncclResult_t kl_pair_json(const struct kl_pair_route *route, const struct kl_cluster *cluster, FILE *to);

#endif
