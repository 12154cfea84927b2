/* SPDX-License-Identifier: Apache-2.0 */
/**
 * overcommit.h - does the system promise no more memory than it has (vm.overcommit_memory=2)?
 *
 * Then touching a page of shared memory that cannot be allocated ends the process (SIGBUS), whereas reserving it
 * beforehand fails with an error. Other systems free memory by killing processes, which Kolo cannot prevent.
 *
 * Threads:  any.
 * Source:   the kernel's Documentation/mm/overcommit-accounting.rst.
 */
#ifndef KL_OS_OVERCOMMIT_H
#define KL_OS_OVERCOMMIT_H

#include <stdbool.h>

/** Read once. False also if it is unknown. */
bool kl_overcommit_is_strict(void);

#endif
