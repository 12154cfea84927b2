/* SPDX-License-Identifier: Apache-2.0 */
/**
 * allreduce_ring.c - reduce-scatter, then all-gather, in one pass around a ring; nranks chunks per loop.
 *
 * Chunk c is finished by the rank with index c and begun by its successor in the ring, as NCCL does. For 3 ranks, index 0:
 *
 *      hop             0     1           2                 3           4
 *      receives              1           0                 2           1
 *      and             begin add         add and finish    keep        keep
 *      sends           2     1           0                 2
 *
 * Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations (JPDC 2009).
 */
#include "coll/schedule/schedule.h"

static int hops(const struct kl_position *p, int lane)
{
    (void)lane;
    return 2 * p->nranks - 1;
}

static uint32_t actions(int nranks, int hop)
{
    uint32_t on_the_way = hop == 0 ? KL_HOP_FIRST : KL_HOP_REDUCE;

    if (hop < nranks - 1) return on_the_way;
    return hop == nranks - 1 ? on_the_way | KL_HOP_FINISH | KL_HOP_KEEP : KL_HOP_KEEP;
}

static struct kl_hop hop_at(const struct kl_position *p, int lane, int hop)
{
    int chunk = kl_wrap(p->index - 1 - hop % p->nranks, p->nranks);

    (void)lane;
    return (struct kl_hop){
        .recv = hop > 0,
        .send = hop < 2 * p->nranks - 2,
        .actions = actions(p->nranks, hop),
        .own = chunk,
        .result = chunk,
    };
}

const struct kl_schedule kl_allreduce_ring = {
    .name = "all-reduce",
    .send = KL_LAYOUT_CHUNKS,
    .recv = KL_LAYOUT_CHUNKS,
    .lanes = 1,
    .hops = hops,
    .hop = hop_at,
};
