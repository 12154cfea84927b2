/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/picture.h"

#include "tools/kolo/picture/choice.h"
#include "tools/kolo/picture/draw.h"
#include "tools/kolo/picture/files.h"
#include "tools/kolo/picture/html_parts.h"
#include "tools/kolo/picture/page.h"
#include "tools/kolo/picture/text.h"
#include "tools/kolo/picture/times.h"
#include "tools/kolo/picture/views.h"
#include "tools/kolo/picture/descriptions.h"

#include <stdlib.h>
#include <string.h>

/* JSON may stand in a script element, if nothing in it can end that element. */
static int put_json_part(const char *text, size_t bytes, void *to)
{
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '<' || text[i] == '>' || text[i] == '&')
            fprintf(to, "\\u%04x", (unsigned)text[i]);
        else
            putc(text[i], to);
    }
    return 0;
}

/* ---- the page ---- */

static void put_choice_of_graph(const struct kl_scene *s, FILE *to)
{
    fputs("<fieldset id=\"graphs\"><legend>graph</legend>\n", to);
    for (int i = 0; i < s->ngraphs; i++)
        fprintf(to, "<label><input type=\"radio\" name=\"graph\" value=\"%d\"%s> <span>%s</span></label>\n", i,
                i ? "" : " checked", kl_graph_name(s->graph[i].id));
    fputs("</fieldset>\n", to);
}

static void put_choice_of_hosts(const struct kl_views *v, FILE *to)
{
    static const char *const names[] = {"first", "last"};

    fputs("<label>hosts <select id=\"hosts\">\n", to);
    for (int i = 0; i < 2; i++)
        fprintf(to, "<option value=\"%s\">%s: %d–%d</option>\n", names[i], names[i], v->cast[i].host[0],
                v->cast[i].host[v->cast[i].n - 1]);
    fputs("<option value=\"channel\" title=\"the ends of a ring; the root of a tree and its subtree\">of the "
          "channel</option>\n</select></label>\n",
          to);
}

static void put_controls(const struct kl_scene *s, const struct kl_views *v, const struct kl_picture_graph *g, FILE *to)
{
    char name[KL_DESCRIPTION_TEXT];

    fputs("<div class=\"controls\">\n", to);
    put_choice_of_graph(s, to);
    fputs("<div class=\"channel\" role=\"group\" aria-label=\"channel\">\n"
          "<button type=\"button\" id=\"previous\" aria-label=\"previous channel\" title=\"previous channel "
          "(Page Up)\">&#8249;</button>\n<label>channel <select id=\"channel\">\n",
          to);
    for (int i = 0; i < g->nchannel_paths; i++)
        fprintf(to, "<option value=\"%d\">%s</option>\n", i, kl_describe_channels(g->way[i].channels, name));
    fputs("<option value=\"-1\">none</option></select></label>\n"
          "<button type=\"button\" id=\"next\" aria-label=\"next channel\" title=\"next channel "
          "(Page Down)\">&#8250;</button>\n</div>\n",
          to);
    if (v->n > 1) put_choice_of_hosts(v, to);
    fputs(KL_HTML_THEME_BUTTON "\n</div>\n", to);
}

/* The captions of rows stay in place when the rest is scrolled. */
enum { ROWS_W = KL_PAGE_MARGIN + KL_PAGE_CAPTIONS - 2 };

/* For page.css: the part of a drawing that is as wide as the page, and its width as it was laid out. */
static const char *part_of_width(const struct kl_scene *s, float part, char text[128])
{
    snprintf(text, 128, "--part: %.3f%%; --full: %.1fpx", 100 * (double)part / (double)s->width, (double)part);
    return text;
}

static void put_rows(const struct kl_scene *s, FILE *to)
{
    char style[128];

    fprintf(to, "<svg id=\"rows\" class=\"drawing\" viewBox=\"0 0 %d %g\" style=\"%s\" aria-hidden=\"true\">\n", ROWS_W,
            (double)s->height, part_of_width(s, ROWS_W, style));
    kl_draw_captions(s, to);
    fputs("</svg>\n", to);
}

static void begin_legend(float width, const char *about, FILE *to)
{
    fprintf(to, "<svg class=\"drawing legend\" width=\"%g\" viewBox=\"0 0 %g 40\" role=\"img\" aria-label=\"%s\">\n",
            (double)width, (double)width, about);
}

