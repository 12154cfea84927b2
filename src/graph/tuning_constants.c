/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuning.h"

/* Rows are algorithms, columns LL, LL128, Simple. Missing entries are 0. */
const struct kl_tuning_constants kl_tuning_reference =
    {
        .name = "reference",
        .algos = KL_NCCL_ALGOS,
        .follows_nccl = true,
        .base_latency =
            {
                [KL_ALGO_TREE] = {6.8f, 14.0f, 8.4f},
                [KL_ALGO_RING] = {6.6f, 14.0f, 8.4f},
            },
        .hw_latency =
            {
                [KL_HW_NVLINK] =
                    {
                        [KL_ALGO_TREE] = {0.6f, 1.25f, 4.0f},
                        [KL_ALGO_RING] = {0.6f, 1.9f, 3.4f},
                        [KL_ALGO_COLLNET_DIRECT] = {0, 0, 3.7f},
                        [KL_ALGO_COLLNET_CHAIN] = {0, 0, 2.8f},
                        [KL_ALGO_NVLS] = {0, 0, 25},
                        [KL_ALGO_NVLS_TREE] = {0, 0, 25},
                    },
                [KL_HW_PCI] =
                    {
                        [KL_ALGO_TREE] = {1.0f, 1.9f, 4.0f},
                        [KL_ALGO_RING] = {1.0f, 2.5f, 5.7f},
                        [KL_ALGO_COLLNET_DIRECT] = {0, 0, 3.7f},
                        [KL_ALGO_COLLNET_CHAIN] = {0, 0, 2.8f},
                    },
                [KL_HW_NET] =
                    {
                        [KL_ALGO_TREE] = {5.0f, 8.5f, 14},
                        [KL_ALGO_RING] = {2.7f, 4.0f, 14.0f},
                        [KL_ALGO_COLLNET_DIRECT] = {0, 0, 31},
                        [KL_ALGO_COLLNET_CHAIN] = {0, 0, 30},
                        [KL_ALGO_NVLS] = {0, 0, 18},
                        [KL_ALGO_NVLS_TREE] = {0, 0, 14},
                    },
            },
        .ll_max = {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}},
        .ring_ll128 = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 73.4, 73.4}},
        .tree_ll128 = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29.0}, {73.4, 73.4, 58.0}},
        .tree = {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {77.4, 82.8, 72.0}},
        .nvls_tree = {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96.0, 43.1}},
        .nvls_efficiency = {0, 0, 0.85, 0.74},
        .tree_share =
            {
                [KL_PROTO_LL] = {1,   1,   1,   1,   .9f, .8f, .7f, .7f, .7f, .7f, .6f, .5f,
                                 .4f, .4f, .5f, .6f, .7f, .8f, .9f, 1,   1,   1,   1,   1},
                [KL_PROTO_LL128] = {1,   1,   1,   1,   1,   .9f, .8f, .8f, .8f, .7f, .6f, .6f,
                                    .6f, .6f, .6f, .6f, .8f, .9f, .9f, .9f, .9f, 1,   1,   1},
                [KL_PROTO_SIMPLE] = {.9f, .9f, .9f, .9f, .9f, .9f, .9f, .8f, .7f, .6f, .6f, .5f,
                                     .5f, .5f, .5f, .6f, .7f, .8f, .7f, .7f, .8f, .9f, .9f, .9f},
            },
        .small_ring_bw = 12.0f,
        .pat_base = 8,
        .pat_rank = 2.8,
};

