/* SPDX-License-Identifier: Apache-2.0 */
/** assumed.h - the assumptions and the warnings that accompany an answer. */
#ifndef KOLO_TOOL_ASSUMED_H
#define KOLO_TOOL_ASSUMED_H

#include "plan/cluster.h"

#include <stdio.h>

/** Print the first lines of an answer: the followed release, and the finding, if there is one. */
void kl_print_preamble(const struct kl_cluster *cluster, FILE *to);

/** The finding alone. */
void kl_finding_print(const struct kl_cluster *cluster, FILE *to);

/** Print the finding and the number of assumptions as a warning on stderr, for formats without a place for them. */
void kl_finding_warn(const struct kl_cluster *cluster);

/** The block of assumptions, if there are any; each line begins with `indent`. */
void kl_assumed_print(const struct kl_cluster *cluster, const char *indent, FILE *to);

/** The block of uncertain rules that matter (plan/uncertain.h), if there are any. */
void kl_uncertain_print(const struct kl_cluster *cluster, const char *indent, FILE *to);

#endif
