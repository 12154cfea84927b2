/* SPDX-License-Identifier: Apache-2.0 */
/**
 * partners.h - partners of a rank in exchanges of O(log n) steps. Pure arithmetic.
 *
 * In step k of an exchange a rank sends 2^k ranks down and receives from 2^k ranks up (all-gather), or the other way
 * round (barrier): its partners are the ranks at distances 1, 2, 4, ... below n in both directions.
 */
#ifndef KL_BOOTSTRAP_PARTNERS_H
#define KL_BOOTSTRAP_PARTNERS_H

/** The rank `distance` above, or below if negative; |distance| <= nranks. */
static inline int kl_rank_at(int rank, int distance, int nranks)
{
    return (rank + distance + nranks) % nranks;
}

/** The partners of a rank, each once; at most 62 for any int nranks. Returns how many. */
static inline int kl_partners(int rank, int nranks, int *partner)
{
    int n = 0;

    for (long distance = 1; distance < nranks; distance *= 2)
        for (int way = -1; way <= 1; way += 2) {
            int candidate = kl_rank_at(rank, way * (int)distance, nranks), i = 0;
            while (i < n && partner[i] != candidate) i++;
            if (i == n) partner[n++] = candidate;
        }
    return n;
}

#endif
