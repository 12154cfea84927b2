/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/bound.h"

#include <math.h>

/* The float that a bandwidth is kept as. */
static float round3(float x)
{
    return roundf(x * 1000) / 1000;
}

/*
 * Below 2048 GB/s: a float that is a rounded number of thousandths, less another one, comes out as the float of the
 * difference: each of the three steps (two operands, difference, times 1000) is off by less than an eighth of a
 * thousandth. Adding back gives the float it began with, by the same reasoning.
 */
static bool in_thousandths(float x)
{
    return x < 2048 && x == round3(x);
}

static bool is_whole(float x)
{
    return x == rintf(x) && x < 16777216.0f; /* floats count exactly up to here */
}

/* Larger links: try all they can have left in the course of a round, in steps of `unit`, which `need` is a multiple of. */
static bool try_all(float left, float unit, float need)
{
    enum { MOST = 1 << 14 };
    float value = left, ahead = left;
    int multiple = (int)(need / unit + 0.5f);

    for (int i = 0; i < multiple; i++) ahead = round3(ahead - unit);
    for (int i = 0; i < MOST && value >= need; i++) {
        if (round3(value - need) != ahead || round3(ahead + need) != value) return false;
        value = round3(value - unit);
        ahead = round3(ahead - unit);
    }
    return true;
}

static bool is_exact_for(float left, float need)
{
    if (is_whole(left) && is_whole(need)) return true;
    return in_thousandths(left) && in_thousandths(need);
}

/* The reservations of one channel on a link; `n` of them. */
struct needs {
    float need[12];
    int n;
};

static void add_shares(const struct kl_routes *r, float bw, struct needs *needs)
{
    const float share[KL_SHARES] = {bw, bw * 6 / 5, bw / 8, bw * 6 / 5 / 8};

    for (int s = 0; s < KL_SHARES; s++)
        if (s == KL_SHARE_ALL || (r->shares >> s & 1)) needs->need[needs->n++] = share[s];
}

/* Links that are too fast to be sure of are no PCI links: nothing but the whole bandwidth or half of it is taken. */
static bool is_exact_if_fast(const struct kl_link *l, float left, const struct kl_wishes *w)
{
    bool balanced = w->pattern == KL_PATTERN_BALANCED_TREE;
    float unit = balanced ? w->bw_inter / 2 : w->bw_inter;

    if (l->type == KL_PATH_PCI || w->bw_intra != w->bw_inter || left != round3(left)) return false;
    return try_all(left, unit, unit) && try_all(left, unit, w->bw_inter);
}

bool kl_is_exact(const struct kl_routes *r, const struct kl_wishes *w)
{
    struct needs needs = {.n = 0};
    bool back = r->shares >> KL_SHARE_EIGHTH & 3;

    add_shares(r, w->bw_intra, &needs);
    if (w->bw_inter != w->bw_intra) add_shares(r, w->bw_inter, &needs);
    if (w->pattern == KL_PATTERN_BALANCED_TREE) add_shares(r, w->bw_inter / 2, &needs);
    for (int l = 0; l < r->topo->nlinks; l++) {
        float left = kl_level_value(&r->levels, r->level[l]);
        bool exact = true;

        for (int i = 0; i < needs.n; i++) exact &= is_exact_for(left, needs.need[i]);
        if (!exact && (back || !is_exact_if_fast(&r->topo->link[l], left, w))) return false;
    }
    return true;
}
