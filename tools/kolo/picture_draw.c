/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture_draw.h"

#include "tools/kolo/picture_words.h"

#include <math.h>
#include <string.h>

/* ---- text ---- */

/* Bytes of the UTF-8 character at `text`; 0 if it is none. Surrogates and overlong forms don't count. */
static int character(const unsigned char *text)
{
    int n = *text < 0x80 ? 1 : *text < 0xc2 ? 0 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : *text < 0xf5 ? 4 : 0;

    for (int i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if (n == 3 && ((*text == 0xe0 && text[1] < 0xa0) || (*text == 0xed && text[1] > 0x9f))) return 0;
    if (n == 3 && *text == 0xef && text[1] == 0xbf && text[2] > 0xbd) return 0; /* no characters of XML */
    if (n == 4 && ((*text == 0xf0 && text[1] < 0x90) || (*text == 0xf4 && text[1] > 0x8f))) return 0;
    return n == 1 && *text < 0x20 && *text != '\n' ? 0 : n;
}

char *kl_clean_text(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at;) {
        int n = character(at);

        if (!n) *at = '?';
        at += n ? n : 1;
    }
    return text;
}

static void put_escaped(char c, FILE *to)
{
    switch (c) {
    case '<':
        fputs("&lt;", to);
        break;
    case '>':
        fputs("&gt;", to);
        break;
    case '&':
        fputs("&amp;", to);
        break;
    case '"':
        fputs("&quot;", to);
        break;
    case '\'':
        fputs("&#39;", to);
        break;
    default:
        putc(c, to);
    }
}

void kl_draw_escaped(const char *text, FILE *to)
{
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int n = character(at);

        if (!n) {
            putc('?', to);
            at++;
        }
        for (; n > 0; n--) put_escaped((char)*at++, to);
    }
}

/* At most `max` characters, the last one an ellipsis if some are missing. */
static void put_cut(const char *text, int max, FILE *to)
{
    char piece[KL_WORDS];
    int n = 0, at = 0, cut = 0;

    for (; text[at] && at < KL_WORDS - 8; n++) {
        int size = character((const unsigned char *)text + at);

        if (n == max - 1) cut = at;
        if (n == max) break;
        memcpy(piece + at, text + at, (size_t)(size ? size : 1));
        at += size ? size : 1;
    }
    piece[n == max && text[at] ? cut : at] = 0;
    kl_draw_escaped(piece, to);
    if (n == max && text[at]) fputs("…", to);
}

static void text_at(float x, float y, const char *class, const char *text, int max, FILE *to)
{
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", (double)x, (double)y, class);
    put_cut(text, max, to);
    fputs("</text>", to);
}

static void rect_at(const struct kl_rect *r, float radius, const char *class, FILE *to)
{
    fprintf(to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%g\" class=\"%s\"/>", (double)r->x,
            (double)r->y, (double)r->w, (double)r->h, (double)radius, class);
}

/* Opens an element that can be pointed at: a tooltip, or a name and the focus. */
static void open_item(const char *class, char kind, int number, const char *name, bool live, FILE *to)
{
    fprintf(to, "<g id=\"%c%d\" class=\"%s\"", kind, number, class);
    if (live) {
        fputs(" tabindex=\"-1\" role=\"img\" aria-label=\"", to);
        kl_draw_escaped(name, to);
        fputs("\">", to);
    } else {
        fputs("><title>", to);
        kl_draw_escaped(name, to);
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
        rect_at(&b->frame, b->kind == KL_BOX_HOST ? 12 : 8, class, to);
        if (b->kind == KL_BOX_HOST) {
            kl_words_box(s, b, name, below);
            text_at(b->bar.x + 12, b->bar.y + 18, "title", name, 40, to);
        }
        putc('\n', to);
    }
}

/* "Host" has a frame only; the others a bar or tile. */
static bool is_tile(const struct kl_box *b)
{
    return b->kind == KL_BOX_GPU || b->kind == KL_BOX_NIC || b->kind == KL_BOX_MORE;
}

static void draw_tile(const struct kl_box *b, const char *name, const char *below, FILE *to)
{
    float x = b->bar.x + b->bar.w / 2, y = b->bar.y + b->bar.h / 2;

    rect_at(&b->bar, 6, "tile", to);
    text_at(x, y - (*below || b->kind == KL_BOX_GPU ? 3 : -4), "name", name, 10, to);
    if (*below) text_at(x, y + 12, "below", below, 10, to);
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
    rect_at(&pill, 7, "pill", to);
    text_at(pill.x + 18, pill.y + 11, "count", text, 6, to);
    fputs("</g>", to);
}

