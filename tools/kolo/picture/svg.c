/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/picture.h"

#include "tools/kolo/picture/choice.h"
#include "tools/kolo/picture/draw.h"
#include "tools/kolo/picture/files.h"
#include "tools/kolo/picture/text.h"
#include "tools/kolo/picture/words.h"

enum { HEADING = 78, LEGEND = 46, LEAST_WIDTH = 1330 };

static void put_text(float y, const char *class, const char *text, FILE *to)
{
    fprintf(to, "<text x=\"18\" y=\"%g\" class=\"%s\">", (double)y, class);
    kl_text_escaped(text, to);
    fputs("</text>\n", to);
}

static void put_document(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_way *way, FILE *to)
{
    float w = s->width < LEAST_WIDTH ? LEAST_WIDTH : s->width, h = s->height + HEADING + LEGEND;
    char title[KL_WORDS], text[KL_WORDS];

    kl_words_title(s, title);
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"drawing\" width=\"%g\" height=\"%g\" "
            "viewBox=\"0 0 %g %g\" role=\"img\">\n<title>",
            (double)w, (double)h, (double)w, (double)h);
    kl_text_escaped(title, to);
    fprintf(to, "</title>\n<style>\n%s</style>\n", kl_picture_drawing_css);
    fprintf(to, "<rect width=\"%g\" height=\"%g\" fill=\"var(--page)\"/>\n", (double)w, (double)h);
    put_text(34, "heading", title, to);
    put_text(56, "sub", kl_words_graph(s, g, text), to);
    put_text(74, "sub", s->view->cluster->name, to);
    fprintf(to, "<g transform=\"translate(0 %d)\">\n", HEADING);
    kl_draw_scene(s, g, way, false, to);
    fputs("</g>\n", to);
    kl_draw_legend(18, s->height + HEADING + 4, kl_words_way(g, way, text), kl_words_arrows(g->id), to);
    fputs("</svg>\n", to);
}

ncclResult_t kl_picture_svg(const struct kl_plan_view *view, int channel, FILE *to)
{
    const struct kl_picture_graph *g;
    const struct kl_way *way;
    struct kl_scene *s;
    ncclResult_t rc;

    KL_TRY(kl_scene_create(view, &s));
    rc = kl_picture_choose(s, channel, &g, &way);
    if (!rc) put_document(s, g, way, to);
    kl_scene_free(s);
    return rc;
}
