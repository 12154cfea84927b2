/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "plan/timeline_make.h"

#include <math.h>
#include <stdlib.h>

enum { NEAR = 4 }; /* percent: closer rows are the same */

/* A link's load, in percent of its capacity; false if that is zero, or it has no limit. */
static bool look(const struct kl_flows *f, const struct kl_timeline *t, int link, struct kl_timeline_row *row)
{
    const float *carried = &f->carried[(size_t)link * KL_TIMELINE_BINS];
    double could = f->bw[link] * t->us / KL_TIMELINE_BINS, sum = 0;

    if (f->bw[link] >= (double)KL_BW_LOCAL * 1e3) return false;
    for (int i = 0; i < KL_TIMELINE_BINS; i++) {
        double percent = 100 * (double)carried[i] / could;

        row->percent[i] = (uint8_t)fmin(100, percent + 0.5);
        sum += percent;
    }
    row->mean = (float)(sum / KL_TIMELINE_BINS);
    return sum > 0;
}

static const struct kl_link *link_of(const struct kl_flows *f, const struct kl_timeline_row *row)
{
    return &f->plan->domain[row->domain].topo->link[row->link];
}

/* Links between nodes of the same types, busy at the same times. */
static bool is_like(const struct kl_flows *f, const struct kl_timeline_row *a, const struct kl_timeline_row *b)
{
    const struct kl_link *l = link_of(f, a), *m = link_of(f, b);
    const struct kl_topo *t = f->plan->domain[a->domain].topo, *u = f->plan->domain[b->domain].topo;

    if (l->type != m->type || t->node[l->from].type != u->node[m->from].type) return false;
    if (t->node[l->to].type != u->node[m->to].type) return false;
    for (int i = 0; i < KL_TIMELINE_BINS; i++)
        if (abs(a->percent[i] - b->percent[i]) > NEAR) return false;
    return true;
}

static void add(const struct kl_flows *f, struct kl_timeline *t, const struct kl_timeline_row *row)
{
    for (int i = 0; i < t->nrows; i++) {
        if (!is_like(f, &t->row[i], row)) continue;
        t->row[i].like++;
        return;
    }
    t->row[t->nrows++] = *row;
}

/* By type, from NVLink to the network, then the busiest first; stable. */
static void sort(const struct kl_flows *f, struct kl_timeline *t)
{
    for (int i = 1; i < t->nrows; i++) {
        struct kl_timeline_row row = t->row[i];
        int k = i;

        for (; k > 0; k--) {
            const struct kl_timeline_row *before = &t->row[k - 1];
            int a = link_of(f, before)->type, b = link_of(f, &row)->type;

            if (a < b || (a == b && before->mean >= row.mean - 0.5f)) break;
            t->row[k] = *before;
        }
        t->row[k] = row;
    }
}

ncclResult_t kl_timeline_fold(const struct kl_flows *f, struct kl_timeline *t)
{
    const struct kl_plan *p = f->plan;

    t->row = malloc(((size_t)f->nlinks + 1) * sizeof *t->row);
    if (!t->row) return KL_NOMEM("a timeline");
    for (int h = 0, link = 0; link < f->nlinks; h++)
        for (int d = 0; d < p->ndomains; d++)
            for (int k = 0; k < p->domain[d].topo->nlinks; k++, link++) {
                struct kl_timeline_row row = {.host = h, .domain = d, .link = k};

                if (look(f, t, link, &row)) add(f, t, &row);
            }
    sort(f, t);
    return ncclSuccess;
}
