/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/release.h"

#include "base/text.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Releases, from the first to before the second, of which the code for a change could not be read. */
#define UNREAD(from, to)   .unread_from = (from), .unread_to = (to)
#define UNREAD_SINCE(from) UNREAD(from, INT_MAX)
#define READ               UNREAD(0, 0)

/* Numbers are sections of the specification of differences up to 2.30.7, with an A of its annex from then on. */
/* clang-format off */
static const struct kl_change_facts facts[KL_CHANGES] = {
    [KL_CHANGE_NVLINK_40_1] = {22705, "nvlink_40_1", /* 4.1 */
        "an NVLink of sm 100 and later counts 40.1 GB/s instead of 40", READ},
    [KL_CHANGE_P2C] = {22703, "p2c", /* 2.1, 5.1 */
        "paths from a GPU through C2C to its CPU and over PCIe to a NIC have a type of their own, P2C", READ},
    [KL_CHANGE_P2C_LEGS] = {22705, "p2c_legs", /* 4.7 */
        "a path of a C2C segment and a PHB segment is P2C", READ},
    [KL_CHANGE_P2C_BY_CPU] = {22705, "p2c_by_cpu", /* 5.1 */
        "P2C follows from the ways of GPU and NIC to the GPU's CPU", READ},
    [KL_CHANGE_P2C_NEAREST] = {22902, "p2c_nearest", /* 5.1 */
        "only a GPU's nearest NICs are reached by P2C", READ},
    [KL_CHANGE_ASIC_BY_NODE] = {22807, "asic_by_node", /* 3.10 */
        "a NIC without a guid is a chip of its own on each host; guids need no 0x", READ},
    [KL_CHANGE_KEEP_NETS] = {22807, "keep_nets", /* 4.9 */
        "NICs are kept on a single host as well", READ},
    [KL_CHANGE_DEVICE_NODES] = {23003, "device_nodes", /* 4.2, 4.3 */
        "ranks and devices are nodes of their own, and hops count the link between them", READ},
    [KL_CHANGE_GIN_NODES] = {22907, "gin_nodes", /* 2.5 */
        "NICs may offer GIN, or be no network device", READ},
    [KL_CHANGE_RMA_NODES] = {23007, "rma_nodes", /* 2.5 */
        "NICs may offer RMA", READ},
    [KL_CHANGE_PATH_BY_TYPE] = {23007, "path_by_type", /* 4.5 */
        "of two paths the one of the better type wins, even if it is longer", READ},
    [KL_CHANGE_CPU_BY_BANDWIDTH] = {23007, "cpu_by_bandwidth", /* 4.6 */
        "a GPU's CPU is its nearest one by bandwidth, before hops count", READ},
    [KL_CHANGE_GPU_FUNCTIONS] = {23007, "gpu_functions", /* 3.12 */
        "a GPU's PCI function must be 0 or 4", READ},
    [KL_CHANGE_MLOPART] = {23007, "mlopart", /* 4.8 */
        "partitions of a GPU are devices of their own (NCCL_TOPO_SPLIT_MLOPART)", READ},
    [KL_CHANGE_CURRENT_LINK] = {23007, "current_link", /* 3.8 */
        "a GPU's PCI link counts as it is when NCCL starts, instead of the fastest that it can be", READ},
    [KL_CHANGE_FILE_HOST] = {22703, "file_host", /* 3.2 */
        "all parts of a topology file belong to this host, even if it names several hosts", READ},
    [KL_CHANGE_TRIM_NICS] = {22703, "trim_nics", /* 3.3 */
        "NICs that are not in use leave no card behind", READ},
    [KL_CHANGE_NODES_576] = {22703, "nodes_576", /* 2.3 */
        "a system holds up to 576 nodes of a kind, instead of 256", READ},
    [KL_CHANGE_NODES_640] = {23203, "nodes_640", /* A 1.2 */
        "a system holds up to 640 nodes of a kind, instead of 576", READ},
    [KL_CHANGE_CPUID] = {23102, "cpuid", /* A 2.1 */
        "family and model of x86 CPUs count as their manuals say: AMD's families are 23, 25 and 26", UNREAD_SINCE(23203)},
    [KL_CHANGE_NO_LINK_SPEED] = {23102, "no_link_speed", /* A 2.3 */
        "a PCI link counts as 16 GT/s if the kernel does not report its speed", UNREAD_SINCE(23203)},
    [KL_CHANGE_NVLINK_FAR] = {23102, "nvlink_far", /* A 2.2 */
        "NVML tells the far end of an NVLink, instead of sysfs; links whose far end cannot be read are left out", UNREAD_SINCE(23203)},
    [KL_CHANGE_AMD_MODELS] = {23102, "amd_models", /* A 1.3 */
        "CPUs of AMD have models: Zen 1 and 2, Zen 3 and 4, Zen 5", UNREAD_SINCE(23203)},
    [KL_CHANGE_AMD_SOCKETS] = {23102, "amd_sockets", /* A 3.1 */
        "sockets of AMD are joined by 24 GB/s from Zen 3 on, and by 32 from Zen 5 on, instead of 16", UNREAD_SINCE(23203)},
    [KL_CHANGE_INTEL_GRANITE] = {23102, "intel_granite", /* A 3.2 */
        "sockets of Granite Rapids and Sierra Forest are joined by 40 GB/s instead of 22", UNREAD_SINCE(23203)},
    [KL_CHANGE_NVLINK_RUBIN] = {23203, "nvlink_rubin", /* A 3.4 */
        "an NVLink of sm 107 and later counts 31.2 GB/s", READ},
    [KL_CHANGE_MLOPART_GDR] = {23203, "mlopart_gdr", /* A 3.6 */
        "partitions of a GPU use GPUDirect RDMA by themselves, on NICs up to P2C", READ},
    [KL_CHANGE_MERGED_ONLY] = {22703, "merged_only", /* 3.4 */
        "a NIC that is merged with no other keeps its number", READ},
    [KL_CHANGE_MERGED_8] = {23003, "merged_8", /* 2.6 */
        "up to 8 NICs can be merged into one", READ},
    [KL_CHANGE_MERGED_BRIDGE] = {22703, "merged_bridge", /* 3.5 */
        "a merged NIC gets a card of its own only below PCI bridges", READ},
    [KL_CHANGE_MERGED_CARD] = {22803, "merged_card", /* 3.6 */
        "a NIC that is merged across a socket gets a card of its own", READ},
    [KL_CHANGE_MERGED_WIDE] = {22803, "merged_wide", /* 3.6 */
        "the PCI link of a merged NIC is as wide as its members' links together", READ},
    [KL_CHANGE_MERGED_WIDE_ALONE] = {23007, "merged_wide_alone", /* 3.7 */
        "merging NICs widens no other PCI links than the merged one's", READ},
    [KL_CHANGE_MERGED_ONE_SOCKET] = {23007, "merged_one_socket", /* 3.7 */
        "NICs of different sockets cannot be merged", READ},
    [KL_CHANGE_MERGED_STAY] = {22703, "merged_stay", /* 3.11 */
        "the second communicator of a process also uses NICs that were merged for the first", READ},
    [KL_CHANGE_MERGED_GO] = {23007, "merged_go", /* 3.11 */
        "no communicator uses NICs that were merged, except for their roles outside of merging", READ},
    [KL_CHANGE_MERGE_POLICY] = {23007, "merge_policy", /* 3.9 */
        "NCCL_NET_MERGE_POLICY says which NICs may be merged", READ},
    [KL_CHANGE_PXN_C2C] = {22703, "pxn_c2c", /* 5.2 */
        "PXN may lead through a GPU that reaches the NIC over C2C (NCCL_PXN_C2C)", READ},
    [KL_CHANGE_PXN_BY_LEVEL] = {22705, "pxn_by_level", /* 5.2 */
        "PXN goes through GPUs up to P2C from the NIC, or PXB without NCCL_PXN_C2C", READ},
    [KL_CHANGE_PXN_BEHIND_PXN] = {22706, "pxn_behind_pxn", /* 5.2 */
        "a NIC as near as PXN keeps its direct path", READ},
    [KL_CHANGE_PXN_C2C_DEFAULT] = {22803, "pxn_c2c_default", /* 5.2 */
        "NCCL_PXN_C2C is 1 by default", READ},
    [KL_CHANGE_PXN_NEEDS_GDR] = {23003, "pxn_needs_gdr", /* 5.2 */
        "PXN needs GPUDirect RDMA at the GPU in between", READ},
    [KL_CHANGE_P2P_PXN_C2C] = {22706, "p2p_pxn_c2c", /* 5.3 */
        "send and receive may go through a GPU that reaches the NIC over C2C", READ},
    [KL_CHANGE_GDR_C2C_DEFAULT] = {22703, "gdr_c2c_default", /* 5.4 */
        "GPUDirect RDMA over C2C is on by default (NCCL_NET_GDR_C2C)", READ},
    [KL_CHANGE_GDR_LEVEL_P2C] = {22902, "gdr_level_p2c", /* 5.5 */
        "GPUDirect RDMA over C2C is a matter of NCCL_NET_GDR_LEVEL, which is P2C by default", READ},
    [KL_CHANGE_FLUSH_C2C] = {23003, "flush_c2c", /* 5.6 */
        "a flush because of C2C is told apart from others", READ},
    [KL_CHANGE_NETDEVS_POLICY] = {22803, "netdevs_policy", /* 5.7 */
        "NCCL_NETDEVS_POLICY says how many NICs a GPU uses", READ},
    [KL_CHANGE_NET_LIST_LIMIT] = {22807, "net_list_limit", /* 5.8 */
        "NCCL_NETDEVS_POLICY=MAX:k also bounds the NICs that the search prefers", READ},
    [KL_CHANGE_NET_BY_RAIL] = {23007, "net_by_rail", /* 5.9 */
        "GPUs that share NICs spread over them by their number among these GPUs", READ},
    [KL_CHANGE_ABSENT_NOT_NET] = {23003, "absent_not_net", /* 5.10 */
        "ranks of one host that only the network joins in plans may use shared memory", READ},
    [KL_CHANGE_INTRA_18] = {22703, "intra_18", /* 6.1 */
        "searches on sm 100 and later also try 18 GB/s", READ},
    [KL_CHANGE_INTRA_45] = {22902, "intra_45", /* 6.1 */
        "searches on sm 100 and later also try 45 GB/s", READ},
    [KL_CHANGE_INTER_47_9] = {22703, "inter_47_9", /* 6.1 */
        "searches between hosts on sm 100 and later begin with 47.9 GB/s", READ},
    [KL_CHANGE_INTER_45_1] = {22705, "inter_45_1", /* 6.1 */
        "searches between hosts on sm 100 and later try 48 and 45.1 GB/s", READ},
    [KL_CHANGE_INTER_96] = {22706, "inter_96", /* 6.1 */
        "searches between hosts on sm 100 and later also try 96 GB/s", READ},
    [KL_CHANGE_INTER_80] = {22907, "inter_80", /* 6.1 */
        "searches between hosts on sm 100 and later also try 80 GB/s", READ},
    [KL_CHANGE_INTER_86] = {23003, "inter_86", /* 6.1 */
        "searches between hosts on sm 100 and later also try 86 GB/s", READ},
    [KL_CHANGE_NO_WAY_DIS] = {22703, "no_way_dis", /* 6.2 */
        "the search never follows a path that does not exist", READ},
    [KL_CHANGE_START_NEAREST] = {22703, "start_nearest", /* 6.3 */
        "channels start at the GPUs nearest to their NIC, the first one first, whatever the channel", READ},
    [KL_CHANGE_START_LOCAL] = {22705, "start_local", /* 6.4 */
        "channels start at the GPU that uses their NIC first", READ},
    [KL_CHANGE_SCATTER_NETS] = {22705, "scatter_nets", /* 6.5 */
        "NVLink domains of several hosts may spread channels over the hosts' NICs (NCCL_MNNVL_SCATTER_NETS_ENABLE)", READ},
    [KL_CHANGE_INTER_UP_TO_SYS] = {22902, "inter_up_to_sys", /* 6.6 */
        "before sm 90 searches may use NICs up to SYS, whatever their paths", READ},
    [KL_CHANGE_FALLBACK_NETS] = {22902, "fallback_nets", /* 6.7 */
        "the fallback leads through NICs of the first and the last GPU", READ},
    [KL_CHANGE_RAIL_PER_HOST] = {22807, "rail_per_host", /* 6.8 */
        "NICs of different hosts may count as one rail (NCCL_MNNVL_RAIL_PER_HOST)", READ},
    [KL_CHANGE_RAILS] = {23007, "rails", /* 6.9 */
        "rails and planes that the network names decide which NICs may be joined", READ},
    [KL_CHANGE_NVLS_24] = {22703, "nvls_24", /* 7.1 */
        "NVLS on sm 100 and later uses 24 channels within a node", READ},
    [KL_CHANGE_NVLS_PAIR] = {22807, "nvls_pair", /* 7.2 */
        "two GPUs are enough for NVLS", READ},
    [KL_CHANGE_NVLS_APART] = {22803, "nvls_apart", /* 7.6 */
        "NVLS has channels of its own: the communicator does not grow to their number", READ},
    [KL_CHANGE_NVLS_BY_NETS] = {23003, "nvls_by_nets", /* 7.3, 7.4 */
        "between nodes the bandwidth of NICs decides how many channels NVLS uses", READ},
    [KL_CHANGE_CROSS_BY_RANK] = {22803, "cross_by_rank", /* 7.7 */
        "pairs of ring channels are swapped where the rank's own rings cross NICs", READ},
    [KL_CHANGE_COLLNET_DIRECT_8] = {22803, "collnet_direct_8", /* 7.8 */
        "CollNetDirect connects ranks where nodes have up to 8", READ},
    [KL_CHANGE_COLLNET_NVLS_HEADS] = {22803, "collnet_nvls_heads", /* 7.8 */
        "the GPUs that lead to the network for CollNet are those that do so for NVLS, where that is on", READ},
    [KL_CHANGE_COLLNET_CHAIN_HEADS] = {23007, "collnet_chain_heads", /* 7.8 */
        "CollNetChain is used only where its chains begin at GPUs that lead to the network", READ},
    [KL_CHANGE_P2P_PARTS] = {22803, "p2p_parts", /* 7.9 */
        "the parts of a message take neighbouring channels", READ},
    [KL_CHANGE_P2P_GROUPS] = {22807, "p2p_groups", /* 7.9 */
        "rounds of send and receive go over groups of 8 ranks (NCCL_P2P_SCHEDULE_GROUP_SIZE)", READ},
    [KL_CHANGE_P2P_OWN_GPU] = {22902, "p2p_own_gpu", /* 7.10, 7.11 */
        "channels per peer follow from bandwidth to NICs, 14 GB/s each (NCCL_P2P_PER_CHANNEL_NET_BW)", READ},
    [KL_CHANGE_P2P_PEERS] = {23003, "p2p_peers", /* 7.11 */
        "channels per peer follow from the number of peers (NCCL_P2P_MAX_PEERS)", READ},
    [KL_CHANGE_P2P_NVB] = {23007, "p2p_nvb", /* 7.12 */
        "GPUs joined through another one use channels for each NVLink", READ},
    [KL_CHANGE_NVLINK_EVERYWHERE] = {23007, "nvlink_everywhere", /* 7.13 */
        "all GPUs count as joined by NVLink only where that holds on all hosts", READ},
    [KL_CHANGE_NVLS_RUBIN] = {23203, "nvls_rubin", /* A 3.5 */
        "NVLS on sm 107 and later uses 48 channels within a node, and 64 between nodes", READ},
    [KL_CHANGE_LL128_SM] = {22703, "ll128_sm", /* 8.1 */
        "LL128 is used from sm 70 on, whatever the generation", READ},
    [KL_CHANGE_LL128_P2C] = {22703, "ll128_p2c", /* 8.1 */
        "LL128 is used on paths up to P2C from sm 90 on (NCCL_LL128_C2C)", READ},
    [KL_CHANGE_LL128_PXN] = {22705, "ll128_pxn", /* 8.1 */
        "LL128 is used on paths up to PXN from sm 90 on, unless NCCL_LL128_C2C=0", READ},
    [KL_CHANGE_LL128_MIXED] = {23003, "ll128_mixed", /* 8.1 */
        "GPUs of different generations may use LL128 from sm 90 on", READ},
    [KL_CHANGE_NVLS_GATHERS] = {22703, "nvls_gathers", /* 8.2 */
        "NVLS's all-gather and reduce-scatter are modelled on their own", READ},
    [KL_CHANGE_COLLNET_GATHERS] = {22703, "collnet_gathers", /* 8.3 */
        "CollNetDirect's all-gather and reduce-scatter are modelled without a correction", READ},
    [KL_CHANGE_NVLS_MODEL] = {22803, "nvls_model", /* 8.4, 8.5 */
        "the model of NVLS knows its efficiency: 0.85 on Hopper, 0.74 on Blackwell", READ},
    [KL_CHANGE_TREE_BLACKWELL] = {22803, "tree_blackwell", /* 8.6 */
        "trees of sm 100 and later have bandwidths of their own", READ},
    [KL_CHANGE_NVLS_TREE_43_8] = {22809, "nvls_tree_43_8", /* 8.6 */
        "NVLSTree of Blackwell reaches 43.8 GB/s per channel on many nodes", READ},
    [KL_CHANGE_NVLS_TREE_80] = {23003, "nvls_tree_80", /* 8.6 */
        "NVLSTree of Blackwell reaches 80 GB/s per channel on many nodes", READ},
    [KL_CHANGE_LL128_34_6] = {22807, "ll128_34_6", /* 8.7 */
        "LL128 rings of Blackwell reach 34.6 GB/s per channel on two nodes", READ},
    [KL_CHANGE_LL128_34_5] = {22902, "ll128_34_5", /* 8.7 */
        "LL128 rings of Blackwell reach 34.5 GB/s per channel", READ},
    [KL_CHANGE_LL128_40] = {22907, "ll128_40", /* 8.7 */
        "LL128 rings of Blackwell reach 40 GB/s per channel", READ},
    [KL_CHANGE_NVLS_TREE_LATENCY] = {22809, "nvls_tree_latency", /* 8.8 */
        "a hop of NVLSTree between nodes takes 20.9 us instead of 14", READ},
    [KL_CHANGE_PAT_TABLE] = {22803, "pat_table", /* 8.9 */
        "PAT's hops inside nodes take time", READ},
    [KL_CHANGE_NVLS_TREE_SHARE] = {22902, "nvls_tree_share", /* 8.11 */
        "small sums by NVLSTree on Blackwell have less bandwidth", READ},
    [KL_CHANGE_NVLS_RULES] = {22703, "nvls_rules", /* 8.12 */
        "NVLS gathers and scatters on several nodes, up to 32 ranks each", READ},
    [KL_CHANGE_COLLNET_CHAIN_8] = {22803, "collnet_chain_8", /* 8.13 */
        "CollNetChain is for up to 8 ranks of a node", READ},
    [KL_CHANGE_NVLS_SIZE] = {22803, "nvls_size", /* 8.13 */
        "NVLS on several nodes uses no more channels than the communicator has", READ},
    [KL_CHANGE_LATER_WINS] = {23102, "later_wins", /* A 4.1 */
        "of equal times the later of the candidates wins, not the earlier", UNREAD_SINCE(23102)},
    [KL_CHANGE_NO_LATENCY] = {23102, "no_latency", /* A 4.2 */
        "the model has no latency for CollNet and NVLS where they cannot be used", UNREAD_SINCE(23102)},
    [KL_CHANGE_RING_INTER] = {23102, "ring_inter", /* A 4.3 */
        "rings on two nodes count the bandwidth between nodes from sm 100 on", UNREAD(23102, 23203)},
    [KL_CHANGE_TREE_LESSER] = {23102, "tree_lesser", /* A 4.4 */
        "trees count the lesser of the bandwidths inside and between nodes", UNREAD_SINCE(23102)},
    [KL_CHANGE_PAT_LESSER] = {23102, "pat_lesser", /* A 4.5 */
        "PAT counts the lesser of the bandwidths inside and between nodes", UNREAD_SINCE(23102)},
    [KL_CHANGE_NVLS_FEWEST] = {23102, "nvls_fewest", /* A 4.6 */
        "NVLS's all-gather and reduce-scatter count the ranks of the smallest node", READ},
    [KL_CHANGE_ONE_PER_NODE] = {23102, "one_per_node", /* A 4.8 */
        "with one rank per node, rings alone take the network latency of trees", READ},
    [KL_CHANGE_RING_512] = {23102, "ring_512", /* A 4.10 */
        "slow rings use 512 threads, too", UNREAD_SINCE(23102)},
    [KL_CHANGE_NVLS_TREE_ARM] = {23203, "nvls_tree_arm", /* A 4.11 */
        "small sums by NVLSTree have less bandwidth on Arm, too, with 4 ranks per node and 96 GB/s to each NIC", UNREAD(23102, 23203)},
    [KL_CHANGE_RING_PLATEAU] = {23203, "ring_plateau", /* A 4.12 */
        "rings over NVLink of sm 100 and later take longer to start within a node", UNREAD(23102, 23203)},
    [KL_CHANGE_COLLNET_ALONE] = {23102, "collnet_alone", /* A 4.13 */
        "CollNetDirect needs no NVSwitch where nodes have one GPU", UNREAD_SINCE(23102)},
    [KL_CHANGE_POWER_TREES] = {23102, "power_trees", /* A 4.14 */
        "trees over PCI on POWER have the latency that they have elsewhere", UNREAD_SINCE(23102)},
    [KL_CHANGE_ANY_SUM] = {23102, "any_sum", /* A 4.14 */
        "sums of FP8 and scaled sums are chosen for as others are", UNREAD_SINCE(23102)},
    [KL_CHANGE_CUT_REGISTERED] = {22703, "cut_registered", /* O 1.1 */
        "NVLS cuts registered buffers of all-gather and reduce-scatter into chunks of an eighth of the buffer", READ},
    [KL_CHANGE_CUT_32K] = {22902, "cut_32k", /* O 1.1 */
        "a channel gets cells of at least 32 KiB of traffic instead of 16, and its share is rounded up to 16 bytes", READ},
};
/* clang-format on */

