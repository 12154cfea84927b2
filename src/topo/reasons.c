/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/reasons.h"

#include "base/text.h"

/* ---- between ranks ---- */

static const char net_faster[] =
    "both GPUs reach a NIC faster than each other; NCCL_NET_DISABLE_INTRA=1 would keep the "
    "network out of the host";
static const char no_common_memory[] = "the processes cannot share memory (containers with a /dev/shm each?)";

static const char *const p2p_names[] = {
    [KL_P2P_ALLOWED] = "allowed",
    [KL_P2P_ABSENT] = "not_in_this_system",
    [KL_P2P_OTHER_HOST] = "other_host",
    [KL_P2P_OTHER_MEMORY] = "no_common_memory",
    [KL_P2P_DISABLED] = "disabled",
    [KL_P2P_TOO_FAR] = "too_far",
    [KL_P2P_BROKEN] = "broken",
    [KL_P2P_BY_COPY] = "copy_engine",
    [KL_P2P_NET_FASTER] = "network_faster",
    [KL_P2P_NO_ACCESS] = "no_access",
};

static const char *const p2p_texts[] = {
    [KL_P2P_ABSENT] = "only the network leads to that GPU",
    [KL_P2P_OTHER_HOST] = "the GPUs are in different hosts, which share no NVLink domain",
    [KL_P2P_OTHER_MEMORY] = no_common_memory,
    [KL_P2P_DISABLED] = "NCCL_P2P_DISABLE=1 forbids it",
    [KL_P2P_BROKEN] =
        "the driver reports P2P between these GPUs as broken; NCCL_IGNORE_DISABLED_P2P=2 would not ask it",
    [KL_P2P_BY_COPY] = "the path leads through another GPU, which NCCL_P2P_USE_CUDA_MEMCPY=1 excludes",
    [KL_P2P_NET_FASTER] = net_faster,
    [KL_P2P_NO_ACCESS] = "the driver cannot map one GPU's memory for the other",
};

static const char *const limit_texts[] = {
    [KL_P2P_LIMIT_SET] = "set by NCCL_P2P_LEVEL",
    [KL_P2P_LIMIT_AMD_PAIR] = "the default for up to two GPUs with an AMD CPU",
    [KL_P2P_LIMIT_DEFAULT] = "the default",
};

const char *kl_p2p_why_name(enum kl_p2p_why why)
{
    return p2p_names[why];
}

const char *kl_p2p_why_text(const struct kl_p2p *p, char text[KL_WHY_TEXT])
{
    struct kl_text t = kl_text_over(text, KL_WHY_TEXT);

    if (p->why == KL_P2P_ALLOWED)
        kl_text_add(&t, "the path is %s and the limit is %s (%s)", kl_path_type_name[p->type],
                    kl_path_type_name[p->level], limit_texts[p->limit]);
    else if (p->why == KL_P2P_TOO_FAR && p->type == KL_PATH_DIS) /* which no NCCL_P2P_LEVEL allows */
        kl_text_add(&t, "no path leads there");
    else if (p->why == KL_P2P_TOO_FAR)
        kl_text_add(&t, "the path is %s and the limit is %s (%s); NCCL_P2P_LEVEL=%s would allow it",
                    kl_path_type_name[p->type], kl_path_type_name[p->level], limit_texts[p->limit],
                    kl_path_type_name[p->type]);
    else
        kl_text_add(&t, "%s", p2p_texts[p->why]);
    return text;
}

static const char *const shm_names[] = {
    [KL_SHM_ALLOWED] = "allowed",
    [KL_SHM_DISABLED] = "disabled",
    [KL_SHM_ABSENT] = "not_in_this_system",
    [KL_SHM_OTHER_HOST] = "other_host",
    [KL_SHM_OTHER_MEMORY] = "no_common_memory",
    [KL_SHM_NET_FASTER] = "network_faster",
};

static const char *const shm_texts[] = {
    [KL_SHM_ALLOWED] = "both processes are in one host and can share memory",
    [KL_SHM_DISABLED] = "NCCL_SHM_DISABLE=1 forbids it",
    [KL_SHM_ABSENT] = "only the network leads to that GPU",
    [KL_SHM_OTHER_HOST] = "the processes are in different hosts",
    [KL_SHM_OTHER_MEMORY] = no_common_memory,
    [KL_SHM_NET_FASTER] = net_faster,
};

const char *kl_shm_why_name(enum kl_shm_why why)
{
    return shm_names[why];
}

const char *kl_shm_why_text(enum kl_shm_why why)
{
    return shm_texts[why];
}

/* ---- between GPU and NIC ---- */

