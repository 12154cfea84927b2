/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/parse.h"
#include "device/host/redop.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/order_print.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ELEMENTS = 64 };

static const int64_t largest = (int64_t)16 << 30;

/* ---- the question ---- */

/* The question behind "order": a collective and its size. */
static ncclResult_t read_operation(const struct kl_explain_request *q, struct kl_coll_asked *a)
{
    struct kl_explain_request inner = *q;
    ncclResult_t rc;

    inner.question = q->word[0];
    inner.word = q->word + 1;
    inner.nwords = q->nwords - 1;
    rc = kl_coll_read(&inner, a);
    if (!rc && a->func < 0)
        rc = KL_FAIL(ncclInvalidArgument, "%s adds nothing; expected all_reduce, reduce_scatter or reduce", q->word[0]);
    return rc;
}

/* Numbers separated by commas. */
static ncclResult_t read_list(const char *option, const char *text, int64_t *list, int most, int *n)
{
    char copy[256], *rest = copy, *word;

    *n = 0;
    if (!text) return ncclSuccess;
    if (strlen(text) >= sizeof copy) return KL_FAIL(ncclInvalidArgument, "%s: the list is too long", option);
    strcpy(copy, text);
    while ((word = strsep(&rest, ","))) {
        uint64_t value;

        if (*n == most) return KL_FAIL(ncclInvalidArgument, "%s: at most %d numbers", option, most);
        if (!kl_parse_size(word, &value) || value > (uint64_t)INT64_MAX)
            return KL_FAIL(ncclInvalidArgument, "%s: \"%s\" is no number; expected some separated by commas", option,
                           word);
        list[(*n)++] = (int64_t)value;
    }
    return ncclSuccess;
}

struct question {
    const struct kl_explain_request *q;
    struct kl_coll_asked asked;
    int64_t more[KL_ORDER_GROUP], element[MOST_ELEMENTS];
    int nmore, nelements;
    struct kl_order_request request;
};

static ncclResult_t read_question(const struct kl_explain_request *q, struct question *u)
{
    int64_t root = 0;
    int n;

    memset(u, 0, sizeof *u);
    u->q = q;
    KL_TRY(read_operation(q, &u->asked));
    KL_TRY(read_list("--group", q->group, u->more, KL_ORDER_GROUP - 1, &u->nmore));
    KL_TRY(read_list("--element", q->element, u->element, MOST_ELEMENTS, &u->nelements));
    KL_TRY(read_list("--root", q->root, &root, 1, &n));
    bool all = u->asked.first == u->asked.last || q->nwords < 2;

    u->request = (struct kl_order_request){.func = u->asked.func,
                                           .type = u->asked.type,
                                           .op = u->asked.op,
                                           .bytes = u->asked.last,
                                           .first = all ? 1 : u->asked.first,
                                           .last = all ? largest : u->asked.last,
                                           .more = u->more,
                                           .nmore = u->nmore,
                                           .root = (int)root,
                                           .registered = q->registered || q->captured};
    if (q->nwords < 2) u->request.bytes = (int64_t)64 << 20; /* an example */
    if (u->request.bytes > u->request.last) u->request.last = u->request.bytes;
    return ncclSuccess;
}

/* ---- a plan, and its order ---- */

struct planned {
    struct kl_cluster cluster;
    struct kl_planned planned;
    struct kl_order order;
};

static void close_plan(struct planned *p)
{
    kl_order_fini(&p->order);
    kl_planned_fini(&p->planned);
    kl_cluster_close(&p->cluster);
}

static ncclResult_t open_plan(const struct kl_cluster_request *request, const struct kl_order_request *asked,
                              struct kl_order_sums *sums, struct planned *p)
{
    ncclResult_t rc;

    memset(p, 0, sizeof *p);
    KL_TRY(kl_cluster_options_open(request, &p->cluster));
    rc = kl_planned_init(&p->cluster, &p->planned);
    if (!rc) rc = kl_order_find(asked, &p->cluster, &p->planned, sums, &p->order);
    if (rc) close_plan(p);
    return rc;
}

/* ---- --vs: a size, a setting or a release ---- */

static ncclResult_t compare(const struct question *u, struct kl_order_sums *sums, const struct planned *p,
                            struct kl_order_difference *d)
{
    const char *vs = u->q->vs;
    struct kl_cluster_request request = u->q->cluster;
    struct kl_order_request asked = u->request;
    const char *with[64];
    struct planned other;
    uint64_t bytes;

    if (strchr(vs, '=')) {
        if (request.edits.with.n >= 63) return KL_FAIL(ncclInvalidArgument, "--vs: too many --with");
        for (int i = 0; i < request.edits.with.n; i++) with[i] = request.edits.with.text[i];
        with[request.edits.with.n++] = vs;
        request.edits.with.text = with;
    } else if (kl_nccl_parse(vs) >= 0) {
        request.nccl = vs;
    } else if (kl_parse_size(vs, &bytes) && bytes && bytes < (uint64_t)INT64_MAX) {
        asked.bytes = (int64_t)bytes;
    } else {
        return KL_FAIL(ncclInvalidArgument, "--vs %s: expected a size, NAME=VALUE, or a release of NCCL", vs);
    }
    KL_TRY(open_plan(&request, &asked, sums, &other));
    ncclResult_t rc = ncclSuccess;

    if (other.order.rules.nranks != p->order.rules.nranks)
        rc = KL_FAIL(ncclInvalidUsage, "--vs %s: %d ranks instead of %d", vs, other.order.rules.nranks,
                     p->order.rules.nranks);
    if (!rc) *d = kl_order_compare(&p->order, &other.order);
    close_plan(&other);
    return rc;
}

/* ---- the answer ---- */

static ncclResult_t print(struct question *u, struct planned *p, struct kl_order_sums *sums, FILE *to)
{
    struct kl_order_answered answer = {.asked = &u->asked,
                                       .order = &p->order,
                                       .vs = u->q->vs,
                                       .differs = {.element = -1},
                                       .element = u->element,
                                       .nelements = u->nelements,
                                       .lint = u->q->lint};

    if (u->q->vs) KL_TRY(compare(u, sums, p, &answer.differs));
    if (!u->q->lint) KL_TRY(kl_order_find_settings(&p->order, &u->q->cluster));
    kl_order_find_lints(&p->order, &p->cluster);
    u->asked.cluster = &p->cluster;
    u->asked.ranks = p->planned.plan->nranks;
    u->asked.nodes = p->planned.plan->connect->nodes.nnodes;
    u->asked.first = u->asked.last = u->request.bytes;
    if (u->q->json) return kl_order_json(&answer, to);
    kl_print_preamble(&p->cluster, to);
    kl_order_text(&answer, to);
    kl_assumed_print(&p->cluster, "", to);
    kl_uncertain_print(&p->cluster, "", to);
    return ncclSuccess;
}

ncclResult_t kl_explain_order(const struct kl_explain_request *q, FILE *to)
{
    struct kl_order_sums sums = {.nterms = 0};
    struct question u;
    struct planned p;
    ncclResult_t rc;

    KL_TRY(read_question(q, &u));
    KL_TRY_OR(rc, out, open_plan(&q->cluster, &u.request, &sums, &p));
    rc = print(&u, &p, &sums, to);
    close_plan(&p);
out:
    kl_order_sums_fini(&sums);
    return rc;
}
