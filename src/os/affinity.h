/* SPDX-License-Identifier: Apache-2.0 */
/**
 * affinity.h - the CPUs on which a thread may run.
 *
 * Errors:   ncclSystemError; ncclInvalidArgument for a set without any CPU.
 * Threads:  each function acts on the calling thread. A new thread inherits its creator's set.
 * Source:   sched_setaffinity(2).
 */
#ifndef KL_OS_AFFINITY_H
#define KL_OS_AFFINITY_H

#include "base/cpuset.h"
#include "include/nccl.h"

/** The CPUs the calling thread may run on. */
ncclResult_t kl_affinity_get(struct kl_cpuset *set);

/**
 * Run on these CPUs from now on. `before`, unless NULL, receives the previous set, for restoring it. The system ignores
 * CPUs that do not exist or that a cpuset cgroup withholds, unless none is left.
 */
ncclResult_t kl_affinity_pin(const struct kl_cpuset *set, struct kl_cpuset *before);

/** How many CPUs the calling thread may run on; at least 1. */
int kl_affinity_count(void);

#endif
