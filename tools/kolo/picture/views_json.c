/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/views.h"

#include "answer/graph_json.h"
#include "tools/kolo/picture/text.h"
#include "tools/kolo/picture/descriptions.h"

#include <string.h>

static json_t *json_text(char *text)
{
    return json_string(kl_text_clean(text));
}

static json_t *box_json(const struct kl_scene *s, const struct kl_box *b)
{
    char facts[KL_DESCRIPTION_TEXT];

    return json_text(kl_describe_box_facts(s, b, facts));
}

/* Both directions: which link of the machine, from where to where, and how much it carries (0: no limit). */
static json_t *wire_json(const struct kl_scene *s, const struct kl_wire *w)
{
    char name[KL_DESCRIPTION_TEXT], bw[KL_DESCRIPTION_TEXT], a[KL_DESCRIPTION_TEXT], b[KL_DESCRIPTION_TEXT],
        below[KL_DESCRIPTION_TEXT];
    json_t *ways = json_array();

    kl_describe_box(s, &s->box[w->a], a, below);
    kl_describe_box(s, &s->box[w->b], b, below);
    for (int i = 0; i < 2; i++) {
        if (w->link[i] < 0) continue;
        float most = s->topo->link[w->link[i]].bw;

        json_array_append_new(ways,
                              json_pack("{s:i,s:o,s:o,s:o}", "link", w->link[i], "from", json_text(i ? b : a), "to",
                                        json_text(i ? a : b), "bw", kl_json_float(kl_is_local(most) ? 0 : most)));
    }
    return json_pack("{s:o,s:o,s:o}", "name", json_text(kl_describe_wire(s, w, name)), "bw",
                     json_text(kl_describe_wire_bw(s, w, bw)), "ways", ways);
}

static json_t *paths_json(const struct kl_channel_path *way)
{
    json_t *paths = json_array();

    for (const char *at = way->path; *at;) {
        const char *end = strchr(at, '\n');

        json_array_append_new(paths, json_stringn(at, (size_t)(end - at)));
        at = end + 1;
    }
    return paths;
}

static json_t *numbers_json(const struct kl_scene *s, int id, const struct kl_channel_path *way)
{
    json_t *numbers = json_object();

    for (int i = 0; i < s->nboxes; i++) {
        char key[16], text[KL_DESCRIPTION_TEXT];

        if (way->number[i] < 0) continue;
        snprintf(key, sizeof key, "%d", i);
        json_object_set_new(numbers, key, json_string(kl_describe_number(id, way->number[i], text)));
    }
    return numbers;
}

static json_t *way_json(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_channel_path *way)
{
    char title[KL_DESCRIPTION_TEXT], name[KL_DESCRIPTION_TEXT];
    json_t *uses = json_array(), *channels = json_array();

    for (int c = 0; c < KL_MAX_CHANNELS; c++)
        if (way->channels >> c & 1) json_array_append_new(channels, json_integer(c));
    for (int k = 0; k < s->topo->nlinks; k++)
        if (way->uses[k]) json_array_append_new(uses, json_integer(k));
    return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o}", "name", kl_describe_channels(way->channels, name), "channels",
                     channels, "title", json_text(kl_describe_channel_path(g, way, title)), "paths", paths_json(way),
                     "numbers", numbers_json(s, g->id, way), "uses", uses);
}

static json_t *graph_json(const struct kl_scene *s, const struct kl_picture_graph *g)
{
    char sentence[KL_DESCRIPTION_TEXT];
    json_t *ways = json_array(), *used = json_object();

    for (int i = 0; i < g->nchannel_paths; i++) json_array_append_new(ways, way_json(s, g, &g->way[i]));
    for (int k = 0; k < s->topo->nlinks; k++) {
        char key[16];

        if (g->used[k] <= 0) continue;
        snprintf(key, sizeof key, "%d", k);
        json_object_set_new(used, key, kl_json_float((float)g->used[k]));
    }
    return json_pack("{s:s,s:o,s:s,s:o,s:o}", "name", kl_graph_name(g->id), "sentence",
                     json_text(kl_describe_graph(s, g, sentence)), "arrows", kl_describe_arrows(g->id), "used", used,
                     "ways", ways);
}

/* ---- other hosts ---- */

static json_t *names_json(const struct kl_scene *s)
{
    json_t *names = json_array();

    for (int i = 0; i < s->nboxes; i++) {
        char name[KL_DESCRIPTION_TEXT], below[KL_DESCRIPTION_TEXT];

        kl_describe_box(s, &s->box[i], name, below);
        json_array_append_new(names, json_text(name));
    }
    return names;
}

/* Of the last hosts every way, of others those that they are for. */
static json_t *view_ways_json(const struct kl_views *v, int view)
{
    const struct kl_scene *s = v->scene[view];
    json_t *graphs = json_array();

    for (int g = 0; g < s->ngraphs; g++) {
        json_t *ways = json_array();

        for (int w = 0; w < s->graph[g].nchannel_paths; w++)
            json_array_append_new(ways, view == 1 || v->of_way[g][w] == view
                                            ? way_json(s, &s->graph[g], &s->graph[g].way[w])
                                            : json_null());
        json_array_append_new(graphs, ways);
    }
    return graphs;
}

static json_t *view_json(const struct kl_views *v, int view)
{
    const struct kl_scene *s = v->scene[view];
    json_t *boxes = json_array(), *wires = json_array(), *hosts = json_array();

    for (int i = 0; i < s->nboxes; i++) json_array_append_new(boxes, box_json(s, &s->box[i]));
    for (int i = 0; i < s->nwires; i++) json_array_append_new(wires, wire_json(s, &s->wire[i]));
    for (int i = 0; i < s->drawn; i++) json_array_append_new(hosts, json_integer(s->shown[i]));
    return json_pack("{s:o,s:o,s:o,s:o,s:o}", "hosts", hosts, "names", names_json(s), "boxes", boxes, "wires", wires,
                     "ways", view ? view_ways_json(v, view) : json_null());
}

static json_t *views_json(const struct kl_views *v)
{
    json_t *views = json_array(), *of_ways = json_array();

    for (int i = 0; i < v->n && v->n > 1; i++) json_array_append_new(views, view_json(v, i));
    for (int g = 0; g < v->scene[0]->ngraphs; g++) {
        json_t *of = json_array();

        for (int w = 0; w < v->scene[0]->graph[g].nchannel_paths; w++)
            json_array_append_new(of, json_integer(v->of_way[g][w]));
        json_array_append_new(of_ways, of);
    }
    return json_pack("{s:o,s:o}", "list", views, "of_ways", of_ways);
}

json_t *kl_views_json(const struct kl_views *v, int first)
{
    const struct kl_scene *s = v->scene[0];
    json_t *boxes = json_array(), *wires = json_array(), *graphs = json_array();

    for (int i = 0; i < s->nboxes; i++) json_array_append_new(boxes, box_json(s, &s->box[i]));
    for (int i = 0; i < s->nwires; i++) json_array_append_new(wires, wire_json(s, &s->wire[i]));
    for (int i = 0; i < s->ngraphs; i++) json_array_append_new(graphs, graph_json(s, &s->graph[i]));
    return json_pack("{s:i,s:o,s:o,s:o,s:o}", "first", first, "boxes", boxes, "wires", wires, "graphs", graphs, "views",
                     views_json(v));
}
