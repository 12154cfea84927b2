/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graphs.h - all graphs that a communicator needs of one machine.
 *
 * Source: the graph specification, 7.
 */
#ifndef KL_GRAPH_GRAPHS_H
#define KL_GRAPH_GRAPHS_H

#include "graph/connect.h"

struct kl_graphs_request {
    bool collnet;              /* a network that reduces is there and asked for */
    bool nvls;                 /* an NVSwitch that reduces is there */
    const struct kl_xml *file; /* graph file to take graphs from, NULL for none */
};

/** Compute ring, tree, and what the request adds, in the reference's order; free with kl_graphs_fini. */
ncclResult_t kl_graphs_compute(const struct kl_topo *topo, const struct kl_graphs_request *request,
                               struct kl_graphs *graphs);

/** Free all graphs; NULL members are fine. */
void kl_graphs_fini(struct kl_graphs *graphs);

/** Why a kind of graph is not computed. */
enum kl_graph_refusal {
    KL_GRAPH_WANTED,       /* it is */
    KL_NVLS_OFF,           /* NCCL_NVLS_ENABLE=0 */
    KL_NVLS_FEW_GPUS,      /* 2 or fewer */
    KL_NVLS_NO_MULTICAST,  /* devices, or the switch, cannot */
    KL_COLLNET_NOT_ASKED,  /* NCCL_COLLNET_ENABLE is not 1 */
    KL_COLLNET_NO_NET,     /* no NETs are used */
    KL_COLLNET_NO_REDUCING /* no NET that reduces */
};

enum kl_graph_refusal kl_graphs_nvls_refusal(const struct kl_topo *topo, int enable, bool multicast);
enum kl_graph_refusal kl_graphs_collnet_refusal(const struct kl_topo *topo, bool asked);
const char *kl_graph_refusal_text(enum kl_graph_refusal refusal);

/** Does the machine have NETs that reduce? */
bool kl_graphs_can_collnet(const struct kl_topo *topo);

/** May NVLS be used, as far as the topology tells? `enable` is NCCL_NVLS_ENABLE; `multicast`: devices and driver can. */
bool kl_graphs_can_nvls(const struct kl_topo *topo, int enable, bool multicast);

/** Would `multicast` be true for real devices of this topology: sm 90 and an NVSwitch? For offline plans. */
bool kl_graphs_guess_multicast(const struct kl_topo *topo);

#endif
