/* SPDX-License-Identifier: Apache-2.0 */
/**
 * offload.h - can switches reduce: the NVSwitch (NVLS), or the network (CollNet)? With reasons.
 *
 * Threads: pure.
 * Source:  the graph specification, 7 and 8.4.
 */
#ifndef KL_GRAPH_OFFLOAD_H
#define KL_GRAPH_OFFLOAD_H

#include "topo/topo.h"

/** The first rule against it. */
enum kl_offload {
    KL_OFFLOAD_OK,
    KL_OFFLOAD_NOT_ASKED,    /* CollNet: NCCL_COLLNET_ENABLE is not 1 */
    KL_OFFLOAD_NO_NIC,       /* CollNet: no NIC of this machine reduces */
    KL_OFFLOAD_SWITCHED_OFF, /* NVLS: NCCL_NVLS_ENABLE=0 */
    KL_OFFLOAD_FORBIDDEN,    /* NVLS: nvlsHostMode of the communicator's configuration */
    KL_OFFLOAD_FEW_GPUS,     /* NVLS: one GPU; in older releases two are too few as well */
    KL_OFFLOAD_OLD_GPUS,     /* NVLS: a GPU before sm 90 */
    KL_OFFLOAD_NO_NVSWITCH,  /* NVLS */
    KL_OFFLOAD_NO_CHANNELS,  /* the search found none, on some host */
    KL_OFFLOAD_FEW_NODES,    /* CollNet: fewer than NCCL_COLLNET_NODE_THRESHOLD */
    KL_OFFLOAD_HEADS_DIFFER, /* CollNet: some node has another number of heads */
    KL_OFFLOADS
};

/** A sentence without an end. */
const char *kl_offload_text(enum kl_offload why);

/**
 * Is CollNet asked for, and does this machine, of a communicator of `nranks`, have NETs that reduce? Where no NETs are described at
 * all, the network to other machines counts as one that does.
 */
enum kl_offload kl_offload_collnet(const struct kl_topo *topo, bool asked, int nranks);

/** May NVLS be used, by the topology? `enable` is NCCL_NVLS_ENABLE; `multicast`: can devices and driver, if
 * that was not forced with 1?
 */
enum kl_offload kl_offload_nvls(const struct kl_topo *topo, int enable, enum kl_offload multicast);

/** The value of `multicast` for real devices of this topology: sm 90 and an NVSwitch? For offline plans. */
enum kl_offload kl_offload_guess_multicast(const struct kl_topo *topo);

#endif
