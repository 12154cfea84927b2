/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/page.h"

#include <math.h>
#include <stdlib.h>

/* ---- children in order ---- */

int kl_page_child(const struct kl_scene *s, int parent, enum kl_node_type type, int after, int system)
{
    int best = -1;

    for (int i = 0; i < s->topo->count[type]; i++) {
        int n = kl_topo_at(s->topo, type, i);

        if (s->parent[n] != parent || kl_scene_system(s, n) != system) continue;
        if (after >= 0 && (s->rank[n] < s->rank[after] || (s->rank[n] == s->rank[after] && n <= after))) continue;
        if (best < 0 || s->rank[n] < s->rank[best]) best = n;
    }
    return best;
}

static int count_children(const struct kl_scene *s, int parent, enum kl_node_type type, int system)
{
    int n = 0;

    for (int c = -1; (c = kl_page_child(s, parent, type, c, system)) >= 0;) n++;
    return n;
}

static float nics_width(const struct kl_scene *s, int n)
{
    const int width = s->small_nics ? (n + 1) / 2 * KL_PAGE_SMALL_COLUMN : n * KL_PAGE_COLUMN;

    return (float)width;
}

float kl_page_nics_height(const struct kl_scene *s)
{
    return s->small_nics ? 2 * KL_PAGE_SMALL_H + KL_PAGE_SMALL_APART : KL_PAGE_TILE_H;
}

/* Tiles that stand in a node itself: GPUs above its bar, NICs below. */
static float own_gpus_width(const struct kl_scene *s, int parent, int system)
{
    return (float)(count_children(s, parent, KL_NODE_GPU, system) * KL_PAGE_COLUMN);
}

static float own_nics_width(const struct kl_scene *s, int parent, int system)
{
    return nics_width(s, count_children(s, parent, KL_NODE_NIC, system));
}

static float tiles_width(const struct kl_scene *s, int parent, int system)
{
    return fmaxf(own_gpus_width(s, parent, system), own_nics_width(s, parent, system));
}

static bool holds_nics(const struct kl_scene *s, int node)
{
    const int system = kl_scene_system(s, node);

    return kl_page_child(s, node, KL_NODE_NIC, -1, system) >= 0 || kl_page_nics_deeper(s, node);
}

bool kl_page_nics_deeper(const struct kl_scene *s, int node)
{
    for (int c = -1; (c = kl_page_child(s, node, KL_NODE_PCI, c, kl_scene_system(s, node))) >= 0;)
        if (holds_nics(s, c)) return true;
    return false;
}

/* ---- measuring ---- */

float kl_page_gutter(const struct kl_scene *s, int node)
{
    return KL_PAGE_GUTTER + (s->small_nics && s->level[node] == s->levels ? KL_PAGE_CPU_NAME : 0);
}

/* NICs stand beside the switches in a node, or below them where no cables come down from there. */
static float width_inside(const struct kl_page *p, int parent, int system)
{
    const bool below = !kl_page_nics_deeper(p->s, parent);
    float w = below ? own_gpus_width(p->s, parent, system) : tiles_width(p->s, parent, system);

    for (int c = -1; (c = kl_page_child(p->s, parent, KL_NODE_PCI, c, system)) >= 0;)
        w += p->width[c] + (w > 0 ? KL_PAGE_APART : 0);
    return below ? fmaxf(w, own_nics_width(p->s, parent, system)) : w;
}

static void measure_node(const struct kl_page *p, int node)
{
    float w = width_inside(p, node, kl_scene_system(p->s, node)), name = p->s->level[node] == p->s->levels ? 92 : 72;

    p->width[node] = kl_page_gutter(p->s, node) + (w < name ? name : w) + KL_PAGE_INSET;
}

/* Inner switches before outer ones, CPUs last. */
void kl_page_measure(const struct kl_page *p)
{
    const struct kl_scene *s = p->s;

    for (int level = 1; level < s->levels; level++)
        for (int i = 0; i < s->topo->count[KL_NODE_PCI]; i++)
            if (s->level[kl_topo_at(s->topo, KL_NODE_PCI, i)] == level)
                measure_node(p, kl_topo_at(s->topo, KL_NODE_PCI, i));
    for (int i = 0; i < s->topo->count[KL_NODE_CPU]; i++) measure_node(p, kl_topo_at(s->topo, KL_NODE_CPU, i));
}

