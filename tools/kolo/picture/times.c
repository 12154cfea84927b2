/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/times.h"

#include "tools/kolo/picture/draw.h"
#include "tools/kolo/picture/text.h"

#include <math.h>

enum {
    LINK_W = 184, /* three columns of words: the link, its host, how many links are busy alike */
    HOST_W = 46,
    LIKE_W = 38,
    NAME_W = LINK_W + HOST_W + LIKE_W,
    CELL_W = 5,
    CELL_H = 20,
    ROW_H = 25,
    KINDS_APART = 8,
    HEAD_H = 14,
    AXIS_H = 30,
    ROWS_OF_A_KIND = 6
};

/* ---- words ---- */

char *kl_describe_times(const struct kl_timeline *t, char text[KL_DESCRIPTION_TEXT])
{
    struct kl_text out = kl_text_in(text, KL_DESCRIPTION_TEXT);

    kl_text_add(&out, "Which link is busy when: AllReduce of %lld MiB over the %s, %.3g ms",
                (long long)(t->bytes >> 20), t->graph == KL_GRAPH_TREE ? "trees" : "rings", t->us / 1e3);
    return text;
}

char *kl_describe_times_accuracy(const struct kl_timeline *t, char text[KL_DESCRIPTION_TEXT])
{
    struct kl_text out = kl_text_in(text, KL_DESCRIPTION_TEXT);

    kl_text_add(
        &out,
        "Every channel sends as fast as the %s reserves for it; latencies are not counted. ×8: 8 links are busy "
        "alike.",
        kl_graph_name(t->graph));
    return text;
}

static void name_end(const struct kl_scene *s, int node, int host, struct kl_text *out)
{
    static const int kinds[KL_NODE_TYPES] = {
        [KL_NODE_GPU] = KL_BOX_GPU, [KL_NODE_PCI] = KL_BOX_PCI, [KL_NODE_NVS] = KL_BOX_NVS,
        [KL_NODE_CPU] = KL_BOX_CPU, [KL_NODE_NIC] = KL_BOX_NIC, [KL_NODE_NET] = KL_BOX_NETWORK};
    char name[KL_DESCRIPTION_TEXT], below[KL_DESCRIPTION_TEXT];
    struct kl_box b = {.kind = kinds[s->topo->node[node].type], .node = node, .copy = host, .host = host};

    kl_describe_box(s, &b, name, below);
    kl_text_add(out, "%.60s", name);
}

/* A link that the domain has, and the whole machine has not. */
static void add_node_names(const struct kl_scene *s, const struct kl_timeline_row *row, struct kl_text *out)
{
    const struct kl_topo *t = s->view->plan->domain[row->domain].topo;
    char from[KL_NODE_TEXT], to[KL_NODE_TEXT];

    kl_text_add(out, "%s → %s", kl_node_text(&t->node[t->link[row->link].from], from),
                kl_node_text(&t->node[t->link[row->link].to], to));
}

static char *name_row(const struct kl_scene *s, const struct kl_timeline_row *row, char text[KL_DESCRIPTION_TEXT])
{
    struct kl_text out = kl_text_in(text, KL_DESCRIPTION_TEXT);
    int link = s->link_of[row->domain][row->link];

    if (link >= 0) {
        name_end(s, s->topo->link[link].from, row->host, &out);
        kl_text_add(&out, " → ");
        name_end(s, s->topo->link[link].to, row->host, &out);
    } else {
        add_node_names(s, row, &out);
    }
    return text;
}

/* ---- which rows ---- */

static int type_of(const struct kl_scene *s, const struct kl_timeline_row *row)
{
    return s->view->plan->domain[row->domain].topo->link[row->link].type;
}

/* Of each type of link the busiest; a step is KINDS_APART where another type begins. */
static int next_row(const struct kl_scene *s, const struct kl_timeline *t, int after, float *step)
{
    int row = after + 1, kind = 0;

    *step = ROW_H;
    if (after < 0) return t->nrows ? 0 : -1;
    for (int i = after; i >= 0 && type_of(s, &t->row[i]) == type_of(s, &t->row[after]); i--) kind++;
    if (kind >= ROWS_OF_A_KIND)
        while (row < t->nrows && type_of(s, &t->row[row]) == type_of(s, &t->row[after])) row++;
    if (row >= t->nrows) return -1;
    if (type_of(s, &t->row[row]) != type_of(s, &t->row[after])) *step += KINDS_APART;
    return row;
}

static int rows_left_out(const struct kl_scene *s, const struct kl_timeline *t)
{
    float step;
    int n = 0;

    for (int i = -1; (i = next_row(s, t, i, &step)) >= 0;) n++;
    return t->nrows - n;
}

