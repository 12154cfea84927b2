/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/placement.h"
#include "topo/paths.h"

/* Hops count by their share, in whole numbers, each time: that is not exact, and part of results. */
static void count_hops(struct kl_backtrack *bt, const struct kl_head_route *s, int sign)
{
    bt->work->nhops = (int)((float)bt->work->nhops + (float)sign * s->m * (float)s->route->length);
}

static bool try_head_route(struct kl_backtrack *bt, const struct kl_head_route *s)
{
    if (s->m == 1 && !kl_route_fits(bt, s->route, bt->work->type_intra)) return false;
    if (!kl_reserve_take(&bt->reserve, s->route, s->charge)) return false;
    count_hops(bt, s, 1);
    return true;
}

static struct kl_head_route spoke(const struct kl_backtrack *bt, int head, int i)
{
    return kl_head_route_of(bt->routes, bt->work->pattern, bt->head_share, head, i);
}

int kl_head_take(struct kl_backtrack *bt, int head)
{
    int n = 2 * bt->routes->ngpus, taken = 0;

    while (taken < n) {
        struct kl_head_route s = spoke(bt, head, taken);

        if (!try_head_route(bt, &s)) break;
        taken++;
    }
    return taken;
}

void kl_head_give(struct kl_backtrack *bt, int head, int taken)
{
    while (taken--) {
        struct kl_head_route s = spoke(bt, head, taken);

        kl_reserve_give(&bt->reserve, s.route, s.charge);
        count_hops(bt, &s, -1);
    }
}

int kl_head_of_net(const struct kl_backtrack *bt, int net)
{
    int gpu = kl_topo_local_gpu(bt->routes->topo, net);

    for (int c = 0; gpu >= 0 && c < bt->work->nchannels; c++)
        if (bt->placement[c].order[0] == bt->routes->same_rank[gpu]) return -1;
    return gpu;
}
