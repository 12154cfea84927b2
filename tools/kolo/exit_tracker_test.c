/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "tests/kolo_test.h"
#include "tools/kolo/exit_tracker.h"

#include <signal.h>

enum { RANKS = 3, SECOND = 1000000000 };

static struct kl_exit_tracker *new_job(struct kl_exit_tracker *e)
{
    assert_int_equal(kl_exit_tracker_init(e, RANKS, 10000), 0);
    return e;
}

static void expect_text(const struct kl_exit_tracker *e, int rank, const char *want)
{
    char text[160];

    kl_exit_tracker_describe(e, rank, "kolo run", text, sizeof text);
    assert_string_equal(text, want);
}

static void a_good_job_needs_nothing(void **state)
{
    struct kl_exit_tracker job, *e = new_job(&job);

    (void)state;
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(e->due_ns, KL_NO_DEADLINE);
        assert_int_equal(kl_exit_tracker_due(e, (uint64_t)1000 * SECOND), 0);
        assert_false(kl_exit_tracker_ended(e, r, 0, 0, 0));
    }
    assert_int_equal(e->nrunning, 0);
    assert_int_equal(kl_exit_tracker_code(e), 0);
    assert_false(kl_exit_tracker_should_report(e));
    expect_text(e, 0, "rank 0: exit code 0, by itself");
    kl_exit_tracker_fini(e);
}

static void after_a_death_come_grace_term_and_kill(void **state)
{
    struct kl_exit_tracker job, *e = new_job(&job);
    uint64_t t = (uint64_t)5 * SECOND;

    (void)state;
    assert_true(kl_exit_tracker_ended(e, 1, 0, SIGKILL, t));
    assert_false(kl_exit_tracker_ended(e, 1, 0, SIGKILL, t)); /* told twice changes nothing */
    assert_int_equal(e->nrunning, 2);
    assert_int_equal(e->due_ns, t + (uint64_t)10 * SECOND);
    assert_int_equal(kl_exit_tracker_due(e, t + (uint64_t)10 * SECOND - 1), 0);
    assert_int_equal(kl_exit_tracker_due(e, t + (uint64_t)10 * SECOND), SIGTERM);
    assert_int_equal(kl_exit_tracker_due(e, t + (uint64_t)10 * SECOND), 0);
    assert_false(kl_exit_tracker_ended(e, 0, 0, SIGTERM, t)); /* not the first */
    assert_int_equal(kl_exit_tracker_due(e, t + (uint64_t)12 * SECOND), SIGKILL);
    assert_int_equal(kl_exit_tracker_due(e, t + (uint64_t)99 * SECOND), 0);
    expect_text(e, 2, "rank 2: still running");
    assert_false(kl_exit_tracker_ended(e, 2, 0, SIGKILL, t));
    assert_int_equal(kl_exit_tracker_due(e, t + (uint64_t)99 * SECOND), 0);

    assert_int_equal(kl_exit_tracker_code(e), 128 + SIGKILL);
    assert_true(kl_exit_tracker_should_report(e));
    expect_text(e, 0, "rank 0: signal 15 (Terminated), sent by kolo run");
    expect_text(e, 1, "rank 1: signal 9 (Killed), by itself");
    expect_text(e, 2, "rank 2: signal 9 (Killed), sent by kolo run");
    kl_exit_tracker_fini(e);
}

static void who_ends_in_the_grace_ends_by_itself(void **state)
{
    struct kl_exit_tracker job, *e = new_job(&job);

    (void)state;
    assert_true(kl_exit_tracker_ended(e, 0, 3, 0, 0));
    assert_false(kl_exit_tracker_ended(e, 1, 1, 0, SECOND));
    assert_int_equal(kl_exit_tracker_due(e, (uint64_t)10 * SECOND), SIGTERM);
    kl_exit_tracker_ended(e, 2, 0, 0, (uint64_t)11 * SECOND);
    expect_text(e, 0, "rank 0: exit code 3, by itself");
    expect_text(e, 1, "rank 1: exit code 1, by itself");
    expect_text(e, 2, "rank 2: exit code 0, after kolo run sent signal 15 (Terminated)");
    kl_exit_tracker_fini(e);
}

