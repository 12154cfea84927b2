/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/draw.h"

#include "tools/kolo/picture/text.h"
#include "tools/kolo/picture/words.h"

enum { WIDTHS = 6, LEAST = 52, FIRST = 106 };

static const char *const steps[KL_LOAD_STEPS] = {"unused", "to 25 %", "to 50 %", "to 75 %", "to 100 %"};

void kl_draw_legend_loads(float x, float y, FILE *to)
{
    kl_svg_text(x, y + 9, "caption strong", "Load of a link", 40, to);
    kl_svg_text(x, y + 24, "caption low", "reserved / capacity", 40, to);
    for (int i = 0; i < KL_LOAD_STEPS; i++) {
        struct kl_rect r = {x + 124 + 62 * (float)i, y, 58, 10};
        char class[8];

        snprintf(class, sizeof class, "key s%d", i);
        kl_svg_rect(&r, 3, class, to);
        kl_svg_text(r.x, y + 24, "caption low", steps[i], 40, to);
    }
}

/* The bandwidths of drawn links, each once, from the lowest. Nearly equal ones have one width. */
static int widths_of(const struct kl_scene *s, float bw[WIDTHS], bool *more)
{
    int n = 0;

    *more = false;
    for (float after = 0;;) {
        float next = 0;

        for (int i = 0; i < s->nwires; i++) {
            float w = kl_scene_link(s, &s->wire[i])->bw;

            if (!kl_is_local(w) && w > after * 1.005f && (next <= 0 || w < next)) next = w;
        }
        if (next <= 0) return n;
        if (n == WIDTHS) {
            *more = true;
            bw[n - 1] = next; /* the highest is always shown */
        } else {
            bw[n++] = next;
        }
        after = next;
    }
}

static const char *kind_of(const struct kl_scene *s, float bw)
{
    const char *word = NULL;

    for (int i = 0; i < s->nwires; i++) {
        const struct kl_link *l = kl_scene_link(s, &s->wire[i]);
        const char *this = kl_words_link(l->type);

        if (l->bw < bw || l->bw > bw * 1.005f) continue;
        if (word && word != this) return "";
        word = this;
    }
    return word ? word : "";
}

/* The text below one of them; returns its width. */
static float describe(const struct kl_scene *s, float bw, bool gap, char text[64])
{
    float w;

    snprintf(text, 64, "%s%.4g %s", gap ? "... " : "", (double)bw, kind_of(s, bw));
    w = kl_text_width(text, 11, false);
    return (w < LEAST ? LEAST : w) + 10;
}

float kl_legend_widths_width(const struct kl_scene *s)
{
    float bw[WIDTHS], w = FIRST;
    char text[64];
    bool more;
    int n = widths_of(s, bw, &more);

    for (int i = 0; i < n; i++) w += describe(s, bw[i], more && i == n - 1, text);
    return w;
}

void kl_draw_legend_widths(const struct kl_scene *s, float x, float y, FILE *to)
{
    float bw[WIDTHS], at = x + FIRST;
    bool more;
    int n = widths_of(s, bw, &more);

    kl_svg_text(x, y + 9, "caption strong", "Bandwidth", 40, to);
    kl_svg_text(x, y + 24, "caption low", "GB/s each way", 40, to);
    for (int i = 0; i < n; i++) {
        char text[64];
        float room = describe(s, bw[i], more && i == n - 1, text), w = kl_wire_width(bw[i]);
        struct kl_rect r = {at, y + 5 - w / 2, room - 10, w};

        kl_svg_rect(&r, 0, "key width", to);
        kl_svg_text(at, y + 24, "caption low", text, 60, to);
        at += room;
    }
}

void kl_draw_legend_way(float x, float y, const char *way, const char *arrows, FILE *to)
{
    fprintf(to, "<path class=\"leg\" d=\"M%.1f %.1fh34\" marker-end=\"url(#tip)\"/>", (double)x, (double)y + 5);
    kl_svg_text(x + 44, y + 9, "caption strong way", way, 60, to);
    kl_svg_text(x + 44, y + 24, "caption low arrows", arrows, 100, to);
    putc('\n', to);
}
