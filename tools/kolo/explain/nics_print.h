/* SPDX-License-Identifier: Apache-2.0 */
/** nics_print.h - the NIC of each GPU (answer/nics.h), for people. */
#ifndef KOLO_TOOL_EXPLAIN_NICS_PRINT_H
#define KOLO_TOOL_EXPLAIN_NICS_PRINT_H

#include "answer/nics.h"

void kl_nics_text(const struct kl_nics *n, const struct kl_cluster *cluster, FILE *to);

#endif
