/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/channels.h"
#include "base/error.h"
#include "tools/kolo/picture/order.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SPANS = 6 };

/* ---- the ranges that are shown ---- */

static bool holds(const struct kl_order_range *r, int64_t element)
{
    return r->block == 0 && element >= r->first && element < r->first + r->count;
}

static ncclResult_t check_elements(const struct kl_order_picture *p)
{
    const struct kl_order *o = &p->answer->order;

    for (int i = 0; i < p->nelements; i++)
        if (!kl_order_range_at(o, 0, p->element[i]))
            return KL_FAIL(ncclInvalidArgument, "--element %" PRId64 ": elements are 0 to %" PRId64, p->element[i],
                           o->op->count - 1);
    return ncclSuccess;
}

/* ---- ranges that are added alike ---- */

static bool same_steps(const struct kl_order_steps *a, const struct kl_order_steps *b)
{
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++)
        if (a->step[i].by != b->step[i].by || a->step[i].from != b->step[i].from) return false;
    return true;
}

static bool may_share(const struct kl_order_view *v, const struct kl_order_range *r)
{
    return v->range->block == r->block && v->range->sum == r->sum && v->range->end == r->end;
}

/* The view of a range: -1 if there is none yet; then its steps are in `steps`. */
static ncclResult_t find_view(const struct kl_order_views *v, const struct kl_order_range *r,
                              struct kl_order_steps *steps, int *found)
{
    *found = -1;
    for (int i = 0; i < v->n; i++)
        if (may_share(&v->view[i], r) && v->view[i].channels >> r->channel & 1) return *found = i, ncclSuccess;
    KL_TRY(kl_order_steps_of(v->order, r, steps));
    for (int i = 0; i < v->n && *found < 0; i++)
        if (may_share(&v->view[i], r) && same_steps(&v->view[i].steps, steps)) *found = i;
    if (*found >= 0) kl_order_steps_fini(steps);
    return ncclSuccess;
}

/* Put a range into its view, or into a new one where it may have one. */
static ncclResult_t take(struct kl_order_views *v, int range, bool may_be_new)
{
    const struct kl_order_range *r = &v->order->ranges.range[range];
    struct kl_order_steps steps = {.n = 0};
    int at;
    ncclResult_t rc = find_view(v, r, &steps, &at);

    if (rc || (at < 0 && (!may_be_new || v->n == KL_ORDER_VIEWS))) {
        kl_order_steps_fini(&steps);
        v->hidden++;
        return rc;
    }
    if (at < 0) v->view[at = v->n++] = (struct kl_order_view){.range = r, .steps = steps};
    v->view[at].channels |= (uint64_t)1 << r->channel;
    v->view_of[range] = at;
    return ncclSuccess;
}

/* The elements that are asked for have the first views, in the order in which they were given. */
static ncclResult_t take_asked(const struct kl_order_picture *p, struct kl_order_views *v)
{
    for (int k = 0; k < p->nelements; k++)
        for (int i = 0; i < v->order->ranges.n; i++)
            if (v->view_of[i] < 0 && holds(&v->order->ranges.range[i], p->element[k])) KL_TRY(take(v, i, true));
    return ncclSuccess;
}

ncclResult_t kl_order_views_of(const struct kl_order_picture *p, struct kl_order_views *v)
{
    const int n = p->answer->order.ranges.n;

    *v = (struct kl_order_views){.order = &p->answer->order};
    KL_TRY(check_elements(p));
    v->view_of = malloc(((size_t)n + 1) * sizeof *v->view_of);
    v->row = malloc((size_t)v->order->rules.nranks * sizeof *v->row);
    v->done = malloc((size_t)v->order->rules.nranks * sizeof *v->done);
    if (!v->view_of || !v->row || !v->done) return KL_NOMEM("a picture");
    for (int i = 0; i < n; i++) v->view_of[i] = -1;
    KL_TRY(take_asked(p, v));
    v->hidden = 0;
    for (int i = 0; i < n; i++)
        if (v->view_of[i] < 0) KL_TRY(take(v, i, !p->nelements));
    return ncclSuccess;
}

void kl_order_views_fini(struct kl_order_views *v)
{
    for (int i = 0; i < v->n; i++) kl_order_steps_fini(&v->view[i].steps);
    free(v->view_of);
    free(v->row);
    free(v->done);
    *v = (struct kl_order_views){.n = 0};
}

/* ---- words ---- */

static void add_spans(const struct kl_order_views *v, int view, struct kl_text *to)
{
    const struct kl_order_ranges *ranges = &v->order->ranges;
    int64_t first = -1, end = -1;
    int n = 0;

    for (int i = 0; i <= ranges->n; i++) {
        const struct kl_order_range *r = i < ranges->n ? &ranges->range[i] : NULL;

        if (r && v->view_of[i] != view) continue;
        if (r && r->first == end) {
            end += r->count;
            continue;
        }
        if (first >= 0 && n++ < SPANS) kl_text_add(to, "%s%" PRId64 "-%" PRId64, n > 1 ? ", " : "", first, end - 1);
        if (r) first = r->first, end = first + r->count;
    }
    if (n > SPANS) kl_text_add(to, ", and %d more", n - SPANS);
}

void kl_order_view_text(const struct kl_order_views *v, int view, struct kl_text *to)
{
    const struct kl_order_view *w = &v->view[view];
    char names[KL_CHANNELS_TEXT];

    if (v->order->request.func == KL_FUNC_REDUCE_SCATTER) kl_text_add(to, "block %d, ", w->range->block);
    kl_text_add(to, "elements ");
    add_spans(v, view, to);
    if (kl_order_whole(v->order->op->choice.algo, v->order->rules.nnodes))
        kl_text_add(to, "; all channels");
    else
        kl_text_add(to, "; channel%s %s", kl_plural(__builtin_popcountll(w->channels)),
                    kl_channels_text(w->channels, names, sizeof names));
}

void kl_order_view_note(const struct kl_order_views *v, int view, struct kl_text *to)
{
    const struct kl_order *o = v->order;
    const struct kl_order_view *w = &v->view[view];

    if (kl_order_undefined(o->op->choice.algo)) kl_text_add(to, "%s", o->verdict[KL_ORDER_IN_RUNS].text);
    if (w->steps.n && w->range->end < 0 && !kl_order_steps_of_nodes(o))
        kl_text_add(to, "of some chunks the other rank makes the sum, with the same bits");
}
