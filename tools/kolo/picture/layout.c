/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/page.h"

#include "base/error.h"

#include <stdlib.h>

/* ---- placing within a host ---- */

static struct kl_rect place(const struct kl_page *p, float x, float y, float w, float h)
{
    if (p->flip) y = p->rows.height - y - h;
    return (struct kl_rect){p->left + x, p->top + y, w, h};
}

static struct kl_box *add_box(struct kl_page *p, int kind, int node)
{
    struct kl_scene *s = p->s;
    struct kl_box *b = &s->box[s->nboxes];

    *b = (struct kl_box){.kind = kind, .node = node, .copy = p->copy, .host = p->host, .flip = p->flip};
    if (node >= 0) s->box_of[(size_t)p->copy * (size_t)s->topo->nnodes + (size_t)node] = s->nboxes;
    s->nboxes++;
    return b;
}

/*
 * Small ones stand in two rows, a step aside, so that the cables of the upper row pass left of the lower tiles, and the
 * links of the lower row right of the upper ones.
 */
static struct kl_rect nic_place(const struct kl_page *p, int number, float x, float y)
{
    float step = (float)(number % 2);

    if (!p->s->small_nics)
        return place(p, x + (float)(number * KL_PAGE_COLUMN) + (KL_PAGE_COLUMN - KL_PAGE_TILE_W) / 2.0f, y,
                     KL_PAGE_TILE_W, KL_PAGE_TILE_H);
    const int column = number / 2 * KL_PAGE_SMALL_COLUMN;
    return place(p, x + (float)column + step * KL_PAGE_SMALL_STEP, y + step * (KL_PAGE_SMALL_H + KL_PAGE_SMALL_APART),
                 KL_PAGE_SMALL_W, KL_PAGE_SMALL_H);
}

static void place_nics(struct kl_page *p, int parent, int system, float y, float x)
{
    int number = 0;

    for (int c = -1; (c = kl_page_child(p->s, parent, KL_NODE_NIC, c, system)) >= 0; number++) {
        struct kl_box *b = add_box(p, KL_BOX_NIC, c);

        b->bar = nic_place(p, number, x, y);
        b->lower = p->s->small_nics && number % 2;
    }
}

static void place_gpus(struct kl_page *p, int parent, int system, float x)
{
    float at = x + (KL_PAGE_COLUMN - KL_PAGE_TILE_W) / 2.0f;

    for (int c = -1; (c = kl_page_child(p->s, parent, KL_NODE_GPU, c, system)) >= 0;) {
        add_box(p, KL_BOX_GPU, c)->bar = place(p, at, p->rows.gpu, KL_PAGE_TILE_W, KL_PAGE_TILE_H);
        at += KL_PAGE_COLUMN;
    }
}

static bool holds_nics(const struct kl_scene *s, int node)
{
    return kl_page_child(s, node, KL_NODE_NIC, -1, kl_scene_system(s, node)) >= 0;
}

/* A switch or CPU with its contents. Frames are as high as their contents: from the GPUs to the lowest tile. */
static void place_node(struct kl_page *p, int node, float x)
{
    const struct kl_scene *s = p->s;
    int level = s->level[node], system = kl_scene_system(s, node);
    float top = p->rows.gpu - (float)(KL_PAGE_INSET * level), first = x + kl_page_gutter(s, node), inner = first;
    float bottom =
        holds_nics(s, node) ? p->rows.nic[level] + kl_page_nics_height(s) : p->rows.bar[level] + KL_PAGE_BAR_H;
    struct kl_box *b = add_box(p, s->topo->node[node].type == KL_NODE_CPU ? KL_BOX_CPU : KL_BOX_PCI, node);

    b->frame = place(p, x, top, p->width[node], bottom + KL_PAGE_INSET - top);
    b->bar = place(p, x + KL_PAGE_INSET / 2.0f, p->rows.bar[level], p->width[node] - KL_PAGE_INSET, KL_PAGE_BAR_H);
    for (int c = -1; (c = kl_page_child(s, node, KL_NODE_PCI, c, system)) >= 0;) {
        place_node(p, c, inner);
        inner += p->width[c] + KL_PAGE_APART;
    }
    place_gpus(p, node, system, inner);
    place_nics(p, node, system, p->rows.nic[level], kl_page_nics_deeper(s, node) ? inner : first);
}

static void place_more(struct kl_page *p, int count, float x)
{
    struct kl_box *b;

    if (!count) return;
    b = add_box(p, KL_BOX_MORE, -1);
    b->bar = place(p, x, p->rows.gpu, KL_PAGE_TILE_W, KL_PAGE_TILE_H);
    b->count = count;
}

static void place_nvs(struct kl_page *p, float w)
{
    if (p->s->systems > 1 || !p->s->topo->count[KL_NODE_NVS]) return;
    add_box(p, KL_BOX_NVS, kl_topo_at(p->s->topo, KL_NODE_NVS, 0))->bar =
        place(p, KL_PAGE_INSET, p->rows.nvs, w - 2 * KL_PAGE_INSET, KL_PAGE_BAR_H);
}

