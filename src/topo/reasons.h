/* SPDX-License-Identifier: Apache-2.0 */
/**
 * reasons.h - the reasons behind the results of the rules in paths.h.
 *
 * Each rule returns its reason with its answer. A reason has a code (snake_case, stable, for programs) and a text for
 * people: a phrase without a final period that names the fact, and the setting that would change it where there is one.
 *
 * Threads: texts are written into the caller's memory or constant.
 */
#ifndef KL_TOPO_REASONS_H
#define KL_TOPO_REASONS_H

#include "topo/types.h"

#include <stdbool.h>

enum { KL_WHY_TEXT = 256 };

/* ---- between ranks ---- */

enum kl_p2p_why {
    KL_P2P_ALLOWED,
    KL_P2P_ABSENT,       /* the other rank's GPU is not in this system */
    KL_P2P_OTHER_HOST,   /* and they share no NVLink domain */
    KL_P2P_OTHER_MEMORY, /* processes that cannot share memory: containers with a /dev/shm each */
    KL_P2P_DISABLED,     /* NCCL_P2P_DISABLE */
    KL_P2P_TOO_FAR,      /* the path is worse than the limit, or there is none */
    KL_P2P_BROKEN,       /* according to the driver */
    /* further conditions of the P2P transport */
    KL_P2P_BY_COPY,    /* copy engines cannot go through another GPU */
    KL_P2P_NET_FASTER, /* the network is faster than the path between the GPUs */
    KL_P2P_NO_ACCESS   /* one device cannot map the other's memory */
};

/** The source of P2P's limit. */
enum kl_p2p_limit {
    KL_P2P_LIMIT_SET,      /* NCCL_P2P_LEVEL */
    KL_P2P_LIMIT_AMD_PAIR, /* at most two GPUs and an AMD CPU */
    KL_P2P_LIMIT_DEFAULT
};

/** May GPU `a` access GPU `b`'s memory: `read` when reading is preferred, `via` the rank in between or -1. */
struct kl_p2p {
    bool p2p, read;
    int via;
    int level; /* the path type that was allowed */
    enum kl_p2p_limit limit;
    enum kl_p2p_why why;
    int type; /* of the path, before it was rerouted; KL_PATH_DIS if there is none */
};
const char *kl_p2p_why_name(enum kl_p2p_why why);
const char *kl_p2p_why_text(const struct kl_p2p *answer, char text[KL_WHY_TEXT]);

enum kl_shm_why {
    KL_SHM_ALLOWED,
    KL_SHM_DISABLED, /* NCCL_SHM_DISABLE */
    KL_SHM_ABSENT,   /* the other rank's GPU is not in this system */
    KL_SHM_OTHER_HOST,
    KL_SHM_OTHER_MEMORY,
    KL_SHM_NET_FASTER
};
const char *kl_shm_why_name(enum kl_shm_why why);
const char *kl_shm_why_text(enum kl_shm_why why);

/* ---- between GPU and NIC ---- */

enum kl_gdr_mode { KL_GDR_OFF, KL_GDR_DEFAULT, KL_GDR_PCI };

enum kl_gdr_why {
    KL_GDR_ALLOWED,
    KL_GDR_NIC_CANNOT,
    KL_GDR_GPU_CANNOT,
    KL_GDR_PARTITION,     /* of a GPU, without NCCL_NET_GDR_MLOPART=1 */
    KL_GDR_READ_DISABLED, /* NCCL_NET_GDR_READ=0 */
    KL_GDR_READ_OLD_GPU,  /* before sm 80, and without NVLink */
    KL_GDR_TOO_FAR
};

/** How a NIC reaches a GPU's memory. */
struct kl_gdr {
    enum kl_gdr_mode mode;
    enum kl_gdr_why why;
    int rank;       /* the rank with the GPU that the NIC reaches: another one with PXN */
    int type;       /* distance of that GPU, before the path was rerouted */
    int level;      /* its limit */
    bool level_set; /* by NCCL_NET_GDR_LEVEL */
    bool c2c;       /* NCCL_NET_GDR_C2C would make it near */
};
const char *kl_gdr_why_name(enum kl_gdr_why why);
const char *kl_gdr_why_text(const struct kl_gdr *answer, char text[KL_WHY_TEXT]);

