/* SPDX-License-Identifier: Apache-2.0 */
/** assumed.h - the assumptions and the warnings that accompany an answer. */
#ifndef KOLO_TOOL_ASSUMED_H
#define KOLO_TOOL_ASSUMED_H

#include "plan/cluster.h"

#include <jansson.h>
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

/** An array with an object for each of these: code, part, text, since, and whether it is followed. */
json_t *kl_uncertain_json(const struct kl_cluster *cluster);

/** An array with an object for each assumption: code, text, from, and its numbers and names. */
json_t *kl_assumed_json(const struct kl_cluster *cluster);

/** An object, or null where there is no finding. */
json_t *kl_finding_json(const struct kl_cluster *cluster);

#endif
