/* SPDX-License-Identifier: Apache-2.0 */
/**
 * overcommit.h - does the system promise no more memory than it has (vm.overcommit_memory=2)?
 *
 * Then a page of shared memory that cannot be had when it is touched ends the process (SIGBUS), where reserving it before would have
 * been an error. Elsewhere the system looks for memory by ending processes, which nothing here prevents.
 *
 * Threads:  any.
 * Source:   the kernel's Documentation/mm/overcommit-accounting.rst.
 */
#ifndef KL_OS_OVERCOMMIT_H
#define KL_OS_OVERCOMMIT_H

#include <stdbool.h>

/** Read once. False also where it cannot be known. */
bool kl_overcommit_is_strict(void);

#endif
