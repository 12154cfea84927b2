/* SPDX-License-Identifier: Apache-2.0 */
/** tree.c - the algorithm Tree: edges to and from the parent and the children, in the tree of the channel. */
#include "base/error.h"
#include "coll/algorithms/algorithms.h"
#include "coll/pipeline/edges.h"
#include "coll/pipeline/pipeline.h"

static ncclResult_t link_tree(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                              struct kl_edges *edges)
{
    struct kl_tree_neighbours t = kl_connect_tree(graph, channel, graph->rank);

    edges->position = (struct kl_position){.nranks = graph->ranks.nranks, .rank = graph->rank, .up = t.up >= 0};
    for (int i = 0; i < KL_TREE_UP; i++) {
        edges->position.ndown += t.down[i] >= 0;
        KL_TRY(kl_edges_recv(edges, cs, channel, i, t.down[i]));
        KL_TRY(kl_edges_send(edges, cs, channel, i, t.down[i]));
    }
    KL_TRY(kl_edges_recv(edges, cs, channel, KL_TREE_UP, t.up));
    return kl_edges_send(edges, cs, channel, KL_TREE_UP, t.up);
}

const struct kl_algorithm kl_algorithm_tree = {
    .algo = KL_ALGO_TREE,
    .funcs = 1u << KL_FUNC_ALL_REDUCE,
    .protos = (1u << KL_PROTOS) - 1,
    .schedule = {[KL_FUNC_ALL_REDUCE] = &kl_allreduce_tree},
    .link = link_tree,
    KL_BY_PIPELINE,
};