/* Releases that give different results, or end a line; ascending. */
static const int releases[] = {22603, 22606, 22703, 22705, 22706, 22707, 22803, 22807, 22809,
                               22902, 22903, 22907, 23003, 23004, 23007, 23102, 23203};

enum { NRELEASES = sizeof releases / sizeof releases[0] };

/* A mix is a number as well: MIXED, then where both releases are in the list, then which changes are the other's. */
enum { MIXED = 1 << 30, RELEASE_BITS = 5, CHANGE_BITS = 8 };
_Static_assert(NRELEASES <= 1 << RELEASE_BITS && KL_CHANGES < 1 << CHANGE_BITS, "a mix has bits for all of them");
_Static_assert(2 * (RELEASE_BITS + CHANGE_BITS) <= 30, "and they do not reach MIXED");

static int place_of(int nccl)
{
    int i = 0;

    while (i < NRELEASES - 1 && releases[i] < nccl) i++;
    return i;
}

int kl_nccl_mix(int nccl, int other, int first, int last)
{
    int both = place_of(nccl) << RELEASE_BITS | place_of(other);

    return MIXED | both << 2 * CHANGE_BITS | first << CHANGE_BITS | last;
}

static int bits(int mix, int from, int n)
{
    return mix >> from & ((1 << n) - 1);
}

