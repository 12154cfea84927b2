/* SPDX-License-Identifier: Apache-2.0 */
/** oneshot.c - the algorithm OneShot: edges from and to all ranks of the lines of a grid, dimension by dimension. */
#include "base/error.h"
#include "coll/algorithms/algorithms.h"
#include "coll/pipeline/edges.h"
#include "coll/pipeline/pipeline.h"

#include <stdlib.h>

static ncclResult_t link_dimension(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                                   int dimension, struct kl_edges *edges)
{
    const struct kl_grid *g = edges->position.grid;
    int index = edges->position.index, edge = kl_grid_peers(g, dimension);

    for (int place = 0; place < g->side[dimension]; place++) {
        int peer = graph->nodes.rank[kl_grid_index(g, dimension, index, place)];
        if (peer == graph->rank) continue;
        KL_TRY(kl_edges_recv(edges, cs, channel, edge, peer));
        KL_TRY(kl_edges_send(edges, cs, channel, edge, peer));
        edge++;
    }
    return ncclSuccess;
}

static ncclResult_t link_lines(const struct kl_connect *graph, struct kl_connections *cs, int channel,
                               struct kl_edges *edges)
{
    const struct kl_nodes *n = &graph->nodes;
    int me = graph->rank;
    struct kl_grid *grid = calloc(1, sizeof *grid);

    if (!grid) return KL_NOMEM("the edges of an algorithm");
    edges->own = grid;
    *grid = kl_grid_of(graph->ranks.nranks, n->nnodes, n->max_local);
    edges->position = (struct kl_position){
        .nranks = graph->ranks.nranks,
        .rank = me,
        .index = n->first[n->of_rank[me]] + n->local_rank[me],
        .grid = grid,
    };
    for (int d = 0; d < grid->dimensions; d++) KL_TRY(link_dimension(graph, cs, channel, d, edges));
    return ncclSuccess;
}

static void unlink_lines(struct kl_edges *edges)
{
    free(edges->own);
    edges->own = NULL;
}

const struct kl_algorithm kl_algorithm_oneshot = {
    .algo = KL_ALGO_ONE_SHOT,
    .funcs = 1u << KL_FUNC_ALL_REDUCE,
    .protos = 1u << KL_PROTO_SIMPLE,
    .schedule = {[KL_FUNC_ALL_REDUCE] = &kl_allreduce_oneshot},
    .link = link_lines,
    .unlink = unlink_lines,
    KL_BY_PIPELINE,
};
