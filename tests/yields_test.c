/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that share a core: a call that would have to wait yields it before anything is queued, as long as others make
 * use of that. Two ranks of one thread, which has one CPU; `sched_yield` runs the work of the others here.
 */
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 2, WARM = 20, TIMES = 200, SELDOM = TIMES / 10, TICK_NS = 4000000 };

#include "tests/one_thread.h"

static _Thread_local struct {
    bool on, other; /* is this the thread, and does rank 1 operate while the core is yielded? */
    int n;
    long passes_ns, passed_ns; /* in a yield, and in all so far */
} yields;

/* ---- before the C library's ---- */

int sched_yield(void)
{
    if (!yields.on) return (int)syscall(SYS_sched_yield);
    yields.n++;
    yields.passed_ns += yields.passes_ns;
    yields.on = false;
    if (yields.other) all_reduce(1);
    yields.on = true;
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, t);

    if (yields.on && clock == CLOCK_MONOTONIC_COARSE) *t = (struct timespec){.tv_nsec = yields.passed_ns};
    return rc;
}

static void begin(bool other, long passes_ns)
{
    memset(&yields, 0, sizeof yields);
    yields.other = other;
    yields.passes_ns = passes_ns;
    yields.on = true;
}

static int end(void)
{
    yields.on = false;
    return yields.n;
}

/* ---- set up ---- */

static void operate_together(int times)
{
    for (int i = 0; i < times; i++) {
        must(ncclGroupStart());
        for (int r = 0; r < RANKS; r++) all_reduce(r);
        must(ncclGroupEnd());
        wait_for_all();
    }
}

static int set_up(void **state)
{
    cpu_set_t one;

    (void)state;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one)) return -1;
    create_ranks();
    return 0;
}

/* The last yields were useful, whatever the test before has left. */
static int warm_up(void **state)
{
    (void)state;
    operate_together(WARM);
    for (int i = 0; i < TIMES; i++) {
        begin(true, 0);
        all_reduce(0);
        if (!end()) all_reduce(1);
        wait_for_all();
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    destroy_ranks();
    return 0;
}

/* ---- tests ---- */

static void one_yield_is_enough_if_the_other_rank_operates(void **state)
{
    (void)state;
    for (int i = 0; i < TIMES; i++) {
        ranks[0].recv = 0;
        begin(true, 0);
        all_reduce(0);
        assert_int_equal(end(), 1);
        assert_true(ranks[0].recv == 3); /* no thread has waited for the stream */
        wait_for_all();
    }
}

/* After a useless yield, operations are queued; the first call that yields again runs all of them. */
static void a_queue_is_caught_up_with(void **state)
{
    int queued = 1, given;

    (void)state;
    begin(false, 0);
    all_reduce(0);
    assert_int_equal(end(), 1);
    do {
        ranks[0].recv = 0;
        queued++;
        begin(true, 0);
        all_reduce(0);
        given = end();
    } while (!given && queued < TIMES);
    assert_int_equal(given, queued);
    assert_true(ranks[0].recv == 3);
    wait_for_all();
}

/* The number of yields of TIMES operations. If rank 1 does not use the yields, it begins when rank 0 has issued all. */
static int count_yields(bool other, long passes_ns)
{
    int given = 0;

    for (int i = 0; i < TIMES; i++) {
        begin(other, passes_ns);
        all_reduce(0);
        const int now = end();
        given += now;
        if (!other) continue;
        if (!now) all_reduce(1);
        wait_for_all();
    }
    for (int i = 0; i < TIMES && !other; i++) all_reduce(1);
    wait_for_all();
    assert_true(ranks[0].recv == 3 && ranks[1].recv == 3);
    return given;
}

static void what_is_of_no_use_is_seldom_done(void **state)
{
    (void)state;
    assert_in_range(count_yields(false, 0), 1, SELDOM);
}

static void nor_what_takes_long(void **state)
{
    (void)state;
    assert_in_range(count_yields(true, TICK_NS), 1, SELDOM);
}

/* All ranks of a group belong to this thread: a rank that yields before the others have begun waits for itself. */
static void a_group_does_not_yield(void **state)
{
    (void)state;
    must(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) all_reduce(r);
    begin(false, 0);
    must(ncclGroupEnd());
    assert_int_equal(end(), 0);
    wait_for_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_yield_is_enough_if_the_other_rank_operates, warm_up),
        cmocka_unit_test_setup(a_queue_is_caught_up_with, warm_up),
        cmocka_unit_test_setup(what_is_of_no_use_is_seldom_done, warm_up),
        cmocka_unit_test_setup(nor_what_takes_long, warm_up),
        cmocka_unit_test_setup(a_group_does_not_yield, warm_up),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