static int base_of(int mix)
{
    return releases[bits(mix, 2 * CHANGE_BITS + RELEASE_BITS, RELEASE_BITS)];
}

static int followed_for(int mix, int change)
{
    bool others = change >= bits(mix, CHANGE_BITS, CHANGE_BITS) && change < bits(mix, 0, CHANGE_BITS);

    return others ? releases[bits(mix, 2 * CHANGE_BITS, RELEASE_BITS)] : base_of(mix);
}

bool kl_nccl_has(int nccl, enum kl_change change)
{
    if (nccl & MIXED) nccl = followed_for(nccl, (int)change);
    return nccl >= facts[change].since;
}

const struct kl_change_facts *kl_change_facts(enum kl_change change)
{
    return &facts[change];
}

/* A number of at most two digits; -1 if there is none. Moves `at` behind it. */
static int small_number(const char **at)
{
    char *end;
    long n = isdigit((unsigned char)**at) ? strtol(*at, &end, 10) : -1;

    if (n < 0 || n > 99) return -1;
    *at = end;
    return (int)n;
}

/* The first, or the last, known release of a line; the line's number if none is. */
static int end_of(int line, bool last)
{
    int found = line * 100;

    for (int i = 0; i < NRELEASES; i++)
        if (releases[i] / 100 == line && (last || found == line * 100)) found = releases[i];
    return found;
}

