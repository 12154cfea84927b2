/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/inner.h"
#include "tools/kolo/explain/order_print.h"
#include "tools/kolo/picture/order.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ELEMENTS = 64 };

struct question {
    struct kl_order_question order;
    int64_t group[KL_ORDER_GROUP], element[MOST_ELEMENTS];
    int nelements;
    const char *format;
};

/* ---- the question ---- */

static bool is_picture(const char *format)
{
    return !strcmp(format, "svg") || !strcmp(format, "html");
}

static ncclResult_t read_format(const struct kl_explain_request *q, struct question *u)
{
    u->format = q->json ? "json" : q->format ? q->format : "text";
    if (q->json && q->format && strcmp(q->format, "json") != 0)
        return KL_FAIL(ncclInvalidArgument, "--json and --format %s are two formats", q->format);
    if (strcmp(u->format, "text") != 0 && strcmp(u->format, "json") != 0 && !is_picture(u->format))
        return KL_FAIL(ncclInvalidArgument, "no format \"%s\": text, json, svg or html", u->format);
    if (is_picture(u->format) && q->lint)
        return KL_FAIL(ncclInvalidArgument, "--lint has no picture: --format is text or json");
    return ncclSuccess;
}

static ncclResult_t read_question(const struct kl_explain_request *q, struct question *u)
{
    *u = (struct question){
        .order = {.group = u->group, .registered = q->registered || q->captured, .lint = q->lint, .vs = q->vs}};
    KL_TRY(read_format(q, u));
    KL_TRY(kl_inner_operation(q, &u->order.op));
    KL_TRY(kl_inner_list("--group", q->group, u->group, KL_ORDER_GROUP - 1, &u->order.ngroup));
    KL_TRY(kl_inner_list("--element", q->element, u->element, MOST_ELEMENTS, &u->nelements));
    return kl_inner_number("--root", q->root, &u->order.root);
}

/* ---- its answer ---- */

static void print_text(const struct kl_order_answer *x, const struct question *u, FILE *to)
{
    kl_print_preamble(x->asked.cluster, to);
    kl_order_text(x, u->element, u->nelements, to);
    kl_assumed_print(x->asked.cluster, "", to);
    kl_uncertain_print(x->asked.cluster, "", to);
}

static ncclResult_t print_picture(const struct kl_order_answer *x, const struct question *u, FILE *to)
{
    struct kl_order_picture picture = {.answer = x, .element = u->element, .nelements = u->nelements};
    char *title = NULL;
    size_t size;
    FILE *line = open_memstream(&title, &size);

    if (!line) return KL_NOMEM("a picture");
    kl_coll_headline(&x->asked, line);
    if (fclose(line)) {
        free(title);
        return KL_NOMEM("a picture");
    }
    picture.title = title;
    kl_finding_warn(x->asked.cluster);
    ncclResult_t rc =
        strcmp(u->format, "svg") ? kl_order_picture_html(&picture, to) : kl_order_picture_svg(&picture, to);

    free(title);
    return rc;
}

static ncclResult_t print(const struct kl_order_answer *x, const struct question *u, FILE *to)
{
    if (!strcmp(u->format, "json")) return kl_order_json(x, to);
    if (is_picture(u->format)) return print_picture(x, u, to);
    print_text(x, u, to);
    return ncclSuccess;
}

ncclResult_t kl_explain_order(const struct kl_explain_request *q, FILE *to)
{
    struct kl_order_answer x;
    struct question u;
    struct kl_opened opened;

    KL_TRY(read_question(q, &u));
    KL_TRY(kl_cluster_options_open(&q->cluster, &opened));
    ncclResult_t rc = kl_order_answer_make(&u.order, &q->cluster, &opened, &x);

    if (!rc) rc = print(&x, &u, to);
    kl_order_answer_fini(&x);
    kl_opened_fini(&opened);
    return rc;
}
