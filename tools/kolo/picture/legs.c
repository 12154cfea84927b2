/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/legs.h"

#include "tools/kolo/picture/scene.h"

#include <math.h>

/* How far right of a wire a leg runs, and how far from the edge, and from each other, the two lanes of a bar. */
#define ASIDE 4.0f
#define EDGE  6.0f
#define LANES 8.0f

static void point(struct kl_leg_writer *w, float x, float y)
{
    if (w->begun && fabsf(x - w->x) < 0.05f && fabsf(y - w->y) < 0.05f) return;
    fprintf(w->to, "%c%.1f %.1f", w->begun ? 'L' : 'M', (double)x, (double)y);
    w->begun = true;
    w->x = x;
    w->y = y;
}

/* The network's name stands beside it, so that its lanes are in the middle. */
static float lane_of(const struct kl_box *b, bool right)
{
    float middle = b->bar.y + b->bar.h / 2;

    if (b->kind == KL_BOX_NETWORK) return middle + (right ? -LANES : LANES);
    return middle + kl_towards_gpus(b) * (b->bar.h / 2 - EDGE - (right ? 0 : LANES));
}

/* Through a bar to where the next wire leaves it. */
static void cross_bar(struct kl_leg_writer *w, float x)
{
    const struct kl_box *b = &w->s->box[w->box];
    float y = lane_of(b, x > w->x);

    if (kl_is_tile(b)) return;
    point(w, w->x, y);
    point(w, x, y);
}

/* An arc between two GPUs, a little higher one way than the other. */
static void follow_arc(struct kl_leg_writer *w, const struct kl_wire *wire, bool back)
{
    int i = back, k = !back;
    float aside = wire->x[k] > wire->x[i] ? -2 : 2, rise = (wire->apex + (back ? 3 : -3)) * 4 / 3;

    point(w, wire->x[i] + aside, wire->y[i]);
    w->x = wire->x[k] + aside;
    w->y = wire->y[k];
    fprintf(w->to, "C%.1f %.1f %.1f %.1f %.1f %.1f", (double)(wire->x[i] + aside), (double)(wire->y[i] - rise),
            (double)w->x, (double)(w->y - rise), (double)w->x, (double)w->y);
}

/* A step aside of the line from one corner of a wire to the next, to its right as one goes. */
static void add_aside(const struct kl_wire *wire, int from, int to, float *x, float *y)
{
    float dx = wire->x[to] - wire->x[from], dy = wire->y[to] - wire->y[from], length = hypotf(dx, dy);

    if (length <= 0) return;
    *x -= dy / length * ASIDE;
    *y += dx / length * ASIDE;
}

/* Corners are right angles: there both steps count. */
static void follow_line(struct kl_leg_writer *w, const struct kl_wire *wire, bool back)
{
    int step = back ? -1 : 1;

    for (int n = 0; n < wire->npoints; n++) {
        int i = back ? wire->npoints - 1 - n : n;
        float x = wire->x[i], y = wire->y[i];

        if (n) add_aside(wire, i - step, i, &x, &y);
        if (n + 1 < wire->npoints) add_aside(wire, i, i + step, &x, &y);
        if (!n && w->begun && w->box >= 0) cross_bar(w, x);
        point(w, x, y);
    }
}

static void follow(struct kl_leg_writer *w, const struct kl_wire *wire, bool back)
{
    if (wire->apex != 0)
        follow_arc(w, wire, back);
    else
        follow_line(w, wire, back);
    w->box = back ? wire->a : wire->b;
}

/* The right end of a bar: undrawn boxes would be there. */
static float far_end(const struct kl_box *b)
{
    return b->bar.x + b->bar.w - 12;
}

/* The next path begins in an undrawn box, at a drawn bar. */
static void come_from_afar(struct kl_leg_writer *w, int box)
{
    w->box = box;
    point(w, far_end(&w->s->box[box]), lane_of(&w->s->box[box], false));
}

void kl_leg_begin(struct kl_leg_writer *w)
{
    w->begun = false;
    w->box = -1;
}

/* Over a link that is not drawn: the leg goes on in another piece, if it comes back. */
static void go_unseen(struct kl_leg_writer *w, int copy, int to)
{
    kl_leg_to_afar(w);
    kl_leg_end(w);
    w->begun = false;
    w->box = w->s->topo->node[to].type == KL_NODE_NET ? w->s->network_box : kl_scene_box(w->s, copy, to);
}

void kl_leg_path(struct kl_leg_writer *w, int copy, int domain, const struct kl_path *path)
{
    const struct kl_topo *t = w->s->view->plan->domain[domain].topo;

    for (int i = 0; i < path->hops; i++) {
        int link = w->s->link_of[domain][kl_path_hops(t, path)[i]];
        int wire = link < 0 ? -1 : kl_scene_wire(w->s, copy, link);

        if (link < 0) continue;
        w->uses[link] = 1;
        if (wire < 0) {
            go_unseen(w, copy, w->s->topo->link[link].to);
            continue;
        }
        if (!w->begun && w->box >= 0 && !kl_is_tile(&w->s->box[w->box])) come_from_afar(w, w->box);
        follow(w, &w->s->wire[wire], w->s->wire[wire].link[0] != link);
    }
}

void kl_leg_from_afar(struct kl_leg_writer *w)
{
    come_from_afar(w, w->s->network_box);
}

void kl_leg_to_afar(struct kl_leg_writer *w)
{
    if (w->begun && w->box >= 0) cross_bar(w, far_end(&w->s->box[w->box]));
}

void kl_leg_end(struct kl_leg_writer *w)
{
    if (w->begun) fputc('\n', w->to);
}
