/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/scene.h"

#include "base/error.h"

#include <stdlib.h>

/* Few enough hosts to be read: fewer where each has many GPUs. */
static int hosts_to_draw(const struct kl_scene *s)
{
    int gpus = s->topo->count[KL_NODE_GPU] / s->systems, most = KL_PICTURE_HOSTS;

    if (gpus > 8 || (s->systems > 1 && gpus > 4)) most = 2;
    return s->hosts < most ? s->hosts : most;
}

static ncclResult_t open_machine(struct kl_scene *s, const struct kl_shown_hosts *cast)
{
    const struct kl_plan_view *v = s->view;

    KL_TRY(kl_cluster_whole(v->cluster, &s->topo, &s->document));
    s->systems = s->topo->nhosts > 1 ? s->topo->nhosts : 1;
    s->hosts = s->systems > 1 ? s->systems * v->plan->hosts : v->cluster->hosts;
    s->drawn = cast ? cast->n : hosts_to_draw(s);
    s->copies = s->systems > 1 ? 1 : s->drawn;
    for (int i = 0; i < s->drawn; i++) s->shown[i] = cast ? cast->host[i] : i;
    for (int d = 0; d < v->plan->ndomains; d++) s->network |= v->plan->domain[d].graphs.has_nets;
    s->network &= v->plan->connect->nodes.nnodes > 1;
    return ncclSuccess;
}

ncclResult_t kl_scene_create(const struct kl_plan_view *view, const struct kl_shown_hosts *cast,
                             struct kl_scene **scene)
{
    static ncclResult_t (*const steps[])(struct kl_scene *) = {kl_scene_tree, kl_scene_layout,        kl_scene_wires,
                                                               kl_scene_load, kl_scene_channel_paths, kl_scene_times};
    const size_t n = sizeof steps / sizeof steps[0] - (cast != NULL);
    struct kl_scene *s = calloc(1, sizeof *s);
    ncclResult_t rc;

    if (!s) return KL_NOMEM("a picture");
    s->view = view;
    s->network_box = -1;
    rc = open_machine(s, cast);
    for (size_t i = 0; i < n && !rc; i++) rc = steps[i](s);
    if (rc)
        kl_scene_free(s);
    else
        *scene = s;
    return rc;
}

static void free_graph(struct kl_picture_graph *g)
{
    for (int i = 0; g->way && i < g->nchannel_paths; i++) {
        free(g->way[i].path);
        free(g->way[i].number);
        free(g->way[i].uses);
    }
    free(g->way);
    free(g->used);
    kl_timeline_free(g->times);
}

void kl_scene_free(struct kl_scene *s)
{
    if (!s) return;
    for (int i = 0; i < s->ngraphs; i++) free_graph(&s->graph[i]);
    for (int d = 0; s->link_of && d < s->view->plan->ndomains; d++) free(s->link_of[d]);
    free(s->link_of);
    free(s->parent);
    free(s->level);
    free(s->rank);
    free(s->box);
    free(s->box_of);
    free(s->wire);
    free(s->wire_of);
    kl_topo_free(s->topo);
    kl_xml_free(s->document);
    free(s);
}
