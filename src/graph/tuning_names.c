/* SPDX-License-Identifier: Apache-2.0 */
/* Names of algorithms, protocols and functions. */
#include "graph/tuning.h"

const char *const kl_func_name[KL_FUNCS] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};
const char *const kl_algo_name[KL_ALGO_NAMES] = {"Tree", "Ring",     "CollNetDirect", "CollNetChain",
                                                 "NVLS", "NVLSTree", "PAT",           "OneShot",
                                                 "Flat", "Ordered",  "OrderedRing",   "Mapped"};
const char *const kl_proto_name[KL_PROTOS] = {"LL", "LL128", "Simple"};

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
