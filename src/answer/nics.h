/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nics.h - the NIC of each GPU (plan/nics.h).
 *
 *     nics_summary.c   in one sentence
 *     nics_json.c      all of it as JSON
 */
#ifndef KL_ANSWER_NICS_H
#define KL_ANSWER_NICS_H

#include "base/text.h"
#include "plan/nics.h"

#include <stdio.h>

/** The answer in one sentence, without its full stop. */
void kl_nics_summary(const struct kl_nics *n, struct kl_text *to);

ncclResult_t kl_nics_json(const struct kl_nics *n, const struct kl_cluster *cluster, FILE *to);

#endif
