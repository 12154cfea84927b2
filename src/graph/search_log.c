/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/search_log.h"

#include "base/error.h"

#include <stdlib.h>

static struct kl_search_log_entry begin(const struct kl_conn_request *a, int i)
{
    return (struct kl_search_log_entry){.first = i,
                                        .pass = a->pass,
                                        .type_intra = {a->type_intra, a->type_intra},
                                        .type_inter = {a->type_inter, a->type_inter},
                                        .cross_nic = {a->cross_nic, a->cross_nic},
                                        .same_channels = {a->same_channels, a->same_channels},
                                        .pattern = {a->pattern, a->pattern},
                                        .bw_from = a->bw_intra,
                                        .inter_from = a->bw_inter,
                                        .limiting_link = -1};
}

static void widen(struct kl_range *r, int value)
{
    if (value < r->from) r->from = value;
    if (value > r->to) r->to = value;
}

static void extend(struct kl_search_log_entry *c, const struct kl_conn_request *a, int i)
{
    widen(&c->type_intra, a->type_intra);
    widen(&c->type_inter, a->type_inter);
    widen(&c->cross_nic, a->cross_nic);
    widen(&c->same_channels, a->same_channels);
    widen(&c->pattern, a->pattern);
    c->last = i;
    c->bw_to = a->bw_intra;
    c->inter_to = a->bw_inter;
    c->stored = a->stored;
    c->next = a->next;
    c->repeated += a->repeats >= 0;
    c->hopeless += a->repeats < 0 && a->end == KL_ATTEMPT_PRUNED;
    if (a->repeats >= 0 || a->end == KL_ATTEMPT_PRUNED) return;
    c->made++;
    c->timeouts += a->end == KL_ATTEMPT_TIMEOUT;
    c->steps += a->steps;
}

/* The link that refused most often in an entry; `refusals` is by link, and zero again afterwards. */
static int limiting_link(const struct kl_graph_why *why, const struct kl_search_log_entry *c, long long *refusals)
{
    int worst = -1;

    for (int i = c->first; i <= c->last; i++) {
        int l = why->attempt[i].limiting_link;

        if (l < 0) continue;
        refusals[l] += why->attempt[i].refusals;
        if (worst < 0 || refusals[l] > refusals[worst]) worst = l;
    }
    for (int i = c->first; i <= c->last; i++)
        if (why->attempt[i].limiting_link >= 0) refusals[why->attempt[i].limiting_link] = 0;
    return worst;
}

struct kl_search_log_entry kl_search_log_attempt(const struct kl_graph_why *why, int i)
{
    struct kl_search_log_entry c = begin(&why->attempt[i], i);

    extend(&c, &why->attempt[i], i);
    c.limiting_link = why->attempt[i].limiting_link;
    return c;
}

ncclResult_t kl_search_log_total(const struct kl_graph_why *why, const struct kl_topo *t, struct kl_search_log_entry *c)
{
    long long *refusals = calloc((size_t)t->nlinks + 1, sizeof *refusals);

    if (!refusals) return KL_NOMEM("the log of a search");
    *c = why->nattempts ? begin(&why->attempt[0], 0) : (struct kl_search_log_entry){.last = -1, .limiting_link = -1};
    for (int i = 0; i < why->nattempts; i++) extend(c, &why->attempt[i], i);
    c->limiting_link = limiting_link(why, c, refusals);
    free(refusals);
    return ncclSuccess;
}

ncclResult_t kl_search_log_create(const struct kl_graph_why *why, const struct kl_topo *t, struct kl_search_log **log)
{
    struct kl_search_log *s = malloc(sizeof *s + (size_t)why->nattempts * sizeof s->entry[0]);
    long long *refusals = calloc((size_t)t->nlinks + 1, sizeof *refusals);

    if (!s || !refusals) {
        free(s);
        free(refusals);
        return KL_NOMEM("the log of a search");
    }
    s->log_entries = 0;
    for (int i = 0; i < why->nattempts; i++) {
        const struct kl_conn_request *a = &why->attempt[i];
        bool alone = a->stored || !i || why->attempt[i - 1].stored || why->attempt[i - 1].pass != a->pass;

        if (alone) s->entry[s->log_entries++] = begin(a, i);
        extend(&s->entry[s->log_entries - 1], a, i);
    }
    for (int c = 0; c < s->log_entries; c++) s->entry[c].limiting_link = limiting_link(why, &s->entry[c], refusals);
    free(refusals);
    *log = s;
    return ncclSuccess;
}
