/* SPDX-License-Identifier: Apache-2.0 */
/**
 * grid.h - ranks as a grid: one exchange per dimension reaches all ranks.
 *
 *      dimension 0 ->         In the first exchange a rank gets the contributions of its line of dimension 0; in the next
 *      0   1   2   3          one, along its line of dimension 1, the contributions of all lines. One dimension is an
 *      4   5   6   7          exchange of all with all, sides of 2 are recursive doubling.
 *
 * The ranks of a node come first: sides within nodes, then sides that lead from node to node, each side as long as can be.
 * Where nodes have different numbers of ranks, all of them are one row that is divided without regard to nodes.
 *
 * Threads: pure.
 * Source:  Ruefenacht, Bull, Booth: Generalisation of recursive doubling for AllReduce (Parallel Computing 69, 2017).
 */
#ifndef KL_GRAPH_GRID_H
#define KL_GRAPH_GRID_H

enum {
    KL_GRID_DIMENSIONS = 6, /* at most */
    KL_GRID_SIDE = 16,      /* ranks of a line */
    KL_GRID_PEERS = 32      /* of a rank, in all lines together */
};

struct kl_grid {
    int dimensions; /* 0: these ranks make no grid */
    int inside;     /* of them, the first so many are within nodes */
    int side[KL_GRID_DIMENSIONS];
};

/** The grid of `nranks` ranks on `nnodes` nodes, of which the largest has `max_local`. */
struct kl_grid kl_grid_of(int nranks, int nnodes, int max_local);

/** How many others a rank exchanges with, in all dimensions, or in those before `dimension`. */
int kl_grid_peers(const struct kl_grid *grid, int dimension);

/** The place in the line of `dimension` of the `index`-th rank, counted node by node. */
int kl_grid_place(const struct kl_grid *grid, int dimension, int index);

/** The index of the rank at another place of that line. */
int kl_grid_index(const struct kl_grid *grid, int dimension, int index, int place);

#endif
