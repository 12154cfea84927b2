/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/standing.h"

#include "base/text.h"

/* ---- calls ---- */

static const struct kl_call *call_of(const struct kl_standing *s, uint64_t number)
{
    uint64_t n = s->ncalls < KL_STANDING_CALLS ? s->ncalls : KL_STANDING_CALLS;

    return number >= s->first && number - s->first < n ? &s->calls[number - s->first] : NULL;
}

static bool differ_at(const struct kl_standings *s, uint64_t number, struct kl_called *called, char *text, size_t size,
                      int *culprit, bool *all)
{
    *all = true;
    for (int r = 0; r < s->n; r++) {
        const struct kl_call *c = s->known[r] ? call_of(&s->of[r], number) : NULL;
        called[r] = (struct kl_called){.known = c != NULL};
        if (c)
            called[r].call = *c;
        else if (s->known[r] != KL_ANSWER_LEFT)
            *all = false;
    }
    return kl_call_verdict(called, s->n, number, text, size, culprit);
}

bool kl_standings_differ(const struct kl_standings *s, uint64_t number, struct kl_called *called, char *text,
                         size_t size, int *culprit, bool *all)
{
    uint64_t first = number > KL_STANDING_CALLS ? number - KL_STANDING_CALLS + 1 : 1;

    *all = true;
    for (uint64_t i = first; i <= number; i++)
        if (differ_at(s, i, called, text, size, culprit, all)) return true;
    return false;
}

/* ---- the ranks that are waited for ---- */

static bool is_stalled(const struct kl_standings *s, int rank)
{
    return s->known[rank] == KL_ANSWER_HERE && s->of[rank].state == KL_STANDING_STALLED;
}

static int awaited_by(const struct kl_standings *s, int rank)
{
    int peer = is_stalled(s, rank) ? s->of[rank].waits_for : -1;

    return peer >= 0 && peer < s->n && peer != rank ? peer : -1;
}

static int first_silent(const struct kl_standings *s)
{
    for (int r = 0; r < s->n; r++)
        if (!s->known[r]) return r;
    return -1;
}

/* The rank that has not joined a collective that others wait in; first ranks that wait for no other. */
static int first_behind(const struct kl_standings *s, uint64_t number)
{
    for (int stalled = 0; stalled < 2; stalled++)
        for (int r = 0; r < s->n; r++)
            if (s->known[r] && s->of[r].issued < number && is_stalled(s, r) == stalled) return r;
    return -1;
}

/* The end of the chain of waiting ranks: a rank that waits for no other, or where the chain closes a circle. */
static int end_of_chain(const struct kl_standings *s, int rank)
{
    int at = rank, next;

    for (int steps = 0; steps < s->n && (next = awaited_by(s, at)) >= 0; steps++) at = next;
    return at;
}

/* A silent rank counts before all others, also where no rank waits for it by name: the others' data may pass through
 * it. */
static int find_culprit(const struct kl_standings *s, int me, uint64_t number)
{
    int rank = end_of_chain(s, me);

    if (s->known[rank]) rank = first_silent(s);

    if (rank < 0 && number) rank = first_behind(s, number);
    if (rank < 0) rank = end_of_chain(s, me);
    return rank == me ? awaited_by(s, me) : rank;
}

/* ---- in words ---- */

enum { MOST_TOLD = 6 };

static void add_last_call(struct kl_text *t, const struct kl_standing *s)
{
    const struct kl_call *last = call_of(s, s->issued);
    char text[KL_CALL_TEXT];

    if (last)
        kl_text_add(t, ": its last call was %s", kl_call_text(*last, s->issued, text));
    else if (s->issued)
        kl_text_add(t, ": so far it has called %llu collectives", (unsigned long long)s->issued);
    else
        kl_text_add(t, ": so far it has called nothing");
}

static bool is_in(const struct kl_standing *s, const struct kl_call *c)
{
    return s->now.what == c->what && s->now.count == c->count;
}

