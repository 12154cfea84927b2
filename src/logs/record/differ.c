/* SPDX-License-Identifier: Apache-2.0 */
/** differ.c - groups whose ranks differ, and calls that differ where they should be the same. */
#include "logs/record/make.h"

#include "base/error.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- calls ---- */

/* Which numbers of elements are the same at all ranks, by the begin of the name without underscores, in lower case. */
static const struct {
    const char *name;
    bool in, out;
} alike[] = {
    {"allreduce", true, true},   {"reducescatterv", true, false}, {"reducescatter", true, true},
    {"allgatherv", false, true}, {"allgather", true, true},       {"broadcast", false, true},
    {"reduce", true, false},     {"gather", true, false},         {"scatter", false, true},
};

static void plain_name(const char *name, char *plain, size_t size)
{
    size_t n = 0;

    for (; *name && n + 1 < size; name++)
        if (*name != '_') plain[n++] = (char)tolower((unsigned char)*name);
    plain[n] = 0;
}

static bool sizes_differ(const struct kl_record_call *a, const struct kl_record_call *b)
{
    char name[64];

    plain_name(a->name, name, sizeof name);
    for (size_t i = 0; i < sizeof alike / sizeof alike[0]; i++) {
        if (strncmp(name, alike[i].name, strlen(alike[i].name))) continue;
        return (alike[i].in && a->in >= 0 && b->in >= 0 && a->in != b->in) ||
               (alike[i].out && a->out >= 0 && b->out >= 0 && a->out != b->out);
    }
    return false;
}

bool kl_record_same_number(const struct kl_record *r, int a, int b)
{
    const struct kl_record_call *x = &r->call[a], *y = &r->call[b];
    const struct kl_record_member *m = &r->member[x->member];

    if (m->group != r->member[y->member].group || x->number != y->number || x->part != y->part) return false;
    return r->file[m->file].numbers != KL_NUMBERS_OF_FUNCTION || x->name == y->name;
}

static bool texts_differ(const char *a, const char *b)
{
    return *a && *b && a != b; /* equal names are one */
}

enum kl_call_field kl_record_call_differs(const struct kl_record_call *a, const struct kl_record_call *b)
{
    if (texts_differ(a->name, b->name)) return KL_FIELD_NAME;
    if (texts_differ(a->op, b->op)) return KL_FIELD_OP;
    if (texts_differ(a->type, b->type)) return KL_FIELD_TYPE;
    if (sizes_differ(a, b)) return KL_FIELD_SIZE;
    return a->root >= 0 && b->root >= 0 && a->root != b->root ? KL_FIELD_ROOT : KL_FIELD_SAME;
}

/* ---- one collective ---- */

/* Calls of one collective by rank: sorted[from] ... sorted[end - 1]. */
struct span {
    const int *sorted;
    int from, end;
};

static int equals(const struct kl_record *r, struct span s, int call)
{
    int n = 0;

    for (int i = s.from; i < s.end; i++) n += !kl_record_call_differs(&r->call[call], &r->call[s.sorted[i]]);
    return n;
}

/* The call that most ranks made; of several the one with the lowest rank. */
static int most_common(const struct kl_record *r, struct span s)
{
    int best = s.sorted[s.from], most = equals(r, s, best);

    for (int i = s.from + 1; i < s.end && 2 * most < s.end - s.from; i++) {
        const int n = equals(r, s, s.sorted[i]);

        if (n > most) {
            most = n;
            best = s.sorted[i];
        }
    }
    return best;
}

/* The same member's next collective; -1: none. */
static int call_after(const struct kl_record *r, int call)
{
    for (int i = call + 1; i < r->ncall && i < call + 4096; i++)
        if (r->call[i].member == r->call[call].member && r->call[i].kind == KL_CALL_COLLECTIVE) return i;
    return -1;
}

static bool same_call(const struct kl_record *r, int a, int b)
{
    return a >= 0 && b >= 0 && !kl_record_call_differs(&r->call[a], &r->call[b]);
}

/* Is the order shifted? 1: `odd` left a call out; 2: it has one more. */
static int shift_of(const struct kl_record *r, int odd, int usual)
{
    if (same_call(r, odd, call_after(r, usual))) return 1;
    return same_call(r, call_after(r, odd), usual) ? 2 : 0;
}

