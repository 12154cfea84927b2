/* SPDX-License-Identifier: Apache-2.0 */
/* Names of algorithms, protocols and functions. */
#include "graph/tuning.h"

const char *const kl_func_name[KL_FUNCS] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};

/* As settings have them, and as NCCL's TUNING lines. */
#define ALGOS(ROW)                                                                                                     \
    ROW("Tree", "TREE")                                                                                                \
    ROW("Ring", "RING")                                                                                                \
    ROW("CollNetDirect", "COLLNET_DIRECT")                                                                             \
    ROW("CollNetChain", "COLLNET_CHAIN")                                                                               \
    ROW("NVLS", "NVLS")                                                                                                \
    ROW("NVLSTree", "NVLS_TREE")                                                                                       \
    ROW("PAT", "PAT")                                                                                                  \
    ROW("OneShot", "ONE_SHOT")                                                                                         \
    ROW("Flat", "FLAT")                                                                                                \
    ROW("Ordered", "ORDERED")                                                                                          \
    ROW("OrderedRing", "ORDERED_RING")                                                                                 \
    ROW("Mapped", "MAPPED")
#define PROTOS(ROW)                                                                                                    \
    ROW("LL", "LL")                                                                                                    \
    ROW("LL128", "LL128")                                                                                              \
    ROW("Simple", "SIMPLE")
#define NAME(name, log_name)     name,
#define LOG_NAME(name, log_name) log_name,

const char *const kl_algo_name[KL_ALGO_NAMES] = {ALGOS(NAME)};
const char *const kl_algo_log_name[KL_ALGO_NAMES] = {ALGOS(LOG_NAME)};
const char *const kl_proto_name[KL_PROTOS] = {PROTOS(NAME)};
const char *const kl_proto_log_name[KL_PROTOS] = {PROTOS(LOG_NAME)};

int kl_algo_graph(enum kl_algo algo)
{
    static const int graph[KL_ALGOS] = {
        [KL_ALGO_TREE] = KL_GRAPH_TREE,
        [KL_ALGO_RING] = KL_GRAPH_RING,
        [KL_ALGO_COLLNET_DIRECT] = KL_GRAPH_COLLNET_DIRECT,
        [KL_ALGO_COLLNET_CHAIN] = KL_GRAPH_COLLNET_CHAIN,
        [KL_ALGO_NVLS] = KL_GRAPH_NVLS,
        [KL_ALGO_NVLS_TREE] = KL_GRAPH_NVLS,
        [KL_ALGO_PAT] = KL_GRAPH_TREE,
        [KL_ALGO_ONE_SHOT] = KL_GRAPH_RING,
        [KL_ALGO_FLAT] = KL_GRAPH_RING,
    };

    return graph[algo];
}
