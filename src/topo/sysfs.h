/* SPDX-License-Identifier: Apache-2.0 */
/**
 * sysfs.h - what topologies need of sysfs besides its texts (os/sysfs.h), below any root, so that recorded machines can be
 * replayed.
 *
 * Paths are texts of KL_SYSFS_PATH_TEXT bytes; one that does not fit counts as missing, like a file that is not there.
 * Silent: what is missing means something to the caller.
 */
#ifndef KL_TOPO_SYSFS_H
#define KL_TOPO_SYSFS_H

#include "os/sysfs.h"
#include "topo/facts.h"

#include <stdbool.h>

/** The directory of a PCI device, links resolved: its components name the bridges above. False: not there. */
bool kl_sysfs_pci_dir(const char *root, const char *busid, char dir[KL_SYSFS_PATH_TEXT]);

/** Is this a bus id of 12 characters, hhhh:hh:hh.h? */
bool kl_sysfs_is_busid(const char *text);

/** `path` below `root`: paths of the live machine begin with /sys. */
void kl_sysfs_below(const char *root, const char *path, char out[KL_SYSFS_PATH_TEXT]);

#endif
