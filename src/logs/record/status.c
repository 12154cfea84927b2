/* SPDX-License-Identifier: Apache-2.0 */
/** status.c - ranks that failed, that are dead or silent, and that called fewer operations than others. */
#include "logs/record/make.h"

#include "base/error.h"

#include <string.h>

/* ---- states ---- */

static bool is_at(const struct kl_record *r, int member, enum kl_member_state state)
{
    return r->member[member].state == state;
}

/* Ranks of a group in a state, and those that run. */
static ncclResult_t add_state(struct kl_record *r, int group, enum kl_member_state state, enum kl_record_code code,
                              enum kl_log_weight weight)
{
    const int first = r->group[group].first, end = first + r->group[group].n;
    int f, n = 0, runs = 0;

    for (int i = first; i < end; i++) {
        n += is_at(r, r->by_group[i], state);
        runs += is_at(r, r->by_group[i], KL_MEMBER_RUNS);
    }
    if (!n || (code == KL_RECORD_STATES_DIFFER && !runs && state != KL_MEMBER_INIT)) return ncclSuccess;
    KL_TRY(kl_record_new_finding(r, code, weight, &f));
    for (int i = first; i < end; i++)
        if (is_at(r, r->by_group[i], state)) KL_TRY(kl_record_add_rank(r, r->member[r->by_group[i]].rank));
    kl_record_end_ranks(r, f);
    for (int i = first; i < end; i++)
        if (is_at(r, r->by_group[i], KL_MEMBER_RUNS)) KL_TRY(kl_record_add_rank(r, r->member[r->by_group[i]].rank));
    kl_record_end_others(r, f);
    r->finding[f].group = group;
    r->finding[f].a = (int)state;
    return ncclSuccess;
}

/* Ranks of a group that failed in the same way as `like`, which is the first of them. */
static ncclResult_t add_failure(struct kl_record *r, int group, const struct kl_record_member *like)
{
    const int first = r->group[group].first, end = first + r->group[group].n;
    int f;

    KL_TRY(kl_record_new_finding(r, KL_RECORD_FAILED, KL_LOG_STOPS, &f));
    for (int i = first; i < end; i++) {
        const struct kl_record_member *m = &r->member[r->by_group[i]];

        if (m->code == like->code && m->failure == like->failure) KL_TRY(kl_record_add_rank(r, m->rank));
    }
    kl_record_end_ranks(r, f);
    r->finding[f].group = group;
    r->finding[f].a = like->code;
    r->finding[f].text = like->failure;
    return ncclSuccess;
}

static bool is_first_of_its_kind(const struct kl_record *r, int group, int at)
{
    const struct kl_record_member *m = &r->member[r->by_group[at]];

    for (int i = r->group[group].first; i < at; i++) {
        const struct kl_record_member *o = &r->member[r->by_group[i]];

        if (o->code == m->code && o->failure == m->failure) return false;
    }
    return true;
}

static ncclResult_t add_failures(struct kl_record *r, int group)
{
    const int first = r->group[group].first, end = first + r->group[group].n;

    for (int i = first, kinds = 0; i < end && kinds < 8; i++) {
        const struct kl_record_member *m = &r->member[r->by_group[i]];

        if (!m->code || !is_first_of_its_kind(r, group, i)) continue;
        kinds++;
        KL_TRY(add_failure(r, group, m));
    }
    return ncclSuccess;
}

ncclResult_t kl_record_find_states(struct kl_record *r)
{
    for (int g = 0; g < r->ngroup; g++) {
        KL_TRY(add_state(r, g, KL_MEMBER_DEAD, KL_RECORD_DEAD, KL_LOG_STOPS));
        KL_TRY(add_state(r, g, KL_MEMBER_SILENT, KL_RECORD_SILENT, KL_LOG_STOPS));
        KL_TRY(add_state(r, g, KL_MEMBER_ABORTED, KL_RECORD_STATES_DIFFER, KL_LOG_STOPS));
        KL_TRY(add_state(r, g, KL_MEMBER_INIT, KL_RECORD_STATES_DIFFER, KL_LOG_STOPS));
        KL_TRY(add_state(r, g, KL_MEMBER_ENDS, KL_RECORD_STATES_DIFFER, KL_LOG_COSTS));
        KL_TRY(add_failures(r, g));
    }
    return ncclSuccess;
}

