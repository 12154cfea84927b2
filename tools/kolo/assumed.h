/* SPDX-License-Identifier: Apache-2.0 */
/** assumed.h - the assumptions and the warnings that accompany an answer. */
#ifndef KOLO_TOOL_ASSUMED_H
#define KOLO_TOOL_ASSUMED_H

#include "plan/cluster.h"

#include <jansson.h>
#include <stdio.h>

/** Print the first lines of an answer: the followed release, and the finding, if there is one. */
void kl_answer_begin(const struct kl_cluster *cluster, FILE *to);

/** The finding alone. */
void kl_finding_print(const struct kl_cluster *cluster, FILE *to);

/** Print the finding and the number of assumptions as a warning on stderr, for formats without a place for them. */
void kl_finding_warn(const struct kl_cluster *cluster);

/** The block of assumptions, if there are any; each line begins with `indent`. */
void kl_assumed_print(const struct kl_cluster *cluster, const char *indent, FILE *to);

/** The block of uncertain rules that matter (plan/uncertain.h), if there are any. */
void kl_uncertain_print(const struct kl_cluster *cluster, const char *indent, FILE *to);

/** An array with an object for each of these: code, part, text, since, and whether it is followed. */
json_t *kl_uncertain_json(const struct kl_cluster *cluster);

/** An array with an object for each assumption: code, text, from, and its numbers and names. */
json_t *kl_assumed_json(const struct kl_cluster *cluster);

/** An object, or null where there is no finding. */
json_t *kl_finding_json(const struct kl_cluster *cluster);

#endif
