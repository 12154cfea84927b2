/* SPDX-License-Identifier: Apache-2.0 */
/**
 * netdev.h - properties of a network interface from sysfs: speed, PCI device, and role.
 *
 * `sysfs` is the root, "/sys" for this machine. In a network namespace without a sysfs of its own the interfaces are
 * missing there, and all properties are unknown.
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
 * Mb/s; 0: unknown. Virtual interfaces have the speed of the devices below: a bond the sum of its active slaves, others
 * (VLAN, MACVLAN, ...) the speed of the fastest.
 */
int kl_netdev_speed(const char *sysfs, const char *name);

/** Its device directory, links resolved: a NIC's position in the PCI tree. False: a virtual interface. */
bool kl_netdev_device(const char *sysfs, const char *name, char path[PATH_MAX]);

/** The role of an interface. Traffic between hosts uses NICs, and others only if the user names them. */
enum kl_netdev_role {
    KL_NETDEV_NIC, /* also bonds, VLANs, and other interfaces that carry traffic of their own */
    KL_NETDEV_LOOPBACK,
    KL_NETDEV_CONTAINER, /* of a container engine: its bridge, or the host's end of a pair */
    KL_NETDEV_BRIDGE,
    KL_NETDEV_TUNNEL,
    KL_NETDEV_PORT /* a port of a bridge or a bond */
};

/**
 * The role, by sysfs, and by the name if sysfs does not have it. `master` (may be NULL) receives the bridge or bond
 * that the interface is a port of, else "".
 */
enum kl_netdev_role kl_netdev_role(const char *sysfs, const char *name, char master[KL_NETDEV_TEXT]);

/** Does it only connect or carry other interfaces? */
static inline bool kl_netdev_is_plumbing(const char *sysfs, const char *name)
{
    return kl_netdev_role(sysfs, name, NULL) > KL_NETDEV_LOOPBACK;
}

#endif