int kl_page_hidden_gpus(const struct kl_scene *s, int system)
{
    int n = 0;

    for (int i = 0; i < s->topo->count[KL_NODE_GPU]; i++) {
        int node = kl_topo_at(s->topo, KL_NODE_GPU, i);

        n += kl_scene_system(s, node) == system && s->parent[node] == KL_NOT_DRAWN;
    }
    return n;
}

float kl_page_host_width(const struct kl_page *p, int system)
{
    float w = tiles_width(p->s, KL_IN_HOST, system);

    for (int c = -1; (c = kl_page_child(p->s, KL_IN_HOST, KL_NODE_CPU, c, system)) >= 0;)
        w += p->width[c] + (w > 0 ? KL_PAGE_CPUS_APART : 0);
    for (int c = -1; (c = kl_page_child(p->s, KL_IN_HOST, KL_NODE_PCI, c, system)) >= 0;)
        w += p->width[c] + KL_PAGE_APART;
    if (kl_page_hidden_gpus(p->s, system)) w += KL_PAGE_COLUMN + KL_PAGE_APART;
    return w + 2 * KL_PAGE_INSET;
}

/* ---- heights ---- */

static bool has_nics_at(const struct kl_scene *s, int level)
{
    for (int i = 0; i < s->topo->count[KL_NODE_NIC]; i++) {
        int parent = s->parent[kl_topo_at(s->topo, KL_NODE_NIC, i)];

        if (parent >= 0 ? s->level[parent] == level : parent == KL_IN_HOST && level == s->levels) return true;
    }
    return false;
}

/* Columns between the ends of the longest NVLink from GPU to GPU; 0 without any. */
static int longest_arc(const struct kl_scene *s)
{
    int longest = 0;

    for (int k = 0; k < s->topo->nlinks; k++) {
        const struct kl_link *l = &s->topo->link[k];
        int away = abs(s->topo->node[l->from].gpu.rank - s->topo->node[l->to].gpu.rank);

        if (s->topo->node[l->from].type != KL_NODE_GPU || s->topo->node[l->to].type != KL_NODE_GPU) continue;
        if (s->parent[l->from] == KL_NOT_DRAWN || s->parent[l->to] == KL_NOT_DRAWN) continue;
        if (away > longest) longest = away;
    }
    return longest;
}

static int most_cpus(const struct kl_scene *s)
{
    int most = 0;

    for (int system = 0; system < s->drawn; system++) {
        int n = count_children(s, KL_IN_HOST, KL_NODE_CPU, s->systems > 1 ? s->shown[system] : 0);

        if (n > most) most = n;
    }
    return most;
}

void kl_page_rows(struct kl_page *p)
{
    const struct kl_scene *s = p->s;
    struct kl_rows *r = &p->rows;
    int arc = longest_arc(s), cpus = most_cpus(s);
    float y =
        s->systems > 1 ? KL_PAGE_INSET : KL_PAGE_HEAD; /* links to a shared NVSwitch leave no room for a title above */

    r->nvs = y;
    if (s->topo->count[KL_NODE_NVS]) y += (s->systems > 1 ? 0 : KL_PAGE_BAR_H) + KL_PAGE_ABOVE_GPUS - KL_PAGE_INSET * 2;
    if (arc) y += kl_scene_apex(arc) - KL_PAGE_ABOVE_ARCS;
    y += (float)(KL_PAGE_INSET * (s->levels + 1));
    r->gpu = y;
    y += KL_PAGE_TILE_H + KL_PAGE_BELOW_GPUS;
    for (int level = 1; level <= s->levels; level++) {
        r->bar[level] = y;
        y += KL_PAGE_BAR_H;
        r->nic[level] = y + KL_PAGE_ABOVE_NICS;
        if (has_nics_at(s, level)) y += KL_PAGE_ABOVE_NICS + kl_page_nics_height(s);
        if (level < s->levels) y += KL_PAGE_BELOW_ROW + KL_PAGE_INSET;
    }
    if (cpus > 2 && cpus <= 4) y += (float)((cpus - 1) * KL_PAGE_LANE + KL_PAGE_LANE);
    r->height = y + 2 * KL_PAGE_INSET + (s->systems > 1 ? KL_PAGE_HEAD - KL_PAGE_INSET : 0);
}
