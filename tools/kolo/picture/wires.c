/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/scene.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>

static float middle(const struct kl_rect *r)
{
    return r->x + r->w / 2;
}

static bool is_above(const struct kl_rect *a, const struct kl_rect *b)
{
    return a->y + a->h / 2 < b->y + b->h / 2;
}

static void line(struct kl_wire *w, float x1, float y1, float x2, float y2)
{
    w->npoints = 2;
    w->x[0] = x1, w->y[0] = y1;
    w->x[1] = x2, w->y[1] = y2;
}

/* Straight up or down between two boxes, at x. */
static void upright(const struct kl_scene *s, struct kl_wire *w, float x)
{
    const struct kl_rect *a = &s->box[w->a].bar, *b = &s->box[w->b].bar;

    if (is_above(a, b))
        line(w, x, a->y + a->h, x, b->y);
    else
        line(w, x, a->y, x, b->y + b->h);
}

/* ---- NVLinks from GPU to GPU ---- */

static bool is_peer(const struct kl_scene *s, const struct kl_link *l)
{
    return s->topo->node[l->to].type == KL_NODE_GPU && s->parent[l->to] != KL_NOT_DRAWN;
}

/*
 * Where the arc from GPU `a` to `b` ends on a: arcs to the left, the nearest first, then arcs to the right, the farthest
 * first, so that arcs of one GPU don't cross.
 */
static float arc_end(const struct kl_scene *s, const struct kl_wire *w, int a, int b)
{
    const struct kl_node *n = &s->topo->node[s->box[a].node];
    const struct kl_rect *me = &s->box[a].bar;
    float peer = s->box[b].bar.x;
    int all = 0, before = 0;

    for (int k = n->first_link; k < n->first_link + n->nlinks; k++) {
        if (!is_peer(s, &s->topo->link[k])) continue;
        int box = kl_scene_box(s, w->copy, s->topo->link[k].to);
        if (box < 0) continue;
        float x = s->box[box].bar.x;
        all++;
        if ((x < me->x) != (peer < me->x))
            before += x < me->x;
        else
            before += x > peer;
    }
    return me->x + me->w * (float)(before + 1) / (float)(all + 1);
}

static void lay_arc(const struct kl_scene *s, struct kl_wire *w)
{
    const struct kl_rect *a = &s->box[w->a].bar, *b = &s->box[w->b].bar;
    int away = abs(s->topo->node[s->box[w->a].node].gpu.rank - s->topo->node[s->box[w->b].node].gpu.rank);
    bool up = !s->box[w->a].flip;
    float ya = up ? a->y : a->y + a->h, yb = up ? b->y : b->y + b->h;

    line(w, arc_end(s, w, w->a, w->b), ya, arc_end(s, w, w->b, w->a), yb);
    w->apex = kl_scene_apex(away) * (float)(up ? 1 : -1);
}

/* ---- links between CPUs ---- */

static void turn(struct kl_wire *w)
{
    for (int i = 0, k = w->npoints - 1; i < k; i++, k--) {
        float x = w->x[i], y = w->y[i];

        w->x[i] = w->x[k], w->y[i] = w->y[k];
        w->x[k] = x, w->y[k] = y;
    }
}

static int between(const struct kl_scene *s, const struct kl_wire *w)
{
    float left = fminf(s->box[w->a].bar.x, s->box[w->b].bar.x), right = fmaxf(s->box[w->a].bar.x, s->box[w->b].bar.x);
    int n = 0;

    for (int i = 0; i < s->nboxes; i++)
        n += s->box[i].kind == KL_BOX_CPU && s->box[i].host == s->box[w->a].host && s->box[i].bar.x > left &&
             s->box[i].bar.x < right;
    return n;
}

/* Behind the frames of both CPUs, seen from their GPUs. */
static float lane_of(const struct kl_scene *s, const struct kl_wire *w, int skipped)
{
    const struct kl_rect *a = &s->box[w->a].frame, *b = &s->box[w->b].frame;
    float away = 8.0f * (float)(skipped - 1) + 5;

    return s->box[w->a].flip ? fminf(a->y, b->y) - away : fmaxf(a->y + a->h, b->y + b->h) + away;
}

/* Neighbours: straight from bar to bar. Others: through a lane below the frames. */
static bool lay_sys(const struct kl_scene *s, struct kl_wire *w)
{
    bool swap = s->box[w->a].bar.x > s->box[w->b].bar.x;
    const struct kl_rect *l = &s->box[swap ? w->b : w->a].bar, *r = &s->box[swap ? w->a : w->b].bar;
    int skipped = between(s, w);
    float y = l->y + l->h / 2, edge = s->box[w->a].flip ? l->y : l->y + l->h;

    if (s->topo->count[KL_NODE_CPU] / s->systems > 4 && skipped) return false;
    if (!skipped) {
        line(w, l->x + l->w, y, r->x, r->y + r->h / 2);
    } else {
        w->npoints = 4;
        w->x[0] = w->x[1] = l->x + 6 + 5 * (float)skipped, w->x[2] = w->x[3] = r->x + 6 + 5 * (float)(skipped + 2);
        w->y[0] = w->y[3] = edge, w->y[1] = w->y[2] = lane_of(s, w, skipped);
    }
    if (swap) turn(w);
    return true;
}

