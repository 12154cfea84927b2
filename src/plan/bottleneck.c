/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/bottleneck.h"

#include "topo/paths.h"

static float width(const struct kl_topo *t, const struct kl_path *p, int k)
{
    return t->link[kl_path_hops(t, p)[k]].bw;
}

float kl_path_narrowest(const struct kl_topo *t, const struct kl_path *p)
{
    float least = p->hops ? width(t, p, 0) : 0;

    for (int k = 1; k < p->hops; k++)
        if (width(t, p, k) < least) least = width(t, p, k);
    return least;
}

bool kl_path_is_bottleneck(const struct kl_topo *t, const struct kl_path *p, int link)
{
    float least = kl_path_narrowest(t, p);
    bool wider = false;

    for (int k = 0; k < p->hops; k++) wider |= width(t, p, k) > least;
    return wider && width(t, p, link) == least;
}
