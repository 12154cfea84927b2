/* SPDX-License-Identifier: Apache-2.0 */
/**
 * order.h - the order of additions as a picture: for each set of elements the chain or tree, rank by rank and step by step.
 *
 *     order_views.c    sets of elements that are added alike
 *     order_draw.c     one of them: a row for each rank, a column for each step
 *     order_svg.c      one of them as a document; order_html.c all as a page, to choose from
 *
 * Both documents stand alone: no scripts, fonts or images from elsewhere.
 *
 * Units:  pixels, elements.
 * Errors: ncclInvalidArgument for an element that there is none of; ncclSystemError when memory is short.
 */
#ifndef KOLO_TOOL_PICTURE_ORDER_H
#define KOLO_TOOL_PICTURE_ORDER_H

#include "answer/order.h"
#include "plan/order_steps.h"

#include <stdio.h>

/** The most views of a page; --element asks for views of other elements. */
enum { KL_ORDER_VIEWS = 64 };

struct kl_order_picture {
    const struct kl_order_answer *answer;
    const char *title;      /* "AllReduce of 64 MiB over 16 ranks" */
    const int64_t *element; /* the elements to show, of block 0; none: all */
    int nelements;
};

/** Elements that the same ranks add in the same steps. */
struct kl_order_view {
    const struct kl_order_range *range; /* one of them */
    struct kl_order_steps steps;
    uint64_t channels;
};

struct kl_order_views {
    const struct kl_order *order;
    int n, hidden;   /* hidden: ranges beyond KL_ORDER_VIEWS, or not asked for */
    int *view_of;    /* by range; -1: it is hidden */
    int *row, *done; /* of the drawing, by rank or node: its row, -1 for none; its last step that is drawn */
    struct kl_order_view view[KL_ORDER_VIEWS];
};

/** Free with kl_order_views_fini, also after a failure. */
ncclResult_t kl_order_views_of(const struct kl_order_picture *picture, struct kl_order_views *views);
void kl_order_views_fini(struct kl_order_views *views);

/** "block 2, elements 0-3, 8-11, and 4 more; channels 0, 1". */
void kl_order_view_text(const struct kl_order_views *views, int view, struct kl_text *to);

/** Why the order is undefined; or a note that for some chunks the other of two ranks makes the sum; or nothing. */
void kl_order_view_note(const struct kl_order_views *views, int view, struct kl_text *to);

/** Its size, and the drawing at (0, 0) as elements of SVG. */
float kl_order_view_width(const struct kl_order_views *views, int view);
float kl_order_view_height(const struct kl_order_views *views, int view);
void kl_order_view_draw(struct kl_order_views *views, int view, FILE *to);

/** The view of the first element that is asked for. */
ncclResult_t kl_order_picture_svg(const struct kl_order_picture *picture, FILE *to);
ncclResult_t kl_order_picture_html(const struct kl_order_picture *picture, FILE *to);

#endif
