/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "tools/kolo/picture/order.h"
#include "tools/kolo/picture/text.h"

#include <stdlib.h>
#include <string.h>

enum { LABELS = 110, COLUMN = 40, ROW = 26, HEAD = 30, MIDDLE = 9, SUM_W = 54, SWITCH_W = 220, LONG = 200 };

/** The drawing of a chain or tree: rows are ranks, or nodes of ranks, in the order in which the expression names them. */
struct grid {
    const struct kl_order_views *v;
    const struct kl_order_view *w;
    int *row, *done; /* by rank or node: its row, -1 for none; its last step that is drawn */
    int rows, steps, end;
    bool nodes;
};

static int last_step(const struct kl_order_view *w)
{
    int most = 0;

    for (int i = 0; i < w->steps.n; i++)
        if (w->steps.step[i].step > most) most = w->steps.step[i].step;
    return most;
}

/* Rows where a switch or the network adds everything. */
static int nrows(const struct kl_order_views *v, const struct kl_order_view *w)
{
    return w->steps.n ? w->steps.n + 1 : v->order->rules.nranks;
}

float kl_order_view_width(const struct kl_order_views *v, int view)
{
    const struct kl_order_view *w = &v->view[view];

    return (float)(LABELS + (w->steps.n ? (last_step(w) + 1) * COLUMN : COLUMN + SWITCH_W) + SUM_W);
}

float kl_order_view_height(const struct kl_order_views *v, int view)
{
    return (float)(HEAD + nrows(v, &v->view[view]) * ROW + 8);
}

/* ---- places ---- */

static float x_of(int step)
{
    return (float)(LABELS + step * COLUMN);
}

static float y_of(int row)
{
    return (float)(HEAD + row * ROW + ROW / 2);
}

static void add_row(struct grid *g, int rank)
{
    if (g->row[rank] < 0) g->row[rank] = g->rows++;
}

/* The sender stands above the receiver of a chain, and the ranks of a tree in the order of their additions. */
static void find_rows(struct grid *g)
{
    for (int i = 0; i < g->v->order->rules.nranks; i++) g->row[i] = -1;
    for (int i = 0; i < g->w->steps.n; i++) {
        add_row(g, g->w->steps.step[i].from);
        add_row(g, g->w->steps.step[i].by);
    }
}

static bool open_grid(const struct kl_order_views *v, const struct kl_order_view *w, struct grid *g)
{
    size_t n = (size_t)v->order->rules.nranks;

    *g = (struct grid){.v = v, .w = w, .steps = last_step(w), .nodes = kl_order_steps_of_nodes(v->order)};
    g->row = malloc(n * sizeof *g->row);
    g->done = calloc(n, sizeof *g->done);
    if (!g->row || !g->done) return false;
    g->end = w->steps.step[w->steps.n - 1].by;
    find_rows(g);
    return true;
}

static void close_grid(struct grid *g)
{
    free(g->row);
    free(g->done);
}

/* ---- texts ---- */

static const char *name_of(const struct kl_order *o, bool node, int number, char text[48])
{
    int per_host = o->rules.nranks / (o->rules.nnodes ? o->rules.nnodes : 1);

    if (node)
        snprintf(text, 48, "switch of node %d", number);
    else if (o->rules.nnodes > 1 && per_host)
        snprintf(text, 48, "rank %d, node %d", number, number / per_host);
    else
        snprintf(text, 48, "rank %d", number);
    return text;
}

static void put_title(const struct grid *g, const struct kl_order_step *s, FILE *to)
{
    const struct kl_order *o = g->v->order;
    char by[48], from[48], line[256], *sum = kl_order_expression(o, s->sum);
    struct kl_text how = kl_text_in(line, sizeof line);

    fprintf(to, "<title>step %d: %s adds the partial sum of %s\n", s->step, name_of(o, g->nodes, s->by, by),
            name_of(o, g->nodes, s->from, from));
    if (sum && strlen(sum) <= LONG) fprintf(to, "%s, ", sum);
    kl_order_arithmetic_text(o, &how);
    fprintf(to, "%s</title>", line);
    free(sum);
}

/* ---- parts ---- */

static void put_columns(const struct grid *g, FILE *to)
{
    char text[16];

    kl_svg_text(4, HEAD - 12, "caption low", "step", 8, to);
    for (int i = 1; i <= g->steps; i++) {
        snprintf(text, sizeof text, "%d", i);
        kl_svg_text(x_of(i), HEAD - 12, "below", text, 8, to);
    }
    fputs("\n", to);
}

