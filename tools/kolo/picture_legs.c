/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture_legs.h"

#include <math.h>

/* How far right of a wire, or of the middle of a bar, a leg runs. */
#define ASIDE 4.0f
#define LANE  6.0f

static void point(struct kl_leg_writer *w, float x, float y)
{
    if (w->begun && fabsf(x - w->x) < 0.05f && fabsf(y - w->y) < 0.05f) return;
    fprintf(w->to, "%c%.1f %.1f", w->begun ? 'L' : 'M', (double)x, (double)y);
    w->begun = true;
    w->x = x;
    w->y = y;
}

/* Through a bar to where the next wire leaves it. */
static void cross_bar(struct kl_leg_writer *w, float x)
{
    const struct kl_box *b = &w->s->box[w->box];
    float y = b->bar.y + b->bar.h / 2 + (x > w->x ? -LANE : LANE);

    if (b->kind == KL_BOX_GPU || b->kind == KL_BOX_NIC) return;
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

static void follow_line(struct kl_leg_writer *w, const struct kl_wire *wire, bool back)
{
    for (int n = 0; n < wire->npoints; n++) {
        int i = back ? wire->npoints - 1 - n : n;
        int k = n + 1 < wire->npoints ? (back ? i - 1 : i + 1) : (back ? i + 1 : i - 1);
        float dx = (wire->x[k] - wire->x[i]) * (n + 1 < wire->npoints ? 1 : -1);
        float dy = (wire->y[k] - wire->y[i]) * (n + 1 < wire->npoints ? 1 : -1), length = hypotf(dx, dy);
        float x = wire->x[i] - (length > 0 ? dy / length * ASIDE : 0);
        float y = wire->y[i] + (length > 0 ? dx / length * ASIDE : 0);

        if (!n && w->box >= 0) cross_bar(w, x);
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

void kl_leg_begin(struct kl_leg_writer *w)
{
    w->begun = false;
    w->box = -1;
}

void kl_leg_path(struct kl_leg_writer *w, int copy, int domain, const struct kl_path *path)
{
    const struct kl_topo *t = w->s->view->plan->domain[domain].topo;

    for (int i = 0; i < path->hops; i++) {
        int link = w->s->link_of[domain][kl_path_hops(t, path)[i]];
        int wire = link < 0 ? -1 : kl_scene_wire(w->s, copy, link);

        if (link >= 0) w->uses[link] = 1;
        if (wire >= 0) follow(w, &w->s->wire[wire], w->s->wire[wire].link[0] != link);
    }
}

void kl_leg_from_afar(struct kl_leg_writer *w)
{
    const struct kl_rect *bar = &w->s->box[w->s->network_box].bar;

    point(w, bar->x + bar->w - 12, bar->y + bar->h / 2 + LANE);
    w->box = w->s->network_box;
}

void kl_leg_to_afar(struct kl_leg_writer *w)
{
    const struct kl_rect *bar = &w->s->box[w->s->network_box].bar;

    if (w->box == w->s->network_box) cross_bar(w, bar->x + bar->w - 12);
}

void kl_leg_end(struct kl_leg_writer *w)
{
    if (w->begun) fputc('\n', w->to);
}