/* The newest known release that is not newer; -1 for a release older than all. */
static int floor_of(int nccl)
{
    int found = -1;

    for (int i = 0; i < NRELEASES; i++)
        if (releases[i] <= nccl) found = releases[i];
    return found;
}

/* The number that a text writes, where 2.29 is the last of its line; -1 for a text that is no version. */
static int number_of(const char *text)
{
    int part[3] = {-1, -1, -1};

    for (int i = 0; i < 3; i++) {
        part[i] = small_number(&text);
        if (part[i] < 0) return -1;
        if (*text != '.') break;
        text++;
    }
    if (*text || part[1] < 0 || text[-1] == '.') return -1;
    int line = part[0] * 100 + part[1];

    return part[2] < 0 ? end_of(line, true) : line * 100 + part[2];
}

int kl_nccl_parse(const char *text)
{
    int nccl = number_of(text), first = end_of(nccl / 100, false);

    if (nccl < releases[0] || first % 100 == 0 || nccl > end_of(nccl / 100, true)) return -1;
    return nccl < first ? first : floor_of(nccl);
}

int kl_nccl_nearest(const char *text, int otherwise)
{
    int nccl = text ? number_of(text) : -1, known = text ? kl_nccl_parse(text) : -1;

    if (known >= 0) return known;
    if (nccl >= 0) return nccl < releases[0] ? releases[0] : floor_of(nccl);
    return text && small_number(&text) >= 0 && *text == '.' ? releases[0] : otherwise;
}

