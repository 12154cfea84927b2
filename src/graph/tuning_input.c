/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuning.h"

struct kl_tuning_input kl_tuning_input_of(const struct kl_connect *c, const struct kl_topo *topo)
{
    struct kl_tuning_input in = {
        .nccl = c->nccl,
        .nranks = c->ranks.nranks,
        .nnodes = c->nodes.nnodes,
        .min_local_ranks = kl_nodes_fewest(&c->nodes),
        .max_local_ranks = c->nodes.max_local,
        .nchannels = c->nchannels,
        .nvls_channels = c->nvls_channels,
        .cpu_arch = c->cpu_arch,
        .cpu_vendor = c->cpu_vendor,
        .max_tree_pattern = c->max_tree_pattern,
        .nvs = topo->count[KL_NODE_NVS] > 0,
        .nvls = c->nvls,
        .collnet = c->collnet,
        .no_nvls = c->no_nvls,
        .no_collnet = c->no_collnet,
        .net_bw = c->net_bw,
        .collnet_heads = kl_connect_collnet_heads(c),
        .chains_elsewhere = !kl_connect_chains_begin_at_heads(c),
        .net_is_host = true,
        .gpu_bw = topo->total_bw,
    };

    for (int g = 0; g < KL_GRAPHS; g++) in.graph[g] = c->graph[g];
    for (int i = 0; i < topo->count[KL_NODE_NET]; i++) {
        const struct kl_node *n = &topo->node[topo->first[KL_NODE_NET] + i];

        in.net_tcp |= n->net.tcp;
        in.net_staged |= !n->net.gdr;
    }
    return in;
}
