/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/draw.h"

#include "tools/kolo/picture/text.h"
#include "tools/kolo/picture/words.h"

/* ---- captions: what the rows are ---- */

static const struct kl_box *first_box(const struct kl_scene *s, int kind)
{
    for (int i = 0; i < s->nboxes; i++)
        if (s->box[i].kind == kind && s->box[i].host <= 0) return &s->box[i];
    return NULL;
}

/* Captions are written from above to below, each below the one before. */
struct column {
    const struct kl_scene *s;
    FILE *to;
    float used; /* y of the end of the last */
};

static void caption(struct column *c, float y, const char *first, const char *second)
{
    float half = *second ? 15 : 9;

    if (y - half < c->used) y = c->used + half;
    c->used = y + half;
    kl_svg_text(16, y + (*second ? -3 : 4), "caption", first, 24, c->to);
    if (*second) kl_svg_text(16, y + 11, "caption low", second, 24, c->to);
    putc('\n', c->to);
}

/* What the drawn links between two kinds of boxes have in common; false if there are none. */
static bool range_of(const struct kl_scene *s, int type, const char *end, int one, int other, char text[KL_WORDS])
{
    float least = 0, most = 0;
    int n = 0;

    for (int i = 0; i < s->nwires; i++) {
        const struct kl_wire *w = &s->wire[i];
        const struct kl_link *l = kl_scene_link(s, w);
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

static void caption_nvlinks(struct column *c, float y)
{
    char text[KL_WORDS];

    if (range_of(c->s, KL_PATH_NVL, " each", KL_BOX_GPU, KL_BOX_NVS, text) ||
        range_of(c->s, KL_PATH_NVL, " each", KL_BOX_GPU, KL_BOX_GPU, text))
        caption(c, y, "NVLink", text);
}

/* Below the GPUs, where all these links are seen. */
static void caption_links(struct column *c, float y)
{
    char text[KL_WORDS];

    if (range_of(c->s, KL_PATH_PCI, " each", -1, -1, text)) caption(c, y, "PCIe", text);
    if (range_of(c->s, KL_PATH_NVL, " each", KL_BOX_GPU, KL_BOX_CPU, text)) caption(c, y, "NVLink to the CPU", text);
    if (range_of(c->s, KL_PATH_C2C, " each", KL_BOX_GPU, KL_BOX_CPU, text)) caption(c, y, "C2C to the CPU", text);
}

static void caption_cpus(struct column *c, const struct kl_box *cpu)
{
    char text[KL_WORDS];

    if (cpu) caption(c, center(cpu), "CPUs", range_of(c->s, KL_PATH_SYS, " between", -1, -1, text) ? text : "");
}

static void caption_network(struct column *c)
{
    const struct kl_box *network = first_box(c->s, KL_BOX_NETWORK), *host = first_box(c->s, KL_BOX_HOST);
    char text[KL_WORDS];

    if (network && range_of(c->s, KL_PATH_NET, " each", -1, -1, text))
        caption(c, (host->frame.y + host->frame.h + network->bar.y) / 2, "network ports", text);
}

void kl_draw_captions(const struct kl_scene *s, FILE *to)
{
    const struct kl_box *gpu = first_box(s, KL_BOX_GPU), *cpu = first_box(s, KL_BOX_CPU);
    const struct kl_box *nic = first_box(s, KL_BOX_NIC);
    struct column c = {.s = s, .to = to};
    bool cpus_first = cpu && nic && cpu->bar.y < nic->bar.y;

    if (gpu) {
        caption_nvlinks(&c, gpu->bar.y - 40);
        caption(&c, center(gpu), "GPUs", "");
        caption_links(&c, gpu->bar.y + gpu->bar.h + 17);
    }
    if (cpus_first) caption_cpus(&c, cpu);
    if (nic) caption(&c, center(nic), "NICs", s->network ? "" : "not used here");
    if (!cpus_first) caption_cpus(&c, cpu);
    caption_network(&c);
}

/* ---- legend ---- */

static void draw_scale(float x, float y, FILE *to)
{
    static const char *const steps[KL_LOAD_STEPS] = {"unused", "to 25 %", "to 50 %", "to 75 %", "to 100 %"};

    kl_svg_text(x, y + 9, "caption strong", "Load of a link", 40, to);
    kl_svg_text(x, y + 24, "caption low", "reserved / capacity", 40, to);
    for (int i = 0; i < KL_LOAD_STEPS; i++) {
        struct kl_rect r = {x + 120 + 70 * (float)i, y, 66, 10};
        char class[8];

        snprintf(class, sizeof class, "key s%d", i);
        kl_svg_rect(&r, 3, class, to);
        kl_svg_text(r.x, y + 24, "caption low", steps[i], 40, to);
    }
}

static void draw_widths(float x, float y, FILE *to)
{
    static const float bw[] = {12, 50, 240, 450};

    kl_svg_text(x, y + 9, "caption strong", "Width: bandwidth", 40, to);
    kl_svg_text(x, y + 24, "caption low", "GB/s each way", 40, to);
    for (size_t i = 0; i < sizeof bw / sizeof bw[0]; i++) {
        float at = x + 128 + 46 * (float)i, w = kl_wire_width(bw[i]);
        struct kl_rect r = {at, y + 5 - w / 2, 38, w};
        char text[32];

        kl_svg_rect(&r, 0, "key width", to);
        snprintf(text, sizeof text, "%g", (double)bw[i]);
        kl_svg_text(at, y + 24, "caption low", text, 8, to);
    }
}

void kl_draw_legend(float x, float y, const char *way, const char *arrows, FILE *to)
{
    draw_scale(x, y, to);
    draw_widths(x + 490, y, to);
    fprintf(to, "<path class=\"leg\" d=\"M%.1f %.1fh34\" marker-end=\"url(#tip)\"/>", (double)(x + 840), (double)y + 5);
    kl_svg_text(x + 884, y + 9, "caption strong way", way, 60, to);
    kl_svg_text(x + 884, y + 24, "caption low arrows", arrows, 100, to);
    putc('\n', to);
}
