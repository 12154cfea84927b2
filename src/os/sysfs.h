/* SPDX-License-Identifier: Apache-2.0 */
/**
 * sysfs.h - the texts and links of sysfs, or of a recorded machine in the same layout.
 *
 * Silent: the caller decides whether a missing file is an error.
 */
#ifndef KL_OS_SYSFS_H
#define KL_OS_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

/** Contents of `dir`/`name` without the final newline, "" if it is missing or longer than `bytes`. True if not empty. */
bool kl_sysfs_text(const char *dir, const char *name, char *text, size_t bytes);

/** Last component of a link's target, "" if it is not a link. */
void kl_sysfs_link_name(const char *dir, const char *name, char *text, size_t bytes);

#endif
