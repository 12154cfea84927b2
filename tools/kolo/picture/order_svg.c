/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/order.h"

#include "base/error.h"
#include "tools/kolo/picture/files.h"
#include "tools/kolo/picture/text.h"

#include <stdlib.h>
#include <string.h>

enum { MARGIN = 18, TITLE = 34, LINE = 18, LINES = 6, LETTERS = 110, LEAST_WIDTH = 800 };

/* The texts above the drawing. */
struct lines {
    const char *class[LINES];
    char *text[LINES];
    int n;
};

/* ---- texts in lines ---- */

/* How many bytes of a text stand on its first line: up to a space, or up to a plus of an expression. */
static size_t first_line(const char *text)
{
    size_t n = strlen(text), at = LETTERS;

    if (n <= LETTERS) return n;
    while (at > LETTERS / 2 && text[at] != ' ' && text[at] != '+') at--;
    return at;
}

static int count_lines(const struct lines *l)
{
    int n = 0;

    for (int i = 0; i < l->n; i++)
        for (const char *at = l->text[i]; *at; n++) at += first_line(at);
    return n;
}

static int put_lines(const struct lines *l, int y, FILE *to)
{
    char line[LETTERS + 1];

    for (int i = 0; i < l->n; i++)
        for (const char *at = l->text[i]; *at; y += LINE) {
            size_t n = first_line(at);

            snprintf(line, sizeof line, "%.*s", (int)n, at);
            fprintf(to, "<text x=\"%d\" y=\"%d\" class=\"sub %s\">", MARGIN, y, l->class[i]);
            kl_text_escaped(line, to);
            fputs("</text>\n", to);
            at += n;
        }
    return y;
}

static ncclResult_t add(struct lines *l, const char *class, char *text)
{
    if (!text) return KL_NOMEM("a picture");
    l->class[l->n] = class;
    l->text[l->n++] = text;
    return ncclSuccess;
}

static ncclResult_t write_lines(const struct kl_order_views *v, struct lines *l)
{
    char line[1024];
    struct kl_text text = kl_text_in(line, sizeof line);

    kl_order_summary(v->order, &text);
    KL_TRY(add(l, "summary", strdup(line)));
    text = kl_text_in(line, sizeof line);
    kl_order_view_text(v, 0, &text);
    KL_TRY(add(l, "elements", strdup(line)));
    text = kl_text_in(line, sizeof line);
    kl_order_arithmetic_text(v->order, &text);
    KL_TRY(add(l, "arithmetic", strdup(line)));
    text = kl_text_in(line, sizeof line);
    kl_order_view_note(v, 0, &text);
    KL_TRY(add(l, "note", strdup(line)));
    return v->view[0].steps.n ? add(l, "expression", kl_order_expression(v->order, v->view[0].range->sum))
                              : ncclSuccess;
}

/* ---- the document ---- */

static float width_of(const struct kl_order_picture *p, const struct kl_order_views *v)
{
    float title = kl_text_width(p->title, 22, false), drawing = kl_order_view_width(v, 0);
    float w = title > drawing ? title : drawing;

    return (w > LEAST_WIDTH ? w : LEAST_WIDTH) + 2 * MARGIN;
}

static void put_document(const struct kl_order_picture *p, struct kl_order_views *v, const struct lines *l, FILE *to)
{
    float w = width_of(p, v), h = kl_order_view_height(v, 0) + TITLE + (float)((count_lines(l) + 1) * LINE);

    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"drawing\" width=\"%g\" height=\"%g\" "
            "viewBox=\"0 0 %g %g\" role=\"img\">\n<title>",
            (double)w, (double)h, (double)w, (double)h);
    kl_text_escaped(p->title, to);
    fprintf(to, "</title>\n<style>\n%s%s</style>\n", kl_picture_drawing_css, kl_picture_order_css);
    fprintf(to, "<rect width=\"%g\" height=\"%g\" fill=\"var(--page)\"/>\n", (double)w, (double)h);
    fprintf(to, "<text x=\"%d\" y=\"%d\" class=\"heading\">", MARGIN, TITLE);
    kl_text_escaped(p->title, to);
    fputs("</text>\n", to);
    int y = put_lines(l, TITLE + LINE + 4, to);

    fprintf(to, "<g transform=\"translate(%d %d)\">\n", MARGIN, y - LINE / 2);
    kl_order_view_draw(v, 0, to);
    fputs("</g>\n</svg>\n", to);
}

ncclResult_t kl_order_picture_svg(const struct kl_order_picture *p, FILE *to)
{
    struct kl_order_views views;
    struct lines lines = {.n = 0};
    ncclResult_t rc = kl_order_views_of(p, &views);

    if (!rc) rc = write_lines(&views, &lines);
    if (!rc) put_document(p, &views, &lines, to);
    for (int i = 0; i < lines.n; i++) free(lines.text[i]);
    kl_order_views_fini(&views);
    return rc;
}
