/* SPDX-License-Identifier: Apache-2.0 */
/**
 * waits.c - ranks that wait for others. A *stall* is the first collective of a group that some ranks called and have not ended, or a message
 * without its peer. A rank that never came is the culprit if it waits nowhere itself; else its own stall is looked at.
 */
#include "logs/record/make.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS_MOST = 1 << 20 };

/* Ranks and participants of one part of a stall: list[first] ... */
struct part {
    int first, n;
};

struct stall {
    int group, call; /* call: of a rank that waits */
    int64_t number;
    struct part waiting, queued, ended, absent, lost; /* lost: no file of them was given */
    bool message, rooted, told;
};

/* A rank of a part, and the participant; -1: none has this rank. */
struct one {
    int rank, proc;
};

struct waits {
    struct kl_record *r;
    struct stall *stall;
    struct one *one;
    int nstall, maxstall, none, maxone;
    const bool *mismatch;
};

/* ---- ranks of a group ---- */

static int proc_of_rank(const struct kl_record *r, int rank)
{
    for (int i = 0; i < r->nproc; i++)
        if (r->proc[i].rank == rank) return i;
    return -1;
}

static int size_of(const struct kl_record *r, const struct kl_record_group *g)
{
    if (g->nlisted) return g->nlisted;
    return g->size > 0 && g->size < RANKS_MOST && r->nfile ? g->size : 0;
}

static int rank_at(const struct kl_record *r, const struct kl_record_group *g, int i)
{
    return g->nlisted ? r->list[g->first_listed + i] : i;
}

static ncclResult_t add_one(struct waits *w, struct part *part, int rank, int proc)
{
    if (!part->n) part->first = w->none;
    KL_TRY(kl_record_grow((void **)&w->one, &w->none, &w->maxone, sizeof *w->one));
    w->one[w->none - 1] = (struct one){rank, proc};
    part->n++;
    return ncclSuccess;
}

/* ---- collectives ---- */

/* The first collective of a group that a member has not ended; -1: none. */
static int first_open(const struct kl_record *r, int group)
{
    const struct kl_record_group *g = &r->group[group];
    int first = -1;

    for (int i = g->first; i < g->first + g->n; i++) {
        const struct kl_record_member *m = &r->member[r->by_group[i]];

        if (m->open < 0 || r->call[m->open].kind != KL_CALL_COLLECTIVE) continue;
        if (first < 0 || r->call[m->open].number < r->call[first].number) first = m->open;
    }
    return first;
}

static struct part *part_of(const struct waits *w, struct stall *s, const struct kl_record_member *m)
{
    const struct kl_record_call *open = m->open >= 0 ? &w->r->call[m->open] : NULL;

    if (open && open->kind == KL_CALL_COLLECTIVE && open->number == s->number)
        return open->state == KL_CALL_QUEUED && w->r->file[m->file].starts_known ? &s->queued : &s->waiting;
    if (m->called < s->number) return &s->absent;
    return m->ended >= s->number ? &s->ended : &s->waiting;
}

/* Parts are lists one after the other: one pass for each. */
static ncclResult_t fill_part(struct waits *w, struct stall *s, struct part *part)
{
    const struct kl_record_group *g = &w->r->group[s->group];

    for (int i = g->first; i < g->first + g->n; i++) {
        const struct kl_record_member *m = &w->r->member[w->r->by_group[i]];

        if (m->state != KL_MEMBER_DEAD && part_of(w, s, m) == part) KL_TRY(add_one(w, part, m->rank, m->proc));
    }
    return ncclSuccess;
}

/* Ranks of the group without a member: a record without this group, or no record. */
static ncclResult_t fill_strangers(struct waits *w, struct stall *s, bool recorded, struct part *part)
{
    const struct kl_record_group *g = &w->r->group[s->group];

    for (int i = 0; i < size_of(w->r, g); i++) {
        const int rank = rank_at(w->r, g, i);

        if (kl_record_find(w->r, s->group, rank) >= 0) continue;
        const int proc = g->nlisted ? proc_of_rank(w->r, rank) : -1;

        if ((proc >= 0) == recorded) KL_TRY(add_one(w, part, rank, proc));
    }
    return ncclSuccess;
}

static ncclResult_t add_collective(struct waits *w, int group)
{
    const int open = first_open(w->r, group);
    struct stall *s;

    if (open < 0) return ncclSuccess;
    KL_TRY(kl_record_grow((void **)&w->stall, &w->nstall, &w->maxstall, sizeof *w->stall));
    s = &w->stall[w->nstall - 1];
    s->group = group;
    s->call = open;
    s->number = w->r->call[open].number;
    KL_TRY(fill_part(w, s, &s->waiting));
    KL_TRY(fill_part(w, s, &s->queued));
    KL_TRY(fill_part(w, s, &s->ended));
    KL_TRY(fill_part(w, s, &s->absent));
    KL_TRY(fill_strangers(w, s, true, &s->absent));
    return fill_strangers(w, s, false, &s->lost);
}

/* ---- messages ---- */

