/* SPDX-License-Identifier: Apache-2.0 */
/**
 * sysfs.h - the little that topologies need of sysfs, below any root, so that recorded machines can be replayed.
 *
 * Paths are texts of KL_SYSFS_PATH_TEXT bytes; one that does not fit counts as missing, like a file that is not there.
 * Silent: what is missing means something to the caller.
 */
#ifndef KL_TOPO_SYSFS_H
#define KL_TOPO_SYSFS_H

#include "topo/facts.h"

#include <stdbool.h>
#include <stddef.h>

/** Contents of `dir`/`name` without the final newline, "" if it is missing or longer than `bytes`. True if not empty. */
bool kl_sysfs_text(const char *dir, const char *name, char *text, size_t bytes);

/** The directory of a PCI device, links resolved: its components name the bridges above. False: not there. */
bool kl_sysfs_pci_dir(const char *root, const char *busid, char dir[KL_SYSFS_PATH_TEXT]);

/** Last component of what a link points to, "" if it is none. */
void kl_sysfs_link_name(const char *dir, const char *name, char *text, size_t bytes);

/** Is this a bus id of 12 characters, hhhh:hh:hh.h? */
bool kl_sysfs_is_busid(const char *text);

/** `path` below `root`: paths of the live machine begin with /sys. */
void kl_sysfs_below(const char *root, const char *path, char out[KL_SYSFS_PATH_TEXT]);

#endif
