/* SPDX-License-Identifier: Apache-2.0 */
/**
 * netlink.h - the parts of the kernel's network configuration that kolo uses.
 *
 * They act in the network namespace in which the socket was opened. Interfaces are named; a name has at most 15 letters.
 * Errors:  0, or -1 with errno set.
 * Source:  netlink(7), rtnetlink(7), tc-tbf(8), linux/veth.h, linux/pkt_sched.h.
 */
#ifndef KOLO_TOOL_NETLINK_H
#define KOLO_TOOL_NETLINK_H

#include <stdint.h>

/** A socket in the calling thread's namespace, close-on-exec; close(2) it. */
int kl_netlink_open(void);

/** A hardware address. */
enum { KL_NETLINK_MAC = 6 };

int kl_netlink_add_bridge(int sock, const char *name, const unsigned char mac[KL_NETLINK_MAC]);

/** A pair of interfaces; `peer_name` appears in the namespace of descriptor `peer_ns`, with the address `peer_mac`. */
int kl_netlink_add_veth(int sock, const char *name, const char *peer_name, int peer_ns,
                        const unsigned char peer_mac[KL_NETLINK_MAC]);

/** Disable automatic IPv6 addresses of an interface. A kernel without IPv6 is fine. */
int kl_netlink_no_ipv6(int sock, const char *name);

/** Switch an interface on, and make it a port of `bridge` unless that is NULL. */
int kl_netlink_up(int sock, const char *name, const char *bridge);

/** `address`: IPv4 in host byte order. */
int kl_netlink_add_address(int sock, const char *name, uint32_t address, unsigned prefix_length);

/** Add a permanent neighbour: `address` (IPv4 in host byte order) is at `mac` behind an interface. No address resolution. */
int kl_netlink_add_neighbour(int sock, const char *name, uint32_t address, const unsigned char mac[KL_NETLINK_MAC]);

/** Limit the output of an interface to `rate` bits per second, with a token bucket (tbf). ENOENT: the kernel has none. */
int kl_netlink_limit(int sock, const char *name, uint64_t rate);

#endif
