/* SPDX-License-Identifier: Apache-2.0 */
/**
 * files.h - raise the limit of open files. Many systems begin with 1,024 and allow processes to raise that; a process
 * with many ranks needs more. The limit is raised when it is reached, and no further than needed: programs that use
 * select(2) break with high descriptors.
 *
 * Threads:  any.
 * Source:   getrlimit(2).
 */
#ifndef KL_OS_FILES_H
#define KL_OS_FILES_H

#include <stdbool.h>
#include <stdint.h>

/** Raise the limit to `n` open files. Returns the limit in force: less than `n` if the system allows no more. */
uint64_t kl_files_allow(uint64_t n);

/**
 * After a call has failed with errno `err`. True: it failed for lack of descriptors, and the limit has been raised:
 * repeat the call.
 */
bool kl_files_make_room(int err);

#endif
