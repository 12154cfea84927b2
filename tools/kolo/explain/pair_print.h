/* SPDX-License-Identifier: Apache-2.0 */
/** pair_print.h - the connection of two ends (answer/pair.h), for people. */
#ifndef KOLO_TOOL_EXPLAIN_PAIR_PRINT_H
#define KOLO_TOOL_EXPLAIN_PAIR_PRINT_H

#include "answer/pair.h"

void kl_pair_text(const struct kl_pair_route *route, const struct kl_cluster *cluster, FILE *to);

#endif