static void put_rows(const struct grid *g, FILE *to)
{
    char text[48];

    for (int i = 0; i < g->v->order->rules.nranks; i++) {
        if (g->row[i] < 0) continue;
        fprintf(to, "<g class=\"rank\" data-rank=\"%d\">", i);
        kl_svg_text_fit(4, y_of(g->row[i]) + 4, "caption", name_of(g->v->order, g->nodes, i, text), 12, LABELS - 14, to);
        fprintf(to, "<circle class=\"own\" cx=\"%g\" cy=\"%g\" r=\"4\"/></g>\n", (double)x_of(0), (double)y_of(g->row[i]));
    }
}

static void put_line(const char *class, float x1, float y1, float x2, float y2, FILE *to)
{
    fprintf(to, "<path class=\"%s\" d=\"M %g %g L %g %g\"/>", class, (double)x1, (double)y1, (double)x2, (double)y2);
}

/* Its own sum so far waits in its row; the other one comes along the sender's row, then to the receiver's. */
static void put_step(struct grid *g, const struct kl_order_step *s, FILE *to)
{
    float x = x_of(s->step), y = y_of(g->row[s->by]), from = y_of(g->row[s->from]);

    fprintf(to, "<g class=\"add\" data-step=\"%d\" data-by=\"%d\" data-from=\"%d\">", s->step, s->by, s->from);
    put_title(g, s, to);
    put_line("own", x_of(g->done[s->by]), y, x, y, to);
    put_line("sent", x_of(g->done[s->from]), from, x - COLUMN / 2, from, to);
    put_line("sent", x - COLUMN / 2, from, x, y, to);
    fprintf(to, "<circle class=\"plus\" cx=\"%g\" cy=\"%g\" r=\"%d\"/>", (double)x, (double)y, MIDDLE);
    kl_svg_text(x, y + 4, "count", "+", 1, to);
    fputs("</g>\n", to);
    g->done[s->by] = s->step;
}

static void put_sum(const struct grid *g, FILE *to)
{
    float x = x_of(g->steps), y = y_of(g->row[g->end]);

    fprintf(to, "<g class=\"sum\" data-rank=\"%d\">", g->end);
    put_line("own", x + MIDDLE, y, x + COLUMN - 4, y, to);
    kl_svg_text(x + COLUMN, y + 4, "caption strong", "sum", 8, to);
    fputs("</g>\n", to);
}

static void draw_steps(const struct kl_order_views *v, const struct kl_order_view *w, FILE *to)
{
    struct grid g;

    if (open_grid(v, w, &g)) {
        put_columns(&g, to);
        put_rows(&g, to);
        for (int i = 0; i < w->steps.n; i++) put_step(&g, &w->steps.step[i], to);
        put_sum(&g, to);
    }
    close_grid(&g);
}

/* All contributions go into one box. */
static void draw_undefined(const struct kl_order_views *v, FILE *to)
{
    const struct kl_order *o = v->order;
    const bool is_switch = o->op->choice.algo == KL_ALGO_NVLS;
    const struct kl_rect box = {x_of(1), HEAD, SWITCH_W, (float)(o->rules.nranks * ROW)};
    char text[48];

    fprintf(to, "<g class=\"undefined\" data-by=\"%s\">", is_switch ? "switch" : "network");
    kl_svg_rect(&box, 6, "within", to);
    kl_svg_text(box.x + SWITCH_W / 2, HEAD + box.h / 2 - 2, "name", is_switch ? "NVSwitch" : "network", 20, to);
    kl_svg_text(box.x + SWITCH_W / 2, HEAD + box.h / 2 + 14, "below", "the order is undefined here", 40, to);
    fputs("</g>\n", to);
    for (int i = 0; i < o->rules.nranks; i++) {
        fprintf(to, "<g class=\"rank\" data-rank=\"%d\">", i);
        kl_svg_text_fit(4, y_of(i) + 4, "caption", name_of(o, false, i, text), 12, LABELS - 14, to);
        fprintf(to, "<circle class=\"own\" cx=\"%g\" cy=\"%g\" r=\"4\"/>", (double)x_of(0), (double)y_of(i));
        put_line("sent", x_of(0), y_of(i), box.x, y_of(i), to);
        fputs("</g>\n", to);
    }
}

void kl_order_view_draw(const struct kl_order_views *v, int view, FILE *to)
{
    const struct kl_order_view *w = &v->view[view];

    if (w->steps.n)
        draw_steps(v, w, to);
    else
        draw_undefined(v, to);
}
