/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/run.h"

#include <math.h>

/*
 * An upper bound on the channels that an attempt can lay. Every channel needs, besides more that is not counted here,
 *
 *   - with NETs: an entry, which takes whole GB/s from the NET's port and the bandwidth from the links that all usable
 *     ways from that NET begin with;
 *   - for each GPU of the machine one route of the others into it or out of it: in a chain of n GPUs there are n - 1
 *     such routes, in a ring n. They leave through the first links, and arrive through the last links, of routes of
 *     an allowed type.
 *
 * Counted is how often a link can give what one channel takes, at least. Rounding to three decimals can add half a thousandth each
 * time; SLACK covers that for all channels there can be.
 */
static const double SLACK = 0.05;

enum { ANY_NUMBER = 1 << 20 };

static int times(double left, double need)
{
    double n = (left + SLACK) / need;

    return need <= 0 || n > ANY_NUMBER ? ANY_NUMBER : (int)n;
}

static double left_of(const struct kl_routes *r, int link)
{
    return (double)kl_level_value(&r->levels, r->level[link]);
}

/* ---- entries ---- */

/* Is any channel able to use this route alone? */
static bool is_usable(const struct kl_routes *r, const struct kl_route *p, float bw, int limit)
{
    if (p->type > limit) return false;
    for (uint32_t k = p->first; k < p->first + p->hops; k++)
        if (times(left_of(r, r->link[k]), bw) < 1) return false;
    return true;
}

/* How often the links can be used that all usable routes from a NET begin with. */
static int entries_through(const struct kl_routes *r, int net, const struct kl_graph *w)
{
    const struct kl_route *first = NULL;
    int common = 0, n = ANY_NUMBER;

    for (int g = 0; g < r->ngpus; g++) {
        const struct kl_route *p = kl_net_gpu(r, net, g);

        if (!is_usable(r, p, w->bw_inter, w->type_inter)) continue;
        if (!first) first = p, common = p->hops;
        for (int k = 0; k < common; k++)
            if (k >= p->hops || r->link[p->first + (uint32_t)k] != r->link[first->first + (uint32_t)k]) common = k;
    }
    if (!first) return 0;
    for (int k = 0; k < common; k++) {
        uint32_t hop = first->first + (uint32_t)k;
        int most = times(left_of(r, r->link[hop]), w->bw_inter);

        if (most < n) n = most;
    }
    return n;
}

/* All ports together. The NETs of a port share what their fastest can carry. */
static int entries(const struct kl_routes *r, const struct kl_graph *w)
{
    int all = 0;

    for (int k = 0; k < r->nnets; k++) {
        int through = 0, port = 0;

        if (r->same_port[k] != k) continue;
        for (int i = k; i >= 0; i = r->next_port[i]) {
            int capacity = times(r->net_bw[i], (int)w->bw_inter), most = entries_through(r, i, w);

            if (w->collnet && !kl_routes_net(r, i)->net.coll) continue;
            if (capacity > port) port = capacity;
            through = through + most < ANY_NUMBER ? through + most : ANY_NUMBER;
        }
        all += through < port ? through : port;
        if (all >= ANY_NUMBER) return ANY_NUMBER;
    }
    return all;
}

/* ---- routes between GPUs ---- */

/* How many routes may begin at a GPU (`out`) or end there: the different first, or last, links of usable ones. */
static int routes_at(const struct kl_routes *r, int gpu, bool out, const struct kl_graph *w)
{
    int32_t seen[64];
    int nseen = 0, all = 0;

    for (int g = 0; g < r->ngpus; g++) {
        const struct kl_route *p = out ? kl_gpu_gpu(r, gpu, g) : kl_gpu_gpu(r, g, gpu);
        uint32_t hop = out ? p->first : p->first + p->hops - 1u;
        int i = 0;

        if (g == gpu || !p->hops || p->type > w->type_intra) continue;
        while (i < nseen && seen[i] != r->link[hop]) i++;
        if (i < nseen) continue;
        if (nseen == 64) return ANY_NUMBER;
        seen[nseen++] = r->link[hop];
        all += times(left_of(r, r->link[hop]), w->bw_intra);
    }
    return all;
}