static bool answers(const struct kl_record *r, const struct kl_record_call *c, int peer, int rank)
{
    const enum kl_call_kind kind = c->kind == KL_CALL_SEND ? KL_CALL_RECV : KL_CALL_SEND;
    const int member = kl_record_find(r, r->member[c->member].group, peer);

    for (int i = 0; i < r->ncall && member >= 0; i++)
        if (r->call[i].member == member && r->call[i].kind == kind && r->call[i].peer == rank &&
            r->call[i].state != KL_CALL_ENDED)
            return true;
    return false;
}

static bool is_message(const struct kl_record_call *c)
{
    return c->kind == KL_CALL_SEND || c->kind == KL_CALL_RECV;
}

static ncclResult_t add_message(struct waits *w, const struct kl_record_member *m)
{
    const struct kl_record_call *c = &w->r->call[m->open];
    const int peer = kl_record_find(w->r, m->group, c->peer);
    int proc = peer >= 0 ? w->r->member[peer].proc : -1;
    struct stall *s;

    KL_TRY(kl_record_grow((void **)&w->stall, &w->nstall, &w->maxstall, sizeof *w->stall));
    s = &w->stall[w->nstall - 1];
    *s = (struct stall){.group = m->group, .call = m->open, .number = c->number, .message = true};
    KL_TRY(add_one(w, &s->waiting, m->rank, m->proc));
    if (proc < 0 && w->r->group[m->group].nlisted) proc = proc_of_rank(w->r, c->peer);
    if (c->peer < 0 || answers(w->r, c, c->peer, m->rank)) return ncclSuccess;
    return add_one(w, proc >= 0 ? &s->absent : &s->lost, c->peer, proc);
}

/* ---- participants ---- */

/* The first call that a participant has not ended decides where it waits; stalls of messages are its own. */
static ncclResult_t place_all(struct waits *w)
{
    struct kl_record *r = w->r;
    int *first = calloc((size_t)r->nproc + 1, sizeof *first), *stall = calloc((size_t)r->ngroup + 1, sizeof *stall);
    ncclResult_t rc = first && stall ? ncclSuccess : KL_NOMEM("ranks that wait");

    for (int i = 0; i < w->nstall && !rc; i++) stall[w->stall[i].group] = i + 1;
    for (int i = 0; i < r->nproc && !rc; i++) first[i] = r->proc[i].stall = -1;
    for (int i = 0; i < r->nmember && !rc; i++) {
        const struct kl_record_member *m = &r->member[i];

        if (m->open >= 0 && m->proc >= 0 && (first[m->proc] < 0 || m->open < first[m->proc])) first[m->proc] = m->open;
    }
    for (int i = 0; i < r->nproc && !rc; i++) {
        const struct kl_record_call *c = first[i] >= 0 ? &r->call[first[i]] : NULL;

        if (!c) continue;
        if (is_message(c)) rc = add_message(w, &r->member[c->member]);
        r->proc[i].stall = is_message(c) ? w->nstall - 1 : stall[r->member[c->member].group] - 1;
    }
    free(first);
    free(stall);
    return rc;
}

static int stall_of(const struct waits *w, const struct one *o)
{
    return o->proc >= 0 ? w->r->proc[o->proc].stall : -1;
}

/* Does a missing rank wait nowhere, and does no rank wait for it? */
static bool is_root(const struct waits *w, const struct stall *s)
{
    for (int i = 0; i < s->absent.n; i++)
        if (stall_of(w, &w->one[s->absent.first + i]) < 0) return true;
    return !s->absent.n;
}

static bool leads_to_root(const struct waits *w, const struct stall *s)
{
    for (int i = 0; i < s->absent.n; i++) {
        const int next = stall_of(w, &w->one[s->absent.first + i]);

        if (next >= 0 && w->stall[next].rooted) return true;
    }
    return false;
}

static void find_roots(struct waits *w)
{
    bool more = true;

    for (int i = 0; i < w->nstall; i++) w->stall[i].rooted = is_root(w, &w->stall[i]);
    while (more) {
        more = false;
        for (int i = 0; i < w->nstall; i++) {
            if (w->stall[i].rooted || !leads_to_root(w, &w->stall[i])) continue;
            w->stall[i].rooted = more = true;
        }
    }
}

/* ---- findings ---- */

/* Ranks of a part; `only`: those that wait nowhere (0), those that do (1), all (-1). */
static ncclResult_t add_ranks(struct waits *w, struct part part, int only)
{
    for (int i = 0; i < part.n; i++) {
        const struct one *o = &w->one[part.first + i];

        if (only >= 0 && (stall_of(w, o) >= 0) != only) continue;
        KL_TRY(kl_record_add_rank(w->r, o->rank));
    }
    return ncclSuccess;
}

static ncclResult_t add_finding(struct waits *w, const struct stall *s, enum kl_record_code code, int *f)
{
    const bool after = !s->message && w->mismatch[s->group];

    KL_TRY(kl_record_new_finding(w->r, code, after || code == KL_RECORD_FOLLOWS ? KL_LOG_FOLLOWS : KL_LOG_STOPS, f));
    w->r->finding[*f].group = s->group;
    w->r->finding[*f].call = s->call;
    return ncclSuccess;
}

