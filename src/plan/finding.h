/* SPDX-License-Identifier: Apache-2.0 */
/**
 * finding.h - findings about a machine that must be reported first, because otherwise the answers are about another
 * machine than intended.
 *
 * Units:   GB/s: bus bandwidth of an all-reduce of KL_FINDING_BYTES, as the model predicts it.
 * Errors:  as kl_cluster_open and kl_plan_create.
 */
#ifndef KL_PLAN_FINDING_H
#define KL_PLAN_FINDING_H

#include "plan/cluster.h"
#include "plan/found.h"
#include "plan/plan.h"

enum { KL_FINDING_BYTES = 1 << 30, KL_FINDING_TEXT = 512 };

/** Look at the machine of a request; plans twice where its NVLinks are wrong. `cluster` was opened for it. */
ncclResult_t kl_finding_look(const struct kl_cluster_request *request, const struct kl_cluster *cluster,
                             struct kl_finding *finding);

/** The model's bus bandwidth of an all-reduce of KL_FINDING_BYTES under a plan; 0 where nothing can do it. */
ncclResult_t kl_finding_measure(const struct kl_plan *plan, float *busbw);

const char *kl_finding_name(enum kl_finding_code code); /* "no_nvlinks" */
/** A sentence without its full stop; "" for KL_FINDING_NONE. */
const char *kl_finding_text(const struct kl_finding *finding, char text[KL_FINDING_TEXT]);

#endif