static int chains(const struct kl_routes *r, const struct kl_graph *w, bool out)
{
    bool ring = w->pattern == KL_PATTERN_RING && !r->nnets;
    int64_t sum = 0;
    int least = ANY_NUMBER;

    for (int g = 0; g < r->ngpus; g++) {
        int n = routes_at(r, g, out, w);

        sum += n;
        if (n < least) least = n;
    }
    if (ring) return least;
    return sum / (r->ngpus - 1) < ANY_NUMBER ? (int)(sum / (r->ngpus - 1)) : ANY_NUMBER;
}

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

static int most_channels(const struct kl_routes *r, const struct kl_graph *w)
{
    int n = w->max_channels;

    if (r->nnets) n = least_of(n, entries(r, w));
    if (r->ngpus > 1) n = least_of(n, least_of(chains(r, w, true), chains(r, w, false)));
    return n;
}

/* ---- hops ---- */

static int fewest_hops(const struct kl_route *p, int n)
{
    int fewest = UINT16_MAX;

    for (int i = 0; i < n; i++)
        if (p[i].hops && p[i].hops < fewest) fewest = p[i].hops;
    return fewest == UINT16_MAX ? 0 : fewest;
}

/* Fewest links that a channel can follow. */
static int hops_per_channel(const struct kl_routes *r)
{
    int n = (r->ngpus - 1) * fewest_hops(r->gpu_gpu, r->ngpus * r->ngpus);

    if (r->nnets) n += fewest_hops(r->net_gpu, r->ngpus * r->nnets) + fewest_hops(r->gpu_net, r->ngpus * r->nnets);
    return n;
}

/* ---- verdicts ---- */

bool kl_run_may_win(const struct kl_run *run)
{
    const struct kl_graph *w = run->work, *b = run->best;
    float here, there;
    int n;

    if (w->pattern == KL_PATTERN_NVLS || w->pattern == KL_PATTERN_COLLNET_DIRECT) return true;
    n = most_channels(run->routes, w);
    if (n < w->min_channels || n < 1) return false;
    here = (float)n * w->bw_intra;
    there = (float)b->nchannels * b->bw_intra;
    if (here != there) return here > there;
    return w->pattern == b->pattern && w->cross_nic == b->cross_nic && run->pass == 1 &&
           n * hops_per_channel(run->routes) < b->nhops;
}

/* Is a bandwidth a number of thousandths, as far as floats can say? */
static bool in_thousandths(float x)
{
    return fabsf(x * 1000 - roundf(x * 1000)) < 0.02f;
}

/*
 * A bandwidth below 2048 that is a rounded number of thousandths, less another number of thousandths, rounds to the
 * thousandth it is meant to be: each of the three steps is off by less than an eighth of a thousandth. Adding
 * back gives the same number of thousandths, thus the same float. Whole numbers are exact up to 2^24.
 */
static bool is_exact_for(float left, float need)
{
    if (left == rintf(left) && need == rintf(need)) return left < 16777216.0f;
    return left < 2048 && left == roundf(left * 1000) / 1000 && in_thousandths(need);
}

bool kl_run_is_exact(const struct kl_run *run)
{
    const struct kl_routes *r = run->routes;
    const struct kl_graph *w = run->work;
    const float bw[] = {w->bw_intra, w->bw_inter, w->bw_inter / 2};

    for (int l = 0; l < r->topo->nlinks; l++) {
        float left = kl_level_value(&r->levels, r->level[l]);

        for (int i = 0; i < 3; i++) {
            if (!is_exact_for(left, bw[i])) return false;
            if ((r->shares >> KL_SHARE_COSTLY & 1) && !is_exact_for(left, bw[i] * 6 / 5)) return false;
            if ((r->shares >> KL_SHARE_EIGHTH & 1) && !is_exact_for(left, bw[i] / 8)) return false;
            if ((r->shares >> KL_SHARE_COSTLY_EIGHTH & 1) && !is_exact_for(left, bw[i] * 6 / 5 / 8)) return false;
        }
    }
    return true;
}
