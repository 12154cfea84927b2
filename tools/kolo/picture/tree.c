/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/scene.h"

#include "base/error.h"

#include <limits.h>
#include <stdlib.h>

/* ---- nesting of boxes ---- */

static bool may_contain(const struct kl_topo *t, const struct kl_link *l)
{
    int outer = t->node[l->from].type, inner = t->node[l->to].type;

    if (outer == KL_NODE_NIC) return inner == KL_NODE_NET && l->type == KL_PATH_NET;
    if (outer != KL_NODE_CPU && outer != KL_NODE_PCI) return false;
    if (inner != KL_NODE_PCI && inner != KL_NODE_GPU && inner != KL_NODE_NIC) return false;
    return l->type == KL_PATH_PCI || l->type == KL_PATH_LOC || inner == KL_NODE_NIC;
}

/* Breadth first from all CPUs, so that a node reached twice stands in the nearer one. */
static ncclResult_t find_parents(struct kl_scene *s)
{
    const struct kl_topo *t = s->topo;
    int *queue = malloc(((size_t)t->nnodes + 1) * sizeof *queue), n = 0;

    if (!queue) return KL_NOMEM("a picture");
    for (int i = 0; i < t->nnodes; i++) {
        s->parent[i] = KL_NOT_DRAWN;
        if (t->node[i].type == KL_NODE_CPU) s->parent[i] = KL_IN_HOST, queue[n++] = i;
    }
    for (int at = 0; at < n; at++) {
        const struct kl_node *outer = &t->node[queue[at]];

        for (int k = outer->first_link; k < outer->first_link + outer->nlinks; k++) {
            if (s->parent[t->link[k].to] != KL_NOT_DRAWN || !may_contain(t, &t->link[k])) continue;
            s->parent[t->link[k].to] = queue[at];
            queue[n++] = t->link[k].to;
        }
    }
    free(queue);
    return ncclSuccess;
}

/* GPUs without a PCI link stand in the CPU that another link leads to, or just in the host. */
static void house_the_rest(struct kl_scene *s)
{
    const struct kl_topo *t = s->topo;

    for (int i = 0; i < t->nnodes; i++) {
        const struct kl_node *n = &t->node[i];

        if (s->parent[i] != KL_NOT_DRAWN || n->type == KL_NODE_NET) continue;
        s->parent[i] = KL_IN_HOST;
        for (int k = n->first_link; n->type == KL_NODE_GPU && k < n->first_link + n->nlinks; k++)
            if (t->node[t->link[k].to].type == KL_NODE_CPU) s->parent[i] = t->link[k].to;
    }
}

/* ---- choice of drawn boxes ---- */

/* The number of a GPU in its system: GPUs with a lower rank. */
static int number_of(const struct kl_scene *s, int node)
{
    const struct kl_topo *t = s->topo;
    const struct kl_node *n = &t->node[node];
    int before = 0;

    for (int i = 0; i < t->count[n->type]; i++) {
        int other = kl_topo_at(t, n->type, i);

        if (kl_scene_system(s, other) != kl_scene_system(s, node)) continue;
        before += n->type == KL_NODE_GPU ? t->node[other].gpu.rank < n->gpu.rank : other < node;
    }
    return before;
}

static int count_in_system(const struct kl_scene *s, enum kl_node_type type, int system)
{
    int n = 0;

    for (int i = 0; i < s->topo->count[type]; i++) n += kl_scene_system(s, kl_topo_at(s->topo, type, i)) == system;
    return n;
}

/* Of a host with more than `most`, only a `few` are drawn. */
static void hide_many(struct kl_scene *s, enum kl_node_type type, int most, int few)
{
    for (int i = 0; i < s->topo->count[type]; i++) {
        int node = kl_topo_at(s->topo, type, i), system = kl_scene_system(s, node);

        if (!kl_scene_shows(s, system)) s->parent[node] = KL_NOT_DRAWN;
        if (s->parent[node] == KL_NOT_DRAWN || count_in_system(s, type, system) <= most) continue;
        if (number_of(s, node) >= few) s->parent[node] = KL_NOT_DRAWN;
    }
}

