/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture_scene.h"

#include "base/error.h"

#include <limits.h>
#include <stdlib.h>

/* Sizes on the page. */
enum {
    COLUMN = 72, /* of a tile with the space beside it */
    TILE_W = 64,
    TILE_H = 38,
    BAR_H = 34,
    GUTTER = 14, /* left of everything in a switch: there its link to what is around it runs */
    INSET = 6,   /* of what is inside a frame */
    APART = 8,   /* frames of switches */
    CPUS_APART = 28,
    HEAD = 26,       /* title of a host */
    ABOVE_GPUS = 54, /* room for NVLinks to an NVSwitch */
    ABOVE_ARCS = 4,  /* of the highest arc, what the title's room spares */
    BELOW_GPUS = 34, /* for PCI links */
    ABOVE_NICS = 26,
    BELOW_ROW = 22,
    LANE = 8, /* of links between CPUs that are not neighbours */
    HOSTS_APART = 20,
    TO_NETWORK = 50,
    NETWORK_H = 40,
    MARGIN = 16,
    CAPTIONS = 114, /* what the rows are, left of the first host */
    LEAST_HOST = 300,
    ROW_WIDTH = 1720 /* hosts beyond it go into a second row, on their heads */
};

/* Heights within a host: the same for all hosts. */
struct rows {
    float nvs, gpu, bar[80], nic[80], height;
};

struct page {
    struct kl_scene *s;
    struct rows rows;
    float *width; /* by node: of its frame */
    float host_width;
    int copy, host;  /* being placed */
    float left, top; /* of that host */
    bool flip;       /* it stands on its head */
};

/* ---- children in order ---- */

/* The child of `parent` with this type that follows `after` (-1: the first), by rank and then by index. */
static int next_child(const struct kl_scene *s, int parent, enum kl_node_type type, int after, int system)
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

    for (int c = -1; (c = next_child(s, parent, type, c, system)) >= 0;) n++;
    return n;
}

/* Columns of tiles that stand in a node itself: GPUs above its bar, NICs below. */
static int columns_of(const struct kl_scene *s, int parent, int system)
{
    int gpus = count_children(s, parent, KL_NODE_GPU, system), nics = count_children(s, parent, KL_NODE_NIC, system);

    return gpus > nics ? gpus : nics;
}

/* ---- measuring ---- */

static float width_inside(const struct page *p, int parent, int system)
{
    float w = (float)(columns_of(p->s, parent, system) * COLUMN);

    for (int c = -1; (c = next_child(p->s, parent, KL_NODE_PCI, c, system)) >= 0;)
        w += p->width[c] + (w > 0 ? APART : 0);
    return w;
}

static void measure_node(const struct page *p, int node)
{
    float w = width_inside(p, node, kl_scene_system(p->s, node)), name = p->s->level[node] == p->s->levels ? 92 : 72;

    p->width[node] = GUTTER + (w < name ? name : w) + INSET;
}

/* Inner switches before outer ones, CPUs last. */
static void measure(const struct page *p)
{
    const struct kl_scene *s = p->s;

    for (int level = 1; level < s->levels; level++)
        for (int i = 0; i < s->topo->count[KL_NODE_PCI]; i++)
            if (s->level[kl_topo_at(s->topo, KL_NODE_PCI, i)] == level)
                measure_node(p, kl_topo_at(s->topo, KL_NODE_PCI, i));
    for (int i = 0; i < s->topo->count[KL_NODE_CPU]; i++) measure_node(p, kl_topo_at(s->topo, KL_NODE_CPU, i));
}

static int hidden_gpus(const struct kl_scene *s, int system)
{
    int n = 0;

    for (int i = 0; i < s->topo->count[KL_NODE_GPU]; i++) {
        int node = kl_topo_at(s->topo, KL_NODE_GPU, i);

        n += kl_scene_system(s, node) == system && s->parent[node] == KL_NOT_DRAWN;
    }
    return n;
}

static float measure_host(const struct page *p, int system)
{
    float w = (float)(columns_of(p->s, KL_IN_HOST, system) * COLUMN);

    for (int c = -1; (c = next_child(p->s, KL_IN_HOST, KL_NODE_CPU, c, system)) >= 0;)
        w += p->width[c] + (w > 0 ? CPUS_APART : 0);
    for (int c = -1; (c = next_child(p->s, KL_IN_HOST, KL_NODE_PCI, c, system)) >= 0;) w += p->width[c] + APART;
    if (hidden_gpus(p->s, system)) w += COLUMN + APART;
    return w + 2 * INSET;
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
        int n = count_children(s, KL_IN_HOST, KL_NODE_CPU, system);

        if (n > most) most = n;
    }
    return most;
}

