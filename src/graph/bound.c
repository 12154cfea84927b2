/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/bound.h"

/*
 * An upper bound on the channels that an attempt can place. Every channel needs at least
 *
 *   - with NETs: an entry, which takes whole GB/s from the NET's port, and the bandwidth from the first links that all
 *     usable paths from that NET share;
 *   - for each GPU of the machine one route into it or out of it: a chain of n GPUs has n - 1 such routes, a ring n. They
 *     use the first and the last links of routes of an allowed type.
 *
 * The bound counts how often a link can give a channel's least share. Rounding to three decimals can add half a thousandth
 * each time; SLACK covers this for the largest number of channels.
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

bool kl_route_is_usable(const struct kl_routes *r, const struct kl_route *p, float bw)
{
    for (uint32_t k = p->first; k < p->first + p->hops; k++)
        if (times(left_of(r, r->link[k]), bw) < 1) return false;
    return true;
}

/* ---- entries ---- */

/* How often the links can be used that all usable routes from a NET begin with. */
static int entries_through(const struct kl_routes *r, int net, const struct kl_graph *w)
{
    const struct kl_route *first = NULL;
    int common = 0, n = ANY_NUMBER;

    for (int g = 0; g < r->ngpus; g++) {
        const struct kl_route *p = kl_net_gpu(r, net, g);

        if (p->type > w->type_inter || !kl_route_is_usable(r, p, w->bw_inter)) continue;
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

/* All ports together. The NETs of a port share the bandwidth of the fastest. */
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

int kl_bound_channels(const struct kl_routes *r, const struct kl_graph *w)
{
    int n = w->max_channels;

    if (kl_has_heads(w->pattern)) return n;
    if (r->nnets) n = least_of(n, entries(r, w));
    if (r->ngpus > 1) n = least_of(n, least_of(chains(r, w, true), chains(r, w, false)));
    return n;
}

/* ---- hops ---- */

static int fewest_hops(const struct kl_route *p, int n)
{
    int fewest = UINT16_MAX;

    for (int i = 0; i < n; i++)
        if (p[i].hops && p[i].length < fewest) fewest = p[i].length;
    return fewest == UINT16_MAX ? 0 : fewest;
}

int kl_bound_hops(const struct kl_routes *r)
{
    int n = (r->ngpus - 1) * fewest_hops(r->gpu_gpu, r->ngpus * r->ngpus);

    if (r->nnets) n += fewest_hops(r->net_gpu, r->ngpus * r->nnets) + fewest_hops(r->gpu_net, r->ngpus * r->nnets);
    return n;
}

bool kl_bound_can_win(const struct kl_graph *w, const struct kl_graph *b, int n, int hops)
{
    float here = (float)n * w->bw_intra, there = (float)b->nchannels * b->bw_intra;

    if (n < w->min_channels || n < 1) return false;
    if (here != there) return here > there;
    return w->pattern == b->pattern && w->cross_nic == b->cross_nic && n * hops < b->nhops;
}