/* All boxes around a drawn leaf are drawn. */
static void mark_around(const struct kl_scene *s, enum kl_node_type type, bool *seen)
{
    for (int i = 0; i < s->topo->count[type]; i++)
        for (int at = kl_topo_at(s->topo, type, i); at >= 0 && s->parent[at] != KL_NOT_DRAWN; at = s->parent[at])
            seen[at] = true;
}

/* Switches with nothing to show, and CPUs when there are many of them, are left out. */
static ncclResult_t hide_empty(struct kl_scene *s)
{
    const struct kl_topo *t = s->topo;
    bool *seen = calloc((size_t)t->nnodes + 1, sizeof *seen);

    if (!seen) return KL_NOMEM("a picture");
    mark_around(s, KL_NODE_GPU, seen);
    mark_around(s, KL_NODE_NIC, seen);
    for (int i = 0; i < t->nnodes; i++) {
        bool many = t->node[i].type == KL_NODE_CPU && count_in_system(s, KL_NODE_CPU, kl_scene_system(s, i)) > 4;

        if (!kl_scene_shows(s, kl_scene_system(s, i)) && t->node[i].type != KL_NODE_NVS) s->parent[i] = KL_NOT_DRAWN;
        if (!seen[i] && (t->node[i].type == KL_NODE_PCI || many)) s->parent[i] = KL_NOT_DRAWN;
    }
    free(seen);
    return ncclSuccess;
}

/* ---- order and height ---- */

static void find_ranks(struct kl_scene *s)
{
    for (int i = 0; i < s->topo->nnodes; i++) s->rank[i] = INT_MAX;
    for (int i = 0; i < s->topo->count[KL_NODE_GPU]; i++) {
        int gpu = kl_topo_at(s->topo, KL_NODE_GPU, i), rank = s->topo->node[gpu].gpu.rank;

        for (int at = gpu; at >= 0; at = s->parent[at])
            if (rank < s->rank[at]) s->rank[at] = rank;
    }
}

static void find_levels(struct kl_scene *s)
{
    const struct kl_topo *t = s->topo;

    s->levels = 1;
    for (int i = 0; i < t->count[KL_NODE_PCI]; i++) {
        int node = kl_topo_at(t, KL_NODE_PCI, i), level = 1;

        if (s->parent[node] == KL_NOT_DRAWN) continue;
        for (int at = node; at >= 0 && t->node[at].type == KL_NODE_PCI; at = s->parent[at], level++) {
            if (s->level[at] < level) s->level[at] = level;
            if (s->levels < level + 1) s->levels = level + 1;
        }
    }
    for (int i = 0; i < t->count[KL_NODE_CPU]; i++) s->level[kl_topo_at(t, KL_NODE_CPU, i)] = s->levels;
}

ncclResult_t kl_scene_tree(struct kl_scene *s)
{
    size_t n = (size_t)s->topo->nnodes + 1;

    s->parent = malloc(n * sizeof *s->parent);
    s->level = calloc(n, sizeof *s->level);
    s->rank = malloc(n * sizeof *s->rank);
    if (!s->parent || !s->level || !s->rank) return KL_NOMEM("a picture");
    KL_TRY(find_parents(s));
    house_the_rest(s);
    hide_many(s, KL_NODE_GPU, KL_PICTURE_GPUS, KL_PICTURE_FEW);
    hide_many(s, KL_NODE_NIC, KL_PICTURE_NICS, KL_PICTURE_NICS);
    for (int system = 0; system < s->systems; system++)
        s->small_nics |= count_in_system(s, KL_NODE_NIC, system) > KL_PICTURE_FEW;
    KL_TRY(hide_empty(s));
    find_ranks(s);
    find_levels(s);
    return ncclSuccess;
}
