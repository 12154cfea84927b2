/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/draw.h"

#include "tools/kolo/picture/labels.h"
#include "tools/kolo/picture/page.h"
#include "tools/kolo/picture/text.h"
#include "tools/kolo/picture/words.h"

#include <string.h>

/* Opens an element that can be pointed at: a tooltip, or a name and the focus. */
static void open_item(const char *class, char kind, int number, const char *name, bool live, FILE *to)
{
    fprintf(to, "<g id=\"%c%d\" class=\"%s\"", kind, number, class);
    if (live) {
        fputs(" tabindex=\"-1\" role=\"img\" aria-label=\"", to);
        kl_text_escaped(name, to);
        fputs("\">", to);
    } else {
        fputs("><title>", to);
        kl_text_escaped(name, to);
        fputs("</title>", to);
    }
}

/* ---- boxes ---- */

static const char *const kinds[] = {"host", "nvs", "cpu", "pci", "gpu", "nic", "network", "more"};

static void draw_frames(const struct kl_scene *s, FILE *to)
{
    for (int i = 0; i < s->nboxes; i++) {
        const struct kl_box *b = &s->box[i];
        char name[KL_WORDS], below[KL_WORDS], class[32];

        if (b->frame.w <= 0) continue;
        snprintf(class, sizeof class, "frame %s", kinds[b->kind]);
        kl_svg_rect(&b->frame, b->kind == KL_BOX_HOST ? 12 : 8, class, to);
        if (b->kind == KL_BOX_HOST) {
            kl_words_box(s, b, name, below);
            fprintf(to, "<g id=\"b%d\">", i);
            kl_svg_text_fit(b->bar.x + 12, b->bar.y + 18, "title", name, 13, b->bar.w - 20, to);
            fputs("</g>", to);
        }
        putc('\n', to);
    }
}

static void draw_tile(const struct kl_box *b, const char *name, const char *below, FILE *to)
{
    float x = b->bar.x + b->bar.w / 2, y = b->bar.y + b->bar.h / 2, room = b->bar.w - 4;
    bool small = b->bar.h < KL_PAGE_TILE_H, two = !small && (*below || b->kind == KL_BOX_GPU);

    kl_svg_rect(&b->bar, small ? 4 : 6, "tile", to);
    kl_svg_text_fit(x, y + (two ? -3 : 4), small ? "name small" : "name", name, small ? 10 : 12.5f, room, to);
    if (*below && two) kl_svg_text_fit(x, y + 12, "below", below, 10.5f, room, to);
}

/* The number of a GPU in the order of the channel; empty for a script to fill. */
static void draw_number(const struct kl_scene *s, int box, const struct kl_picture_graph *g, const struct kl_way *way,
                        FILE *to)
{
    const struct kl_rect *r = &s->box[box].bar;
    struct kl_rect pill = {r->x + r->w / 2 - 18, r->y + r->h - 17, 36, 14};
    char text[KL_WORDS] = "";

    if (way && way->number[box] >= 0) kl_words_number(g->id, way->number[box], text);
    fprintf(to, "<g class=\"number%s\">", *text ? "" : " none");
    kl_svg_rect(&pill, 7, "pill", to);
    kl_svg_text(pill.x + 18, pill.y + 11, "count", text, 6, to);
    fputs("</g>", to);
}

static void draw_bar(const struct kl_scene *s, int box, bool live, FILE *to)
{
    const struct kl_box *b = &s->box[box];
    char facts[KL_WORDS], class[32];

    snprintf(class, sizeof class, "box bar %s", kinds[b->kind]);
    open_item(class, 'b', box, kl_words_box_facts(s, b, facts), live, to);
    kl_svg_rect(&b->bar, 5, "tile", to);
    fputs("</g>\n", to);
}

static void draw_tiles(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_way *way, bool live,
                       FILE *to)
{
    for (int i = 0; i < s->nboxes; i++) {
        const struct kl_box *b = &s->box[i];
        char name[KL_WORDS], below[KL_WORDS], facts[KL_WORDS], class[32];

        if (!kl_is_tile(b)) continue;
        snprintf(class, sizeof class, "box %s%s", kinds[b->kind], b->kind == KL_BOX_NIC && !s->network ? " idle" : "");
        open_item(class, 'b', i, kl_words_box_facts(s, b, facts), live, to);
        kl_words_box(s, b, name, below);
        draw_tile(b, name, below, to);
        if (b->kind == KL_BOX_GPU) draw_number(s, i, g, way, to);
        fputs("</g>\n", to);
    }
}

