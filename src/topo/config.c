/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/config.h"

#include "base/log.h"
#include "os/rdma_param.h"

#include <stddef.h>
#include <stdlib.h>
#include <strings.h>

/* The names of path types in their order, then the numbers of older NCCL. */
static const char *const levels[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB",
                                     "SYS", "0",   "1",   "2",   "3",   "4",   "5",   NULL};
static const char *const merge_levels[] = {"LOC", "PORT", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", NULL};

static const char *const merge_policies[] = {[KL_MERGE_ALL] = "ALL", [KL_MERGE_RAIL] = "RAIL", NULL};

/*
 * The first rank of a host describes its machine, and each process computes the paths through it. All use the same rules,
 * or ranks would expect each other on different paths. Hosts exchange their results, which may differ, as machines do. The
 * release to follow is one for all ranks together.
 */
static const struct kl_param rows[] = {
    KL_PARAM_BOOL(struct kl_topo_config, p2p_disable, "NCCL_P2P_DISABLE", KL_HOST_ALIKE, "0",
                  "do not let ranks access each other's buffers directly"),
    KL_PARAM_ENUM(struct kl_topo_config, p2p_level, "NCCL_P2P_LEVEL", KL_HOST_ALIKE, "", levels,
                  "longest path between two devices for which direct access is used; unset lets Kolo decide"),
    KL_PARAM_BOOL(struct kl_topo_config, shm_disable, "NCCL_SHM_DISABLE", KL_HOST_ALIKE, "0",
                  "do not connect ranks of one host through shared memory; without P2P they use the network"),
    KL_PARAM_STRING(struct kl_topo_config, topo_file, "NCCL_TOPO_FILE", KL_SETTLED, "",
                    "topology to use instead of this machine's (XML)"),
    KL_PARAM_STRING(struct kl_topo_config, machine, "KOLO_MACHINE", KL_SETTLED, "",
                    "known machine to use instead, as in dgx-h100; with NCCL_TOPO_FILE: the machine of that file"),
    KL_PARAM_STRING(struct kl_topo_config, topo_dump_file, "NCCL_TOPO_DUMP_FILE", KL_OWN, "",
                    "file to write the topology in use to (XML)"),
    KL_PARAM_INT(struct kl_topo_config, topo_dump_rank, "NCCL_TOPO_DUMP_FILE_RANK", KL_OWN, "0", 0, INT32_MAX,
                 "the rank that writes NCCL_TOPO_DUMP_FILE"),
    KL_PARAM_BOOL(struct kl_topo_config, nvb_disable, "NCCL_NVB_DISABLE", KL_HOST_ALIKE, "0",
                  "do not let GPUs pass NVLink traffic of others on"),
    KL_PARAM_BOOL(struct kl_topo_config, pxn_disable, "NCCL_PXN_DISABLE", KL_HOST_ALIKE, "0",
                  "do not send to a NIC through the GPU next to it"),
    KL_PARAM_INT(struct kl_topo_config, p2p_pxn_level, "NCCL_P2P_PXN_LEVEL", KL_HOST_ALIKE, "2", 0, 2,
                 "send and receive through the GPU next to the NIC: 0 never, 1 when needed, 2 as much as possible"),
    KL_PARAM_ENUM(struct kl_topo_config, gdr_level, "NCCL_NET_GDR_LEVEL", KL_HOST_ALIKE, "", levels,
                  "longest path between GPU and NIC for which GPUDirect RDMA is used; unset lets Kolo decide"),
    KL_PARAM_INT(struct kl_topo_config, gdr_read, "NCCL_NET_GDR_READ", KL_HOST_ALIKE, "-2", 0, 1,
                 "let NICs read GPU memory when sending; -2 lets Kolo decide"),
    KL_PARAM_STRING(
        struct kl_topo_config, nccl, "KOLO_NCCL_VERSION", KL_ALIKE, "",
        "release of NCCL whose rules and constants are followed, as in 2.27.7 or 2.29; unset: " KL_NCCL_DEFAULT_TEXT),
    KL_PARAM_INT(struct kl_topo_config, gdr_c2c, "NCCL_NET_GDR_C2C", KL_HOST_ALIKE, "-2", 0, 1,
                 "use GPUDirect RDMA through a CPU that is joined with the GPU by C2C; -2: from 2.27.3 on"),
    KL_PARAM_INT(struct kl_topo_config, pxn_c2c, "NCCL_PXN_C2C", KL_HOST_ALIKE, "-2", 0, 1,
                 "send to a NIC through a GPU that reaches it over C2C; -2: from 2.28.3 on"),
    KL_PARAM_STRING(struct kl_topo_config, netdevs, "NCCL_NETDEVS_POLICY", KL_HOST_ALIKE, "AUTO",
                    "NICs that a GPU uses of those nearest to it: AUTO, its share, ALL, or MAX:k (from 2.28.3 on)"),
    KL_PARAM_BOOL(struct kl_topo_config, scatter_nets, "NCCL_MNNVL_SCATTER_NETS_ENABLE", KL_HOST_ALIKE, "1",
                  "spread channels over the NICs of all hosts of an NVLink domain (from 2.27.5 on)"),
    KL_PARAM_BOOL(struct kl_topo_config, rail_per_host, "NCCL_MNNVL_RAIL_PER_HOST", KL_HOST_ALIKE, "0",
                  "NICs of different hosts of an NVLink domain count as one rail (from 2.28.7 on)"),
    KL_PARAM_BOOL(struct kl_topo_config, split_mlopart, "NCCL_TOPO_SPLIT_MLOPART", KL_HOST_ALIKE, "1",
                  "partitions of a GPU are devices of their own (from 2.30.7 on)"),
    KL_PARAM_BOOL(
        struct kl_topo_config, gdr_mlopart, "NCCL_NET_GDR_MLOPART", KL_HOST_ALIKE, "0",
        "use GPUDirect RDMA for partitions of a GPU, too (from 2.30.7 on; newer releases than 2.31.2 do so anyway)"),
    KL_PARAM_BOOL(struct kl_topo_config, net_force_flush, "NCCL_NET_FORCE_FLUSH", KL_HOST_ALIKE, "0",
                  "flush after each receive into GPU memory, even where it is not needed"),
    KL_PARAM_BOOL(struct kl_topo_config, net_disable_intra, "NCCL_NET_DISABLE_INTRA", KL_HOST_ALIKE, "0",
                  "never use the network between ranks of one host"),
    KL_PARAM_INT(struct kl_topo_config, cross_nic, "NCCL_CROSS_NIC", KL_HOST_ALIKE, "2", 0, 2,
                 "may rings and trees change NICs between hosts: 0 never, 1 always, 2 if that is better"),
    KL_PARAM_ENUM(struct kl_topo_config, merge_level, "NCCL_NET_MERGE_LEVEL", KL_HOST_ALIKE, "PORT", merge_levels,
                  "how far apart NICs may be that are used as one; LOC keeps them all apart"),
    KL_PARAM_ENUM(
        struct kl_topo_config, merge_policy, "NCCL_NET_MERGE_POLICY", KL_HOST_ALIKE, "ALL", merge_policies,
        "NICs that may be used as one: ALL, or RAIL, those that the network says are on one rail (from 2.30.7 on)"),
    KL_PARAM_STRING(struct kl_topo_config, force_merge, "NCCL_NET_FORCE_MERGE", KL_HOST_ALIKE, "",
                    "NICs to use as one, as in \"mlx5_0,mlx5_1;mlx5_2:1,mlx5_3:1\""),
    KL_PARAM_BOOL(struct kl_topo_config, ib_merge, "NCCL_IB_MERGE_NICS", KL_HOST_ALIKE, "1",
                  "let InfiniBand and RoCE ports be used as one, in plans for machines that are looked at"),
    KL_PARAM_INT(struct kl_topo_config, ignore_disabled_p2p, "NCCL_IGNORE_DISABLED_P2P", KL_HOST_ALIKE, "0", 0, 2,
                 "where the driver reports P2P as broken: 0 fail on NVLink, 1 do without it, 2 do not ask"),
    KL_PARAM_BOOL(struct kl_topo_config, p2p_cuda_memcpy, "NCCL_P2P_USE_CUDA_MEMCPY", KL_HOST_ALIKE, "0",
                  "let copy engines move P2P data, which excludes paths through another GPU"),
    KL_PARAM_BOOL(struct kl_topo_config, ignore_cpu_affinity, "NCCL_IGNORE_CPU_AFFINITY", KL_HOST_ALIKE, "0",
                  "use all CPUs near a GPU, also those outside of the process's affinity"),
};

const struct kl_param_set kl_topo_param_set = KL_PARAM_SET("topo", struct kl_topo_config, rows);

static int merge_level_of(int choice)
{
    static const int meanings[] = {KL_PATH_LOC, KL_PATH_PORT, KL_PATH_PIX, KL_PATH_PXB,
                                   KL_PATH_P2C, KL_PATH_PXN,  KL_PATH_PHB, KL_PATH_SYS};

    return meanings[choice];
}

/* An invalid text means the default; the caller that asked for the release reports it (kl_nccl_parse). */
static int release_of(const char *text)
{
    char expected[KL_NCCL_EXPECTED];
    int nccl = kl_nccl_parse(text);

    if (nccl >= 0) return nccl;
    if (*text) KL_WARN("KOLO_NCCL_VERSION=%s: %s; following " KL_NCCL_DEFAULT_TEXT, text, kl_nccl_expected(expected));
    return KL_NCCL_DEFAULT;
}

static int netdevs_of(const char *text)
{
    char *end;

    if (!strcasecmp(text, "AUTO")) return KL_NETDEVS_AUTO;
    if (!strcasecmp(text, "ALL")) return KL_NETDEVS_ALL;
    if (!strncasecmp(text, "MAX:", 4)) {
        long n = strtol(text + 4, &end, 10);

        if (n > 0 && n < INT32_MAX && !*end) return (int)n;
    }
    KL_WARN("NCCL_NETDEVS_POLICY=%s: expected AUTO, ALL, or MAX and a number as in MAX:2; using AUTO", text);
    return KL_NETDEVS_AUTO;
}

/* Older releases do not know the name P2C. */
static int level_of(int choice, int nccl)
{
    int level = choice < 0 ? -1 : kl_path_level(levels[choice]);

    return level == KL_PATH_P2C && !kl_nccl_has(nccl, KL_CHANGE_P2C) ? -1 : level;
}

static struct kl_topo_options options_of(const struct kl_topo_config *c)
{
    struct kl_topo_options o = KL_TOPO_OPTIONS;

    o.nccl = release_of(c->nccl);

    o.p2p_level = level_of(c->p2p_level, o.nccl);
    o.p2p_disable = c->p2p_disable;
    o.shm_disable = c->shm_disable;
    o.gdr_level = level_of(c->gdr_level, o.nccl);
    o.merge_level = merge_level_of(c->merge_level);
    o.merge_policy = c->merge_policy;
    o.gdr_read = (int)c->gdr_read;
    o.cross_nic = (int)c->cross_nic;
    o.p2p_pxn_level = (int)c->p2p_pxn_level;
    o.ignore_disabled_p2p = (int)c->ignore_disabled_p2p;
    o.nvb_disable = c->nvb_disable;
    o.pxn_disable = c->pxn_disable;
    o.net_disable_intra = c->net_disable_intra;
    o.gdr_c2c = c->gdr_c2c < 0 ? -1 : (int)c->gdr_c2c;
    o.pxn_c2c = c->pxn_c2c < 0 ? -1 : (int)c->pxn_c2c;
    o.netdevs = netdevs_of(c->netdevs);
    o.scatter_nets = c->scatter_nets;
    o.rail_per_host = c->rail_per_host;
    o.split_mlopart = c->split_mlopart;
    o.gdr_mlopart = c->gdr_mlopart;
    o.net_force_flush = c->net_force_flush;
    o.p2p_cuda_memcpy = c->p2p_cuda_memcpy;
    o.ignore_cpu_affinity = c->ignore_cpu_affinity;
    o.force_merge = *c->force_merge ? c->force_merge : NULL;
    return o;
}

/* Of net/verbs, which declares and reports them: plans follow the RDMA net's choice of ports. */
static const struct kl_param of_rdma[] = {
    KL_RDMA_PORT_ROWS(struct kl_topo_config, ib_hca, ib_disable),
};

static void select_ports(struct kl_topo_config *config, const struct kl_settings *from)
{
    struct kl_setting setting;

    for (size_t i = 0; i < sizeof of_rdma / sizeof of_rdma[0]; i++)
        kl_param_load_row(&of_rdma[i], config, from, &setting);
}

void kl_topo_config_load(struct kl_topo_config *config, struct kl_topo_options *options)
{
    kl_param_load(&kl_topo_param_set, config);
    select_ports(config, kl_settings_process());
    *options = options_of(config);
}

void kl_topo_config_load_from(struct kl_topo_config *config, const struct kl_settings *from,
                              struct kl_topo_options *options)
{
    kl_param_load_from(&kl_topo_param_set, config, from);
    select_ports(config, from);
    *options = options_of(config);
}

int kl_topo_config_release(void)
{
    struct kl_topo_config config;
    struct kl_topo_options options;

    kl_topo_config_load(&config, &options);
    return options.nccl;
}