static void draw_bar(const struct kl_scene *s, int box, bool live, FILE *to)
{
    const struct kl_box *b = &s->box[box];
    char facts[KL_WORDS], class[32];

    snprintf(class, sizeof class, "box bar %s", kinds[b->kind]);
    open_item(class, 'b', box, kl_words_box_facts(s, b, facts), live, to);
    rect_at(&b->bar, 5, "tile", to);
    fputs("</g>\n", to);
}

static void draw_tiles(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_way *way, bool live,
                       FILE *to)
{
    for (int i = 0; i < s->nboxes; i++) {
        const struct kl_box *b = &s->box[i];
        char name[KL_WORDS], below[KL_WORDS], facts[KL_WORDS], class[32];

        if (!is_tile(b)) continue;
        snprintf(class, sizeof class, "box %s%s", kinds[b->kind], b->kind == KL_BOX_NIC && !s->network ? " idle" : "");
        open_item(class, 'b', i, kl_words_box_facts(s, b, facts), live, to);
        kl_words_box(s, b, name, below);
        draw_tile(b, name, below, to);
        if (b->kind == KL_BOX_GPU) draw_number(s, i, g, way, to);
        fputs("</g>\n", to);
    }
}

/* Names of bars lie above the ways that cross them. */
static void draw_bar_names(const struct kl_scene *s, FILE *to)
{
    for (int i = 0; i < s->nboxes; i++) {
        const struct kl_box *b = &s->box[i];
        char name[KL_WORDS], below[KL_WORDS];

        if (is_tile(b) || b->kind == KL_BOX_HOST) continue;
        kl_words_box(s, b, name, below);
        float aside = b->kind == KL_BOX_NETWORK || b->host < 0 ? 0 : kl_towards_gpus(b) * b->bar.h / 4;
        text_at(b->bar.x + (aside == 0 ? 8 : 15), b->bar.y + b->bar.h / 2 + 4 - aside, "label", name, 40, to);
        putc('\n', to);
    }
}

/* ---- wires ---- */

float kl_draw_width(float bw)
{
    float w = 1.2f + 0.6f * sqrtf(bw);

    return kl_is_local(bw) ? 2 : w > 13 ? 13 : w;
}

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
    float bw = s->topo->link[w->link[0] >= 0 ? w->link[0] : w->link[1]].bw;
    char title[4 * KL_WORDS], class[32];

    snprintf(class, sizeof class, "wire s%d", kl_load_step(kl_wire_fullness(s, g, w)));
    wire_title(s, g, w, live, title);
    open_item(class, 'w', i, title, live, to);
    fputs("<path class=\"reach\" d=\"", to);
    put_path(w, to);
    fprintf(to, "\"/><path class=\"line\" stroke-width=\"%.1f\" d=\"", (double)kl_draw_width(bw));
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

/* ---- captions: what the rows are ---- */

static const struct kl_box *first_box(const struct kl_scene *s, int kind)
{
    for (int i = 0; i < s->nboxes; i++)
        if (s->box[i].kind == kind && s->box[i].host <= 0) return &s->box[i];
    return NULL;
}

static void caption(float y, const char *first, const char *second, FILE *to)
{
    text_at(16, y + (*second ? -3 : 4), "caption", first, 24, to);
    if (*second) text_at(16, y + 11, "caption low", second, 24, to);
    putc('\n', to);
}

/* What the drawn links between two kinds of boxes have in common; false if there are none. */
static bool range_of(const struct kl_scene *s, int type, const char *end, int one, int other, char text[KL_WORDS])
{
    float least = 0, most = 0;
    int n = 0;

    for (int i = 0; i < s->nwires; i++) {
        const struct kl_wire *w = &s->wire[i];
        const struct kl_link *l = &s->topo->link[w->link[0] >= 0 ? w->link[0] : w->link[1]];
        int a = s->box[w->a].kind, b = s->box[w->b].kind;

        if (l->type != type || kl_is_local(l->bw)) continue;
        if (other >= 0 && !(a == one && b == other) && !(a == other && b == one)) continue;
        if (!n || l->bw < least) least = l->bw;
        if (!n++ || l->bw > most) most = l->bw;
    }
    if (least < most)
        snprintf(text, KL_WORDS, "%g–%g GB/s%s", (double)least, (double)most, end);
    else
        snprintf(text, KL_WORDS, "%g GB/s%s", (double)most, end);
    return n > 0;
}

static float center(const struct kl_box *b)
{
    return b->bar.y + b->bar.h / 2;
}

