/* SPDX-License-Identifier: Apache-2.0 */
/** compare_make.h - for the compare*.c files only. */
#ifndef KL_LOGS_COMPARE_MAKE_H
#define KL_LOGS_COMPARE_MAKE_H

#include "logs/compare.h"
#include "plan/plan.h"

/** Compare the facts of a communicator in the log with its plan. */
ncclResult_t kl_log_compare_plan(const struct kl_log *log, int comm, const struct kl_plan *plan,
                                 struct kl_log_compare *compare);

#endif
