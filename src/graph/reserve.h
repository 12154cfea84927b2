/* SPDX-License-Identifier: Apache-2.0 */
/**
 * reserve.h - reserve a channel's bandwidth along a route, and release it.
 *
 * Links hold levels (levels.h), and each step of a level is a look-up. A refusal only changes the count of the link that
 * refused, and leaves rounding errors.
 *
 * Cost: the common case is inlined, as it dominates the search's time.
 * Source: the graph specification, 5.1.
 */
#ifndef KL_GRAPH_RESERVE_H
#define KL_GRAPH_RESERVE_H

#include "graph/routes.h"

struct kl_reserve {
    struct kl_routes *routes;
    uint32_t *refusals; /* by link, in this round */
    bool exact;         /* no rounding errors, so refused steps need not be tried */
};

enum { KL_PLAIN_HOPS = 12 }; /* longer routes use the general case */

/* ---- the general case: hop by hop ---- */

/** Reserve on all hops, or on none. */
bool kl_reserve_take_hops(struct kl_reserve *r, const struct kl_route *p, enum kl_charge charge);

/** Slow path of kl_reserve_take: the look-up of a plain route stopped at hop `n`. */
bool kl_reserve_take_refused(struct kl_reserve *r, const struct kl_route *p, enum kl_charge charge, const int *to,
                             int n);

/** Release the reservations of the first `n` hops. */
void kl_reserve_give_hops(struct kl_reserve *r, const struct kl_route *p, int n, enum kl_charge charge);

/* ---- the common case ---- */

/**
 * Reserve a channel's bandwidth on all hops of a route, or on none. The common case looks all hops up before it
 * changes any: nothing is to be undone then, and no look-up waits for another. The links of a plain route are all
 * different, so this is the same as hop by hop.
 */
static inline bool kl_reserve_take(struct kl_reserve *r, const struct kl_route *p, enum kl_charge charge)
{
    int32_t *level = r->routes->level;
    const int32_t *link = r->routes->link + p->first, *next = r->routes->levels.next + charge;
    const uint8_t *share = r->routes->share + p->first;
    int to[KL_PLAIN_HOPS];

    if (!p->plain || p->hops > KL_PLAIN_HOPS) return kl_reserve_take_hops(r, p, charge);
    for (int k = 0; k < p->hops; k++) {
        to[k] = next[level[link[k]] + share[k]];
        if (to[k] >= 0) continue;
        if (to[k] != KL_LEVEL_REFUSED || !r->exact) return kl_reserve_take_refused(r, p, charge, to, k);
        r->refusals[link[k]]++;
        return false;
    }
    for (int k = 0; k < p->hops; k++) level[link[k]] = to[k];
    return true;
}

static inline void kl_reserve_give(struct kl_reserve *r, const struct kl_route *p, enum kl_charge charge)
{
    int32_t *level = r->routes->level;
    const int32_t *link = r->routes->link + p->first, *next = r->routes->levels.next + charge + KL_GIVE;
    const uint8_t *share = r->routes->share + p->first;

    if (!p->plain) {
        kl_reserve_give_hops(r, p, p->hops, charge);
        return;
    }
    for (int k = 0; k < p->hops; k++) {
        int to = next[level[link[k]] + share[k]];

        if (to < 0) {
            to = kl_level_next(&r->routes->levels, level[link[k]], charge + KL_GIVE + share[k]);
            next = r->routes->levels.next + charge + KL_GIVE; /* the table may have moved */
        }
        level[link[k]] = to;
    }
}

/** Does the only link into a GPU, or out of it, refuse? Then its routes need not be tried. */
static inline bool kl_reserve_is_shut(struct kl_reserve *r, int link)
{
    if (link < 0 || r->routes->levels.next[r->routes->level[link] + KL_CHARGE_INTRA] != KL_LEVEL_REFUSED || !r->exact)
        return false;
    r->refusals[link]++;
    return true;
}

#endif