/*
 * CPUs and shared memory, for any emulated machine. A line goes from core to core in some 100 ns, a loopback or Ethernet
 * message takes some tens of microseconds; a channel is a core, which moves about 10 GB/s. These are round numbers: only
 * their order matters, which was measured with 2 to 16 ranks.
 *
 * Simple is the fastest on one host at every size, as with every protocol up to 104 bytes of a step lie in the line of its
 * flag. A tree is a chain there, with as many sequential hops as a ring: it only wins with two ranks and small sums, because
 * each rank then sends once instead of twice.
 *
 * Flat is for small operations: it needs one flag or two for any number of ranks, while each dependent hop costs a switch of
 * every core that ranks share (32 bytes, 8 processes on 2 cores: a third of a ring's time, and an all-gather's up to
 * megabytes). But it copies twice, so all-reduces of two and four ranks leave it at some 50 KiB, of eight at 140 KiB. Its
 * cost per byte is mostly waiting: flat_moved was fitted to the sizes at which a ring becomes faster on 2 cores. A broadcast
 * of three and more ranks never leaves it: a ring writes once more at each rank (4 to 32 ranks on 2 cores, 32 KiB to 1 MiB:
 * 1.0 to 2.9 times as long).
 *
 * OneShot does the same over connections, for all-reduce without shared memory and between nodes; every rank reduces all. It
 * is fast if each rank has a core: else a further exchange waits for all ranks on the core (64 ranks on 2 cores, 8 bytes to
 * 16 KiB: 1.5 to 5 times as long as Flat).
 *
 * NVLS, where all ranks meet twice in one segment, is for large operations. Lines gain nothing through a network: they
 * become messages.
 */
const struct kl_tuning_constants
    kl_tuning_host =
        {
            .name = "host",
            .algos = KL_ALGOS,
            .base_latency =
                {
                    [KL_ALGO_TREE] = {0.5f, 0.5f, 0.1f},
                    [KL_ALGO_RING] = {0.6f, 0.6f, 0.5f},
                    [KL_ALGO_ONE_SHOT] = {0, 0, 0.1f},
                    [KL_ALGO_FLAT] = {0, 0, 0.1f},
                },
            .hw_latency =
                {
                    [KL_HW_NVLINK] =
                        {
                            [KL_ALGO_TREE] = {0.35f, 0.4f, 0.34f},
                            [KL_ALGO_RING] = {0.4f, 0.4f, 0.15f},
                            [KL_ALGO_COLLNET_DIRECT] = {0, 0, 0.6f},
                            [KL_ALGO_COLLNET_CHAIN] = {0, 0, 0.6f},
                            [KL_ALGO_NVLS] = {0, 0, 10},
                            [KL_ALGO_NVLS_TREE] = {0, 0, 10},
                            [KL_ALGO_ONE_SHOT] = {0, 0, 0.2f},
                            [KL_ALGO_FLAT] = {0, 0, 0.1f},
                        },
                    [KL_HW_PCI] =
                        {
                            [KL_ALGO_TREE] = {0.35f, 0.4f, 0.34f},
                            [KL_ALGO_RING] = {0.4f, 0.4f, 0.15f},
                            [KL_ALGO_COLLNET_DIRECT] = {0, 0, 0.6f},
                            [KL_ALGO_COLLNET_CHAIN] = {0, 0, 0.6f},
                            [KL_ALGO_ONE_SHOT] = {0, 0, 0.2f},
                            [KL_ALGO_FLAT] = {0, 0, 0.1f},
                        },
                    [KL_HW_NET] =
                        {
                            [KL_ALGO_TREE] = {120, 120, 20},
                            [KL_ALGO_RING] = {120, 120, 20},
                            [KL_ALGO_COLLNET_DIRECT] = {0, 0, 40},
                            [KL_ALGO_COLLNET_CHAIN] = {0, 0, 40},
                            [KL_ALGO_NVLS] = {0, 0, 30},
                            [KL_ALGO_NVLS_TREE] = {0, 0, 30},
                            [KL_ALGO_PAT] = {0, 0, 70},
                            [KL_ALGO_ONE_SHOT] = {0, 0, 15},
                        },
                },
            .ll_max = {{10, 5, 5}, {10, 5, 5}, {10, 5, 5}, {10, 5, 5}},
            .ring_ll128 = {{8, 8, 8}, {8, 8, 8}, {8, 8, 8}, {8, 8, 8}},
            .tree_ll128 = {{8, 8, 8}, {8, 8, 8}, {8, 8, 8}, {8, 8, 8}},
            .tree = {{9, 9, 9}, {9, 9, 9}, {9, 9, 9}, {9, 9, 9}},
            .tree_share =
                {
                    [KL_PROTO_LL] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                    [KL_PROTO_LL128] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                    [KL_PROTO_SIMPLE] = {1,   1,   1,   1,   1,   1,   1,   1,   .9f, .9f, .8f, .8f,
                                         .8f, .8f, .8f, .8f, .8f, .8f, .8f, .8f, .9f, .9f, .9f},
                },
            .small_ring_bw = 12.0f,
            .pat_base = 0.5,
            .pat_rank = 0.05,
            .one_shot_peer = {0.1f, 3},
            .one_shot_turn = 1,
            .one_shot_bw = 100,
            .flat_peer = 0.05f,
            .flat_bw = 40,
            .flat_moved =
                {
                    [KL_FUNC_BROADCAST] = {4.1f, 2.5f, 2.5f, 0},
                    [KL_FUNC_REDUCE] = {3.5f, 3.6f, 3.5f, 0.5f},
                    [KL_FUNC_ALL_GATHER] = {1.9f, 2.6f, 2.7f, 0},
                    [KL_FUNC_REDUCE_SCATTER] = {10, 2.8f, 3.21f, 0.011f},
                    [KL_FUNC_ALL_REDUCE] = {3.8f, 5.8f, 6.56f, 0.31f},
                },
            .any_reduction = true,
            .collnet_gathers = true,
};