static const char *const gdr_names[] = {
    [KL_GDR_ALLOWED] = "allowed",        [KL_GDR_NIC_CANNOT] = "nic_cannot",
    [KL_GDR_GPU_CANNOT] = "gpu_cannot",  [KL_GDR_READ_DISABLED] = "read_disabled",
    [KL_GDR_READ_OLD_GPU] = "read_slow", [KL_GDR_TOO_FAR] = "too_far",
    [KL_GDR_PARTITION] = "partition",
};

static const char *const gdr_texts[] = {
    [KL_GDR_NIC_CANNOT] = "the NIC cannot (gdr=\"0\")",
    [KL_GDR_GPU_CANNOT] = "the GPU cannot (gdr=\"0\")",
    [KL_GDR_PARTITION] = "not for partitions of a GPU; NCCL_NET_GDR_MLOPART=1 changes it",
    [KL_GDR_READ_DISABLED] = "NCCL_NET_GDR_READ=0 forbids it",
    [KL_GDR_READ_OLD_GPU] = "without NVLink, GPUs before sm 80 send from CPU memory; NCCL_NET_GDR_READ=1 changes it",
};

const char *kl_gdr_why_name(enum kl_gdr_why why)
{
    return gdr_names[why];
}

const char *kl_gdr_why_text(const struct kl_gdr *g, char text[KL_WHY_TEXT])
{
    struct kl_text t = kl_text_over(text, KL_WHY_TEXT);
    const char *from = g->level_set ? "set by NCCL_NET_GDR_LEVEL" : "the default";

    if (g->why == KL_GDR_ALLOWED)
        kl_text_add(&t, "GPU/%d to the NIC is %s and the limit is %s (%s)%s", g->rank, kl_path_type_name[g->type],
                    kl_path_type_name[g->level], from, g->mode == KL_GDR_PCI ? "; mapped over PCI" : "");
    else if (g->why == KL_GDR_TOO_FAR && g->type < KL_PATH_NET)
        kl_text_add(&t, "GPU/%d to the NIC is %s and the limit is %s (%s); NCCL_NET_GDR_LEVEL=%s would allow it%s",
                    g->rank, kl_path_type_name[g->type], kl_path_type_name[g->level], from, kl_path_type_name[g->type],
                    g->c2c ? ", and so would NCCL_NET_GDR_C2C=1" : "");
    else
        kl_text_add(&t, "%s", g->why == KL_GDR_TOO_FAR ? "no path leads to the NIC" : gdr_texts[g->why]);
    return text;
}

static const char *const pxn_names[] = {
    [KL_PXN_USED] = "used",
    [KL_PXN_DISABLED] = "disabled",
    [KL_PXN_OWN] = "own_nic",
    [KL_PXN_NO_GPU] = "no_gpu",
    [KL_PXN_RELAY_FAR] = "relay_far",
    [KL_PXN_NO_NVLINK] = "no_nvlink",
    [KL_PXN_OTHER_HOST] = "other_host",
    [KL_PXN_NO_BETTER] = "no_better",
    [KL_PXN_OVER_CPU] = "over_cpu",
    [KL_PXN_NO_GDR] = "no_gdr",
};

/* With the rank of the relay. */
static const char *const pxn_texts[] = {
    [KL_PXN_USED] = "GPU/%d is next to the NIC, and NVLink leads there",
    [KL_PXN_RELAY_FAR] = "GPU/%d, which uses the NIC first, is itself farther than PXB from it",
    [KL_PXN_NO_NVLINK] = "NVLink does not lead to GPU/%d next to it",
    [KL_PXN_OTHER_HOST] = "GPU/%d next to the NIC is in another host",
    [KL_PXN_NO_BETTER] = "the direct path is as good as through GPU/%d",
    [KL_PXN_OVER_CPU] = "NVLink to GPU/%d next to the NIC leads over a CPU",
    [KL_PXN_NO_GDR] = "GPU/%d next to the NIC may not use GPUDirect",
};

const char *kl_pxn_why_name(enum kl_pxn_why why)
{
    return pxn_names[why];
}

const char *kl_pxn_why_text(enum kl_pxn_why why, int relay, char text[KL_WHY_TEXT])
{
    struct kl_text t = kl_text_over(text, KL_WHY_TEXT);

    if (why == KL_PXN_DISABLED)
        kl_text_add(&t, "NCCL_PXN_DISABLE=1 forbids it");
    else if (why == KL_PXN_OWN)
        kl_text_add(&t, "this is the NIC's own GPU");
    else if (why == KL_PXN_NO_GPU)
        kl_text_add(&t, "no GPU uses this NIC first");
    else
        kl_text_add(&t, pxn_texts[why], relay);
    return text;
}

