/* SPDX-License-Identifier: Apache-2.0 */
/**
 * switches.h - the order of hosts that a tree of switches (plan/switches.h) asks for, in a sentence and as JSON.
 *
 * Errors: as kl_switches_read; ncclSystemError for a file that cannot be read.
 */
#ifndef KL_ANSWER_SWITCHES_H
#define KL_ANSWER_SWITCHES_H

#include "base/text.h"
#include "plan/switches.h"

#include <stdio.h>

/** Read a file ("-" for standard input). Free with kl_switches_fini, also after a failure. */
ncclResult_t kl_switches_open(const char *file, struct kl_switches *switches);

/** "8 hosts below 2 switches ...", without a full stop. */
void kl_switches_summary(const struct kl_switches *switches, struct kl_text *to);
ncclResult_t kl_switches_json(const struct kl_switches *switches, FILE *to);

#endif