static void set_rows(struct page *p)
{
    const struct kl_scene *s = p->s;
    struct rows *r = &p->rows;
    int arc = longest_arc(s), cpus = most_cpus(s);
    float y = s->systems > 1 ? INSET : HEAD; /* links to a shared NVSwitch leave no room for a title above */

    r->nvs = y;
    if (s->topo->count[KL_NODE_NVS]) y += (s->systems > 1 ? 0 : BAR_H) + ABOVE_GPUS - INSET * 2;
    if (arc) y += kl_scene_apex(arc) - ABOVE_ARCS;
    y += (float)(INSET * (s->levels + 1));
    r->gpu = y;
    y += TILE_H + BELOW_GPUS;
    for (int level = 1; level <= s->levels; level++) {
        r->bar[level] = y;
        y += BAR_H;
        r->nic[level] = y + ABOVE_NICS;
        if (has_nics_at(s, level)) y += ABOVE_NICS + TILE_H;
        if (level < s->levels) y += BELOW_ROW + INSET;
    }
    if (cpus > 2 && cpus <= 4) y += (float)((cpus - 1) * LANE + LANE);
    r->height = y + 2 * INSET + (s->systems > 1 ? HEAD - INSET : 0);
}

/* ---- placing ---- */

static struct kl_rect place(const struct page *p, float x, float y, float w, float h)
{
    if (p->flip) y = p->rows.height - y - h;
    return (struct kl_rect){p->left + x, p->top + y, w, h};
}

static struct kl_box *add_box(struct page *p, int kind, int node)
{
    struct kl_scene *s = p->s;
    struct kl_box *b = &s->box[s->nboxes];

    *b = (struct kl_box){.kind = kind, .node = node, .copy = p->copy, .host = p->host, .flip = p->flip};
    if (node >= 0) s->box_of[(size_t)p->copy * (size_t)s->topo->nnodes + (size_t)node] = s->nboxes;
    s->nboxes++;
    return b;
}

/* GPUs and NICs of a node, from x on. */
static void place_tiles(struct page *p, int parent, int system, int level, float x)
{
    float at = x + (COLUMN - TILE_W) / 2.0f;

    for (int c = -1; (c = next_child(p->s, parent, KL_NODE_GPU, c, system)) >= 0; at += COLUMN)
        add_box(p, KL_BOX_GPU, c)->bar = place(p, at, p->rows.gpu, TILE_W, TILE_H);
    at = x + (COLUMN - TILE_W) / 2.0f;
    for (int c = -1; (c = next_child(p->s, parent, KL_NODE_NIC, c, system)) >= 0; at += COLUMN)
        add_box(p, KL_BOX_NIC, c)->bar = place(p, at, p->rows.nic[level], TILE_W, TILE_H);
}

static bool holds_nics(const struct kl_scene *s, int node)
{
    return next_child(s, node, KL_NODE_NIC, -1, kl_scene_system(s, node)) >= 0;
}

/* A switch or CPU with all that is in it. Frames are as high as what they hold: from the GPUs to the lowest tile. */
static void place_node(struct page *p, int node, float x)
{
    const struct kl_scene *s = p->s;
    int level = s->level[node], system = kl_scene_system(s, node);
    float top = p->rows.gpu - (float)(INSET * level), inner = x + GUTTER;
    float bottom = holds_nics(s, node) ? p->rows.nic[level] + TILE_H : p->rows.bar[level] + BAR_H;
    struct kl_box *b = add_box(p, s->topo->node[node].type == KL_NODE_CPU ? KL_BOX_CPU : KL_BOX_PCI, node);

    b->frame = place(p, x, top, p->width[node], bottom + INSET - top);
    b->bar = place(p, x + INSET / 2.0f, p->rows.bar[level], p->width[node] - INSET, BAR_H);
    for (int c = -1; (c = next_child(s, node, KL_NODE_PCI, c, system)) >= 0; inner += p->width[c] + APART)
        place_node(p, c, inner);
    place_tiles(p, node, system, level, inner);
}

static void place_more(struct page *p, int count, float x)
{
    struct kl_box *b;

    if (!count) return;
    b = add_box(p, KL_BOX_MORE, -1);
    b->bar = place(p, x, p->rows.gpu, TILE_W, TILE_H);
    b->count = count;
}

static void place_nvs(struct page *p, float w)
{
    if (p->s->systems > 1 || !p->s->topo->count[KL_NODE_NVS]) return;
    add_box(p, KL_BOX_NVS, kl_topo_at(p->s->topo, KL_NODE_NVS, 0))->bar =
        place(p, INSET, p->rows.nvs, w - 2 * INSET, BAR_H);
}

static void place_host(struct page *p, int system)
{
    const struct kl_scene *s = p->s;
    float w = measure_host(p, system), x = INSET;
    struct kl_box *host = add_box(p, KL_BOX_HOST, -1);

    host->frame = place(p, 0, 0, w, p->rows.height);
    host->bar = place(p, 0, s->systems > 1 ? p->rows.height - HEAD : 0, w, HEAD);
    place_nvs(p, w);
    for (int c = -1; (c = next_child(s, KL_IN_HOST, KL_NODE_CPU, c, system)) >= 0; x += p->width[c] + CPUS_APART)
        place_node(p, c, x);
    for (int c = -1; (c = next_child(s, KL_IN_HOST, KL_NODE_PCI, c, system)) >= 0; x += p->width[c] + APART)
        place_node(p, c, x);
    place_tiles(p, KL_IN_HOST, system, s->levels, x);
    place_more(p, hidden_gpus(s, system), w - INSET - TILE_W);
}

