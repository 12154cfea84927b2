/* SPDX-License-Identifier: Apache-2.0 */
/** test_tuning.h - machines of NVIDIA GPUs as the tuning model sees them. For tests only. */
#ifndef KL_GRAPH_TEST_TUNING_H
#define KL_GRAPH_TEST_TUNING_H

#include "graph/tuning.h"

/** The same graph for every algorithm; bandwidths in GB/s. */
static inline void set_graphs(struct kl_tuning_input *in, int nchannels, float intra, float inter)
{
    for (int g = 0; g < KL_GRAPHS; g++)
        in->graph[g] = (struct kl_graph_facts){.pattern = KL_PATTERN_BALANCED_TREE,
                                               .nchannels = nchannels,
                                               .type_intra = KL_PATH_NVL,
                                               .type_inter = KL_PATH_PIX,
                                               .bw_intra = intra,
                                               .bw_inter = inter};
}

/** `local` GPUs of compute capability `sm` on each of `nnodes` hosts with an NVSwitch, without graphs. */
static inline struct kl_tuning_input switched_hosts(int sm, int nnodes, int local)
{
    return (struct kl_tuning_input){.nranks = nnodes * local,
                                    .nnodes = nnodes,
                                    .min_local_ranks = local,
                                    .max_local_ranks = local,
                                    .nvls_channels = 16,
                                    .min_sm = sm,
                                    .max_sm = sm,
                                    .cpu_arch = KL_ARCH_X86,
                                    .cpu_vendor = KL_VENDOR_INTEL,
                                    .max_tree_pattern = KL_PATTERN_BALANCED_TREE,
                                    .nvs = true,
                                    .net_is_host = true};
}

#endif