static void place_host(struct kl_page *p, int system)
{
    const struct kl_scene *s = p->s;
    float w = kl_page_host_width(p, system), x = KL_PAGE_INSET;
    struct kl_box *host = add_box(p, KL_BOX_HOST, -1);

    host->frame = place(p, 0, 0, w, p->rows.height);
    host->bar = place(p, 0, s->systems > 1 ? p->rows.height - KL_PAGE_HEAD : 0, w, KL_PAGE_HEAD);
    place_nvs(p, w);
    for (int c = -1; (c = kl_page_child(s, KL_IN_HOST, KL_NODE_CPU, c, system)) >= 0;) {
        place_node(p, c, x);
        x += p->width[c] + KL_PAGE_CPUS_APART;
    }
    for (int c = -1; (c = kl_page_child(s, KL_IN_HOST, KL_NODE_PCI, c, system)) >= 0;) {
        place_node(p, c, x);
        x += p->width[c] + KL_PAGE_APART;
    }
    place_gpus(p, KL_IN_HOST, system, x);
    place_nics(p, KL_IN_HOST, system, p->rows.nic[s->levels], x);
    place_more(p, kl_page_hidden_gpus(s, system), w - KL_PAGE_INSET - KL_PAGE_TILE_W);
}

/* ---- the page ---- */

/* Hosts of one row; how many there are before the next. */
static int hosts_per_row(const struct kl_page *p)
{
    int n = p->s->drawn;

    if (p->s->systems > 1 || n < 2 || (float)n * (p->host_width + KL_PAGE_HOSTS_APART) <= KL_PAGE_ROW_WIDTH) return n;
    return (n + 1) / 2;
}

static void add_network(struct kl_page *p, float y, float w)
{
    struct kl_scene *s = p->s;

    s->network_box = -1;
    if (!s->network) return;
    s->network_box = s->nboxes;
    p->host = -1;
    add_box(p, KL_BOX_NETWORK, -1)->bar = (struct kl_rect){KL_PAGE_MARGIN + KL_PAGE_CAPTIONS, y, w, KL_PAGE_NETWORK_H};
}

static void add_more_hosts(struct kl_page *p, float x, float y, float h)
{
    struct kl_box *b;

    if (p->s->hosts == p->s->drawn) return;
    p->host = -1;
    b = add_box(p, KL_BOX_MORE, -1);
    b->bar = (struct kl_rect){x, y, KL_PAGE_COLUMN + 16, h};
    b->count = p->s->hosts - p->s->drawn;
}

/* A switch that joins hosts lies above all of them. */
static float add_shared_nvs(struct kl_page *p, float w)
{
    struct kl_scene *s = p->s;

    if (s->systems <= 1 || !s->topo->count[KL_NODE_NVS]) return 0;
    p->host = -1;
    add_box(p, KL_BOX_NVS, kl_topo_at(s->topo, KL_NODE_NVS, 0))->bar =
        (struct kl_rect){KL_PAGE_MARGIN + KL_PAGE_CAPTIONS, KL_PAGE_MARGIN, w, KL_PAGE_BAR_H};
    return KL_PAGE_BAR_H + 26;
}

static void place_hosts(struct kl_page *p)
{
    struct kl_scene *s = p->s;
    int per_row = hosts_per_row(p), rows = (s->drawn + per_row - 1) / per_row;
    float w = (float)per_row * (p->host_width + KL_PAGE_HOSTS_APART) - KL_PAGE_HOSTS_APART;
    float more = s->hosts > s->drawn ? KL_PAGE_HOSTS_APART + KL_PAGE_COLUMN + 16 : 0;
    float first = KL_PAGE_MARGIN + add_shared_nvs(p, w + more), under = first + p->rows.height + KL_PAGE_TO_NETWORK;
    float second = under + KL_PAGE_NETWORK_H + KL_PAGE_TO_NETWORK;

    for (int h = 0; h < s->drawn; h++) {
        p->copy = s->systems > 1 ? 0 : h;
        p->host = s->shown[h];
        p->left = KL_PAGE_MARGIN + KL_PAGE_CAPTIONS + (float)(h % per_row) * (p->host_width + KL_PAGE_HOSTS_APART);
        p->flip = h >= per_row;
        p->top = p->flip ? second : first;
        place_host(p, s->systems > 1 ? s->shown[h] : 0);
    }
    p->copy = 0;
    p->flip = false;
    add_network(p, under, w + more);
    add_more_hosts(p, KL_PAGE_MARGIN + KL_PAGE_CAPTIONS + w + KL_PAGE_HOSTS_APART, first, p->rows.height);
    s->width = KL_PAGE_MARGIN + KL_PAGE_CAPTIONS + w + more + KL_PAGE_MARGIN;
    s->height = s->network ? under + KL_PAGE_NETWORK_H : first + p->rows.height;
    if (rows > 1) s->height = second + p->rows.height;
    s->height += KL_PAGE_MARGIN;
}

/* Hosts that would make the page too wide are not drawn, unless few are. */
static void fit(struct kl_page *p)
{
    struct kl_scene *s = p->s;

    for (int h = 0; h < s->drawn; h++) {
        float w = kl_page_host_width(p, s->systems > 1 ? s->shown[h] : 0);

        if (w > p->host_width) p->host_width = w;
    }
    if (p->host_width < KL_PAGE_LEAST_HOST) p->host_width = KL_PAGE_LEAST_HOST;
    while (s->drawn > 2 && (float)hosts_per_row(p) * (p->host_width + KL_PAGE_HOSTS_APART) > KL_PAGE_ROW_WIDTH + 200)
        s->drawn--;
    if (s->drawn == 2 && p->host_width > KL_PAGE_ROW_WIDTH / 2.0f + 200 && s->systems > 1) s->drawn = 1;
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
    struct kl_page p = {.s = s, .width = calloc((size_t)s->topo->nnodes + 1, sizeof *p.width)};

    if (!p.width) return KL_NOMEM("a picture");
    kl_page_measure(&p);
    fit(&p);
    if (!alloc_boxes(s)) {
        free(p.width);
        return KL_NOMEM("a picture");
    }
    kl_page_rows(&p);
    place_hosts(&p);
    free(p.width);
    return ncclSuccess;
}
