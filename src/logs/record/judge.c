/* SPDX-License-Identifier: Apache-2.0 */
/** judge.c - findings about a record: the order of the rules, and the lists that they share. */
#include "logs/record/make.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* ---- members by group and rank ---- */

static int by_rank(const void *a, const void *b, void *ctx)
{
    const struct kl_record_member *m = ctx, *x = &m[*(const int *)a], *y = &m[*(const int *)b];

    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return *(const int *)a - *(const int *)b;
}

/* A rank has one flight record; other kinds may be split over files. */
static ncclResult_t check_members(const struct kl_record *r)
{
    for (int i = 1; i < r->nmember; i++) {
        const struct kl_record_member *m = &r->member[r->by_group[i - 1]], *next = &r->member[r->by_group[i]];
        const struct kl_record_file *one = &r->file[m->file], *other = &r->file[next->file];

        if (m->group != next->group || m->rank != next->rank || one == other) continue;
        if (one->kind != KL_INPUT_FLIGHT && one->kind != KL_INPUT_KOLO_FLIGHT) continue;
        return KL_FAIL(ncclInvalidUsage, "%s and %s are both records of rank %d: give one of each rank", one->name,
                       other->name, m->rank);
    }
    return ncclSuccess;
}

static ncclResult_t sort_members(struct kl_record *r)
{
    free(r->by_group);
    r->by_group = calloc((size_t)r->nmember + 1, sizeof *r->by_group);
    if (!r->by_group) return KL_NOMEM("members");
    for (int i = 0; i < r->nmember; i++) r->by_group[i] = i;
    qsort_r(r->by_group, (size_t)r->nmember, sizeof *r->by_group, by_rank, r->member);
    for (int i = 0; i < r->nmember; i++) {
        struct kl_record_group *g = &r->group[r->member[r->by_group[i]].group];

        if (!g->n++) g->first = i;
    }
    return check_members(r);
}

/* ---- calls ---- */

static bool is_collective(const struct kl_record_call *c)
{
    return c->kind == KL_CALL_COLLECTIVE;
}

static void look_at(struct kl_record *r, int index)
{
    struct kl_record_call *c = &r->call[index];
    struct kl_record_member *m = &r->member[c->member];

    if (c->kind == KL_CALL_BATCH) return; /* its calls have its state */
    if (c->state != KL_CALL_ENDED && m->open < 0) m->open = index;
    if (!is_collective(c)) return;
    if (m->last >= 0 && r->call[m->last].number == c->number) c->part = r->call[m->last].part + 1;
    m->last = index;
    if (m->oldest < 0) m->oldest = c->number;
    if (c->number > m->called) m->called = c->number;
    if (c->state == KL_CALL_ENDED && c->number > m->ended) m->ended = c->number;
}

static int by_number(const void *a, const void *b, void *ctx)
{
    const struct kl_record *r = ctx;
    const struct kl_record_call *x = &r->call[*(const int *)a], *y = &r->call[*(const int *)b];
    const struct kl_record_member *m = &r->member[x->member], *o = &r->member[y->member];

    if (m->group != o->group) return m->group < o->group ? -1 : 1;
    if (r->file[m->file].numbers == KL_NUMBERS_OF_FUNCTION && x->name != y->name) return strcmp(x->name, y->name);
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    if (x->part != y->part) return x->part < y->part ? -1 : 1;
    if (m->rank != o->rank) return m->rank < o->rank ? -1 : 1;
    return *(const int *)a - *(const int *)b;
}

static ncclResult_t sort_calls(struct kl_record *r, int **sorted, int *n)
{
    *n = 0;
    *sorted = calloc((size_t)r->ncall + 1, sizeof **sorted);
    if (!*sorted) return KL_NOMEM("calls");
    for (int i = 0; i < r->ncall; i++)
        if (is_collective(&r->call[i])) (*sorted)[(*n)++] = i;
    qsort_r(*sorted, (size_t)*n, sizeof **sorted, by_number, r);
    return ncclSuccess;
}

/* ---- remarks ---- */

static ncclResult_t remark(struct kl_record *r, enum kl_record_code code, int64_t n, int64_t m)
{
    int f;

    KL_TRY(kl_record_new_finding(r, code, KL_LOG_REMARK, &f));
    r->finding[f].count = n;
    r->finding[f].most = m;
    return ncclSuccess;
}

/* Are there files of fewer ranks than the largest group has? */
static ncclResult_t find_few(struct kl_record *r)
{
    int largest = -1;

    for (int i = 0; i < r->ngroup; i++)
        if (r->group[i].size > r->group[i].n && (largest < 0 || r->group[i].size > r->group[largest].size)) largest = i;
    return largest < 0 ? ncclSuccess : remark(r, KL_RECORD_FEW, r->group[largest].n, r->group[largest].size);
}

static ncclResult_t find_guessed(struct kl_record *r)
{
    int guessed = 0;

    for (int i = 0; i < r->nfile; i++) guessed += r->file[i].rank_guessed;
    return guessed ? remark(r, KL_RECORD_RANKS_GUESSED, guessed, r->nfile) : ncclSuccess;
}

/* ---- all ---- */

static ncclResult_t run_rules(struct kl_record *r, const int *sorted, int n, bool *mismatch)
{
    KL_TRY(kl_record_find_groups(r));
    KL_TRY(kl_record_find_mismatches(r, sorted, n, mismatch));
    KL_TRY(kl_record_find_states(r));
    KL_TRY(kl_record_find_counts(r));
    KL_TRY(kl_record_find_waits(r, mismatch));
    KL_TRY(kl_record_find_times(r, sorted, n));
    KL_TRY(find_few(r));
    return find_guessed(r);
}

ncclResult_t kl_record_judge(struct kl_record *r)
{
    bool *mismatch = calloc((size_t)r->ngroup + 1, sizeof *mismatch);
    int *sorted = NULL, n = 0;
    ncclResult_t rc = mismatch ? sort_members(r) : KL_NOMEM("groups");

    for (int i = 0; i < r->ncall && !rc; i++) look_at(r, i);
    if (!rc) rc = sort_calls(r, &sorted, &n);
    if (!rc) rc = run_rules(r, sorted, n, mismatch);
    free(sorted);
    free(mismatch);
    kl_record_sort(r);
    return rc;
}
