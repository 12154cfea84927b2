/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/silence.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/census.h"
#include "bootstrap/ranges.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ANSWER_MS = 2000, /* for answers of all ranks */
    FRESH_MS = 3000,  /* how long another rank's query replaces an own one; longer than a wait for answers */
    CHILD_MS = 6000,  /* the same in a child: it may have to wait until it can query the parent */
    LOOK_MS = 10,     /* between looks for more answers */
};

/* Answers of one bootstrap's ranks. */
struct survey {
    struct kl_bootstrap *b; /* NULL: no such bootstrap */
    uint64_t asked;         /* ns; 0: not yet */
    int known;              /* ranks; -1: another rank's question counts */
    unsigned char *state;   /* by rank: enum kl_answered */
    int32_t *waits_for;
};

struct inquiry {
    struct kl_bootstrap *b;
    struct survey here, parent;
};

/* ---- asking ---- */

static bool survey_init(struct survey *s, struct kl_bootstrap *b)
{
    *s = (struct survey){.b = b, .known = -1};
    if (!b) return true;
    s->state = calloc((size_t)b->nranks, 1);
    s->waits_for = calloc((size_t)b->nranks, sizeof *s->waits_for);
    return s->state && s->waits_for;
}

static void survey_fini(struct survey *s)
{
    free(s->state);
    free(s->waits_for);
}

/* One of the waiting ranks queries this bootstrap, and only that one queries the parent, where other children may
 * query at the same time. */
static bool ask(struct survey *s, uint64_t fresh_ms)
{
    s->asked = kl_now_ns();
    return !kl_bootstrap_ask(s->b, KL_CENSUS_PRESENCE, fresh_ms);
}

static uint64_t age_ms(const struct survey *s)
{
    return (kl_now_ns() - s->asked) / 1000000u;
}

/* Are all answers here? Sends the query if it is due, and then returns false. */
static bool is_answered(struct survey *s, bool *fine)
{
    const uint64_t fresh_ms = s->b->parent ? CHILD_MS : FRESH_MS;

    if (!s->asked || (s->known < 0 && age_ms(s) >= fresh_ms)) {
        *fine = ask(s, fresh_ms);
        return false;
    }
    s->known = kl_census_presence(s->b, s->state, s->waits_for);
    return s->known == s->b->nranks || (s->known >= 0 && age_ms(s) >= ANSWER_MS);
}

static bool is_complete(struct inquiry *q, bool *fine)
{
    bool here = is_answered(&q->here, fine);

    if (!*fine || q->here.known < 0 || q->here.known == q->b->nranks) return here;
    bool there = !q->parent.b || is_answered(&q->parent, fine);
    return here && there;
}

/* Wait for a failure, or until no more answers are expected. True: judge by the answers. */
static bool await_answers(struct inquiry *q)
{
    const uint64_t last = kl_deadline_in_ms(KL_SILENCE_MS);

    for (bool over = false, fine = true; !over && fine;) {
        if (is_complete(q, &fine)) return true;
        pthread_mutex_lock(&q->b->lock);
        over = q->b->failed || q->b->aborted || kl_deadline_passed(last);
        if (!over) (void)kl_state_wait(q->b, kl_deadline_in_ms(LOOK_MS));
        pthread_mutex_unlock(&q->b->lock);
    }
    return false;
}

/* ---- judging ---- */

static bool is_here(const struct inquiry *q, int rank)
{
    return q->here.state[rank] != KL_ANSWER_NONE;
}

static bool is_silent(const void *ctx, int rank)
{
    const struct inquiry *q = ctx;

    if (is_here(q, rank)) return false;
    return !q->parent.b || q->parent.state[q->b->member[rank]] == KL_ANSWER_NONE;
}

/* The end of the chain of ranks that wait for each other, beginning with `rank`. */
static int end_of_chain(const struct inquiry *q, int rank)
{
    for (int i = 0; i < q->b->nranks && is_here(q, rank) && q->here.waits_for[rank] >= 0; i++)
        rank = q->here.waits_for[rank];
    return rank;
}

/* Under lock. */
static void say_silent(const struct inquiry *q, int first, int peer, char *text, size_t size)
{
    char ranks[128], who[KL_WHO_TEXT], awaited[KL_WHO_TEXT] = "";
    int n = kl_ranges_format(q->b->nranks, is_silent, q, ranks, sizeof ranks);
    const double seconds = (double)q->b->timeout_ms / 1000;

    if (peer >= 0) snprintf(awaited, sizeof awaited, " for rank %d", peer);
    if (n == 1)
        snprintf(
            text, size,
            "%s is silent: is it stopped, or cut off? Rank %d has waited%s for %g s in phase %s, and all others answer",
            kl_who(q->b, first, who), q->b->rank, awaited, seconds, q->b->phase);
    else
        snprintf(
            text, size,
            "ranks %s are silent (the first is %s): are they stopped, or cut off? Rank %d has waited%s for %g s in "
            "phase %s",
            ranks, kl_who(q->b, first, who), q->b->rank, awaited, seconds, q->b->phase);
}

static void say_late(const struct inquiry *q, int culprit, char *text, size_t size)
{
    char who[KL_WHO_TEXT];

    snprintf(text, size,
             "rank %d: nothing came from %s, for which the others wait, within %g s in phase %s; see whether it is "
             "stuck, or "
             "raise KOLO_BOOTSTRAP_TIMEOUT",
             q->b->rank, kl_who(q->b, culprit, who), (double)q->b->timeout_ms / 1000, q->b->phase);
}

/* The rank to blame, with a sentence about it; -1: nothing beyond the existing sentence is known. */
static int judge(const struct inquiry *q, int peer, char *text, size_t size)
{
    int culprit = 0;

    while (culprit < q->b->nranks && !is_silent(q, culprit)) culprit++;
    pthread_mutex_lock(&q->b->lock);
    if (culprit < q->b->nranks) {
        say_silent(q, culprit, peer, text, size);
    } else {
        culprit = peer < 0 ? peer : end_of_chain(q, peer);
        if (culprit == peer)
            culprit = -1;
        else
            say_late(q, culprit, text, size);
    }
    pthread_mutex_unlock(&q->b->lock);
    return culprit;
}

/* ---- public function ---- */

static void inquire(struct inquiry *q, int peer, ncclResult_t rc)
{
    char text[KL_ERROR_TEXT];

    if (!await_answers(q)) return;
    int culprit = judge(q, peer, text, sizeof text);
    if (culprit >= 0) kl_bootstrap_report(q->b, culprit, rc, text);
}

ncclResult_t kl_silence_explain(struct kl_bootstrap *b, int peer, ncclResult_t rc)
{
    struct inquiry q = {.b = b};
    char said[KL_ERROR_TEXT];
    int quiet = kl_error_quiet(1);

    snprintf(said, sizeof said, "%s", kl_error_text());
    bool there = survey_init(&q.here, b);
    if (survey_init(&q.parent, b->parent) && there) inquire(&q, peer, rc);
    survey_fini(&q.here);
    survey_fini(&q.parent);
    pthread_mutex_lock(&b->lock);
    ncclResult_t why = kl_state_check(b);
    pthread_mutex_unlock(&b->lock);
    kl_error_quiet(quiet);
    if (why) snprintf(said, sizeof said, "%s", kl_error_text());
    return KL_FAIL(why ? why : rc, "%s", said);
}
