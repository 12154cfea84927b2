/* SPDX-License-Identifier: Apache-2.0 */
/**
 * files.h - the limit of open files. Many systems begin with 1,024 and allow more to who asks; a process with many ranks needs
 * them. The limit is raised when it is reached, and no further than needed: programs that use select(2) mind high descriptors.
 *
 * Threads:  any.
 * Source:   getrlimit(2).
 */
#ifndef KL_OS_FILES_H
#define KL_OS_FILES_H

#include <stdbool.h>
#include <stdint.h>

/** Let the process have `n` files open. Returns how many it may have now: less than `n` where the system allows no more. */
uint64_t kl_files_allow(uint64_t n);

/** A call has failed with errno `err`. Was that for lack of descriptors, and may we have more now? Then try it again. */
bool kl_files_make_room(int err);

#endif
