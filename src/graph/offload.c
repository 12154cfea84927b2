/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/offload.h"

static const char *const reasons[KL_OFFLOADS] = {
    [KL_OFFLOAD_OK] = "nothing prevents it",
    [KL_OFFLOAD_NOT_ASKED] = "NCCL_COLLNET_ENABLE is not 1",
    [KL_OFFLOAD_NO_NIC] = "no NIC in use can reduce (coll=\"1\" in the topology; one host alone uses none)",
    [KL_OFFLOAD_SWITCHED_OFF] = "NCCL_NVLS_ENABLE is 0",
    [KL_OFFLOAD_FORBIDDEN] = "nvlsHostMode of the communicator's configuration forbids it",
    [KL_OFFLOAD_FEW_GPUS] = "a host has fewer than three GPUs",
    [KL_OFFLOAD_OLD_GPUS] = "a GPU is older than sm 90, which NVSwitch multicast needs",
    [KL_OFFLOAD_NO_NVSWITCH] = "there is no NVSwitch",
    [KL_OFFLOAD_NO_CHANNELS] = "the search found no channels for it",
    [KL_OFFLOAD_FEW_NODES] = "there are fewer nodes than NCCL_COLLNET_NODE_THRESHOLD (default 2)",
    [KL_OFFLOAD_HEADS_DIFFER] = "nodes differ in how many GPUs lead to the network",
};

const char *kl_offload_text(enum kl_offload why)
{
    return reasons[why];
}

enum kl_offload kl_offload_collnet(const struct kl_topo *t, bool asked, int nranks)
{
    if (!asked) return KL_OFFLOAD_NOT_ASKED;
    if (!t->count[KL_NODE_NET] && t->count[KL_NODE_GPU] < nranks) return KL_OFFLOAD_OK;
    for (int i = 0; kl_topo_needs_net(t) && i < t->count[KL_NODE_NET]; i++)
        if (t->node[kl_topo_at(t, KL_NODE_NET, i)].net.coll) return KL_OFFLOAD_OK;
    return KL_OFFLOAD_NO_NIC;
}

enum kl_offload kl_offload_nvls(const struct kl_topo *t, int enable, enum kl_offload multicast)
{
    if (!enable) return KL_OFFLOAD_SWITCHED_OFF;
    if (t->count[KL_NODE_GPU] < (kl_nccl_has(t->options.nccl, KL_CHANGE_NVLS_PAIR) ? 2 : 3)) return KL_OFFLOAD_FEW_GPUS;
    return enable == 1 ? KL_OFFLOAD_OK : multicast;
}

enum kl_offload kl_offload_guess_multicast(const struct kl_topo *t)
{
    for (int i = 0; i < t->count[KL_NODE_GPU]; i++)
        if (t->node[kl_topo_at(t, KL_NODE_GPU, i)].gpu.sm < 90) return KL_OFFLOAD_OLD_GPUS;
    return t->count[KL_NODE_NVS] > 0 ? KL_OFFLOAD_OK : KL_OFFLOAD_NO_NVSWITCH;
}
