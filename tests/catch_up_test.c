/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that a rank has queued because there were no data yet are tried again before more are queued: else nothing
 * would run in the call again until some thread waits. Two ranks in one thread, so that it is known when data are
 * there. The background thread may look at the same moment: so most times count, not each.
 */
#include <sched.h>
#include <stdbool.h>

enum { RANKS = 2, TIMES = 200, MOST = TIMES * 9 / 10, SOME = 8, ROUNDS = 100 };

#include "tests/one_thread.h"

static void broadcast(int r)
{
    must(ncclBroadcast(&ranks[r].send, &ranks[r].recv, 1, ncclFloat, 0, ranks[r].comm, ranks[r].stream));
}

/* Rank 1 calls before rank 0 has, and once more after it. Is the second value there when that call returns? */
static bool is_there_at_once(int time)
{
    all_reduce(1);
    for (int i = 0; i < 2; i++) {
        ranks[0].send = (float)(2 * time + i);
        all_reduce(0);
    }
    all_reduce(1);
    return ranks[1].recv == (float)(2 * time + 1) + ranks[1].send;
}

/* The same with broadcasts from rank 0, which is far ahead then. Returns the number of further calls until the last
 * value is there. */
static int calls_until_there(int time)
{
    int calls = 1;

    broadcast(1);
    for (int i = 0; i < 2 * SOME; i++) {
        ranks[0].send = (float)(2 * SOME * time + i);
        broadcast(0);
    }
    for (broadcast(1); ranks[1].recv != (float)(2 * SOME * time + calls) && calls < 2 * SOME - 1; calls++) broadcast(1);
    for (int i = calls + 1; i < 2 * SOME; i++) broadcast(1);
    return calls;
}

static bool has_cores(void)
{
    cpu_set_t cpus;

    return !sched_getaffinity(0, sizeof cpus, &cpus) && CPU_COUNT(&cpus) >= RANKS;
}

static void need_cores(void)
{
    if (has_cores()) return;
    print_message("skipped: ranks that share a core leave it to others\n");
    skip();
}

/* Another thread that runs a stream may lose its core in the middle, and delay all later operations: then try another
 * round. */
static void expect_in_some_round(bool (*is_so)(void))
{
    bool so = false;

    for (int i = 0; i < ROUNDS && !so; i++) {
        so = is_so();
        wait_for_all();
    }
    assert_true(so);
}

static bool most_are_there_at_once(void)
{
    int at_once = 0;

    for (int i = 0; i < TIMES; i++) at_once += is_there_at_once(i);
    return at_once >= MOST;
}

static bool the_root_gets_ahead(void)
{
    int waited = 0, soon = 0;

    for (int i = 0; i < TIMES; i++) {
        const int calls = calls_until_there(i);
        soon += calls <= SOME;
        waited += calls > 1;
    }
    return soon >= MOST && waited >= TIMES / 2;
}

static void what_is_queued_is_looked_at_before_more_is(void **state)
{
    (void)state;
    need_cores();
    create_ranks();
    for (int i = 0; i < RANKS; i++) all_reduce(i);
    wait_for_all();
    expect_in_some_round(most_are_there_at_once);
    destroy_ranks();
}

/* A rank that would poll each line while it is written lets the rank ahead write some more. */
static void who_reads_lets_the_root_get_ahead(void **state)
{
    (void)state;
    need_cores();
    create_ranks();
    for (int i = 0; i < RANKS; i++) broadcast(i);
    wait_for_all();
    expect_in_some_round(the_root_gets_ahead);
    destroy_ranks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_queued_is_looked_at_before_more_is),
        cmocka_unit_test(who_reads_lets_the_root_get_ahead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
