/* SPDX-License-Identifier: Apache-2.0 */
/** assumed.h - the assumptions and findings that an answer rests on, as JSON, and the origin of its topology. */
#ifndef KL_ANSWER_ASSUMED_H
#define KL_ANSWER_ASSUMED_H

#include "plan/cluster.h"

#include <jansson.h>

/** "machine" or "tuning": the part of an answer that a rule concerns. */
const char *kl_uncertain_part(enum kl_change change);

/** An array with an object for each uncertain rule that matters (plan/uncertain.h): code, part, text, since, and whether it is followed. */
json_t *kl_uncertain_json(const struct kl_cluster *cluster);

/** An array with an object for each assumption: code, text, from, and its numbers and names. */
json_t *kl_assumed_json(const struct kl_cluster *cluster);

/** An object, or null where there is no finding. */
json_t *kl_finding_json(const struct kl_cluster *cluster);

/** The setting that named the topology file, where the request did not: "environment", "FILE:LINE"; else null. */
json_t *kl_origin_json(const struct kl_cluster *cluster);

/** The setting itself; false if the request named the machine, or nothing did. */
bool kl_origin_find(const struct kl_cluster *cluster, struct kl_setting *setting);

/** Add to an answer: "nccl", "assumed", "uncertain", "finding". */
void kl_assumed_add(const struct kl_cluster *cluster, json_t *answer);

#endif
