/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/labels.h"

#include "tools/kolo/picture/descriptions.h"

#include <math.h>

#define BESIDE 7.0f /* of a wire: its ways */
#define EDGE   8.0f /* of the bar */

/* Does this piece of a wire touch the edge of the bar that is away from the GPUs, or cross it? */
static bool is_in_the_way(const struct kl_box *b, const struct kl_wire *w, int piece)
{
    float edge = kl_towards_gpus(b) < 0 ? b->bar.y + b->bar.h : b->bar.y;

    return fminf(w->y[piece], w->y[piece + 1]) <= edge + 1 && fmaxf(w->y[piece], w->y[piece + 1]) >= edge - 1;
}

/* The obstacle that ends last of those that begin before `x`; `x` if there is none. */
static float past_obstacles(const struct kl_scene *s, const struct kl_box *b, float x, float *next)
{
    float past = x;

    *next = b->bar.x + b->bar.w - EDGE;
    for (int i = 0; i < s->nwires; i++) {
        const struct kl_wire *w = &s->wire[i];
        float aside = kl_wire_width(kl_scene_link(s, w)->bw) / 2 + BESIDE;

        for (int k = 0; k + 1 < w->npoints; k++) {
            float from = fminf(w->x[k], w->x[k + 1]) - aside, to = fmaxf(w->x[k], w->x[k + 1]) + aside;

            if (!is_in_the_way(b, w, k) || to <= x) continue;
            if (from <= x && to > past) past = to;
            if (from > x && from < *next) *next = from;
        }
    }
    return past;
}

struct kl_span kl_label_room(const struct kl_scene *s, int box, float width)
{
    const struct kl_box *b = &s->box[box];
    struct kl_span best = {b->bar.x + EDGE, b->bar.x + EDGE};
    float x = b->bar.x + EDGE, end = b->bar.x + b->bar.w - EDGE, next;

    while (x < end) {
        float past = past_obstacles(s, b, x, &next);

        if (past > x) {
            x = past;
            continue;
        }
        if (next - x > best.to - best.from) best = (struct kl_span){x, next};
        if (best.to - best.from >= width) break;
        x = next + 0.01f;
    }
    return best;
}