enum kl_pxn_why {
    KL_PXN_USED,
    KL_PXN_DISABLED,   /* NCCL_PXN_DISABLE */
    KL_PXN_OWN,        /* this GPU is the one next to the NIC */
    KL_PXN_NO_GPU,     /* no GPU uses this NIC first */
    KL_PXN_RELAY_FAR,  /* that GPU is itself farther than PXB from the NIC */
    KL_PXN_NO_NVLINK,  /* no NVLink leads to that GPU */
    KL_PXN_OTHER_HOST, /* that GPU is in another host */
    KL_PXN_NO_BETTER,  /* not better than the direct path */
    KL_PXN_OVER_CPU,   /* NVLink to that GPU leads over a CPU */
    KL_PXN_NO_GDR      /* it was chosen, but GPUDirect is refused, so the path leads over a CPU after all */
};

/** Does a GPU send to a NIC through the GPU next to it, the relay? */
struct kl_pxn {
    enum kl_pxn_why why;
    int relay; /* index of the GPU that was considered; -1 */
};
const char *kl_pxn_why_name(enum kl_pxn_why why);
/** `relay`: the rank of the GPU that was considered. */
const char *kl_pxn_why_text(enum kl_pxn_why why, int relay, char text[KL_WHY_TEXT]);

/** The NIC of point-to-point traffic, the sender's own or the one of the receiver's rail, and the reason for it. */
enum kl_p2p_net_why {
    KL_P2P_NET_RAIL,        /* of the rail, PXN through the GPU next to it */
    KL_P2P_NET_CROSS_NIC,   /* of the rail, as NCCL_CROSS_NIC=0 demands */
    KL_P2P_NET_NO_PXN,      /* own: NCCL_PXN_DISABLE or NCCL_P2P_PXN_LEVEL=0 */
    KL_P2P_NET_NO_RAIL,     /* own: no GPU of this host has the receiver's device number */
    KL_P2P_NET_RAIL_FAR,    /* own: the rail's NIC is farther than PXN */
    KL_P2P_NET_NO_RELAY,    /* own: no GPU uses the rail's NIC first */
    KL_P2P_NET_NO_NVLINK,   /* own: no NVLink to the GPU next to the rail's NIC */
    KL_P2P_NET_RELAY_FAR,   /* own: that GPU is farther than PXB from the rail's NIC */
    KL_P2P_NET_RELAY_NO_GDR /* own: that GPU may not use GPUDirect with the rail's NIC */
};

struct kl_p2p_net {
    int net;   /* index among NETs */
    int proxy; /* rank of the proxy that serves it */
    enum kl_p2p_net_why why;
};
const char *kl_p2p_net_why_name(enum kl_p2p_net_why why);
const char *kl_p2p_net_why_text(enum kl_p2p_net_why why);

/** The NET of a GPU for a channel, and its alternatives. */
struct kl_net_choice {
    int net;    /* index among NETs */
    int near;   /* how many NETs are nearest, all alike */
    int spread; /* over how many of them the channels of one GPU spread */
    int type;   /* of the path to them */
    float bw;
};

const char *kl_net_choice_text(const struct kl_net_choice *choice, char text[KL_WHY_TEXT]);

/* ---- NETs ---- */

/** Does any GPU choose a NET, for any channel? */
enum kl_net_use {
    KL_NET_CHOSEN,
    KL_NET_TWIN,      /* it has the number of a NET before it, which counts */
    KL_NET_UNREACHED, /* no GPU reaches it */
    KL_NET_SLOWER,    /* every GPU has NETs to which its path is wider */
    KL_NET_FARTHER,   /* every GPU has nearer NETs; one of them as wide */
    KL_NET_SPREAD     /* nearest to a GPU, like others that device numbers and channels choose */
};

struct kl_net_usage {
    enum kl_net_use use;
    int gpu;     /* index of the GPU with the best path to it; -1 */
    int instead; /* index of the NET which that GPU uses first; -1 */
};

/* ---- paths ---- */

/** Phrases: the meaning of a path type, and the rule that gave a path its form. */
const char *kl_path_type_text(int type);
const char *kl_path_rule_name(int rule);
const char *kl_path_rule_text(int rule);

#endif
