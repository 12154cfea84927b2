/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/config.h"

#define T struct kl_graph_config

/*
 * Each rank chooses algorithm, protocol and channels for itself, from the exchanged records and these settings: so all ranks
 * need the same. Exceptions: the file of graphs, which a host's first rank reads and sends to the others; and the measured
 * times, which count only if all ranks have the same.
 */
static const struct kl_param rows[] = {
    KL_PARAM_STRING(T, algo, "NCCL_ALGO", KL_ALIKE, "",
                    "algorithms to choose from, as in \"ring,tree\", \"^tree\" or \"ring;allreduce:tree\""),
    KL_PARAM_STRING(T, proto, "NCCL_PROTO", KL_ALIKE, "",
                    "protocols to choose from, written like NCCL_ALGO: LL, LL128, Simple"),
    KL_PARAM_STRING(T, graph_file, "NCCL_GRAPH_FILE", KL_SETTLED, "",
                    "rings and trees to use instead of searching them (XML)"),
    KL_PARAM_STRING(T, graph_dump_file, "NCCL_GRAPH_DUMP_FILE", KL_OWN, "",
                    "file to write the rings and trees in use to (XML)"),
    KL_PARAM_STRING(
        T, tuning_file, "KOLO_TUNING", KL_SETTLED, "",
        "file of the times that `kolo tune` measured on this machine; \"\": in the user's cache; \"none\": none"),
    KL_PARAM_INT(T, graph_dump_rank, "NCCL_GRAPH_DUMP_FILE_RANK", KL_OWN, "0", 0, INT32_MAX,
                 "the rank that writes NCCL_GRAPH_DUMP_FILE"),
    KL_PARAM_INT(T, channels.min_channels, "NCCL_MIN_NCHANNELS", KL_ALIKE, "-2", 0, INT32_MAX,
                 "minimum number of channels for collectives; -2 lets Kolo decide"),
    KL_PARAM_INT(T, channels.max_channels, "NCCL_MAX_NCHANNELS", KL_ALIKE, "-2", 0, INT32_MAX,
                 "maximum number of channels for collectives; -2 lets Kolo decide"),
    KL_PARAM_INT(T, channels.min_rings, "NCCL_MIN_NRINGS", KL_ALIKE, "-2", 0, INT32_MAX,
                 "old name of NCCL_MIN_NCHANNELS"),
    KL_PARAM_INT(T, channels.max_rings, "NCCL_MAX_NRINGS", KL_ALIKE, "-2", 0, INT32_MAX,
                 "old name of NCCL_MAX_NCHANNELS"),
    KL_PARAM_INT(T, channels.min_ctas, "NCCL_MIN_CTAS", KL_ALIKE, "-2", 0, INT32_MAX,
                 "minimum number of channels, overrides the communicator's configuration; -2 leaves it"),
    KL_PARAM_INT(T, channels.max_ctas, "NCCL_MAX_CTAS", KL_ALIKE, "-2", 0, INT32_MAX,
                 "maximum number of channels, overrides the communicator's configuration; -2 leaves it"),
    KL_PARAM_INT(T, channels.nvls_channels, "NCCL_NVLS_NCHANNELS", KL_ALIKE, "-2", 0, INT32_MAX,
                 "channels that use the NVSwitch's reductions; -2: 16, or more from sm 100 on"),
    KL_PARAM_INT(T, channels.collnet_node_threshold, "NCCL_COLLNET_NODE_THRESHOLD", KL_ALIKE, "2", 0, INT32_MAX,
                 "minimum number of nodes for reductions in the network"),
    KL_PARAM_INT(T, channels.unpack_double, "NCCL_UNPACK_DOUBLE_NCHANNELS", KL_ALIKE, "1", 0, 1,
                 "use twice the channels where the network device delivers packed data"),
    KL_PARAM_INT(T, channels.min_p2p, "NCCL_MIN_P2P_NCHANNELS", KL_ALIKE, "1", 1, INT32_MAX,
                 "minimum number of channels for send and receive"),
    KL_PARAM_INT(T, channels.max_p2p, "NCCL_MAX_P2P_NCHANNELS", KL_ALIKE, "64", 1, INT32_MAX,
                 "maximum number of channels for send and receive"),
    KL_PARAM_INT(T, channels.per_net_peer, "NCCL_NCHANNELS_PER_NET_PEER", KL_ALIKE, "-1", 0, 64,
                 "channels towards one rank of another host; -1 lets Kolo decide"),
    KL_PARAM_INT(T, channels.per_channel_net_bw, "NCCL_P2P_PER_CHANNEL_NET_BW", KL_ALIKE, "14", 1, INT32_MAX,
                 "GB/s towards other hosts that a channel of send and receive stands for (from 2.29.2 on)"),
    KL_PARAM_INT(T, channels.max_p2p_peers, "NCCL_P2P_MAX_PEERS", KL_ALIKE, "-2", 1, INT32_MAX,
                 "peers that a rank sends to at a time, which share its channels; -2: all (from 2.30.3 on)"),
    KL_PARAM_INT(T, channels.p2p_group, "NCCL_P2P_SCHEDULE_GROUP_SIZE", KL_ALIKE, "8", 1, INT32_MAX,
                 "ranks of a node that take a round of send and receive together (from 2.28.7 on)"),
    KL_PARAM_SIZE(T, channels.work_args_bytes, "NCCL_WORK_ARGS_BYTES", KL_ALIKE, "9223372036854775807", 0, INT64_MAX,
                  "bytes of work that are passed as kernel arguments; bounds the channels"),
    KL_PARAM_INT(T, nvls, "NCCL_NVLS_ENABLE", KL_ALIKE, "2", 0, 2,
                 "reductions in the NVSwitch: 0 never, 1 always, 2 where the devices can"),
    KL_PARAM_STRING(T, collnet, "NCCL_COLLNET_ENABLE", KL_ALIKE, "", "1 allows reductions in the network"),
    KL_PARAM_INT(T, tuning.nthreads, "NCCL_NTHREADS", KL_ALIKE, "-2", 0, INT32_MAX,
                 "threads per channel with LL and Simple, a multiple of 32 from 64 to 512; -2 lets Kolo decide"),
    KL_PARAM_INT(T, tuning.ll128_nthreads, "NCCL_LL128_NTHREADS", KL_ALIKE, "-2", 0, INT32_MAX,
                 "threads per channel with LL128, a multiple of 32 from 160 to 640; -2 lets Kolo decide"),
    KL_PARAM_INT(T, tuning.pat, "NCCL_PAT_ENABLE", KL_ALIKE, "2", 0, 2,
                 "the PAT algorithm: 0 never, 1 always, 2 with one rank per node"),
    KL_PARAM_INT(T, tuning.ll128_c2c, "NCCL_LL128_C2C", KL_ALIKE, "1", 0, 1,
                 "use LL128 also where the way to a NIC leads over C2C or another GPU (from 2.27.3 on)"),
    KL_PARAM_INT(T, tuning.net_overhead, "NCCL_NET_OVERHEAD", KL_ALIKE, "-2", 0, INT32_MAX,
                 "nanoseconds that a network message costs the CPU; -2: 1000, or 2000 with AMD"),
    KL_PARAM_STRING(T, thread_thresholds, "NCCL_THREAD_THRESHOLDS", KL_ALIKE, "",
                    "bytes per thread before more are used: six numbers, for tree and ring with LL, LL128, Simple"),
};

const struct kl_param_set kl_graph_param_set = KL_PARAM_SET("graph", T, rows);

static void point(struct kl_graph_config *config)
{
    config->tuning.thread_thresholds = config->thread_thresholds;
    config->tuning.algo = config->algo;
    config->tuning.proto = config->proto;
}

void kl_graph_config_load(struct kl_graph_config *config)
{
    *config = (struct kl_graph_config){0};
    kl_param_load(&kl_graph_param_set, config);
    point(config);
}

void kl_graph_config_load_from(struct kl_graph_config *config, const struct kl_settings *from)
{
    *config = (struct kl_graph_config){0};
    kl_param_load_from(&kl_graph_param_set, config, from);
    point(config);
}
