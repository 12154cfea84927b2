/* SPDX-License-Identifier: Apache-2.0 */
/** allreduce_direct.c - CollNetDirect (direct.h); a chunk for every head in a loop. */
#include "coll/schedule/direct.h"

static int hops(const struct kl_position *p, int lane)
{
    (void)lane;
    return p->nheads;
}

static struct kl_hop hop_at(const struct kl_position *p, int lane, int hop)
{
    int head = kl_direct_head(p, lane, hop);

    if (lane == 0) return kl_direct_share_hop(p, head, head);
    struct kl_hop h = kl_direct_result_hop(p, head, head);
    if (head == p->head) h.actions |= KL_HOP_FINISH;
    return h;
}

const struct kl_schedule kl_allreduce_direct = {
    .name = "all-reduce",
    .send = KL_LAYOUT_CHUNKS,
    .recv = KL_LAYOUT_CHUNKS,
    .lanes = 2,
    .hops = hops,
    .hop = hop_at,
};