bool kl_nccl_unread(int nccl, enum kl_change change)
{
    if (nccl & MIXED) nccl = followed_for(nccl, (int)change);
    return nccl >= facts[change].unread_from && nccl < facts[change].unread_to;
}

int kl_nccl_toggle_change(int nccl, enum kl_change change)
{
    int other = kl_nccl_has(nccl, change) ? releases[0] : releases[NRELEASES - 1];

    return kl_nccl_mix(nccl, other, (int)change, (int)change + 1);
}

const char *kl_nccl_expected(char text[KL_NCCL_EXPECTED])
{
    struct kl_text to = kl_text_in(text, KL_NCCL_EXPECTED);
    char one[KL_NCCL_TEXT];

    kl_text_add(&to, "expected a known release of NCCL:");
    for (int i = 0; i < NRELEASES; i++)
        kl_text_add(&to, "%s %s", !i ? "" : i == NRELEASES - 1 ? " or" : ",", kl_nccl_text(releases[i], one));
    return text;
}

const char *kl_nccl_text(int nccl, char text[KL_NCCL_TEXT])
{
    if (nccl & MIXED) nccl = base_of(nccl);
    snprintf(text, KL_NCCL_TEXT, "%d.%d.%d", nccl / 10000 % 100, nccl / 100 % 100, nccl % 100);
    return text;
}
