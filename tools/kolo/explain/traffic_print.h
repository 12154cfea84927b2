/* SPDX-License-Identifier: Apache-2.0 */
/** traffic_print.h - the bytes of an operation over links and NICs (answer/traffic.h), for people. */
#ifndef KOLO_TOOL_EXPLAIN_TRAFFIC_PRINT_H
#define KOLO_TOOL_EXPLAIN_TRAFFIC_PRINT_H

#include "answer/traffic.h"
#include "tools/kolo/explain/coll_print.h"

void kl_traffic_text(const struct kl_traffic_answer *answer, FILE *to);

#endif