static void put_legend(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_channel_path *way,
                       FILE *to)
{
    float widths = kl_legend_widths_width(s);
    char text[KL_DESCRIPTION_TEXT];

    fputs("<div class=\"legends\">\n", to);
    begin_legend(KL_LEGEND_LOADS_W, "Colour of a link: from unused to 100 percent reserved", to);
    kl_draw_legend_loads(4, 8, to);
    fputs("</svg>\n", to);
    begin_legend(widths, "Width of a link: its bandwidth", to);
    kl_draw_legend_widths(s, 4, 8, to);
    fputs("</svg>\n", to);
    begin_legend(KL_LEGEND_CHANNEL_PATH_W, "Arrows: the channel that is shown", to);
    kl_draw_legend_channel_path(4, 8, kl_describe_channel_path(g, way, text), kl_describe_arrows(g->id), to);
    fputs("</svg>\n</div>\n", to);
}

static void put_drawing(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_channel_path *way,
                        const char *title, FILE *to)
{
    char style[128];

    fputs("<p id=\"hint\">Point at a box or a link to read about it. Keys: Tab enters the picture, arrows move in it, "
          "Page Up and Page Down change the channel, Escape hides the note. <span id=\"sideways\" hidden>The "
          "drawing is wider than the page: scroll it sideways.</span></p>\n"
          "<div class=\"scroll\">\n",
          to);
    put_rows(s, to);
    fprintf(to,
            "<svg id=\"drawing\" class=\"drawing\" viewBox=\"%d 0 %g %g\" style=\"%s\" role=\"group\" "
            "aria-describedby=\"hint\" aria-label=\"",
            ROWS_W, (double)s->width - ROWS_W, (double)s->height, part_of_width(s, s->width - ROWS_W, style));
    kl_text_escaped(title, to);
    fputs("\">\n", to);
    kl_draw_scene(s, g, way, true, to);
    fputs("</svg>\n</div>\n", to);
    put_legend(s, g, way, to);
}

static void put_times(const struct kl_scene *s, int graph, bool hidden, FILE *to)
{
    const struct kl_timeline *t = s->graph[graph].times;
    char text[KL_DESCRIPTION_TEXT];

    if (!t) return;
    fprintf(to, "<section class=\"times\" data-graph=\"%d\"%s>\n", graph, hidden ? " hidden" : "");
    kl_html_text("<h2>", kl_describe_times(t, text), "</h2>\n", to);
    kl_html_text("<p>", kl_describe_times_accuracy(t, text), "</p>\n", to);
    fprintf(to, "<svg class=\"drawing\" viewBox=\"0 -4 %d %g\" role=\"img\" aria-label=\"", KL_TIMES_W,
            (double)kl_times_height(s, t));
    kl_text_escaped(kl_describe_times(t, text), to);
    fputs("\">\n", to);
    kl_draw_times(s, t, 4, 0, to);
    fputs("</svg>\n</section>\n", to);
}

static void put_page(const struct kl_scene *s, const struct kl_views *v, const struct kl_picture_graph *g,
                     const struct kl_channel_path *way, const json_t *facts, FILE *to)
{
    char title[KL_DESCRIPTION_TEXT], text[KL_DESCRIPTION_TEXT];

    kl_html_head(kl_describe_title(s, title), "kolo graph", "", to);
    kl_html_text("<body>\n<main>\n<h1>", title, "</h1>\n", to);
    kl_html_text("<p class=\"file\">", s->view->cluster->name, "</p>\n", to);
    put_controls(s, v, g, to);
    kl_html_text("<p id=\"sentence\" aria-live=\"polite\">", kl_describe_graph(s, g, text), "</p>\n", to);
    put_drawing(s, g, way, title, to);
    for (int i = 0; i < s->ngraphs; i++) put_times(s, i, i != g - s->graph, to);
    fputs("<div id=\"note\" role=\"status\" hidden></div>\n<script type=\"application/json\" id=\"facts\">", to);
    json_dump_callback(facts, put_json_part, to, JSON_COMPACT | JSON_REAL_PRECISION(9));
    fputs("</script>\n", to);
    kl_html_end(kl_picture_page_js, to);
}

ncclResult_t kl_picture_html(const struct kl_plan_view *view, int channel, FILE *to)
{
    const struct kl_picture_graph *g = NULL;
    const struct kl_channel_path *way = NULL;
    struct kl_scene *s;
    struct kl_views views = {.n = 0};
    json_t *facts = NULL;
    ncclResult_t rc;

    KL_TRY(kl_scene_create(view, NULL, &s));
    KL_TRY_OR(rc, out, kl_picture_choose(s, channel, &g, &way));
    KL_TRY_OR(rc, out, kl_views_open(s, &views));
    facts = kl_views_json(&views, (int)(way - g->way));
    KL_TRY_OR(rc, out, facts ? ncclSuccess : KL_NOMEM("a picture"));
    put_page(s, &views, g, way, facts, to);
out:
    json_decref(facts);
    kl_views_close(&views);
    kl_scene_free(s);
    return rc;
}
