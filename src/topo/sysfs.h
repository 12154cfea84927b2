/* SPDX-License-Identifier: Apache-2.0 */
/**
 * sysfs.h - further access to sysfs for topologies (texts: os/sysfs.h), below any root, so that recorded machines can be
 * replayed.
 *
 * Paths are texts of KL_SYSFS_PATH_TEXT bytes; one that does not fit counts as missing, like a file that is not there.
 * Silent: the caller decides what a missing file means.
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

/**
 * A bus id as NVML writes it, with 4 or 8 digits for the domain and in either case, in the form of sysfs. Any other text
 * ("fffffff:ffff:ff" for a device that cannot be seen) stays, in lower case.
 */
void kl_sysfs_busid(const char *text, char busid[KL_BUSID_TEXT]);

/** `path` below `root`: paths of the live machine begin with /sys. */
void kl_sysfs_below(const char *root, const char *path, char out[KL_SYSFS_PATH_TEXT]);

#endif