/* ---- counts by function ---- */

static int64_t count_of(const struct kl_record *r, const struct kl_record_member *m, const char *function)
{
    for (int i = m->first_count; i < m->first_count + m->ncounts; i++)
        if (r->count[i].function == function) return r->count[i].n;
    return -1;
}

struct extremes {
    int64_t least, most;
};

static struct extremes extremes_of(const struct kl_record *r, int group, const char *function)
{
    struct extremes e = {INT64_MAX, -1};

    for (int i = r->group[group].first; i < r->group[group].first + r->group[group].n; i++) {
        const int64_t n = count_of(r, &r->member[r->by_group[i]], function);

        if (n < 0) continue;
        if (n < e.least) e.least = n;
        if (n > e.most) e.most = n;
    }
    return e;
}

/* Ranks with the fewest calls of a function; others: those with the most. */
static ncclResult_t add_behind(struct kl_record *r, int group, const char *function, struct extremes e)
{
    const int first = r->group[group].first, end = first + r->group[group].n;
    int f;

    KL_TRY(kl_record_new_finding(r, KL_RECORD_BEHIND, KL_LOG_STOPS, &f));
    for (int i = first; i < end; i++)
        if (count_of(r, &r->member[r->by_group[i]], function) == e.least)
            KL_TRY(kl_record_add_rank(r, r->member[r->by_group[i]].rank));
    kl_record_end_ranks(r, f);
    for (int i = first; i < end; i++)
        if (count_of(r, &r->member[r->by_group[i]], function) == e.most)
            KL_TRY(kl_record_add_rank(r, r->member[r->by_group[i]].rank));
    kl_record_end_others(r, f);
    r->finding[f].group = group;
    r->finding[f].text = function;
    r->finding[f].count = e.least;
    r->finding[f].most = e.most;
    return ncclSuccess;
}

ncclResult_t kl_record_find_counts(struct kl_record *r)
{
    for (int g = 0; g < r->ngroup; g++) {
        const struct kl_record_member *m = r->group[g].n ? &r->member[r->by_group[r->group[g].first]] : NULL;

        for (int i = 0; m && i < m->ncounts; i++) {
            const char *function = r->count[m->first_count + i].function;
            const struct extremes e = extremes_of(r, g, function);

            if (e.most > e.least) KL_TRY(add_behind(r, g, function, e));
        }
    }
    return ncclSuccess;
}

/* ---- twice ---- */

/* Names belong to a record each: they are compared as texts. */
static int64_t count_before(const struct kl_record *r, const char *group, int rank, const char *function)
{
    for (int k = 0; k < r->nmember; k++) {
        const struct kl_record_member *m = &r->member[k];

        if (m->rank != rank || strcmp(r->group[m->group].id, group) != 0) continue;
        for (int i = m->first_count; i < m->first_count + m->ncounts; i++)
            if (!strcmp(r->count[i].function, function)) return r->count[i].n;
    }
    return -1;
}

static bool has_moved(const struct kl_record *r, const struct kl_record_finding *f, const struct kl_record *before)
{
    for (int i = 0; i < f->n; i++) {
        const int64_t n = count_before(before, r->group[f->group].id, r->list[f->first + i], f->text);

        if (n < 0 || n >= f->count) return false;
    }
    return true;
}

void kl_record_compare(struct kl_record *r, const struct kl_record *before)
{
    for (int i = 0; i < r->nfinding; i++) {
        struct kl_record_finding *f = &r->finding[i];

        if (f->code != KL_RECORD_BEHIND || !has_moved(r, f, before)) continue;
        f->a = 1;
        f->weight = KL_LOG_REMARK;
    }
    kl_record_sort(r);
}
