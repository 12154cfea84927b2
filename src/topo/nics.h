/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nics.h - the network devices that sysfs shows, without opening any: the ones that plans use, and the reasons against the
 * others.
 *
 * As NCCL chooses: InfiniBand and RoCE ports that are active, else the network interfaces that are up, ib* before others.
 * Bridges, tunnels and ends of containers are taken only if NCCL_SOCKET_IFNAME names them. Communicators use the devices
 * of net/ instead, which also knows addresses and capabilities.
 *
 *     nics.c          which are there, and used
 *     nics_join.c     several that count as one
 *     nics_reason.c   why others are not used
 *
 * Source: the runtime specification, 2.2, 5.5 and 5.6.
 */
#ifndef KL_TOPO_NICS_H
#define KL_TOPO_NICS_H

#include "include/nccl.h"
#include "topo/facts.h"

enum { KL_NICS_MAX_PORTS = 32, KL_NICS_MAX_INTERFACES = 16, KL_NET_SKIP_TEXT = 1280 };

/** The user's settings. */
struct kl_nics_filter {
    const char *ifname, *hca; /* NCCL_SOCKET_IFNAME, NCCL_IB_HCA; NULL or "": not set */
    bool ib_disable;          /* NCCL_IB_DISABLE */
};

/** Why plans do not use a device. */
enum kl_net_skip_why {
    KL_NET_SKIP_DOWN, /* `other`: the kernel's state */
    KL_NET_SKIP_LOOPBACK,
    KL_NET_SKIP_CONTAINER,
    KL_NET_SKIP_BRIDGE,
    KL_NET_SKIP_TUNNEL,
    KL_NET_SKIP_PORT,   /* `other`: the bridge or bond */
    KL_NET_SKIP_IFNAME, /* `other`: NCCL_SOCKET_IFNAME */
    KL_NET_SKIP_HCA,    /* `other`: NCCL_IB_HCA */
    KL_NET_SKIP_IB_DISABLED,
    KL_NET_SKIP_NO_SPEED, /* an InfiniBand or RoCE port without a speed */
    KL_NET_SKIP_RDMA,     /* an interface where InfiniBand or RoCE is used; `other`: the first such port */
    KL_NET_SKIP_IB_FIRST, /* an interface where another is called ib*; `other`: that one */
    KL_NET_SKIP_LIMIT,    /* one too many */
    KL_NET_SKIP_WHYS
};

struct kl_net_skip {
    char name[KL_NET_NAME_TEXT];
    enum kl_net_skip_why why;
    bool rdma;                    /* a port of InfiniBand or RoCE, not an interface */
    char other[KL_NET_NAME_TEXT]; /* a longer setting is cut */
};

/** Owns both arrays. */
struct kl_nics_seen {
    struct kl_net_facts *net; /* to use, numbered from 0 in the order of names */
    struct kl_net_skip *skip;
    int nnets, nskips;
};

/** Look below `sysfs` (NULL: "/sys"). No devices are no failure. Free with kl_nics_seen_fini. */
ncclResult_t kl_nics_read(const char *sysfs, const struct kl_nics_filter *filter, struct kl_nics_seen *seen);
void kl_nics_seen_fini(struct kl_nics_seen *seen);

/* ---- joining ---- */

/**
 * Join several NICs to one as NCCL's network for InfiniBand and RoCE does, and as it does with NCCL_IB_MERGE_NICS=0. Both
 * fit kl_machine.merge_nets. `nics`: the NICs that were seen. ncclInvalidUsage if they cannot be joined.
 */
ncclResult_t kl_nics_join(void *nics, const int *member, int n, struct kl_net_facts *joined);
ncclResult_t kl_nics_join_none(void *nics, const int *member, int n, struct kl_net_facts *joined);

/* ---- reasons ---- */

/** "bridge", and a phrase without a full stop. */
const char *kl_net_skip_code(enum kl_net_skip_why why);
const char *kl_net_skip_text(const struct kl_net_skip *skip, char text[KL_NET_SKIP_TEXT]);

/** Do two devices have the same reason, with the same operand? */
bool kl_net_skip_same(const struct kl_net_skip *a, const struct kl_net_skip *b);

#endif
