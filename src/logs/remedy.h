/* SPDX-License-Identifier: Apache-2.0 */
/**
 * remedy.h - remedies without those that a log shows as applied.
 *
 * A remedy consists of clauses with "; " between them. A clause with NAME=VALUE is left out where the log shows that NAME has
 * this value.
 *
 * Threads: pure.
 */
#ifndef KL_LOGS_REMEDY_H
#define KL_LOGS_REMEDY_H

#include "base/text.h"
#include "logs/log.h"

/** Append the clauses of `remedy` (NULL: none) that remain. */
void kl_remedy_add(const struct kl_log *log, const char *remedy, struct kl_text *text);

#endif
