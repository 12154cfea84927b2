/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/order.h"
#include "tools/kolo/picture/text.h"

#include <stdlib.h>
#include <string.h>

enum {
    LABELS = 110,
    HALF_COLUMN = 20,
    COLUMN = 2 * HALF_COLUMN,
    HALF_ROW = 13,
    ROW = 2 * HALF_ROW,
    HEAD = 30,
    PLUS = 9,
    SUM_W = 54,
    HALF_SWITCH = 110,
    SWITCH_W = 2 * HALF_SWITCH,
    LONG = 200 /* letters of an expression in a note */
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
    return (float)(HEAD + row * ROW + HALF_ROW);
}

static void add_row(struct kl_order_views *v, int rank, int *n)
{
    if (v->row[rank] < 0) v->row[rank] = (*n)++;
}

/* The sender stands above the receiver of a chain, and the ranks of a tree in the order of their additions. */
static void find_rows(struct kl_order_views *v, const struct kl_order_view *w)
{
    int n = 0;

    for (int i = 0; i < v->order->rules.nranks; i++) v->row[i] = -1, v->done[i] = 0;
    for (int i = 0; i < w->steps.n; i++) {
        add_row(v, w->steps.step[i].from, &n);
        add_row(v, w->steps.step[i].by, &n);
    }
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

static void put_title(const struct kl_order *o, const struct kl_order_step *s, FILE *to)
{
    const bool nodes = kl_order_steps_of_nodes(o);
    char by[48], from[48], line[256], *sum = kl_order_expression(o, s->sum);
    struct kl_text how = kl_text_in(line, sizeof line);

    fprintf(to, "<title>step %d: %s adds the partial sum of %s\n", s->step, name_of(o, nodes, s->by, by),
            name_of(o, nodes, s->from, from));
    if (sum && strlen(sum) <= LONG) fprintf(to, "%s, ", sum);
    kl_order_arithmetic_text(o, &how);
    fprintf(to, "%s</title>", line);
    free(sum);
}

/* ---- parts ---- */

static void put_columns(int steps, FILE *to)
{
    char text[16];

    kl_svg_text(4, HEAD - 12, "caption low", "step", 8, to);
    for (int i = 1; i <= steps; i++) {
        snprintf(text, sizeof text, "%d", i);
        kl_svg_text(x_of(i), HEAD - 12, "below", text, 8, to);
    }
    fputs("\n", to);
}

static void put_line(const char *class, float x1, float x2, float y, FILE *to)
{
    fprintf(to, "<path class=\"%s\" d=\"M %g %g H %g\"/>", class, (double)x1, (double)y, (double)x2);
}

/* A contribution, named, and its line up to `x`. */
static void put_row(const struct kl_order *o, bool node, int number, int row, const char *class, float x, FILE *to)
{
    char text[48];
    float y = y_of(row);

    fprintf(to, "<g class=\"rank\" data-rank=\"%d\">", number);
    kl_svg_text_fit(4, y + 4, "caption", name_of(o, node, number, text), 12, LABELS - 14, to);
    fprintf(to, "<circle class=\"own\" cx=\"%g\" cy=\"%g\" r=\"4\"/>", (double)x_of(0), (double)y);
    if (x > x_of(0)) put_line(class, x_of(0), x, y, to);
    fputs("</g>\n", to);
}

/* Where a line begins: behind the contribution, or behind the last plus of the row. */
static float begin_of(const struct kl_order_views *v, int rank)
{
    return x_of(v->done[rank]) + (v->done[rank] ? PLUS : 0);
}

/* Its own sum so far waits in its row; the other one comes along the row of its sender, and between the columns. */
static void put_step(struct kl_order_views *v, const struct kl_order_step *s, FILE *to)
{
    float x = x_of(s->step), y = y_of(v->row[s->by]), from = y_of(v->row[s->from]);
    float turn = from < y ? y - HALF_ROW : y + HALF_ROW;

    fprintf(to, "<g class=\"add\" data-step=\"%d\" data-by=\"%d\" data-from=\"%d\">", s->step, s->by, s->from);
    put_title(v->order, s, to);
    put_line("own", begin_of(v, s->by), x, y, to);
    fprintf(to, "<path class=\"sent\" d=\"M %g %g H %g V %g L %g %g\"/>", (double)begin_of(v, s->from), (double)from,
            (double)(x - HALF_COLUMN), (double)turn, (double)x, (double)y);
    fprintf(to, "<circle class=\"plus\" cx=\"%g\" cy=\"%g\" r=\"%d\"/>", (double)x, (double)y, PLUS);
    kl_svg_text(x, y + 4, "count", "+", 1, to);
    fputs("</g>\n", to);
    v->done[s->by] = s->step;
}

static void draw_steps(struct kl_order_views *v, const struct kl_order_view *w, FILE *to)
{
    const int end = w->steps.step[w->steps.n - 1].by, steps = last_step(w);

    find_rows(v, w);
    put_columns(steps, to);
    for (int i = 0; i < v->order->rules.nranks; i++)
        if (v->row[i] >= 0) put_row(v->order, kl_order_steps_of_nodes(v->order), i, v->row[i], "own", 0, to);
    for (int i = 0; i < w->steps.n; i++) put_step(v, &w->steps.step[i], to);
    fprintf(to, "<g class=\"sum\" data-rank=\"%d\">", end);
    put_line("own", x_of(steps) + PLUS, x_of(steps + 1) - 4, y_of(v->row[end]), to);
    kl_svg_text(x_of(steps + 1), y_of(v->row[end]) + 4, "caption strong", "sum", 8, to);
    fputs("</g>\n", to);
}

/* All contributions go into one box. */
static void draw_undefined(const struct kl_order *o, bool network, FILE *to)
{
    const struct kl_rect box = {x_of(1), HEAD, SWITCH_W, (float)(o->rules.nranks * ROW)};

    fprintf(to, "<g class=\"undefined\" data-by=\"%s\">", network ? "network" : "switch");
    kl_svg_rect(&box, 6, "within", to);
    kl_svg_text(box.x + HALF_SWITCH, HEAD + box.h / 2 - 2, "name", network ? "network" : "NVSwitch", 20, to);
    kl_svg_text(box.x + HALF_SWITCH, HEAD + box.h / 2 + 14, "below", "the order is undefined here", 40, to);
    fputs("</g>\n", to);
    for (int i = 0; i < o->rules.nranks; i++) put_row(o, false, i, i, "sent", box.x, to);
}

void kl_order_view_draw(struct kl_order_views *v, int view, FILE *to)
{
    const struct kl_order_view *w = &v->view[view];
    int leaf = v->order->sums->term[w->range->sum].leaf;

    if (w->steps.n)
        draw_steps(v, w, to);
    else if (leaf == KL_LEAF_RANK) /* nothing is added */
        put_row(v->order, false, v->order->sums->term[w->range->sum].left, 0, "own", x_of(1), to);
    else
        draw_undefined(v->order, leaf == KL_LEAF_NETWORK, to);
}
