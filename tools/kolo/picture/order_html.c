/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/order.h"

#include "tools/kolo/picture/files.h"
#include "tools/kolo/picture/html_parts.h"

#include <stdlib.h>

static void put_controls(const struct kl_order_views *v, FILE *to)
{
    fputs("<div class=\"controls\">\n"
          "<button type=\"button\" id=\"previous\" aria-label=\"previous elements\" title=\"previous elements (Page "
          "Up)\">&#8249;</button>\n<label>shown <select id=\"view\">\n",
          to);
    for (int i = 0; i < v->n; i++) {
        char line[512];
        struct kl_text text = kl_text_in(line, sizeof line);

        kl_order_view_text(v, i, &text);
        fprintf(to, "<option value=\"%d\">", i);
        kl_html_text("", line, "</option>\n", to);
    }
    fputs("</select></label>\n<button type=\"button\" id=\"next\" aria-label=\"next elements\" title=\"next elements "
          "(Page Down)\">&#8250;</button>\n" KL_HTML_THEME_BUTTON "\n</div>\n",
          to);
}

static void put_view(struct kl_order_views *v, int view, FILE *to)
{
    float w = kl_order_view_width(v, view), h = kl_order_view_height(v, view);
    char *sum = v->view[view].steps.n ? kl_order_expression(v->order, v->view[view].range->sum) : NULL;
    char line[1024];
    struct kl_text elements = kl_text_in(line, sizeof line);

    kl_order_view_text(v, view, &elements);
    fprintf(to, "<figure class=\"view\" id=\"v%d\">\n", view);
    kl_html_text("<figcaption><b class=\"elements\">", line, "</b>", to);
    if (sum) kl_html_text("<br><code class=\"expression\">", sum, "</code>", to);
    struct kl_text arithmetic = kl_text_in(line, sizeof line);

    kl_order_arithmetic_text(v->order, &arithmetic);
    kl_html_text("<br><span class=\"arithmetic\">", line, "</span>", to);
    struct kl_text note = kl_text_in(line, sizeof line);

    kl_order_view_note(v, view, &note);
    if (*line) kl_html_text("<br><span class=\"note\">", line, "</span>", to);
    fputs("</figcaption>\n", to);
    fprintf(to, "<svg class=\"drawing\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" role=\"group\">\n", (double)w,
            (double)h, (double)w, (double)h);
    kl_order_view_draw(v, view, to);
    fputs("</svg>\n</figure>\n", to);
    free(sum);
}

static void put_page(const struct kl_order_picture *p, struct kl_order_views *v, FILE *to)
{
    char line[256];
    struct kl_text summary = kl_text_in(line, sizeof line);

    kl_html_head(p->title, "kolo explain order", kl_picture_order_css, to);
    kl_html_text("<body>\n<main>\n<h1>", p->title, "</h1>\n", to);
    kl_html_text("<p class=\"file\">", p->answer->asked.cluster->name, "</p>\n", to);
    kl_order_summary(v->order, &summary);
    kl_html_text("<p id=\"sentence\">", line, "</p>\n", to);
    put_controls(v, to);
    fputs("<p id=\"hint\">A row is a rank, a column a step: at a plus the rank of the row adds the partial sum that "
          "comes "
          "along the blue line to its own. Point at a plus to read the sum. Page Up and Page Down change the elements.",
          to);
    if (v->hidden)
        fprintf(to, " <span id=\"hidden\">%d more range%s of elements: --element shows others.</span>", v->hidden,
                kl_plural(v->hidden));
    fputs("</p>\n", to);
    for (int i = 0; i < v->n; i++) put_view(v, i, to);
    kl_html_end(kl_picture_order_js, to);
}

ncclResult_t kl_order_picture_html(const struct kl_order_picture *p, FILE *to)
{
    struct kl_order_views views;
    ncclResult_t rc = kl_order_views_of(p, &views);

    if (!rc) put_page(p, &views, to);
    kl_order_views_fini(&views);
    return rc;
}
