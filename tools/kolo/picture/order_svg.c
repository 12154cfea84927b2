/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/order.h"

#include "tools/kolo/picture/files.h"
#include "tools/kolo/picture/text.h"

#include <stdlib.h>

enum { MARGIN = 18, HEADING = 124, LETTERS = 13 };

struct lines {
    char summary[256], elements[512], arithmetic[1024];
    char *sum; /* NULL: it is undefined, or memory is short */
};

static void write_lines(const struct kl_order_views *v, struct lines *l)
{
    struct kl_text summary = kl_text_in(l->summary, sizeof l->summary),
                   elements = kl_text_in(l->elements, sizeof l->elements),
                   arithmetic = kl_text_in(l->arithmetic, sizeof l->arithmetic);

    kl_order_summary(v->order, &summary);
    kl_order_view_text(v, 0, &elements);
    kl_order_view_arithmetic(v, 0, &arithmetic);
    l->sum = v->view[0].steps.n ? kl_order_expression(v->order, v->view[0].range->sum) : NULL;
}

static float at_least(float width, const char *text, float size)
{
    float w = kl_text_width(text, size, false) + 2 * MARGIN;

    return w > width ? w : width;
}

static void put_text(float y, const char *class, const char *text, FILE *to)
{
    fprintf(to, "<text x=\"%d\" y=\"%g\" class=\"%s\">", MARGIN, (double)y, class);
    kl_text_escaped(text, to);
    fputs("</text>\n", to);
}

static void put_document(const struct kl_order_picture *p, const struct kl_order_views *v, const struct lines *l, FILE *to)
{
    float w = kl_order_view_width(v, 0) + 2 * MARGIN, h = kl_order_view_height(v, 0) + HEADING;

    w = at_least(at_least(w, p->title, 22), l->summary, LETTERS);
    w = at_least(at_least(w, l->elements, LETTERS), l->arithmetic, LETTERS);
    if (l->sum) w = at_least(w, l->sum, LETTERS);
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"drawing\" width=\"%g\" height=\"%g\" "
            "viewBox=\"0 0 %g %g\" role=\"img\">\n<title>",
            (double)w, (double)h, (double)w, (double)h);
    kl_text_escaped(p->title, to);
    fprintf(to, "</title>\n<style>\n%s%s</style>\n", kl_picture_drawing_css, kl_picture_order_css);
    fprintf(to, "<rect width=\"%g\" height=\"%g\" fill=\"var(--page)\"/>\n", (double)w, (double)h);
    put_text(34, "heading", p->title, to);
    put_text(54, "sub", l->summary, to);
    put_text(72, "sub elements", l->elements, to);
    put_text(90, "sub arithmetic", l->arithmetic, to);
    if (l->sum) put_text(108, "sub expression", l->sum, to);
    fprintf(to, "<g transform=\"translate(%d %d)\">\n", MARGIN, HEADING - 8);
    kl_order_view_draw(v, 0, to);
    fputs("</g>\n</svg>\n", to);
}

ncclResult_t kl_order_picture_svg(const struct kl_order_picture *p, FILE *to)
{
    struct kl_order_views views;
    struct lines lines;
    ncclResult_t rc = kl_order_views_of(p, &views);

    if (!rc) {
        write_lines(&views, &lines);
        put_document(p, &views, &lines, to);
        free(lines.sum);
    }
    kl_order_views_fini(&views);
    return rc;
}
