/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of distances determines the longest sequence of hops, and the number of chunks that wait in an edge:
 *
 *      0 1 2 3 4 5 6 7      nranks / 2 hops, 1 chunk
 *      0 4 2 6 1 5 3 7      log2(nranks) hops, nranks / 2 chunks
 *
 * So it is the second among distances that are multiples of a stride, and the first from one such group to the next,
 * with groups no larger than KL_POSITION.steps. No circle of waiting ranks arises: consider a rank that made the fewest
 * hops. Its sender has sent, and its receiver has left room, both being at least as far.
 */
#include "coll/pat.h"

enum { GROUP_MOST = 8 }; /* distances: larger groups save hops only beyond 16 ranks, and few of them */

/* Of the numbers below `size`, a power of two, ordered by their reversed bits: the one at `place` of those below `n`. */
static int reversed_order(int size, int n, int place)
{
    int x = 0;

    while (x >= n || place-- > 0) {
        int bit = size / 2;
        for (; x & bit; bit /= 2) x -= bit; /* counting, with carries towards the lowest bit */
        x += bit;
    }
    return x;
}

/* Ranks, rounded up to a power of two. */
static int padded(int nranks)
{
    int n = 1;

    while (n < nranks) n *= 2;
    return n;
}

static int group_size(const struct kl_position *p)
{
    int size = 1;

    while (size < GROUP_MOST && 2 * size <= p->steps && size < p->nranks) size *= 2;
    return size;
}

/* Group m has the distances m, m + stride, m + 2 * stride, ... below nranks: the first few groups one more than the rest. */
int kl_pat_distance(const struct kl_position *p, int place)
{
    int size = group_size(p), stride = padded(p->nranks) / size;
    int fewer = p->nranks / stride, larger_groups = p->nranks % stride, in_larger = larger_groups * (fewer + 1);

    if (place < in_larger) return place / (fewer + 1) + stride * reversed_order(size, fewer + 1, place % (fewer + 1));
    place -= in_larger;
    return larger_groups + place / fewer + stride * reversed_order(size, fewer, place % fewer);
}

/* Edge k leads 2^k ranks away, so that bits of a distance and edges are the same. */
uint32_t kl_pat_children(int nranks, int distance)
{
    const uint32_t beyond = (uint32_t)(nranks - distance), bits = (uint32_t)distance;
    uint32_t edges = 0;

    for (uint32_t edge = 1; edge < beyond && !(bits & edge); edge *= 2) edges |= edge;
    return edges;
}

uint32_t kl_pat_parent(int distance)
{
    return (uint32_t)(distance & -distance);
}
