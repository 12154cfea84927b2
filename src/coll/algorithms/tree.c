/* SPDX-License-Identifier: Apache-2.0 */
/** tree.c - the algorithm Tree: edges to and from the parent and the children, in the tree of the channel. */
#include "base/error.h"
#include "coll/algorithms/algorithms.h"
#include "coll/pipeline/edges.h"
#include "coll/pipeline/pipeline.h"

static ncclResult_t find_in_tree(const struct kl_neighbours_request *q, struct kl_neighbours *to)
{
    const struct kl_tree_neighbours t = kl_connect_tree(q->graph, q->channel, q->rank);

    *to = (struct kl_neighbours){.position = {.nranks = q->graph->ranks.nranks, .rank = q->rank, .up = t.up >= 0},
                                 .nrecv = KL_TREE_UP + 1,
                                 .nsend = KL_TREE_UP + 1};
    for (int i = 0; i < KL_TREE_UP; i++) {
        to->position.ndown += t.down[i] >= 0;
        to->recv[i] = to->send[i] = t.down[i];
    }
    to->recv[KL_TREE_UP] = to->send[KL_TREE_UP] = t.up;
    return ncclSuccess;
}

static ncclResult_t link_tree(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                              struct kl_edges *edges)
{
    return kl_edges_link(&kl_algorithm_tree, graph, cs, channel, edges);
}

const struct kl_algorithm kl_algorithm_tree = {
    .algo = KL_ALGO_TREE,
    .funcs = 1u << KL_FUNC_ALL_REDUCE,
    .protos = (1u << KL_PROTOS) - 1,
    .schedule = {[KL_FUNC_ALL_REDUCE] = &kl_allreduce_tree},
    .find = find_in_tree,
    .link = link_tree,
    KL_BY_PIPELINE,
};