/* Without the vendor where there is too little. */
static struct kl_span room_for_name(const struct kl_scene *s, int box, char *name)
{
    struct kl_span free = kl_label_room(s, box, kl_text_width(name, 12, true));
    char *vendor = strrchr(name, ' ');

    if (free.to - free.from >= kl_text_width(name, 10, true) || !vendor || vendor == strchr(name, ' ')) return free;
    *vendor = 0;
    return kl_label_room(s, box, kl_text_width(name, 12, true));
}

/* CPUs have names; other bars are named by the captions of their rows. */
static void draw_bar_names(const struct kl_scene *s, FILE *to)
{
    for (int i = 0; i < s->nboxes; i++) {
        const struct kl_box *b = &s->box[i];
        char name[KL_WORDS], below[KL_WORDS];

        if (b->kind != KL_BOX_CPU) continue;
        kl_words_box(s, b, name, below);
        struct kl_span free = room_for_name(s, i, name);
        kl_svg_text_fit(free.from, b->bar.y + b->bar.h / 2 + 4 - kl_towards_gpus(b) * b->bar.h / 4, "label", name, 12,
                        free.to - free.from, to);
        putc('\n', to);
    }
}

/* ---- wires ---- */

static void put_path(const struct kl_wire *w, FILE *to)
{
    double rise = (double)w->apex * 4 / 3;

    if (w->apex != 0) {
        fprintf(to, "M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", (double)w->x[0], (double)w->y[0], (double)w->x[0],
                (double)w->y[0] - rise, (double)w->x[1], (double)w->y[1] - rise, (double)w->x[1], (double)w->y[1]);
        return;
    }
    for (int i = 0; i < w->npoints; i++) fprintf(to, "%c%.1f %.1f", i ? 'L' : 'M', (double)w->x[i], (double)w->y[i]);
}

static void wire_title(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_wire *w, bool live,
                       char text[4 * KL_WORDS])
{
    char name[KL_WORDS], bw[KL_WORDS], there[KL_WORDS] = "", back[KL_WORDS] = "";

    kl_words_wire(s, w, name);
    kl_words_wire_bw(s, w, bw);
    snprintf(text, 4 * KL_WORDS, "%s, %s", name, bw);
    if (live) return;
    if (w->link[0] >= 0) kl_words_load(s, g, w, 0, there);
    if (w->link[1] >= 0) kl_words_load(s, g, w, 1, back);
    snprintf(text, 4 * KL_WORDS, "%s\n%s\n%s\n%s", name, bw, there, back);
}

static void draw_wire(const struct kl_scene *s, const struct kl_picture_graph *g, int i, bool live, FILE *to)
{
    const struct kl_wire *w = &s->wire[i];
    char title[4 * KL_WORDS], class[32];

    snprintf(class, sizeof class, "wire s%d", kl_load_step(kl_wire_fullness(s, g, w)));
    wire_title(s, g, w, live, title);
    open_item(class, 'w', i, title, live, to);
    fputs("<path class=\"reach\" d=\"", to);
    put_path(w, to);
    fprintf(to, "\"/><path class=\"line\" stroke-width=\"%.1f\" d=\"", (double)kl_wire_width(kl_scene_link(s, w)->bw));
    put_path(w, to);
    fputs("\"/></g>\n", to);
}

static void draw_way(const struct kl_way *way, FILE *to)
{
    fputs("<g id=\"way\" aria-hidden=\"true\">", to);
    for (const char *at = way ? way->path : ""; *at;) {
        const char *end = strchr(at, '\n');

        fprintf(to, "<path class=\"under\" d=\"%.*s\"/><path class=\"leg\" d=\"%.*s\" marker-end=\"url(#tip)\"/>\n",
                (int)(end - at), at, (int)(end - at), at);
        at = end + 1;
    }
    fputs("</g>\n", to);
}

/* ---- all of it ---- */

void kl_draw_scene(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_way *way, bool live,
                   FILE *to)
{
    fputs(
        "<defs><marker id=\"tip\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"9\" markerHeight=\"9\" "
        "markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"tip\" d=\"M0 0L10 5L0 10z\"/></marker></defs>\n",
        to);
    draw_frames(s, to);
    for (int i = 0; i < s->nwires; i++) draw_wire(s, g, i, live, to);
    for (int i = 0; i < s->nboxes; i++)
        if (!kl_is_tile(&s->box[i]) && s->box[i].kind != KL_BOX_HOST) draw_bar(s, i, live, to);
    draw_way(way, to);
    draw_bar_names(s, to);
    draw_tiles(s, g, way, live, to);
}
