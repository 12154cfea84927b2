/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose ranks are threads of this process: status queries, one and many at a time, and departed ranks. */
#include "bootstrap/census.h"

#include "bootstrap/jobs.h"

#include <string.h>

static void answer(void *ctx, uint64_t question, unsigned char *to)
{
    const struct rank *me = ctx;

    memcpy(to, &question, sizeof question);
    memcpy(to + 8, &me->config.rank, sizeof me->config.rank);
}

static void expect_answer(const unsigned char *got, uint64_t question, int rank)
{
    must(!memcmp(got, &question, sizeof question));
    must(!memcmp(got + 8, &rank, sizeof rank));
}

static unsigned char (*make_answers(int n))[KL_STANDING_BYTES]
{
    void *answers = calloc((size_t)n, KL_STANDING_BYTES);

    must(answers);
    return answers;
}

static void await_all(struct kl_bootstrap *b, int n, unsigned char *state, unsigned char (*answers)[KL_STANDING_BYTES])
{
    while (kl_bootstrap_answers(b, state, answers) != n) sched_yield();
}

static void leave_together(struct kl_bootstrap *b)
{
    must(!kl_bootstrap_barrier(b));
    kl_bootstrap_on_question(b, NULL, NULL);
}

static void ask_in_turn(struct rank *me, struct kl_bootstrap *b)
{
    const int n = me->config.nranks;
    unsigned char state[MAX_RANKS], (*answers)[KL_STANDING_BYTES] = make_answers(n);

    kl_bootstrap_on_question(b, answer, me);
    for (int r = 0; r < n; r++) {
        must(!kl_bootstrap_barrier(b));
        if (r != me->config.rank) continue;
        do must(!kl_bootstrap_ask(b, 5, 1000)); /* if another rank has just asked, its query is used */
        while (kl_bootstrap_answers(b, NULL, NULL) < 0 && (sched_yield(), true));
        await_all(b, n, state, answers);
        for (int i = 0; i < n; i++) must(state[i] == KL_ANSWER_HERE);
        for (int i = 0; i < n; i++) expect_answer(answers[i], 5, i);
        must(!kl_bootstrap_ask(b, 9, 1000)); /* no other rank has asked since */
        await_all(b, n, state, answers);
        for (int i = 0; i < n; i++) expect_answer(answers[i], 9, i);
    }
    leave_together(b);
    free(answers);
}

static void everybody_answers(void **state)
{
    (void)state;
    for (int n = 1; n <= 6; n++) run_job(n, ask_in_turn);
}

static _Atomic int complete; /* queries */

/* All ask, about two things: a rank that does not get all answers is told that another's query is used, and at least
 * one gets all. */
static void ask_at_once(struct rank *me, struct kl_bootstrap *b)
{
    const int n = me->config.nranks;
    const uint64_t question = me->config.rank % 2 ? 7 : 8;
    unsigned char state[MAX_RANKS], (*answers)[KL_STANDING_BYTES] = make_answers(n);
    int known;

    kl_bootstrap_on_question(b, answer, me);
    must(!kl_bootstrap_barrier(b));
    must(!kl_bootstrap_ask(b, question, 1000));
    while ((known = kl_bootstrap_answers(b, state, answers)) >= 0 && known < n) sched_yield();
    if (known == n) kl_fetch_add_acq_rel(&complete, 1);
    for (int i = 0; known == n && i < n; i++) expect_answer(answers[i], question, i);
    leave_together(b);
    free(answers);
}

static void of_many_questions_one_counts(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        kl_store_release(&complete, 0);
        run_job(MAX_RANKS, ask_at_once);
        assert_true(kl_load_acquire(&complete));
    }
}

/* Rank 1 leaves at once: the ranks that were connected with it keep its final status, and answer for it. */
static void ask_after_one_left(struct rank *me, struct kl_bootstrap *b)
{
    const int n = me->config.nranks;
    unsigned char state[MAX_RANKS], (*answers)[KL_STANDING_BYTES] = make_answers(n), done = 0;

    kl_bootstrap_on_question(b, answer, me);
    must(!kl_bootstrap_barrier(b));
    if (me->config.rank == 1) {
        kl_bootstrap_on_question(b, NULL, NULL);
    } else if (me->config.rank == 0) {
        do {
            must(!kl_bootstrap_ask(b, 3, 1000));
            uint64_t again = kl_deadline_in_ms(100); /* an answer may have been on its way through rank 1 */
            while (kl_bootstrap_answers(b, state, answers) != n && !kl_deadline_passed(again)) sched_yield();
        } while (kl_bootstrap_answers(b, state, answers) != n || state[1] != KL_ANSWER_LEFT);
        expect_answer(answers[1], KL_LAST_WORDS, 1);
        for (int i = 2; i < n; i++) must(state[i] == KL_ANSWER_HERE);
        for (int i = 2; i < n; i++) must(!kl_bootstrap_send(b, i, 1, &done, 1));
    } else {
        must(!kl_bootstrap_recv(b, 0, 1, &done, 1));
    }
    free(answers);
}

static void who_has_left_is_known_with_its_last_words(void **state)
{
    (void)state;
    for (int n = 2; n <= 7; n++) run_job(n, ask_after_one_left);
}

/* Rank 0 does not come, and all others wait for each other, or for it: only rank 0 is blamed. */
static void wait_for_rank_0(struct rank *me, struct kl_bootstrap *b)
{
    if (me->config.rank) {
        must(kl_bootstrap_barrier(b) == ncclRemoteError);
        must(strstr(kl_error_text(), "from rank 0 (host "));
    } else {
        await_failure(me);
        must(me->culprit == 0 && me->code == ncclRemoteError);
        must(strstr(me->failure, "from rank 0 (host "));
    }
}

static void who_all_wait_for_in_the_end_is_named(void **state)
{
    (void)state;
    for (int n = 2; n <= 6; n++) {
        struct rank ranks[MAX_RANKS];
        setup_job(ranks, n, wait_for_rank_0);
        for (int r = 0; r < n; r++) ranks[r].after_join_timeout_ms = 300;
        run_ranks(ranks, n);
        expect_joined(ranks, n);
        for (int r = 0; r < n; r++) sem_destroy(&ranks[r].failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        leak_test(everybody_answers),
        leak_test(of_many_questions_one_counts),
        leak_test(who_has_left_is_known_with_its_last_words),
        leak_test(who_all_wait_for_in_the_end_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
