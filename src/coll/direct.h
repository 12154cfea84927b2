/* SPDX-License-Identifier: Apache-2.0 */
/**
 * direct.h - CollNetDirect: every rank of a node sends each head its share, the heads reduce them with the heads of
 * other nodes through the network, and send the results to all.
 *
 *      lane 0                                                       lane 1
 *      rank   --- share of head h --->  head h  --->  network  --->  head h  --- result --->  rank
 *
 * Edges:  sending      h: to head h        KL_DIRECT_DOWN + i: to the i-th other rank      KL_DIRECT_NET: into the network
 *         receiving    h: from head h      KL_DIRECT_DOWN + i: from the i-th other rank    KL_DIRECT_NET: out of it
 *
 * Between two heads there is one edge for shares and another one for results.
 * Where parts are gathered or scattered every rank is a head; place h * nnodes + k is the part of head h of node k.
 */
#ifndef KL_COLL_DIRECT_H
#define KL_COLL_DIRECT_H

#include "coll/schedule.h"

enum { KL_DIRECT_DOWN = 8, KL_DIRECT_NET = 16 };

static inline uint32_t kl_direct_downs(const struct kl_position *p)
{
    return ((1u << p->ndown) - 1) << KL_DIRECT_DOWN;
}

/**
 * The head of this turn. Each lane begins with another head, so that not all ranks go to the same one; in lane 0 a head
 * comes to itself last, when the others have sent, in lane 1 first, as others wait for it.
 *
 * No circle of waiting ranks arises: consider the rank that is furthest behind in its lane. The rank that sends to it has
 * sent, or waits for the network, which waits for lane 0 only; and the rank that receives from it has left room, having
 * come as far.
 */
static inline int kl_direct_turn(const struct kl_position *p, int lane, int turn)
{
    int first = p->head < 0 ? p->shift : p->head + (lane ? 0 : 1);

    return (first + turn) % p->nheads;
}

/** Lane 0: give, or add up, the share of a head at a place. */
static inline struct kl_hop kl_direct_give(const struct kl_position *p, int head, int place)
{
    const uint32_t downs = kl_direct_downs(p);

    if (head != p->head) return (struct kl_hop){.send = 1u << head, .actions = KL_HOP_FIRST, .own = place};
    return (struct kl_hop){
        .recv = downs, .send = 1u << KL_DIRECT_NET, .actions = downs ? KL_HOP_REDUCE : KL_HOP_FIRST, .own = place};
}

/** Lane 1: take the result of a head, and if this rank is the head, pass it on. */
static inline struct kl_hop kl_direct_take(const struct kl_position *p, int head, int place)
{
    const struct kl_hop hop = {.recv = 1u << head, .actions = KL_HOP_KEEP, .own = place, .result = place};

    if (head != p->head) return hop;
    return (struct kl_hop){
        .recv = 1u << KL_DIRECT_NET, .send = kl_direct_downs(p), .actions = KL_HOP_KEEP, .own = place, .result = place};
}

#endif
