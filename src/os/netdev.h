/* SPDX-License-Identifier: Apache-2.0 */
/**
 * netdev.h - what sysfs knows about a network interface: its speed, its PCI device, and whether it only joins others.
 *
 * `sysfs` is the root, "/sys" for this machine. In a network namespace without a sysfs of its own the interfaces are missing
 * there, and nothing is known about them.
 *
 * Threads:  any.
 * Source:   the kernel's Documentation/ABI/testing/sysfs-class-net; bonding.rst; if_arp.h for types.
 */
#ifndef KL_OS_NETDEV_H
#define KL_OS_NETDEV_H

#include <limits.h>
#include <stdbool.h>

/**
 * Mb/s; 0: not known. Virtual interfaces have the speed of what carries them: a bond that of its active slaves together,
 * others (VLAN, MACVLAN, ...) that of the fastest device below.
 */
int kl_netdev_speed(const char *sysfs, const char *name);

/** Its device directory, links resolved: for a NIC, where it is in the PCI tree. False: a virtual one. */
bool kl_netdev_device(const char *sysfs, const char *name, char path[PATH_MAX]);

/**
 * Is it made to join or to carry others: a bridge, a tunnel, a port of a bridge or bond, or an end that a container engine
 * keeps on the host? Traffic between hosts does not belong there unless somebody says so.
 */
bool kl_netdev_is_plumbing(const char *sysfs, const char *name);

#endif
