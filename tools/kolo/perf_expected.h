/* SPDX-License-Identifier: Apache-2.0 */
/**
 * perf_expected.h - what a reduction must give, worked out once for all threads of a process: it takes every rank's contribution.
 *
 * Threads: any. Whoever comes while another works it out waits for that.
 */
#ifndef KOLO_TOOL_PERF_EXPECTED_H
#define KOLO_TOOL_PERF_EXPECTED_H

#include "tools/kolo/perf_data.h"

/** Const until kl_expected_put; NULL: out of memory. */
const struct kl_data_table *kl_expected_get(ncclDataType_t type, ncclRedOp_t op, int nranks);

/** Not needed any more; the last user frees it. NULL is fine. */
void kl_expected_put(const struct kl_data_table *table);

#endif
