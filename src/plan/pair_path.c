/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/pair_make.h"

#include "base/error.h"
#include "plan/bottleneck.h"
#include "plan/topo_name.h"

#include <stdio.h>
#include <stdlib.h>

const struct kl_topo *kl_pair_topo(const struct kl_plan *plan, const struct kl_pair_end *end)
{
    int shift;

    return kl_plan_domain_of(plan, end->rank, &shift)->topo;
}

static char *name_of(const struct kl_topo *t, int node, int shift, char text[KL_NODE_TEXT])
{
    const struct kl_node *n = &t->node[node];

    if (n->type != KL_NODE_GPU) return kl_topo_name(t, node, text);
    snprintf(text, KL_NODE_TEXT, "GPU/%d", n->gpu.rank + shift);
    return text;
}

ncclResult_t kl_pair_path_add(struct kl_pair_route *route, const struct kl_topo *t, int from, int to, int shift)
{
    const struct kl_path *p = kl_path(t, from, to);
    struct kl_pair_segment *segment = &route->segment[route->nsegments];

    segment->link = calloc((size_t)p->hops + 1, sizeof *segment->link);
    if (!segment->link) return KL_NOMEM("a path");
    route->nsegments++;
    name_of(t, from, shift, segment->from);
    name_of(t, to, shift, segment->to);
    segment->type = p->type;
    segment->rule = p->rule;
    segment->bw = p->bw;
    segment->nlinks = p->type == KL_PATH_DIS ? 0 : p->hops; /* a path sent over a CPU by a rule may end there */
    segment->narrowest = segment->nlinks ? kl_path_narrowest(t, p) : p->bw;
    for (int k = 0; k < segment->nlinks; k++) {
        const struct kl_link *l = &t->link[kl_path_hops(t, p)[k]];

        name_of(t, l->from, shift, segment->link[k].from);
        name_of(t, l->to, shift, segment->link[k].to);
        segment->link[k].type = l->type;
        segment->link[k].bw = l->bw;
        segment->link[k].bottleneck = kl_path_is_bottleneck(t, p, k);
    }
    return ncclSuccess;
}
