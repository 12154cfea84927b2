/* SPDX-License-Identifier: Apache-2.0 */
/**
 * perf_expected.h - the expected result of a reduction, computed once for all threads of a process from all contributions.
 *
 * Threads: any. A thread that comes during the computation waits for it.
 */
#ifndef KOLO_TOOL_PERF_EXPECTED_H
#define KOLO_TOOL_PERF_EXPECTED_H

#include "tools/kolo/perf_data.h"

/** Const until kl_expected_put; NULL: out of memory. */
const struct kl_data_table *kl_expected_get(ncclDataType_t type, ncclRedOp_t op, int nranks);

/** Not needed any more; the last user frees it. NULL is fine. */
void kl_expected_put(const struct kl_data_table *table);

#endif