static ncclResult_t add_waiting(struct waits *w, const struct stall *s)
{
    KL_TRY(add_ranks(w, s->waiting, -1));
    return add_ranks(w, s->queued, -1);
}

/* `ranks` against those that wait. */
static ncclResult_t tell_missing(struct waits *w, const struct stall *s, enum kl_record_code code, struct part part,
                                 int only)
{
    int f;

    KL_TRY(add_finding(w, s, code, &f));
    KL_TRY(add_ranks(w, part, only));
    kl_record_end_ranks(w->r, f);
    KL_TRY(add_waiting(w, s));
    kl_record_end_others(w->r, f);
    if (!w->r->finding[f].n) return ncclSuccess;
    const int member = kl_record_find(w->r, s->group, w->r->list[w->r->finding[f].first]);

    if (member >= 0) w->r->finding[f].other_call = w->r->member[member].last;
    return ncclSuccess;
}

/* `ranks` are in the call; others ended it, or have begun it. */
static ncclResult_t tell_inside(struct waits *w, const struct stall *s)
{
    const bool held = s->queued.n && (s->waiting.n || s->ended.n);
    int f;

    KL_TRY(add_finding(w, s, held ? KL_RECORD_NOT_BEGUN : KL_RECORD_INSIDE, &f));
    KL_TRY(add_ranks(w, s->queued, -1));
    if (!held) KL_TRY(add_ranks(w, s->waiting, -1));
    kl_record_end_ranks(w->r, f);
    if (held) KL_TRY(add_ranks(w, s->waiting, -1));
    KL_TRY(add_ranks(w, s->ended, -1));
    kl_record_end_others(w->r, f);
    return ncclSuccess;
}

static ncclResult_t tell_no_peer(struct waits *w, const struct stall *s, struct part peer)
{
    int f;

    KL_TRY(add_finding(w, s, KL_RECORD_NO_PEER, &f));
    KL_TRY(add_waiting(w, s));
    kl_record_end_ranks(w->r, f);
    KL_TRY(add_ranks(w, peer, -1));
    kl_record_end_others(w->r, f);
    return ncclSuccess;
}

static ncclResult_t tell_root(struct waits *w, const struct stall *s)
{
    if (s->message && s->absent.n) return tell_no_peer(w, s, s->absent);
    if (s->message && s->lost.n) return tell_no_peer(w, s, s->lost);
    if (s->absent.n) return tell_missing(w, s, KL_RECORD_NEVER_CAME, s->absent, 0);
    if (s->lost.n) return tell_missing(w, s, KL_RECORD_NO_RECORD, s->lost, -1);
    return !s->message && w->mismatch[s->group] ? ncclSuccess : tell_inside(w, s); /* calls that differ do not end */
}

/* The stall in which the first rank that never came waits. */
static int next_of(const struct waits *w, int s)
{
    return stall_of(w, &w->one[w->stall[s].absent.first]);
}

/* From a stall without a root, the chain ends in a circle: tell of it once. */
static ncclResult_t tell_circle(struct waits *w, int s)
{
    int f, slow = s, fast = s;

    do {
        slow = next_of(w, slow);
        fast = next_of(w, next_of(w, fast));
    } while (slow != fast);
    if (w->stall[slow].told) return ncclSuccess;
    for (int i = slow; !w->stall[i].told; i = next_of(w, i)) w->stall[i].told = true;
    const struct stall *at = &w->stall[slow], *next = &w->stall[next_of(w, slow)];

    KL_TRY(add_finding(w, at, KL_RECORD_DEADLOCK, &f));
    KL_TRY(add_waiting(w, at));
    kl_record_end_ranks(w->r, f);
    KL_TRY(add_ranks(w, at->absent, 1));
    kl_record_end_others(w->r, f);
    w->r->finding[f].other_call = next->call;
    return ncclSuccess;
}

static ncclResult_t tell_all(struct waits *w)
{
    for (int i = 0; i < w->nstall; i++)
        if (!w->stall[i].rooted) KL_TRY(tell_circle(w, i));
    for (int i = 0; i < w->nstall; i++) {
        const struct stall *s = &w->stall[i];

        if (is_root(w, s))
            KL_TRY(tell_root(w, s));
        else if (!s->told)
            KL_TRY(tell_missing(w, s, KL_RECORD_FOLLOWS, s->absent, 1));
    }
    return ncclSuccess;
}

ncclResult_t kl_record_find_waits(struct kl_record *r, const bool *mismatch)
{
    struct waits w = {.r = r, .mismatch = mismatch};
    ncclResult_t rc = ncclSuccess;

    for (int g = 0; g < r->ngroup && !rc; g++) rc = add_collective(&w, g);
    if (!rc) rc = place_all(&w);
    if (!rc) find_roots(&w);
    if (!rc) rc = tell_all(&w);
    free(w.stall);
    free(w.one);
    return rc;
}
