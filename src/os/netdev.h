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
#include <stddef.h>

enum { KL_NETDEV_TEXT = 64 }; /* IF_NAMESIZE is 16, recorded names may be anything */

/**
 * Mb/s; 0: not known. Virtual interfaces have the speed of what carries them: a bond that of its active slaves together,
 * others (VLAN, MACVLAN, ...) that of the fastest device below.
 */
int kl_netdev_speed(const char *sysfs, const char *name);

/** Its device directory, links resolved: for a NIC, where it is in the PCI tree. False: a virtual one. */
bool kl_netdev_device(const char *sysfs, const char *name, char path[PATH_MAX]);

/** What an interface is for. Traffic between hosts belongs to NICs, and to others only if somebody says so. */
enum kl_netdev_role {
    KL_NETDEV_NIC, /* also bonds, VLANs, and whatever else carries traffic of its own */
    KL_NETDEV_LOOPBACK,
    KL_NETDEV_CONTAINER, /* a container engine's: its bridge, or an end that it keeps on the host */
    KL_NETDEV_BRIDGE,
    KL_NETDEV_TUNNEL,
    KL_NETDEV_PORT /* of a bridge or a bond */
};

/** The role, by what sysfs says and else by the name. `master` (may be NULL) receives what it is a port of, else "". */
enum kl_netdev_role kl_netdev_role(const char *sysfs, const char *name, char master[KL_NETDEV_TEXT]);

/** Is it made to join or to carry others? */
static inline bool kl_netdev_is_plumbing(const char *sysfs, const char *name)
{
    return kl_netdev_role(sysfs, name, NULL) > KL_NETDEV_LOOPBACK;
}

#endif
