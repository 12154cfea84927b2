/* SPDX-License-Identifier: Apache-2.0 */
/**
 * netif.h - the network interfaces of this host, and the choice among them.
 *
 * Order of choice:
 *   1. near (the address of NCCL_COMM_ID): the first interface on its subnet; without one, as below
 *   2. names (NCCL_SOCKET_IFNAME): all interfaces that match, in the system's order
 *   3. automatic: all of the first class that is not empty: ib*, others, docker*, lo*
 * An interface appears once, with its first address, IPv4 before global IPv6 before link-local IPv6. IPv6 loopback is
 * used only if `near` asks for it, or by automatic choice where only loopback exists.
 *
 * Names:    prefixes separated by commas; leading ^ excludes the listed, leading = compares whole names, ^= both. A
 *           ":port" after a name is ignored here.
 * Errors:   ncclSystemError when nothing is left; the sentence lists the existing interfaces.
 * Threads:  any.
 * Source:   the runtime specification, 2.2; NCCL's documentation of NCCL_SOCKET_IFNAME; getifaddrs(3).
 */
#ifndef KL_OS_NETIF_H
#define KL_OS_NETIF_H

#include "os/address.h"

#include <net/if.h>
#include <stdbool.h>

/** Most interfaces that are ever chosen. */
#define KL_NETIF_MAX 16

struct kl_netif {
    char name[IF_NAMESIZE];
    union kl_address address; /* port 0 */
    union kl_address mask;
};

/** The user's constraints. */
struct kl_netif_constraints {
    const char *names;            /* NCCL_SOCKET_IFNAME; NULL or "": no constraint */
    int family;                   /* AF_INET or AF_INET6 (NCCL_SOCKET_FAMILY); 0: both */
    const union kl_address *near; /* NCCL_COMM_ID; NULL: no constraint */
};

/**
 * Does a name match such a list? With a `port` other than -1 a ":port" in it counts, as in NCCL_IB_HCA; an empty list matches all.
 */
bool kl_netif_name_matches(const char *name, int port, const char *names);

/** Does the list select interfaces, rather than being empty or excluding some? */
static inline bool kl_netif_names_some(const char *names)
{
    return names && *names && *names != '^';
}

/** The MTU of RoCE, 256 to 4096, whose packets fit into packets of an interface with this MTU; 0: none. */
static inline int kl_netif_roce_mtu(int mtu)
{
    enum { HEADERS = 78, LEAST = 256, MOST = 4096 };
    int fits = 0;

    for (int bytes = LEAST; bytes <= MOST && bytes + HEADERS <= mtu; bytes *= 2) fits = bytes;
    return fits;
}

/** Every address of every interface that is up, at most `max`, in the system's order. */
ncclResult_t kl_netif_list(struct kl_netif *list, int max, int *count);

/** Choose among `n` of them: returns how many were written to `chosen`, at most KL_NETIF_MAX. Pure, silent. */
int kl_netif_select(const struct kl_netif *list, int n, const struct kl_netif_constraints *constraints,
                    struct kl_netif chosen[KL_NETIF_MAX]);

/** List and select; at least one on success. */
ncclResult_t kl_netif_choose(const struct kl_netif_constraints *constraints, struct kl_netif chosen[KL_NETIF_MAX],
                             int *count);

#endif
