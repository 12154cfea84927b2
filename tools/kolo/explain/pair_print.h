/* SPDX-License-Identifier: Apache-2.0 */
/** pair_print.h - how two ends are joined (plan/pair.h), for people and for programs. */
#ifndef KOLO_TOOL_EXPLAIN_PAIR_PRINT_H
#define KOLO_TOOL_EXPLAIN_PAIR_PRINT_H

#include "base/text.h"
#include "plan/pair.h"

#include <jansson.h>
#include <stdio.h>

/** The answer in one sentence, without its full stop. */
void kl_pair_summary(const struct kl_pair_route *route, struct kl_text *to);

void kl_pair_text(const struct kl_pair_route *route, const struct kl_cluster *cluster, FILE *to);
json_t *kl_pair_json(const struct kl_pair_route *route, const struct kl_cluster *cluster);

#endif
