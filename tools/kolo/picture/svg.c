/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/picture.h"

#include "tools/kolo/picture/choice.h"
#include "tools/kolo/picture/draw.h"
#include "tools/kolo/picture/files.h"
#include "tools/kolo/picture/text.h"
#include "tools/kolo/picture/times.h"
#include "tools/kolo/picture/descriptions.h"

enum { HEADING = 78, LEGEND = KL_LEGEND_H + 6, LEAST_WIDTH = KL_TIMES_W + 36, TIMES_HEADING = 62, BETWEEN = 26 };

static void put_text(float y, const char *class, const char *text, FILE *to)
{
    fprintf(to, "<text x=\"18\" y=\"%g\" class=\"%s\">", (double)y, class);
    kl_text_escaped(text, to);
    fputs("</text>\n", to);
}

/* Its parts stand side by side where they have room. */
static void legend_part(float *x, float *y, float part, float width)
{
    if (*x > 18 && *x + part > width) {
        *x = 18;
        *y += LEGEND;
    }
}

static int legend_rows(const struct kl_scene *s, float width)
{
    const float part[] = {KL_LEGEND_LOADS_W, kl_legend_widths_width(s), KL_LEGEND_CHANNEL_PATH_W};
    float x = 18, y = 0;

    for (int i = 0; i < 3; i++) {
        legend_part(&x, &y, part[i], width);
        x += part[i] + BETWEEN;
    }
    return (int)(y / LEGEND) + 1;
}

static void put_legend(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_channel_path *way,
                       float width, FILE *to)
{
    float x = 18, y = s->height + HEADING + 4;
    char text[KL_DESCRIPTION_TEXT];

    kl_draw_legend_loads(x, y, to);
    x += KL_LEGEND_LOADS_W + BETWEEN;
    legend_part(&x, &y, kl_legend_widths_width(s), width);
    kl_draw_legend_widths(s, x, y, to);
    x += kl_legend_widths_width(s) + BETWEEN;
    legend_part(&x, &y, KL_LEGEND_CHANNEL_PATH_W, width);
    kl_draw_legend_channel_path(x, y, kl_describe_channel_path(g, way, text), kl_describe_arrows(g->id), to);
}

static float times_height(const struct kl_scene *s, const struct kl_picture_graph *g)
{
    return g->times ? TIMES_HEADING + kl_times_height(s, g->times) : 0;
}

static void put_times(const struct kl_scene *s, const struct kl_picture_graph *g, float y, FILE *to)
{
    char text[KL_DESCRIPTION_TEXT];

    if (!g->times) return;
    put_text(y + 30, "second", kl_describe_times(g->times, text), to);
    put_text(y + 48, "sub", kl_describe_times_accuracy(g->times, text), to);
    kl_draw_times(s, g->times, 18, y + TIMES_HEADING, to);
}

static void put_document(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_channel_path *way,
                         FILE *to)
{
    float w = s->width < LEAST_WIDTH ? LEAST_WIDTH : s->width;
    float h = s->height + HEADING + 8 + (float)(legend_rows(s, w) * LEGEND) + times_height(s, g);
    char title[KL_DESCRIPTION_TEXT], text[KL_DESCRIPTION_TEXT];

    kl_describe_title(s, title);
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"drawing\" width=\"%g\" height=\"%g\" "
            "viewBox=\"0 0 %g %g\" role=\"img\">\n<title>",
            (double)w, (double)h, (double)w, (double)h);
    kl_text_escaped(title, to);
    fprintf(to, "</title>\n<style>\n%s</style>\n", kl_picture_drawing_css);
    fprintf(to, "<rect width=\"%g\" height=\"%g\" fill=\"var(--page)\"/>\n", (double)w, (double)h);
    put_text(34, "heading", title, to);
    put_text(56, "sub", kl_describe_graph(s, g, text), to);
    put_text(74, "sub", s->view->cluster->name, to);
    fprintf(to, "<g transform=\"translate(0 %d)\">\n", HEADING);
    kl_draw_captions(s, to);
    kl_draw_scene(s, g, way, false, to);
    fputs("</g>\n", to);
    put_legend(s, g, way, w, to);
    put_times(s, g, h - times_height(s, g), to);
    fputs("</svg>\n", to);
}

ncclResult_t kl_picture_svg(const struct kl_plan_view *view, int channel, FILE *to)
{
    const struct kl_picture_graph *g;
    const struct kl_channel_path *way;
    struct kl_scene *s;
    ncclResult_t rc;

    KL_TRY(kl_scene_create(view, NULL, &s));
    rc = kl_picture_choose(s, channel, &g, &way);
    if (!rc) put_document(s, g, way, to);
    kl_scene_free(s);
    return rc;
}