/* ---- changes between releases ---- */

enum { BLACKWELL = 3 };

static void set(double to[3], double one, double two, double more)
{
    to[0] = one;
    to[1] = two;
    to[2] = more;
}

static void set_trees(struct kl_tuning_constants *k, int nccl)
{
    if (kl_nccl_has(nccl, KL_CHANGE_TREE_BLACKWELL)) {
        set(k->tree_ll128[BLACKWELL], 55.6, 31.67, 20.0);
        set(k->tree[BLACKWELL], 70.0, 42.8, 24.0);
    }
    if (kl_nccl_has(nccl, KL_CHANGE_NVLS_TREE_43_8)) set(k->nvls_tree[BLACKWELL], 0, 96.0, 43.8);
    if (kl_nccl_has(nccl, KL_CHANGE_NVLS_TREE_80)) set(k->nvls_tree[BLACKWELL], 0, 96.0, 80.0);
}

static void set_ll128(struct kl_tuning_constants *k, int nccl)
{
    if (kl_nccl_has(nccl, KL_CHANGE_LL128_34_6)) set(k->ring_ll128[BLACKWELL], 73.4, 34.6, 73.4);
    if (kl_nccl_has(nccl, KL_CHANGE_LL128_34_5)) set(k->ring_ll128[BLACKWELL], 34.5, 34.6, 34.5);
    if (kl_nccl_has(nccl, KL_CHANGE_LL128_40)) set(k->ring_ll128[BLACKWELL], 40, 40, 40);
}

static void set_latencies(struct kl_tuning_constants *k, int nccl)
{
    if (kl_nccl_has(nccl, KL_CHANGE_NVLS_TREE_LATENCY))
        k->hw_latency[KL_HW_NET][KL_ALGO_NVLS_TREE][KL_PROTO_SIMPLE] = 20.9f;
    if (!kl_nccl_has(nccl, KL_CHANGE_PAT_TABLE)) return;
    for (int p = 0; p < KL_PROTOS; p++) k->base_latency[KL_ALGO_PAT][p] = 8.0f;
    k->hw_latency[KL_HW_NVLINK][KL_ALGO_PAT][KL_PROTO_SIMPLE] = 4.0f;
    k->hw_latency[KL_HW_PCI][KL_ALGO_PAT][KL_PROTO_SIMPLE] = 4.0f;
    k->hw_latency[KL_HW_NET][KL_ALGO_PAT][KL_PROTO_SIMPLE] = 14.0f;
}

struct kl_tuning_constants kl_tuning_constants_at(const struct kl_tuning_constants *constants, int nccl)
{
    struct kl_tuning_constants k = *constants;

    if (!k.follows_nccl) return k;
    set_trees(&k, nccl);
    set_ll128(&k, nccl);
    set_latencies(&k, nccl);
    return k;
}