static void caption_gpus(const struct kl_scene *s, FILE *to)
{
    const struct kl_box *gpu = first_box(s, KL_BOX_GPU);
    char text[KL_WORDS];

    if (!gpu) return;
    caption(center(gpu), "GPUs", "", to);
    if (range_of(s, KL_PATH_NVL, " each", KL_BOX_GPU, KL_BOX_NVS, text) ||
        range_of(s, KL_PATH_NVL, " each", KL_BOX_GPU, KL_BOX_GPU, text))
        caption(gpu->bar.y - 40, "NVLink", text, to);
    float y = gpu->bar.y + gpu->bar.h + 17;
    if (range_of(s, KL_PATH_PCI, " each", -1, -1, text)) {
        caption(y, "PCIe", text, to);
        y += 30;
    }
    if (range_of(s, KL_PATH_NVL, " each", KL_BOX_GPU, KL_BOX_CPU, text)) caption(y, "NVLink to the CPU", text, to);
    if (range_of(s, KL_PATH_C2C, " each", KL_BOX_GPU, KL_BOX_CPU, text)) caption(y, "C2C to the CPU", text, to);
}

static void caption_rest(const struct kl_scene *s, FILE *to)
{
    const struct kl_box *cpu = first_box(s, KL_BOX_CPU), *nic = first_box(s, KL_BOX_NIC);
    const struct kl_box *network = first_box(s, KL_BOX_NETWORK), *host = first_box(s, KL_BOX_HOST);
    char text[KL_WORDS];

    if (nic) caption(center(nic), "NICs", s->network ? "" : "not used here", to);
    if (cpu) caption(center(cpu), "CPUs", range_of(s, KL_PATH_SYS, " between", -1, -1, text) ? text : "", to);
    if (network && range_of(s, KL_PATH_NET, " each", -1, -1, text))
        caption((host->frame.y + host->frame.h + network->bar.y) / 2, "network ports", text, to);
}

/* ---- all ---- */

void kl_draw_scene(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_way *way, bool live,
                   FILE *to)
{
    fputs(
        "<defs><marker id=\"tip\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"9\" markerHeight=\"9\" "
        "markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"tip\" d=\"M0 0L10 5L0 10z\"/></marker></defs>\n",
        to);
    draw_frames(s, to);
    caption_gpus(s, to);
    caption_rest(s, to);
    for (int i = 0; i < s->nwires; i++) draw_wire(s, g, i, live, to);
    for (int i = 0; i < s->nboxes; i++)
        if (!is_tile(&s->box[i]) && s->box[i].kind != KL_BOX_HOST) draw_bar(s, i, live, to);
    draw_way(way, to);
    draw_bar_names(s, to);
    draw_tiles(s, g, way, live, to);
}

/* ---- legend ---- */

static void draw_scale(float x, float y, FILE *to)
{
    static const char *const steps[KL_LOAD_STEPS] = {"unused", "to 25 %", "to 50 %", "to 75 %", "to 100 %"};

    text_at(x, y + 9, "caption strong", "Load of a link", 40, to);
    text_at(x, y + 24, "caption low", "reserved / capacity", 40, to);
    for (int i = 0; i < KL_LOAD_STEPS; i++) {
        struct kl_rect r = {x + 120 + 70 * (float)i, y, 66, 10};
        char class[8];

        snprintf(class, sizeof class, "key s%d", i);
        rect_at(&r, 3, class, to);
        text_at(r.x, y + 24, "caption low", steps[i], 40, to);
    }
}

static void draw_widths(float x, float y, FILE *to)
{
    static const float bw[] = {12, 50, 240, 450};

    text_at(x, y + 9, "caption strong", "Width: bandwidth", 40, to);
    text_at(x, y + 24, "caption low", "GB/s each way", 40, to);
    for (size_t i = 0; i < sizeof bw / sizeof bw[0]; i++) {
        float at = x + 128 + 46 * (float)i, w = kl_draw_width(bw[i]);
        struct kl_rect r = {at, y + 5 - w / 2, 38, w};
        char text[32];

        rect_at(&r, 0, "key width", to);
        snprintf(text, sizeof text, "%g", (double)bw[i]);
        text_at(at, y + 24, "caption low", text, 8, to);
    }
}

void kl_draw_legend(float x, float y, const char *way, const char *arrows, FILE *to)
{
    draw_scale(x, y, to);
    draw_widths(x + 490, y, to);
    fprintf(to, "<path class=\"leg\" d=\"M%.1f %.1fh34\" marker-end=\"url(#tip)\"/>", (double)(x + 840), (double)y + 5);
    text_at(x + 884, y + 9, "caption strong way", way, 60, to);
    text_at(x + 884, y + 24, "caption low arrows", arrows, 100, to);
    putc('\n', to);
}
