/* SPDX-License-Identifier: Apache-2.0 */
/**
 * process.h - is this still the process that created an object, or a fork of it?
 *
 * A forked child inherits the memory of its parent, but neither its threads nor its connections. An object that must
 * not be used there stores the generation of its process and compares: two loads, no system call.
 *
 * Threads: any. Forks that do not run the handlers of pthread_atfork (clone(2) called directly) are not detected.
 */
#ifndef KL_OS_PROCESS_H
#define KL_OS_PROCESS_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * Forks between the first process that called kl_process_generation and this one. Written in a child before fork(2)
 * returns there.
 */
extern _Atomic uint32_t kl_process_forks;

/** The generation of this process. */
uint32_t kl_process_generation(void);

/** The result of getpid(2), which is a system call each time. */
int32_t kl_process_id(void);

/** Is this the process of that generation, rather than a child of it? */
static inline bool kl_process_is(uint32_t generation)
{
    return kl_load_relaxed(&kl_process_forks) == generation;
}

#endif