/* ---- the page ---- */

/* Hosts of one row; how many there are before the next. */
static int hosts_per_row(const struct page *p)
{
    int n = p->s->drawn;

    if (p->s->systems > 1 || n < 2 || (float)n * (p->host_width + HOSTS_APART) <= ROW_WIDTH) return n;
    return (n + 1) / 2;
}

static void add_network(struct page *p, float y, float w)
{
    struct kl_scene *s = p->s;

    s->network_box = -1;
    if (!s->network) return;
    s->network_box = s->nboxes;
    p->host = -1;
    add_box(p, KL_BOX_NETWORK, -1)->bar = (struct kl_rect){MARGIN, y, CAPTIONS + w, NETWORK_H};
}

static void add_more_hosts(struct page *p, float x, float y, float h)
{
    struct kl_box *b;

    if (p->s->hosts == p->s->drawn) return;
    p->host = -1;
    b = add_box(p, KL_BOX_MORE, -1);
    b->bar = (struct kl_rect){x, y, COLUMN + 16, h};
    b->count = p->s->hosts - p->s->drawn;
}

/* A switch that joins hosts lies above all of them. */
static float add_shared_nvs(struct page *p, float w)
{
    struct kl_scene *s = p->s;

    if (s->systems <= 1 || !s->topo->count[KL_NODE_NVS]) return 0;
    p->host = -1;
    add_box(p, KL_BOX_NVS, kl_topo_at(s->topo, KL_NODE_NVS, 0))->bar =
        (struct kl_rect){MARGIN, MARGIN, CAPTIONS + w, BAR_H};
    return BAR_H + 26;
}

static void place_hosts(struct page *p)
{
    struct kl_scene *s = p->s;
    int per_row = hosts_per_row(p), rows = (s->drawn + per_row - 1) / per_row;
    float w = (float)per_row * (p->host_width + HOSTS_APART) - HOSTS_APART;
    float more = s->hosts > s->drawn ? HOSTS_APART + COLUMN + 16 : 0;
    float first = MARGIN + add_shared_nvs(p, w + more), under = first + p->rows.height + TO_NETWORK;
    float second = under + NETWORK_H + TO_NETWORK;

    for (int h = 0; h < s->drawn; h++) {
        p->copy = s->systems > 1 ? 0 : h;
        p->host = h;
        p->left = MARGIN + CAPTIONS + (float)(h % per_row) * (p->host_width + HOSTS_APART);
        p->flip = h >= per_row;
        p->top = p->flip ? second : first;
        place_host(p, s->systems > 1 ? h : 0);
    }
    p->copy = 0;
    p->flip = false;
    add_network(p, under, w + more);
    add_more_hosts(p, MARGIN + CAPTIONS + w + HOSTS_APART, first, p->rows.height);
    s->width = MARGIN + CAPTIONS + w + more + MARGIN;
    s->height = s->network ? under + NETWORK_H : first + p->rows.height;
    if (rows > 1) s->height = second + p->rows.height;
    s->height += MARGIN;
}

/* Hosts that would make the page too wide are not drawn, unless few are. */
static void fit(struct page *p)
{
    struct kl_scene *s = p->s;

    for (int h = 0; h < s->drawn; h++) {
        float w = measure_host(p, s->systems > 1 ? h : 0);

        if (w > p->host_width) p->host_width = w;
    }
    if (p->host_width < LEAST_HOST) p->host_width = LEAST_HOST;
    while (s->drawn > 2 && (float)hosts_per_row(p) * (p->host_width + HOSTS_APART) > ROW_WIDTH + 200) s->drawn--;
    if (s->drawn == 2 && p->host_width > ROW_WIDTH / 2 + 200 && s->systems > 1) s->drawn = 1;
    if (s->systems <= 1) s->copies = s->drawn;
}

static bool alloc_boxes(struct kl_scene *s)
{
    size_t nodes = (size_t)s->copies * (size_t)s->topo->nnodes;

    s->box = calloc(nodes + 2 * KL_PICTURE_HOSTS + 4, sizeof *s->box);
    s->box_of = malloc((nodes + 1) * sizeof *s->box_of);
    for (size_t i = 0; s->box_of && i < nodes; i++) s->box_of[i] = -1;
    return s->box && s->box_of;
}

ncclResult_t kl_scene_layout(struct kl_scene *s)
{
    struct page p = {.s = s, .width = calloc((size_t)s->topo->nnodes + 1, sizeof *p.width)};

    if (!p.width) return KL_NOMEM("a picture");
    measure(&p);
    fit(&p);
    if (!alloc_boxes(s)) {
        free(p.width);
        return KL_NOMEM("a picture");
    }
    set_rows(&p);
    place_hosts(&p);
    free(p.width);
    return ncclSuccess;
}