/* ---- all kinds ---- */

static int port_of(const struct kl_scene *s, int nic, int net, int *ports)
{
    const struct kl_node *n = &s->topo->node[nic];
    int port = 0;

    *ports = 0;
    for (int k = n->first_link; k < n->first_link + n->nlinks; k++) {
        if (s->topo->node[s->topo->link[k].to].type != KL_NODE_NET) continue;
        if (s->topo->link[k].to == net) port = *ports;
        ++*ports;
    }
    return port;
}

enum { SMALL_CORRIDOR = 14 }; /* of the two rows: beside the other tile, wide enough for a link and its ways */
enum { MOST_CABLES = 6 };     /* of a card, side by side: the ports that are left share the last place */

static void lay_cable(const struct kl_scene *s, struct kl_wire *w, int nic, int net)
{
    int ports, port = port_of(s, nic, net, &ports);
    const struct kl_rect *r = &s->box[w->a].bar;

    if (ports > MOST_CABLES) ports = MOST_CABLES;
    if (port >= ports) port = ports - 1;
    if (s->small_nics) {
        float corridor = s->box[w->a].lower ? r->w : SMALL_CORRIDOR;

        upright(s, w, r->x + corridor * (float)(port + 1) / (float)(ports + 1));
        return;
    }
    upright(s, w, r->x + r->w * (float)(port + 1) / (float)(ports + 1));
}

/* PCI on the left, other links of a GPU to its CPU on the right. */
static void lay_gpu(const struct kl_scene *s, struct kl_wire *w, const struct kl_link *l)
{
    const struct kl_box *gpu = &s->box[s->box[w->a].kind == KL_BOX_GPU ? w->a : w->b];
    const struct kl_box *other = &s->box[s->box[w->a].kind == KL_BOX_GPU ? w->b : w->a];
    float x = middle(&gpu->bar);

    if (other->kind == KL_BOX_NVS) {
        upright(s, w, x);
        return;
    }
    x += s->parent[gpu->node] == other->node && l->type == KL_PATH_PCI ? -12 : 14;
    if (x > other->bar.x && x < other->bar.x + other->bar.w)
        upright(s, w, x);
    else
        line(w, x, gpu->bar.y + gpu->bar.h, middle(&other->bar), other->bar.y);
}

static void lay_inner(const struct kl_scene *s, struct kl_wire *w)
{
    const struct kl_box *a = &s->box[w->a], *b = &s->box[w->b];
    const struct kl_box *inner = s->parent[a->node] == b->node ? a : b;

    if (s->parent[a->node] != b->node && s->parent[b->node] != a->node)
        line(w, middle(&a->bar), a->bar.y, middle(&b->bar), b->bar.y);
    else if (inner->kind == KL_BOX_NIC)
        upright(s, w, inner->lower ? inner->bar.x + inner->bar.w - SMALL_CORRIDOR / 2.0f : middle(&inner->bar));
    else
        upright(s, w, inner->bar.x + 9);
}

static bool lay(const struct kl_scene *s, struct kl_wire *w, const struct kl_link *l)
{
    int a = s->box[w->a].kind, b = s->box[w->b].kind;

    if (a == KL_BOX_GPU && b == KL_BOX_GPU)
        lay_arc(s, w);
    else if (a == KL_BOX_CPU && b == KL_BOX_CPU)
        return lay_sys(s, w);
    else if (a == KL_BOX_GPU || b == KL_BOX_GPU)
        lay_gpu(s, w, l);
    else
        lay_inner(s, w);
    return true;
}

/* ---- */

static void add_wire(struct kl_scene *s, int copy, int k)
{
    const struct kl_link *l = &s->topo->link[k];
    struct kl_wire *w = &s->wire[s->nwires];
    int *wire_of = s->wire_of + (size_t)copy * (size_t)s->topo->nlinks;
    bool cable = s->topo->node[l->from].type == KL_NODE_NIC && s->topo->node[l->to].type == KL_NODE_NET;

    *w = (struct kl_wire){.a = kl_scene_box(s, copy, l->from), .b = kl_scene_box(s, copy, l->to), .copy = copy};
    if (cable) w->b = s->network_box;
    if (w->a < 0 || w->b < 0 || w->a == w->b || wire_of[k] >= 0) return;
    w->link[0] = k;
    w->link[1] = l->reverse;
    if (cable)
        lay_cable(s, w, l->from, l->to);
    else if (!lay(s, w, l))
        return;
    wire_of[k] = s->nwires;
    if (l->reverse >= 0) wire_of[l->reverse] = s->nwires;
    s->nwires++;
}

ncclResult_t kl_scene_wires(struct kl_scene *s)
{
    size_t links = (size_t)s->copies * (size_t)s->topo->nlinks;

    s->wire = calloc(links + 1, sizeof *s->wire);
    s->wire_of = malloc((links + 1) * sizeof *s->wire_of);
    if (!s->wire || !s->wire_of) return KL_NOMEM("a picture");
    for (size_t i = 0; i < links; i++) s->wire_of[i] = -1;
    for (int copy = 0; copy < s->copies; copy++)
        for (int k = 0; k < s->topo->nlinks; k++) add_wire(s, copy, k);
    return ncclSuccess;
}
