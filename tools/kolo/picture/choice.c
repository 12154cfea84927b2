/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/choice.h"

ncclResult_t kl_picture_choose(const struct kl_scene *s, int channel, const struct kl_picture_graph **graph,
                               const struct kl_channel_path **way)
{
    const struct kl_picture_graph *g = &s->graph[0];

    if (!s->ngraphs)
        return KL_FAIL(ncclInvalidUsage, "%s: there is no such graph on this machine; see kolo graph",
                       s->view->cluster->name);
    for (int i = 0; i < g->nchannel_paths; i++) {
        if (!(g->way[i].channels >> channel & 1)) continue;
        *graph = g;
        *way = &g->way[i];
        return ncclSuccess;
    }
    return KL_FAIL(ncclInvalidUsage, "%s: the %s has no channel %d", s->view->cluster->name, kl_graph_name(g->id),
                   channel);
}
