/* SPDX-License-Identifier: Apache-2.0 */
/**
 * process.h - is this still the process that something was made in?
 *
 * A forked child inherits the memory of its parent, but neither its threads nor its connections. What must not be used
 * there keeps the generation of its process and compares: two loads, no system call.
 *
 * Threads: any. Forks that do not run the handlers of pthread_atfork (clone(2) called directly) are not seen.
 */
#ifndef KL_OS_PROCESS_H
#define KL_OS_PROCESS_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stdint.h>

/** Forks between the first process that asked and this one. Written in a child before fork(2) returns there. */
extern _Atomic uint32_t kl_process_forks;

/** The generation of this process. */
uint32_t kl_process_generation(void);

/** What getpid(2) returns, which is a system call each time. */
int32_t kl_process_id(void);

/** Is this process of that generation, rather than a child of one that was? */
static inline bool kl_process_is(uint32_t generation)
{
    return kl_load_relaxed(&kl_process_forks) == generation;
}

#endif
