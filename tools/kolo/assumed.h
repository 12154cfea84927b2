/* SPDX-License-Identifier: Apache-2.0 */
/** assumed.h - what an answer rests on that its file does not say, and what must be said before it. */
#ifndef KOLO_TOOL_ASSUMED_H
#define KOLO_TOOL_ASSUMED_H

#include "plan/cluster.h"

#include <stdio.h>

/** How each answer begins: the release that is followed, and the finding, if there is one, on a line of its own. */
void kl_answer_begin(const struct kl_cluster *cluster, FILE *to);

/** The finding alone. */
void kl_finding_print(const struct kl_cluster *cluster, FILE *to);

/** The same as a warning on stderr, and how much is assumed: for formats that have no place for it. */
void kl_finding_warn(const struct kl_cluster *cluster);

/** The block of assumptions, where there are any; each line begins with `indent`. */
void kl_assumed_print(const struct kl_cluster *cluster, const char *indent, FILE *to);

/** The block of rules that are uncertain and matter (plan/uncertain.h), where there are any. */
void kl_uncertain_print(const struct kl_cluster *cluster, const char *indent, FILE *to);

#endif
