/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/reserve.h"

/* Reserve a column's need on a link, negative needs release; false if the link refuses. */
static bool take_link(struct kl_reserve *r, int link, int column)
{
    int to = kl_level_next(&r->routes->levels, r->routes->level[link], column);

    if (to < 0) return false;
    r->routes->level[link] = to;
    return true;
}

/* First hop first: that order is part of results, because sums are rounded. */
void kl_reserve_give_hops(struct kl_reserve *r, const struct kl_route *p, int n, enum kl_charge charge)
{
    for (uint32_t k = p->first; k < p->first + (uint32_t)n; k++) {
        const struct kl_back *b = &r->routes->back[k];

        take_link(r, r->routes->link[k], charge + KL_GIVE + r->routes->share[k]);
        if (b->link >= 0) take_link(r, b->link, charge + KL_GIVE + b->share);
    }
}

/* Has a hop enough bandwidth in both directions? Then reserve it. */
static bool take_hop(struct kl_reserve *r, uint32_t k, enum kl_charge charge)
{
    const struct kl_back *b = &r->routes->back[k];
    struct kl_levels *v = &r->routes->levels;

    if (b->link >= 0 && kl_level_next(v, r->routes->level[b->link], charge + b->share) < 0) return false;
    if (!take_link(r, r->routes->link[k], charge + r->routes->share[k])) return false;
    if (b->link >= 0) take_link(r, b->link, charge + b->share);
    return true;
}

bool kl_reserve_take_hops(struct kl_reserve *r, const struct kl_route *p, enum kl_charge charge)
{
    for (int k = 0; k < p->hops; k++)
        if (!take_hop(r, p->first + (uint32_t)k, charge)) {
            r->refusals[r->routes->link[p->first + (uint32_t)k]]++;
            kl_reserve_give_hops(r, p, k, charge);
            return false;
        }
    return true;
}

/*
 * If hop `n` refuses, the hops before it release their reservations. Without rounding errors this changes nothing; else it
 * is done hop by hop.
 */
bool kl_reserve_take_refused(struct kl_reserve *r, const struct kl_route *p, enum kl_charge charge, const int *to,
                             int n)
{
    const int32_t *link = r->routes->link + p->first, *next = r->routes->levels.next + charge + KL_GIVE;
    const uint8_t *share = r->routes->share + p->first;
    bool exact = to[n] == KL_LEVEL_REFUSED;

    for (int k = 0; k < n; k++) exact &= next[to[k] + share[k]] == r->routes->level[link[k]];
    if (!exact) return kl_reserve_take_hops(r, p, charge);
    r->refusals[link[n]]++;
    return false;
}
