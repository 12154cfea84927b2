/* SPDX-License-Identifier: Apache-2.0 */
/** nics_print.h - which NIC serves which GPU (plan/nics.h), for people and for programs. */
#ifndef KOLO_TOOL_EXPLAIN_NICS_PRINT_H
#define KOLO_TOOL_EXPLAIN_NICS_PRINT_H

#include "base/text.h"
#include "plan/nics.h"

#include <jansson.h>
#include <stdio.h>

/** The answer in one sentence, without its full stop. */
void kl_nics_summary(const struct kl_nics *n, struct kl_text *to);

void kl_nics_text(const struct kl_nics *n, const struct kl_cluster *cluster, FILE *to);
json_t *kl_nics_json(const struct kl_nics *n, const struct kl_cluster *cluster);

#endif
