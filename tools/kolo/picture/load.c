/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/scene.h"

#include "base/error.h"
#include "graph/load.h"

#include <stdlib.h>

/* ---- the links of a domain's topology, which was trimmed, in the whole machine ---- */

static int link_between(const struct kl_topo *t, int from, int to, int type)
{
    if (from < 0 || to < 0) return -1;
    for (int k = t->node[from].first_link; k < t->node[from].first_link + t->node[from].nlinks; k++)
        if (t->link[k].to == to && t->link[k].type == type) return k;
    return -1;
}

static ncclResult_t map_links(const struct kl_topo *whole, const struct kl_topo *part, int **link_of)
{
    int *node_of = malloc(((size_t)part->nnodes + 1) * sizeof *node_of);

    *link_of = malloc(((size_t)part->nlinks + 1) * sizeof **link_of);
    if (!node_of || !*link_of) {
        free(node_of);
        return KL_NOMEM("a picture");
    }
    for (int i = 0; i < part->nnodes; i++) node_of[i] = kl_topo_find(whole, part->node[i].type, part->node[i].id);
    for (int k = 0; k < part->nlinks; k++) {
        const struct kl_link *l = &part->link[k];

        (*link_of)[k] = link_between(whole, node_of[l->from], node_of[l->to], l->type);
    }
    free(node_of);
    return ncclSuccess;
}

static ncclResult_t map_domains(struct kl_scene *s)
{
    const struct kl_plan *p = s->view->plan;

    s->link_of = calloc((size_t)p->ndomains + 1, sizeof *s->link_of);
    if (!s->link_of) return KL_NOMEM("a picture");
    for (int d = 0; d < p->ndomains; d++) KL_TRY(map_links(s->topo, p->domain[d].topo, &s->link_of[d]));
    return ncclSuccess;
}

/* ---- loads ---- */

static ncclResult_t add_domain(const struct kl_scene *s, int d, struct kl_picture_graph *g)
{
    const struct kl_plan_domain *domain = &s->view->plan->domain[d];
    const struct kl_graph *graph = domain->graphs.graph[g->id];
    struct kl_load *load;

    if (!graph || !graph->nchannels) return ncclSuccess;
    KL_TRY(kl_load_create(domain->topo, graph, &load));
    for (int k = 0; k < domain->topo->nlinks; k++)
        if (s->link_of[d][k] >= 0) g->used[s->link_of[d][k]] += (double)load->used[k];
    kl_load_free(load);
    return ncclSuccess;
}

static ncclResult_t add_graph(struct kl_scene *s, int id)
{
    const struct kl_plan *p = s->view->plan;
    const struct kl_graph *graph = p->domain[p->domain_of[0]].graphs.graph[id];
    struct kl_picture_graph *g = &s->graph[s->ngraphs];

    if (!(s->view->graphs >> id & 1) || !graph || !graph->nchannels) return ncclSuccess;
    *g = (struct kl_picture_graph){.id = id, .graph = graph};
    g->used = calloc((size_t)s->topo->nlinks + 1, sizeof *g->used);
    if (!g->used) return KL_NOMEM("a picture");
    s->ngraphs++;
    for (int d = 0; d < p->ndomains; d++) KL_TRY(add_domain(s, d, g));
    return ncclSuccess;
}

ncclResult_t kl_scene_load(struct kl_scene *s)
{

    KL_TRY(map_domains(s));
    for (int i = 0; i < KL_GRAPHS; i++) KL_TRY(add_graph(s, kl_graph_order[i]));
    return ncclSuccess;
}
