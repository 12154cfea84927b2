/* SPDX-License-Identifier: Apache-2.0 */
/**
 * process_mark.h - a mark of a process, by which others on the host see that it has ended.
 *
 * A pid is reused; with its start time (clock ticks since boot) and its pid namespace it is unique.
 *
 * Threads: any.
 * Source:  proc(5), pid_namespaces(7).
 */
#ifndef KL_OS_PROCESS_MARK_H
#define KL_OS_PROCESS_MARK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct kl_process_mark {
    uint64_t started, pid_namespace; /* 0: unknown */
    int32_t pid;
};

/** The calling process's. */
struct kl_process_mark kl_process_mark_own(void);

/** Has it ended, also if its parent has not waited for it? False where that cannot be seen: in another pid namespace, or without /proc. */
bool kl_process_mark_is_over(const struct kl_process_mark *mark);

/** Field `number` of /proc/PID/stat, from the fourth on; 0: unknown. */
unsigned long long kl_process_stat(pid_t pid, int number);

#endif
