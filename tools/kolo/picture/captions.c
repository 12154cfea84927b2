/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/draw.h"

#include "tools/kolo/picture/page.h"
#include "tools/kolo/picture/text.h"
#include "tools/kolo/picture/words.h"

#include <stdlib.h>

enum { CAPTIONS = 32 };

struct caption {
    float y; /* of its middle */
    char first[64], second[64];
};

struct column {
    const struct kl_scene *s;
    struct caption caption[CAPTIONS];
    int n;
};

/* ---- captions of rows ---- */

/* For the hosts that are drawn upright, or upside down. */
static const struct kl_box *first_box(const struct kl_scene *s, int kind, bool flip)
{
    for (int i = 0; i < s->nboxes; i++)
        if (s->box[i].kind == kind && s->box[i].flip == flip) return &s->box[i];
    return NULL;
}

static void caption(struct column *c, float y, const char *first, const char *second)
{
    struct caption *to = &c->caption[c->n];

    if (c->n == CAPTIONS) return;
    to->y = y;
    snprintf(to->first, sizeof to->first, "%s", first);
    snprintf(to->second, sizeof to->second, "%s", second);
    c->n++;
}

/* The range of bandwidths of the drawn links between two kinds of boxes; false if there are none. */
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
        snprintf(text, KL_WORDS, "%.4g–%.4g GB/s%s", (double)least, (double)most, end);
    else
        snprintf(text, KL_WORDS, "%.4g GB/s%s", (double)most, end);
    return n > 0;
}

static float center(const struct kl_box *b)
{
    return b->bar.y + b->bar.h / 2;
}

/* Towards the GPUs' end of the host: up, or down if it is upside down. */
static float away(const struct kl_box *b, float by)
{
    return b->flip ? b->bar.y + b->bar.h + by : b->bar.y - by;
}

static void caption_gpus(struct column *c, bool flip)
{
    const struct kl_box *gpu = first_box(c->s, KL_BOX_GPU, flip);
    char text[KL_WORDS];

    if (!gpu) return;
    caption(c, center(gpu), "GPUs", "");
    if (range_of(c->s, KL_PATH_NVL, " each", KL_BOX_GPU, KL_BOX_NVS, text) ||
        range_of(c->s, KL_PATH_NVL, " each", KL_BOX_GPU, KL_BOX_GPU, text))
        caption(c, away(gpu, 34), "NVLink", text);
    if (range_of(c->s, KL_PATH_NVL, " each", KL_BOX_GPU, KL_BOX_CPU, text))
        caption(c, away(gpu, -KL_PAGE_TILE_H - 17), "NVLink to the CPU", text);
    if (range_of(c->s, KL_PATH_C2C, " each", KL_BOX_GPU, KL_BOX_CPU, text))
        caption(c, away(gpu, -KL_PAGE_TILE_H - 17), "C2C to the CPU", text);
    if (!first_box(c->s, KL_BOX_PCI, flip) && range_of(c->s, KL_PATH_PCI, " each", -1, -1, text))
        caption(c, away(gpu, -KL_PAGE_TILE_H - 17), "PCIe", text);
}

/* Switches of one level stand in one row. */
static void caption_switches(struct column *c, bool flip)
{
    char text[KL_WORDS];
    bool told = !range_of(c->s, KL_PATH_PCI, " each", -1, -1, text);
    const struct kl_box *last = NULL;

    for (int level = 1; level < c->s->levels; level++) {
        for (int i = 0; i < c->s->nboxes; i++) {
            const struct kl_box *b = &c->s->box[i];

            if (b->kind != KL_BOX_PCI || b->flip != flip || c->s->level[b->node] != level) continue;
            if (last && c->s->level[last->node] == level) break;
            last = b;
            caption(c, center(b), "PCIe switches", told ? "" : text);
            told = true;
        }
    }
}

static void caption_rest(struct column *c, bool flip)
{
    const struct kl_box *nic = first_box(c->s, KL_BOX_NIC, flip), *cpu = first_box(c->s, KL_BOX_CPU, flip);
    const struct kl_box *nvs = first_box(c->s, KL_BOX_NVS, flip), *network = first_box(c->s, KL_BOX_NETWORK, flip);
    float half = c->s->small_nics && nic ? kl_page_nics_height(c->s) / 2 : KL_PAGE_TILE_H / 2.0f;
    char text[KL_WORDS];

    if (nvs) caption(c, center(nvs), "NVSwitch", "");
    if (nic)
        caption(c, flip ? nic->bar.y + nic->bar.h - half : nic->bar.y + half, "NICs",
                c->s->network ? "" : "not used here");
    if (cpu) caption(c, center(cpu), "CPUs", range_of(c->s, KL_PATH_SYS, " between", -1, -1, text) ? text : "");
    if (network)
        caption(c, center(network), "network", range_of(c->s, KL_PATH_NET, " a port", -1, -1, text) ? text : "");
}

/* ---- from above to below, each below the one before ---- */

static int by_height(const void *a, const void *b)
{
    const struct caption *l = a, *r = b;

    return l->y < r->y ? -1 : l->y > r->y;
}

static float half_height(const struct caption *c)
{
    return *c->second ? 15 : 9;
}

static void put(const struct caption *c, float y, FILE *to)
{
    kl_svg_text_fit(16, y + (*c->second ? -3 : 4), "caption", c->first, 12, KL_PAGE_CAPTIONS - 4, to);
    if (*c->second) kl_svg_text_fit(16, y + 11, "caption low", c->second, 11, KL_PAGE_CAPTIONS - 4, to);
    putc('\n', to);
}

void kl_draw_captions(const struct kl_scene *s, FILE *to)
{
    struct column c = {.s = s};
    float used = 0;

    for (int flip = 0; flip < 2; flip++) {
        caption_gpus(&c, flip);
        caption_switches(&c, flip);
        caption_rest(&c, flip);
    }
    qsort(c.caption, (size_t)c.n, sizeof c.caption[0], by_height);
    for (int i = 0; i < c.n; i++) {
        float half = half_height(&c.caption[i]), y = c.caption[i].y;

        if (y - half < used) y = used + half;
        used = y + half;
        put(&c.caption[i], y, to);
    }
}
