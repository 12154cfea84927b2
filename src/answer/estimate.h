/* SPDX-License-Identifier: Apache-2.0 */
/**
 * estimate.h - the time that the tuning model predicts for a collective of several sizes.
 *
 * Units:  bytes of the whole (nccl-tests' size), microseconds, GB/s (1e9 bytes).
 * Errors: ncclInvalidUsage for collectives made of sends and receives, for which there is no model.
 */
#ifndef KL_ANSWER_ESTIMATE_H
#define KL_ANSWER_ESTIMATE_H

#include "answer/coll.h"

/** `asked` without sizes (kl_coll_ask); each of the `n` sizes is at least 1, and a barrier takes none (n 0). */
ncclResult_t kl_estimate_json(const struct kl_coll_asked *asked, const int64_t *bytes, int n, struct kl_opened *opened,
                              FILE *to);

#endif