/* " in Recv of 8 int8 from rank 3 for rank 3"; `it`: the word for the rank that the text is about. */
static void add_stall(struct kl_text *t, const struct kl_standings *s, int rank, const struct kl_call *it)
{
    char text[KL_CALL_TEXT];

    kl_text_add(t, " in %s", is_in(&s->of[rank], it) ? "it" : kl_call_text(s->of[rank].now, s->of[rank].issued, text));
    if (awaited_by(s, rank) >= 0) kl_text_add(t, " for rank %d", awaited_by(s, rank));
}

/* The continuation of "rank 3, which ". */
static void add_state(struct kl_text *t, const struct kl_standings *s, int rank, uint64_t number,
                      const struct kl_call *it)
{
    const struct kl_standing *at = &s->of[rank];

    if (!s->known[rank]) {
        kl_text_add(t, "is silent: is it stopped, or cut off?");
    } else if (s->known[rank] == KL_ANSWER_LEFT) {
        kl_text_add(t, "has destroyed its communicator");
        if (at->issued < number) add_last_call(t, at);
    } else if (is_stalled(s, rank)) {
        kl_text_add(t, "waits");
        add_stall(t, s, rank, it);
    } else if (at->issued < number) {
        kl_text_add(t, "has not called it");
        add_last_call(t, at);
    } else if (at->state == KL_STANDING_IDLE) {
        kl_text_add(t, "is in no operation");
    } else {
        kl_text_add(t, "has it queued behind other work of its stream, or is at work");
    }
}

/* Are two ranks described by the same words? All silent ranks are, and ranks that wait in the same operation for the
 * same rank. */
static bool are_alike(const struct kl_standings *s, int a, int b)
{
    if (!s->known[a] || !s->known[b]) return !s->known[a] && !s->known[b];
    if (!is_stalled(s, a) || !is_stalled(s, b)) return false;
    return is_in(&s->of[a], &s->of[b].now) && awaited_by(s, a) == awaited_by(s, b);
}

/* The ranks like `first` but the culprit: none if one before it is. */
static int add_alike(struct kl_text *t, const struct kl_standings *s, int first, int culprit)
{
    int n = 0, named = 0;

    for (int r = 0; r < s->n; r++) {
        if (r == culprit || !are_alike(s, r, first)) continue;
        if (!n++ && r < first) return 0;
    }
    if (n) kl_text_add(t, "; %s ", n == 1 ? "rank" : "ranks");
    for (int r = first; r < s->n && named < MOST_TOLD; r++)
        if (r != culprit && are_alike(s, r, first))
            kl_text_add(t, "%s%d", !named ? "" : named + 1 == n ? " and " : ", ", r), named++;
    if (n > named) kl_text_add(t, " and %d more", n - named);
    return n;
}

static void add_others(struct kl_text *t, const struct kl_standings *s, int culprit, const struct kl_call *it)
{
    int groups = 0;

    for (int r = 0; r < s->n && groups < MOST_TOLD; r++) {
        int n = r == culprit ? 0 : add_alike(t, s, r, culprit);
        if (!n) continue;
        groups++;
        if (!s->known[r]) {
            kl_text_add(t, n == 1 ? " is silent" : " are silent");
        } else {
            kl_text_add(t, n == 1 ? " waits" : " wait");
            add_stall(t, s, r, it);
        }
    }
}

int kl_standings_report(const struct kl_standings *s, int me, uint64_t number, char *text, size_t size)
{
    struct kl_text t = kl_text_over(text, size);
    const struct kl_call it = s->of[me].now;
    int culprit = find_culprit(s, me, number);
    char who[128];

    if (culprit < 0) {
        kl_text_add(&t, "waiting for nobody");
    } else {
        kl_text_add(&t, "waiting for %s, which ", s->describe(s->ctx, culprit, who, sizeof who));
        add_state(&t, s, culprit, number, &it);
    }
    add_others(&t, s, culprit, &it);
    return culprit;
}