static void a_verdict_is_no_death(void **state)
{
    struct kl_exit_tracker job, *e = new_job(&job);

    (void)state;
    e->verdict = 1;
    for (int r = 0; r < RANKS; r++) assert_false(kl_exit_tracker_ended(e, r, 1, 0, 0));
    assert_int_equal(e->phase, KL_JOB_RUNS);
    assert_int_equal(kl_exit_tracker_code(e), 1);
    assert_false(kl_exit_tracker_should_report(e));
    kl_exit_tracker_fini(e);
}

/* A rank may treat SIGTERM as a reason to end well; a job that ran out of time has failed all the same. */
static void out_of_time_is_a_failure(void **state)
{
    struct kl_exit_tracker job, *e = new_job(&job);

    (void)state;
    kl_exit_tracker_time_is_up(e, SECOND);
    assert_int_equal(kl_exit_tracker_due(e, SECOND), SIGTERM);
    kl_exit_tracker_time_is_up(e, SECOND); /* does not start again */
    assert_int_equal(kl_exit_tracker_due(e, SECOND), 0);
    for (int r = 0; r < RANKS; r++) kl_exit_tracker_ended(e, r, 0, 0, SECOND);
    assert_int_equal(kl_exit_tracker_code(e), 1);
    assert_true(kl_exit_tracker_should_report(e));
    kl_exit_tracker_fini(e);
}

static void out_of_time_cuts_the_grace_short(void **state)
{
    struct kl_exit_tracker job, *e = new_job(&job);

    (void)state;
    kl_exit_tracker_ended(e, 0, 1, 0, 0);
    kl_exit_tracker_time_is_up(e, SECOND);
    assert_int_equal(kl_exit_tracker_due(e, SECOND), SIGTERM);
    kl_exit_tracker_fini(e);
}

static void an_interrupt_is_passed_on_and_starts_the_grace(void **state)
{
    struct kl_exit_tracker job, *e = new_job(&job);

    (void)state;
    kl_exit_tracker_ended(e, 2, 0, 0, 0);
    kl_exit_tracker_asked(e, SIGINT, SECOND);
    kl_exit_tracker_asked(e, SIGINT, (uint64_t)2 * SECOND); /* a second one does not prolong it */
    assert_int_equal(e->due_ns, (uint64_t)11 * SECOND);
    kl_exit_tracker_ended(e, 0, 0, SIGINT, (uint64_t)2 * SECOND);
    kl_exit_tracker_ended(e, 1, 7, 0, (uint64_t)2 * SECOND);
    expect_text(e, 0, "rank 0: signal 2 (Interrupt), sent by kolo run");
    expect_text(e, 1, "rank 1: exit code 7, after kolo run sent signal 2 (Interrupt)");
    expect_text(e, 2, "rank 2: exit code 0, by itself");
    assert_int_equal(kl_exit_tracker_code(e), 128 + SIGINT);
    kl_exit_tracker_fini(e);
}

/* The others may well end because of it, and otherwise. */
static void the_first_failure_gives_the_code(void **state)
{
    struct kl_exit_tracker job, *e = new_job(&job);

    (void)state;
    kl_exit_tracker_ended(e, 2, 0, 0, 0);
    kl_exit_tracker_ended(e, 1, 7, 0, SECOND);
    kl_exit_tracker_ended(e, 0, 0, SIGKILL, SECOND);
    assert_int_equal(kl_exit_tracker_code(e), 7);
    kl_exit_tracker_fini(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_job_needs_nothing),
        cmocka_unit_test(the_first_failure_gives_the_code),
        cmocka_unit_test(after_a_death_come_grace_term_and_kill),
        cmocka_unit_test(who_ends_in_the_grace_ends_by_itself),
        cmocka_unit_test(a_verdict_is_no_death),
        cmocka_unit_test(out_of_time_is_a_failure),
        cmocka_unit_test(out_of_time_cuts_the_grace_short),
        cmocka_unit_test(an_interrupt_is_passed_on_and_starts_the_grace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
