/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/search_report.h"

struct kl_graph_result kl_graph_result_of(const struct kl_graphs *graphs, int id)
{
    const struct kl_graph *g = graphs->graph[id];
    struct kl_graph_result r = {.id = id, .nets = graphs->has_nets};

    if (!g) return r;
    r.nchannels = g->nchannels;
    r.bw_intra = g->bw_intra;
    r.bw_inter = g->bw_inter;
    r.fallback = graphs->why[id]->end == KL_END_FALLBACK;
    return r;
}

float kl_graph_result_total(const struct kl_graph_result *r)
{
    float bw = r->nets && r->bw_inter < r->bw_intra ? r->bw_inter : r->bw_intra;

    return bw * (float)r->nchannels;
}
