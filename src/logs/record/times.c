/* SPDX-License-Identifier: Apache-2.0 */
/**
 * times.c - stragglers, and communication that computation does not hide.
 *
 * A collective ends at all ranks at about the same time, so the rank to which it is the shortest came last, and the others waited
 * for it for the rest of their time. No clocks are compared.
 */
#include "logs/record/make.h"

#include "base/error.h"

#include <stdlib.h>

enum { FEWEST = 4 }; /* collectives, to speak of a straggler */
static const double OFTEN = 0.7, MUCH = 0.1;

/* Of a group. */
struct tally {
    int *last;    /* how often each member came last */
    double *lost; /* time that others waited for it */
    double total;
    int collectives;
};

static ncclResult_t start(struct tally *t, int n)
{
    *t = (struct tally){.last = calloc((size_t)n + 1, sizeof *t->last), .lost = calloc((size_t)n + 1, sizeof *t->lost)};
    return t->last && t->lost ? ncclSuccess : KL_NOMEM("times");
}

static void finish(struct tally *t)
{
    free(t->last);
    free(t->lost);
}

/* Position of a call's member in its group. */
static int place_of(const struct kl_record *r, int call)
{
    const int member = r->call[call].member, group = r->member[member].group;
    const int found = kl_record_find(r, group, r->member[member].rank);

    for (int i = r->group[group].first; i < r->group[group].first + r->group[group].n; i++)
        if (r->by_group[i] == found) return i - r->group[group].first;
    return 0;
}

/* One collective: sorted[from] ... sorted[end - 1], of all members that have a record. */
static void count_one(const struct kl_record *r, const int *sorted, int from, int end, struct tally *t)
{
    int shortest = sorted[from];
    double sum = 0, waited = 0;

    for (int i = from; i < end; i++) {
        const struct kl_record_call *c = &r->call[sorted[i]];

        if (c->took_us < 0 || kl_record_call_differs(c, &r->call[sorted[from]])) return;
        if (c->took_us < r->call[shortest].took_us) shortest = sorted[i];
        sum += c->took_us;
    }
    for (int i = from; i < end; i++) waited += r->call[sorted[i]].took_us - r->call[shortest].took_us;
    const int place = place_of(r, shortest);

    t->last[place]++;
    t->lost[place] += waited;
    t->total += sum;
    t->collectives++;
}

static ncclResult_t judge(struct kl_record *r, int group, const struct tally *t)
{
    const struct kl_record_group *g = &r->group[group];
    int worst = 0, f;

    for (int i = 1; i < g->n; i++)
        if (t->lost[i] > t->lost[worst]) worst = i;
    if (t->collectives < FEWEST || t->last[worst] < OFTEN * t->collectives || t->lost[worst] < MUCH * t->total)
        return ncclSuccess;
    KL_TRY(kl_record_new_finding(r, KL_RECORD_STRAGGLER, KL_LOG_COSTS, &f));
    KL_TRY(kl_record_add_rank(r, r->member[r->by_group[g->first + worst]].rank));
    kl_record_end_ranks(r, f);
    r->finding[f].group = group;
    r->finding[f].count = t->last[worst];
    r->finding[f].most = t->collectives;
    r->finding[f].x = t->lost[worst];
    r->finding[f].y = t->lost[worst] / t->total;
    return ncclSuccess;
}

/* Numbers within a file name the same collective only where all files hold as many. */
static bool are_comparable(const struct kl_record *r, int group)
{
    const struct kl_record_group *g = &r->group[group];
    const struct kl_record_member *a = &r->member[r->by_group[g->first]];

    for (int i = g->first; i < g->first + g->n; i++) {
        const struct kl_record_member *m = &r->member[r->by_group[i]];

        if (r->file[m->file].numbers == KL_NUMBERS_OF_FILE && m->called != a->called) return false;
    }
    return g->n > 1;
}

static ncclResult_t judge_group(struct kl_record *r, const int *sorted, int from, int end, int group)
{
    struct tally t;
    ncclResult_t rc = start(&t, r->group[group].n);

    for (int i = from, next; i < end && !rc; i = next) {
        for (next = i + 1; next < end && kl_record_same_number(r, sorted[i], sorted[next]);) next++;
        if (next - i == r->group[group].n) count_one(r, sorted, i, next, &t);
    }
    if (!rc) rc = judge(r, group, &t);
    finish(&t);
    return rc;
}

static ncclResult_t find_exposed(struct kl_record *r)
{
    int worst = -1, f;
    double most = MUCH;

    for (int i = 0; i < r->nfile; i++) {
        const struct kl_record_file *file = &r->file[i];
        const double part =
            file->span_us > 0 && file->compute_us > 0 ? (file->comm_us - file->hidden_us) / file->span_us : 0;

        if (part <= most) continue;
        most = part;
        worst = i;
    }
    if (worst < 0) return ncclSuccess;
    KL_TRY(kl_record_new_finding(r, KL_RECORD_EXPOSED, KL_LOG_COSTS, &f));
    KL_TRY(kl_record_add_rank(r, r->file[worst].rank));
    kl_record_end_ranks(r, f);
    r->finding[f].file = worst;
    r->finding[f].x = most;
    r->finding[f].y = r->file[worst].comm_us / r->file[worst].span_us;
    return ncclSuccess;
}

ncclResult_t kl_record_find_times(struct kl_record *r, const int *sorted, int n)
{
    for (int from = 0, end; from < n; from = end) {
        const int group = r->member[r->call[sorted[from]].member].group;

        for (end = from + 1; end < n && r->member[r->call[sorted[end]].member].group == group;) end++;
        if (are_comparable(r, group)) KL_TRY(judge_group(r, sorted, from, end, group));
    }
    return find_exposed(r);
}