static const char *const p2p_net_names[] = {
    [KL_P2P_NET_RAIL] = "rail",
    [KL_P2P_NET_CROSS_NIC] = "same_nic_forced",
    [KL_P2P_NET_NO_PXN] = "no_pxn",
    [KL_P2P_NET_NO_RAIL] = "no_rail",
    [KL_P2P_NET_RAIL_FAR] = "rail_far",
    [KL_P2P_NET_NO_RELAY] = "no_relay",
    [KL_P2P_NET_NO_NVLINK] = "no_nvlink",
    [KL_P2P_NET_RELAY_FAR] = "relay_far",
    [KL_P2P_NET_RELAY_NO_GDR] = "relay_no_gdr",
};

static const char *const p2p_net_texts[] = {
    [KL_P2P_NET_RAIL] =
        "the NIC of the receiver's rail (of the GPU here with its device number), through the GPU next to it",
    [KL_P2P_NET_CROSS_NIC] = "the NIC of the receiver's rail, as NCCL_CROSS_NIC=0 demands",
    [KL_P2P_NET_NO_PXN] = "the sender's own NIC: NCCL_PXN_DISABLE=1 or NCCL_P2P_PXN_LEVEL=0",
    [KL_P2P_NET_NO_RAIL] = "the sender's own NIC: no GPU of its host has the receiver's device number",
    [KL_P2P_NET_RAIL_FAR] = "the sender's own NIC: the one of the receiver's rail is farther than PXN",
    [KL_P2P_NET_NO_RELAY] = "the sender's own NIC: no GPU uses the one of the receiver's rail first",
    [KL_P2P_NET_NO_NVLINK] =
        "the sender's own NIC: NVLink does not lead to the GPU next to the NIC of the receiver's rail",
    [KL_P2P_NET_RELAY_FAR] =
        "the sender's own NIC: the one of the receiver's rail is farther than PXB from its own GPU",
    [KL_P2P_NET_RELAY_NO_GDR] =
        "the sender's own NIC: the one of the receiver's rail may not use GPUDirect with its own GPU",
};

const char *kl_p2p_net_why_name(enum kl_p2p_net_why why)
{
    return p2p_net_names[why];
}

const char *kl_p2p_net_why_text(enum kl_p2p_net_why why)
{
    return p2p_net_texts[why];
}

const char *kl_net_choice_text(const struct kl_net_choice *c, char text[KL_WHY_TEXT])
{
    struct kl_text t = kl_text_over(text, KL_WHY_TEXT);

    if (c->near == 1)
        kl_text_add(&t, "the nearest (%s, %g GB/s)", kl_path_type_name[c->type], (double)c->bw);
    else
        kl_text_add(&t, "one of the %d nearest (%s, %g GB/s), by device number%s", c->near, kl_path_type_name[c->type],
                    (double)c->bw, c->spread > 1 ? " and channel" : "");
    return text;
}

/* ---- paths ---- */

static const char *const type_texts[KL_PATH_TYPES] = {
    [KL_PATH_LOC] = "the node itself, or the other partition of its GPU",
    [KL_PATH_NVL] = "NVLink, direct or through NVSwitch",
    [KL_PATH_NVB] = "NVLink through one GPU in between",
    [KL_PATH_C2C] = "the chip-to-chip link between GPU and CPU",
    [KL_PATH_PIX] = "at most one PCI switch",
    [KL_PATH_PXB] = "several PCI switches, no host bridge",
    [KL_PATH_P2C] = "over C2C to the CPU, and from there over PCIe",
    [KL_PATH_PXN] = "through another GPU, which is near the NIC",
    [KL_PATH_PHB] = "through a PCI host bridge, that is a CPU",
    [KL_PATH_SYS] = "through the link between CPU sockets",
    [KL_PATH_NET] = "through the network",
    [KL_PATH_DIS] = "not connected",
};

static const char *const rule_names[] = {
    [KL_RULE_SHORTEST] = "shortest", [KL_RULE_P2P_OFF] = "no_p2p",     [KL_RULE_PXN] = "pxn",
    [KL_RULE_GDR_OFF] = "no_gdr",    [KL_RULE_NET_FASTER] = "network",
};

static const char *const rule_texts[] = {
    [KL_RULE_SHORTEST] = "fewest links, and the widest of these paths",
    [KL_RULE_P2P_OFF] = "P2P is not used here, so through the memory of the CPU near the destination",
    [KL_RULE_PXN] = "PXN: another GPU next to the NIC reaches it better, and NVLink leads there",
    [KL_RULE_GDR_OFF] = "GPUDirect RDMA is not used here, so through the memory of the CPU near the GPU",
    [KL_RULE_NET_FASTER] = "neither P2P nor shared memory join these ranks, so the network does",
};

const char *kl_path_type_text(int type)
{
    return type_texts[type];
}

const char *kl_path_rule_name(int rule)
{
    return rule_names[rule];
}

const char *kl_path_rule_text(int rule)
{
    return rule_texts[rule];
}