float kl_times_height(const struct kl_scene *s, const struct kl_timeline *t)
{
    float h = HEAD_H + AXIS_H, step;

    for (int i = -1; (i = next_row(s, t, i, &step)) >= 0;) h += step;
    return h + (rows_left_out(s, t) ? ROW_H : 0) + 6;
}

/* ---- drawing ---- */

/* As high as the link is busy; neighbours that are equally busy are one rectangle. */
static void draw_cells(const struct kl_timeline_row *row, float x, float y, FILE *to)
{
    for (int i = 0, end; i < KL_TIMELINE_BINS; i = end) {
        float h = (float)row->percent[i] / 100 * CELL_H;
        char class[8];

        for (end = i + 1; end < KL_TIMELINE_BINS && row->percent[end] == row->percent[i];) end++;
        if (!row->percent[i]) continue;
        snprintf(class, sizeof class, "key s%d", kl_load_step(row->percent[i] / 100.0));
        kl_svg_rect(&(struct kl_rect){x + (float)(i * CELL_W), y + CELL_H - h, (float)((end - i) * CELL_W), h}, 0,
                    class, to);
    }
}

static void draw_name(const struct kl_scene *s, const struct kl_timeline_row *row, const char *name, float x, float y,
                      FILE *to)
{
    char text[32];

    kl_svg_text_fit(x, y + 14, "caption", name, 12, LINK_W - 8, to);
    snprintf(text, sizeof text, "host %d", row->host);
    if (s->hosts > 1) kl_svg_text_fit(x + LINK_W, y + 14, "caption low", text, 11, HOST_W, to);
    snprintf(text, sizeof text, "×%d", row->like + 1);
    if (row->like) kl_svg_text_fit(x + LINK_W + HOST_W, y + 14, "caption low", text, 11, LIKE_W - 8, to);
}

static void draw_row(const struct kl_scene *s, const struct kl_timeline_row *row, float x, float y, FILE *to)
{
    char name[KL_DESCRIPTION_TEXT] = "", mean[32];

    snprintf(mean, sizeof mean, "%.0f %%", (double)row->mean);
    fputs("<g class=\"busy\"><title>", to);
    kl_text_escaped(name_row(s, row, name), to);
    if (s->hosts > 1) fprintf(to, ", host %d", row->host);
    if (row->like) fprintf(to, ", and %d link%s busy alike", row->like, kl_plural(row->like));
    fprintf(to, ": %s of the bandwidth on average</title>", mean);
    draw_name(s, row, name, x, y, to);
    kl_svg_rect(&(struct kl_rect){x + NAME_W, y, KL_TIMELINE_BINS * CELL_W, CELL_H}, 0, "ground", to);
    draw_cells(row, x + NAME_W, y, to);
    kl_svg_text(x + NAME_W + KL_TIMELINE_BINS * CELL_W + 8, y + 14, "caption low", mean, 10, to);
    fputs("</g>\n", to);
}

/* A round number of milliseconds that divides the time into four to ten. */
static double tick_of(double ms)
{
    double tick = pow(10, floor(log10(ms)));

    while (ms / tick < 4) tick /= fabs(tick / pow(10, floor(log10(tick) + 1e-9)) - 5) < 0.1 ? 2.5 : 2;
    return tick;
}

static void draw_axis(double us, float x, float y, FILE *to)
{
    double ms = us / 1e3, tick = tick_of(ms);

    for (int i = 0; i * tick <= ms * 1.0001; i++) {
        float at = x + (float)(i * tick / ms) * KL_TIMELINE_BINS * CELL_W;
        char text[32];

        snprintf(text, sizeof text, i ? "%.3g" : "%.3g ms", i * tick);
        kl_svg_rect(&(struct kl_rect){at, y, 1, 5}, 0, "key width", to);
        kl_svg_text(at, y + 18, "caption low", text, 16, to);
    }
}

void kl_draw_times(const struct kl_scene *s, const struct kl_timeline *t, float x, float y, FILE *to)
{
    int left_out = rows_left_out(s, t);
    float step;

    kl_svg_text(x + NAME_W + KL_TIMELINE_BINS * CELL_W + 8, y + 8, "caption low", "mean", 16, to);
    y += HEAD_H;
    for (int i = -1, next; (next = next_row(s, t, i, &step)) >= 0; i = next) {
        if (i >= 0) y += step;
        draw_row(s, &t->row[next], x, y, to);
    }
    y += ROW_H;
    if (left_out) {
        char text[KL_DESCRIPTION_TEXT];

        snprintf(text, sizeof text, "and %d more row%s, no busier", left_out, kl_plural(left_out));
        kl_svg_text(x, y + 11, "caption low", text, 60, to);
        y += ROW_H;
    }
    draw_axis(t->us, x + NAME_W, y, to);
}
