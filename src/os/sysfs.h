/* SPDX-License-Identifier: Apache-2.0 */
/**
 * sysfs.h - the texts and links of sysfs, or of a recorded machine that is laid out like it.
 *
 * Silent: what is missing means something to the caller.
 */
#ifndef KL_OS_SYSFS_H
#define KL_OS_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

/** Contents of `dir`/`name` without the final newline, "" if it is missing or longer than `bytes`. True if not empty. */
bool kl_sysfs_text(const char *dir, const char *name, char *text, size_t bytes);

/** Last component of what a link points to, "" if it is none. */
void kl_sysfs_link_name(const char *dir, const char *name, char *text, size_t bytes);

#endif