static ncclResult_t add_mismatch(struct kl_record *r, struct span s, int usual, int odd)
{
    int f;

    KL_TRY(kl_record_new_finding(r, KL_RECORD_MISMATCH, KL_LOG_STOPS, &f));
    for (int i = s.from; i < s.end; i++)
        if (same_call(r, odd, s.sorted[i])) KL_TRY(kl_record_add_rank(r, r->member[r->call[s.sorted[i]].member].rank));
    kl_record_end_ranks(r, f);
    for (int i = s.from; i < s.end; i++)
        if (same_call(r, usual, s.sorted[i]))
            KL_TRY(kl_record_add_rank(r, r->member[r->call[s.sorted[i]].member].rank));
    kl_record_end_others(r, f);
    r->finding[f].group = r->member[r->call[odd].member].group;
    r->finding[f].call = odd;
    r->finding[f].other_call = usual;
    r->finding[f].a = kl_record_call_differs(&r->call[odd], &r->call[usual]);
    r->finding[f].count = shift_of(r, odd, usual);
    return ncclSuccess;
}

static int first_other(const struct kl_record *r, struct span s, int call)
{
    for (int i = s.from; i < s.end; i++)
        if (!same_call(r, call, s.sorted[i])) return s.sorted[i];
    return -1;
}

static int end_of(const struct kl_record *r, const int *sorted, int from, int n)
{
    int end = from + 1;

    while (end < n && kl_record_same_number(r, sorted[from], sorted[end])) end++;
    return end;
}

static bool has_numbers(const struct kl_record *r, int call)
{
    return r->call[call].number >= 0 && r->file[r->member[r->call[call].member].file].numbers != KL_NUMBERS_OF_FILE;
}

ncclResult_t kl_record_find_mismatches(struct kl_record *r, const int *sorted, int n, bool *mismatch)
{
    for (int from = 0, end; from < n; from = end) {
        const int group = r->member[r->call[sorted[from]].member].group;

        end = end_of(r, sorted, from, n);
        const struct span s = {sorted, from, end};

        if (mismatch[group] || !has_numbers(r, sorted[from]) || first_other(r, s, sorted[from]) < 0)
            continue; /* later ones are consequences */
        const int usual = most_common(r, s), odd = first_other(r, s, usual);

        if (odd < 0) continue;
        mismatch[group] = true;
        KL_TRY(add_mismatch(r, s, usual, odd));
    }
    return ncclSuccess;
}

/* ---- groups ---- */

/* Does `other` list ranks under the same name, among them a rank of `g`'s list that has a record of `other`? */
static int rank_elsewhere(const struct kl_record *r, int g, int other)
{
    const struct kl_record_group *a = &r->group[g], *b = &r->group[other];

    if (a == b || a->id != b->id || !a->nlisted || !b->nlisted) return -1;
    for (int i = 0; i < a->nlisted; i++)
        if (kl_record_find(r, other, r->list[a->first_listed + i]) >= 0) return r->list[a->first_listed + i];
    return -1;
}

static ncclResult_t add_members(struct kl_record *r, int group)
{
    const int first = r->group[group].first, n = r->group[group].n;

    for (int i = first; i < first + n; i++) KL_TRY(kl_record_add_rank(r, r->member[r->by_group[i]].rank));
    return ncclSuccess;
}

static ncclResult_t add_group(struct kl_record *r, int odd, int usual)
{
    int f;

    KL_TRY(kl_record_new_finding(r, KL_RECORD_GROUP_DIFFERS, KL_LOG_STOPS, &f));
    KL_TRY(add_members(r, odd));
    kl_record_end_ranks(r, f);
    KL_TRY(add_members(r, usual));
    kl_record_end_others(r, f);
    r->finding[f].group = odd;
    r->finding[f].text = r->group[odd].listed;
    r->finding[f].other = r->group[usual].listed;
    return ncclSuccess;
}

static ncclResult_t compare_groups(struct kl_record *r, int g, int o)
{
    if (rank_elsewhere(r, g, o) < 0 && rank_elsewhere(r, o, g) < 0) return ncclSuccess;
    const bool fewer = r->group[g].n <= r->group[o].n;

    return add_group(r, fewer ? g : o, fewer ? o : g);
}

struct named {
    const char *id;
    int group;
};

/* Names are kept once each: equal ids are one pointer. */
static int by_id(const void *a, const void *b)
{
    const struct named *x = a, *y = b;

    if (x->id != y->id) return (uintptr_t)x->id < (uintptr_t)y->id ? -1 : 1;
    return x->group - y->group;
}

ncclResult_t kl_record_find_groups(struct kl_record *r)
{
    struct named *named = calloc((size_t)r->ngroup + 1, sizeof *named);
    ncclResult_t rc = named ? ncclSuccess : KL_NOMEM("groups");

    for (int g = 0; named && g < r->ngroup; g++) named[g] = (struct named){r->group[g].id, g};
    if (named && r->ngroup) qsort(named, (size_t)r->ngroup, sizeof *named, by_id);
    for (int g = 0; !rc && g < r->ngroup; g++)
        for (int o = g - 1; !rc && o >= 0 && named[o].id == named[g].id; o--)
            rc = compare_groups(r, named[g].group, named[o].group);
    free(named);
    return rc;
}
