/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/picture.h"

#include "tools/kolo/graph_json.h"
#include "tools/kolo/picture/choice.h"
#include "tools/kolo/picture/draw.h"
#include "tools/kolo/picture/files.h"
#include "tools/kolo/picture/text.h"
#include "tools/kolo/picture/words.h"

#include <stdlib.h>
#include <string.h>

/* ---- what the script needs to know, as JSON ---- */

static json_t *json_text(char *text)
{
    return json_string(kl_text_clean(text));
}

static json_t *box_json(const struct kl_scene *s, const struct kl_box *b)
{
    char facts[KL_WORDS];

    return json_text(kl_words_box_facts(s, b, facts));
}

/* Both directions: which link of the machine, from where to where, and how much it carries (0: no limit). */
static json_t *wire_json(const struct kl_scene *s, const struct kl_wire *w)
{
    char name[KL_WORDS], bw[KL_WORDS], a[KL_WORDS], b[KL_WORDS], below[KL_WORDS];
    json_t *ways = json_array();

    kl_words_box(s, &s->box[w->a], a, below);
    kl_words_box(s, &s->box[w->b], b, below);
    for (int i = 0; i < 2; i++) {
        if (w->link[i] < 0) continue;
        float most = s->topo->link[w->link[i]].bw;

        json_array_append_new(ways,
                              json_pack("{s:i,s:o,s:o,s:o}", "link", w->link[i], "from", json_text(i ? b : a), "to",
                                        json_text(i ? a : b), "bw", kl_json_float(kl_is_local(most) ? 0 : most)));
    }
    return json_pack("{s:o,s:o,s:o}", "name", json_text(kl_words_wire(s, w, name)), "bw",
                     json_text(kl_words_wire_bw(s, w, bw)), "ways", ways);
}

static json_t *paths_json(const struct kl_way *way)
{
    json_t *paths = json_array();

    for (const char *at = way->path; *at;) {
        const char *end = strchr(at, '\n');

        json_array_append_new(paths, json_stringn(at, (size_t)(end - at)));
        at = end + 1;
    }
    return paths;
}

static json_t *numbers_json(const struct kl_scene *s, int id, const struct kl_way *way)
{
    json_t *numbers = json_object();

    for (int i = 0; i < s->nboxes; i++) {
        char key[16], text[KL_WORDS];

        if (way->number[i] < 0) continue;
        snprintf(key, sizeof key, "%d", i);
        json_object_set_new(numbers, key, json_string(kl_words_number(id, way->number[i], text)));
    }
    return numbers;
}

static json_t *way_json(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_way *way)
{
    char title[KL_WORDS], name[KL_WORDS];
    json_t *uses = json_array(), *channels = json_array();

    for (int c = 0; c < KL_MAX_CHANNELS; c++)
        if (way->channels >> c & 1) json_array_append_new(channels, json_integer(c));
    for (int k = 0; k < s->topo->nlinks; k++)
        if (way->uses[k]) json_array_append_new(uses, json_integer(k));
    return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o}", "name", kl_words_channels(way->channels, name), "channels", channels,
                     "title", json_text(kl_words_way(g, way, title)), "paths", paths_json(way), "numbers",
                     numbers_json(s, g->id, way), "uses", uses);
}

static json_t *graph_json(const struct kl_scene *s, const struct kl_picture_graph *g)
{
    char sentence[KL_WORDS];
    json_t *ways = json_array(), *used = json_object();

    for (int i = 0; i < g->nways; i++) json_array_append_new(ways, way_json(s, g, &g->way[i]));
    for (int k = 0; k < s->topo->nlinks; k++) {
        char key[16];

        if (g->used[k] <= 0) continue;
        snprintf(key, sizeof key, "%d", k);
        json_object_set_new(used, key, kl_json_float((float)g->used[k]));
    }
    return json_pack("{s:s,s:o,s:s,s:o,s:o}", "name", kl_graph_name(g->id), "sentence",
                     json_text(kl_words_graph(s, g, sentence)), "arrows", kl_words_arrows(g->id), "used", used, "ways",
                     ways);
}

static json_t *scene_json(const struct kl_scene *s, int first)
{
    json_t *boxes = json_array(), *wires = json_array(), *graphs = json_array();

    for (int i = 0; i < s->nboxes; i++) json_array_append_new(boxes, box_json(s, &s->box[i]));
    for (int i = 0; i < s->nwires; i++) json_array_append_new(wires, wire_json(s, &s->wire[i]));
    for (int i = 0; i < s->ngraphs; i++) json_array_append_new(graphs, graph_json(s, &s->graph[i]));
    return json_pack("{s:i,s:o,s:o,s:o}", "first", first, "boxes", boxes, "wires", wires, "graphs", graphs);
}

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

#define LEAST_SCALE 0.78 /* smaller, its texts can't be read: rather scroll */

