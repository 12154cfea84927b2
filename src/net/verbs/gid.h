/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gid.h - GIDs, the addresses of RDMA ports, and the choice among a RoCE port's GIDs. Pure.
 *
 * Order of choice, within the wanted version of RoCE and then without it:
 *   1. the address that the connection's handshake has at this end
 *   2. one in the subnet of the handshake's address at the other end (24 bits of IPv4, 64 of IPv6)
 *   3. one that can be routed, of the wanted family first
 *   4. a link-local one
 * GIDs of unknown version are between both. NCCL keeps index 0 where it finds nothing better, which on hosts with IPv6
 * only is a link-local address that other subnets do not reach.
 */
#ifndef KL_NET_VERBS_GID_H
#define KL_NET_VERBS_GID_H

#include "net/verbs/abi.h"
#include "net/verbs/config.h"
#include "os/address.h"

#include <stdbool.h>

enum { KL_VERBS_GIDS = 256, KL_VERBS_GID_TEXT = 96 };

/** An entry of a port's table. */
struct kl_verbs_gid {
    union kl_ibv_gid gid;
    int index;
    int version; /* of RoCE; 0: unknown, or InfiniBand */
};

struct kl_verbs_gid_constraints {
    int version;           /* of RoCE */
    int family;            /* enum kl_verbs_family */
    union kl_address near; /* of the handshake at this end; none: unknown */
    union kl_address far;  /* at the other end */
};

bool kl_verbs_gid_is_zero(const union kl_ibv_gid *gid);

/** The best of them, NULL if there is none. Entries are not zero. */
const struct kl_verbs_gid *kl_verbs_gid_choose(const struct kl_verbs_gid *gids, int n,
                                               const struct kl_verbs_gid_constraints *constraints);

/** "[3] ::ffff:10.0.0.1 (RoCE v2)". Returns `text`. */
const char *kl_verbs_gid_format(const struct kl_verbs_gid *gid, char text[KL_VERBS_GID_TEXT]);

#endif
