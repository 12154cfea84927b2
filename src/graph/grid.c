/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/grid.h"

#include <stdbool.h>

/* The largest divisor of n up to `most`; 1: there is none. */
static int divisor(int n, int most)
{
    int d = n < most ? n : most;

    while (d > 1 && n % d) d--;
    return d;
}

/* Divide a row of n ranks into sides of up to `most`. */
static bool divide(struct kl_grid *g, int n, int most)
{
    while (n > 1) {
        int side = divisor(n, most);
        if (side == 1 || g->dimensions == KL_GRID_DIMENSIONS) return false;
        g->side[g->dimensions++] = side;
        n /= side;
    }
    return true;
}

static bool lay_out(struct kl_grid *g, int nranks, int nnodes, int local, int most)
{
    bool even = nranks == nnodes * local;

    *g = (struct kl_grid){.dimensions = 0};
    if (!divide(g, even ? local : nranks, most)) return false;
    g->inside = even || nnodes == 1 ? g->dimensions : 0;
    return (!even || divide(g, nnodes, most)) && kl_grid_peers(g, g->dimensions) <= KL_GRID_PEERS;
}

struct kl_grid kl_grid_of(int nranks, int nnodes, int max_local)
{
    struct kl_grid g;

    for (int most = KL_GRID_SIDE; most > 1; most /= 2)
        if (lay_out(&g, nranks, nnodes, max_local, most)) return g;
    return (struct kl_grid){.dimensions = 0};
}

int kl_grid_peers(const struct kl_grid *g, int dimension)
{
    int peers = 0;

    for (int d = 0; d < dimension; d++) peers += g->side[d] - 1;
    return peers;
}

/* Ranks between two neighbours of a line. */
static int stride(const struct kl_grid *g, int dimension)
{
    int ranks = 1;

    for (int d = 0; d < dimension; d++) ranks *= g->side[d];
    return ranks;
}

int kl_grid_place(const struct kl_grid *g, int dimension, int index)
{
    return index / stride(g, dimension) % g->side[dimension];
}

int kl_grid_index(const struct kl_grid *g, int dimension, int index, int place)
{
    return index + (place - kl_grid_place(g, dimension, index)) * stride(g, dimension);
}