static void put_text(const char *before, const char *text, const char *after, FILE *to)
{
    fputs(before, to);
    kl_text_escaped(text, to);
    fputs(after, to);
}

static void put_head(const char *title, FILE *to)
{
    put_text("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
             title, " - kolo graph</title>\n", to);
    fprintf(to, "<style>\n%s%s</style>\n</head>\n", kl_picture_drawing_css, kl_picture_page_css);
}

static void put_choice_of_graph(const struct kl_scene *s, FILE *to)
{
    fputs("<fieldset id=\"graphs\"><legend>graph</legend>\n", to);
    for (int i = 0; i < s->ngraphs; i++)
        fprintf(to, "<label><input type=\"radio\" name=\"graph\" value=\"%d\"%s> <span>%s</span></label>\n", i,
                i ? "" : " checked", kl_graph_name(s->graph[i].id));
    fputs("</fieldset>\n", to);
}

static void put_controls(const struct kl_scene *s, const struct kl_picture_graph *g, FILE *to)
{
    char name[KL_WORDS];

    fputs("<div class=\"controls\">\n", to);
    put_choice_of_graph(s, to);
    fputs("<div class=\"channel\" role=\"group\" aria-label=\"channel\">\n"
          "<button type=\"button\" id=\"previous\" aria-label=\"previous channel\" title=\"previous channel "
          "(Page Up)\">&#8249;</button>\n<label>channel <select id=\"channel\">\n",
          to);
    for (int i = 0; i < g->nways; i++)
        fprintf(to, "<option value=\"%d\">%s</option>\n", i, kl_words_channels(g->way[i].channels, name));
    fputs("<option value=\"-1\">none</option></select></label>\n"
          "<button type=\"button\" id=\"next\" aria-label=\"next channel\" title=\"next channel "
          "(Page Down)\">&#8250;</button>\n</div>\n"
          "<button type=\"button\" id=\"theme\">theme: automatic</button>\n</div>\n",
          to);
}

static void put_drawing(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_way *way,
                        const char *title, FILE *to)
{
    char text[KL_WORDS];

    fputs("<p id=\"hint\">Point at a box or a link to read about it. Keys: Tab into the picture, arrows from thing to "
          "thing, Page Up and Page Down through the channels, Escape hides the note.</p>\n"
          "<div class=\"scroll\">\n",
          to);
    fprintf(to,
            "<svg id=\"drawing\" class=\"drawing\" width=\"%g\" viewBox=\"0 0 %g %g\" style=\"min-width: %.0fpx\" "
            "role=\"group\" "
            "aria-describedby=\"hint\" aria-label=\"",
            (double)s->width, (double)s->width, (double)s->height, LEAST_SCALE * (double)s->width);
    kl_text_escaped(title, to);
    fputs("\">\n", to);
    kl_draw_scene(s, g, way, true, to);
    fputs(
        "</svg>\n</div>\n<svg class=\"drawing legend\" width=\"1340\" viewBox=\"0 0 1340 40\" role=\"img\" "
        "aria-label=\"Legend: link colour from unused to 100 percent reserved, link width by bandwidth, arrows for the "
        "shown channel\">\n",
        to);
    kl_draw_legend(4, 6, kl_words_way(g, way, text), kl_words_arrows(g->id), to);
    fputs("</svg>\n", to);
}

static void put_page(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_way *way,
                     const json_t *facts, FILE *to)
{
    char title[KL_WORDS], text[KL_WORDS];

    put_head(kl_words_title(s, title), to);
    put_text("<body>\n<main>\n<h1>", title, "</h1>\n", to);
    put_text("<p class=\"file\">", s->view->cluster->name, "</p>\n", to);
    put_controls(s, g, to);
    put_text("<p id=\"sentence\" aria-live=\"polite\">", kl_words_graph(s, g, text), "</p>\n", to);
    put_drawing(s, g, way, title, to);
    fputs("<div id=\"note\" role=\"status\" hidden></div>\n</main>\n<script type=\"application/json\" id=\"facts\">",
          to);
    json_dump_callback(facts, put_json_part, to, JSON_COMPACT | JSON_REAL_PRECISION(9));
    fprintf(to, "</script>\n<script>\n%s</script>\n</body>\n</html>\n", kl_picture_page_js);
}

ncclResult_t kl_picture_html(const struct kl_plan_view *view, int channel, FILE *to)
{
    const struct kl_picture_graph *g = NULL;
    const struct kl_way *way = NULL;
    struct kl_scene *s;
    json_t *facts = NULL;
    ncclResult_t rc;

    KL_TRY(kl_scene_create(view, &s));
    KL_TRY_OR(rc, out, kl_picture_choose(s, channel, &g, &way));
    facts = scene_json(s, (int)(way - g->way));
    KL_TRY_OR(rc, out, facts ? ncclSuccess : KL_NOMEM("a picture"));
    put_page(s, g, way, facts, to);
out:
    json_decref(facts);
    kl_scene_free(s);
    return rc;
}
