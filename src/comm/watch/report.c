/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/watch/report.h"

#include "comm/watch/flight.h"

#define STUCK_NS UINT64_C(1000000000)

static bool is_open(const struct kl_status *s)
{
    return s->number && s->op_state != KL_FLIGHT_ENDED;
}

bool kl_report_agree(const struct kl_status *a, const struct kl_status *b)
{
    const struct kl_func_info *f = &kl_func_info[a->func];

    return a->func == b->func && a->count == b->count && a->type == b->type && (!f->reduces || a->op == b->op) &&
           (!f->rooted || a->peer == b->peer);
}

static void judge_one(struct kl_report_comm *c, const struct kl_status *s)
{
    c->missing--;
    c->init |= s->state == KL_STATUS_INIT;
    c->failed |= s->state == KL_STATUS_FAILED;
    if (s->collectives_issued > c->most) c->most = s->collectives_issued;
    if (s->collectives_issued < c->least) c->least = s->collectives_issued;
    if (s->op_state == KL_FLIGHT_RUNNING && s->collective > c->front) c->front = s->collective;
    if (is_open(s) && s->for_ns && (!c->longest || s->for_ns > c->longest->for_ns)) c->longest = s;
    for (const struct kl_status *o = c->status; o < s; o++) {
        if (!is_open(s) || !is_open(o) || !s->collective || o->collective != s->collective) continue;
        c->mismatch |= !kl_report_agree(o, s);
        break; /* the remaining ones agree with the first, unless the first of them has reported that already */
    }
}

struct kl_report_comm kl_report_judge(const struct kl_gathered *g, size_t first)
{
    const struct kl_status *s = &g->status[first];
    struct kl_report_comm c = {.status = s, .nranks = s->nranks, .missing = s->nranks, .least = UINT64_MAX};

    for (; first + c.n < g->n && s[c.n].communicator == s->communicator; c.n++) judge_one(&c, &s[c.n]);
    c.stuck = c.longest && c.longest->for_ns >= STUCK_NS && !c.failed;
    return c;
}

const char *kl_report_verdict(const struct kl_report_comm *c)
{
    if (c->failed) return "ERROR";
    if (c->mismatch) return "MISMATCH";
    if (c->missing) return "INCOMPLETE";
    return c->stuck ? "STUCK" : "OK";
}

bool kl_report_behind(const struct kl_report_comm *c, const struct kl_status *s)
{
    return c->stuck && s->collectives_issued < c->front;
}

bool kl_report_has(const struct kl_report_comm *c, int rank)
{
    size_t low = 0, high = c->n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c->status[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->n && c->status[low].rank == rank;
}
