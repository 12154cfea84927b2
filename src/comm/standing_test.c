/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/standing.h"

#include "tests/kolo_test.h"

#include <stdio.h>

enum { N = 4 };

static unsigned char known[N];
static struct kl_standing of[N];

static const char *describe(void *ctx, int rank, char *text, size_t size)
{
    (void)ctx;
    snprintf(text, size, "rank %d (host h, pid %d)", rank, 100 + rank);
    return text;
}

static struct kl_call allreduce(size_t count, uint64_t number)
{
    return kl_call_of(KL_FUNC_ALL_REDUCE, ncclFloat32, ncclSum, 0, count, number);
}

static void has_called(int rank, uint64_t issued, uint64_t asked)
{
    struct kl_standing *s = &of[rank];
    uint64_t last = issued < asked ? issued : asked;

    *s = (struct kl_standing){.issued = issued, .waits_for = -1};
    s->first = last > KL_STANDING_CALLS ? last - KL_STANDING_CALLS + 1 : 1;
    for (uint64_t i = s->first; i <= last; i++) s->calls[s->ncalls++] = allreduce(8, i);
    known[rank] = KL_ANSWER_HERE;
}

static void waits(int rank, struct kl_call in, int peer)
{
    of[rank].state = KL_STANDING_STALLED;
    of[rank].now = in;
    of[rank].waits_for = peer;
}

static struct kl_standings all_have_called(uint64_t number)
{
    for (int r = 0; r < N; r++) has_called(r, number, number);
    return (struct kl_standings){.n = N, .known = known, .of = of, .describe = describe};
}

/* ---- the rank to blame ---- */

static void expect_report(const struct kl_standings *s, int me, uint64_t number, int culprit, const char *want)
{
    char text[800];

    assert_int_equal(kl_standings_report(s, me, number, text, sizeof text), culprit);
    assert_string_equal(text, want);
}

static void who_is_silent_is_named_before_who_waits_for_him(void **state)
{
    struct kl_standings s = all_have_called(17);

    (void)state;
    known[2] = KL_ANSWER_NONE;
    waits(0, allreduce(8, 17), 3);
    waits(1, allreduce(8, 17), 0);
    waits(3, allreduce(8, 17), 2);
    for (int me = 0; me < N; me++)
        if (me != 2)
            expect_report(
                &s, me, 17, 2,
                "waiting for rank 2 (host h, pid 102), which is silent: is it stopped, or cut off?; "
                "rank 0 waits in it for rank 3; rank 1 waits in it for rank 0; rank 3 waits in it for rank 2");
}

static void who_never_came_is_named_with_the_last_call(void **state)
{
    struct kl_standings s = all_have_called(17);

    (void)state;
    for (int r = 0; r < N; r++) waits(r, allreduce(8, 17), (r + 1) % N);
    has_called(1, 16, 17);
    of[0].state = of[2].state = of[3].state = KL_STANDING_IDLE; /* short */
    expect_report(&s, 0, 17, 1,
                  "waiting for rank 1 (host h, pid 101), which has not called it: its last call was AllReduce #16 of 8 "
                  "float (sum)");
    has_called(1, 0, 17);
    expect_report(&s, 3, 17, 1,
                  "waiting for rank 1 (host h, pid 101), which has not called it: so far it has called nothing");
    has_called(1, 3, 3);
    of[1].ncalls = 0; /* forgotten */
    expect_report(&s, 3, 17, 1,
                  "waiting for rank 1 (host h, pid 101), which has not called it: so far it has called 3 collectives");
    known[1] = KL_ANSWER_LEFT;
    expect_report(&s, 3, 17, 1,
                  "waiting for rank 1 (host h, pid 101), which has destroyed its communicator: so far it has called 3 "
                  "collectives");
}

/* Of the ranks behind, the one that waits for no other. */
static void who_is_held_up_elsewhere_is_not_blamed_before_who_is_not(void **state)
{
    struct kl_standings s = all_have_called(17);

    (void)state;
    has_called(1, 16, 17);
    has_called(3, 16, 17);
    waits(1, kl_call_of(KL_FUNC_RECV, ncclInt8, 0, 3, 8, 0), 3);
    expect_report(&s, 0, 17, 3,
                  "waiting for rank 3 (host h, pid 103), which has not called it: its last call was AllReduce #16 of 8 "
                  "float (sum); rank 1 waits in Recv of 8 int8 from rank 3 for rank 3");
}

static void ranks_that_wait_for_each_other_are_shown(void **state)
{
    struct kl_standings s = all_have_called(1);

    (void)state;
    waits(0, kl_call_of(KL_FUNC_SEND, ncclFloat32, 0, 1, 8, 0), 1);
    waits(1, allreduce(8, 1), 0);
    expect_report(&s, 0, 0, 1,
                  "waiting for rank 1 (host h, pid 101), which waits in AllReduce #1 of 8 float (sum) for rank 0; "
                  "rank 0 waits in it for rank 1");
    expect_report(&s, 1, 1, 0,
                  "waiting for rank 0 (host h, pid 100), which waits in Send of 8 float to rank 1 for rank 1; "
                  "rank 1 waits in it for rank 0");
    waits(2, kl_call_of(KL_FUNC_RECV, ncclFloat32, 0, 3, 8, 0), 3);
    expect_report(&s, 2, 0, 3,
                  "waiting for rank 3 (host h, pid 103), which is in no operation; rank 0 waits in Send of 8 float to "
                  "rank 1 for rank 1; rank 1 waits in AllReduce #1 of 8 float (sum) for rank 0; rank 2 waits in it for "
                  "rank 3");
    of[3].state = KL_STANDING_AT_WORK;
    of[0].state = of[1].state = KL_STANDING_IDLE;
    expect_report(&s, 2, 0, 3,
                  "waiting for rank 3 (host h, pid 103), which has it queued behind other work of its stream, or is at "
                  "work; rank 2 waits in it for rank 3");
}

static void who_waits_alike_is_told_together(void **state)
{
    struct kl_standings s = all_have_called(17);

    (void)state;
    known[2] = KL_ANSWER_NONE;
    for (int r = 0; r < N; r++)
        if (r != 2) waits(r, allreduce(8, 17), 2);
    expect_report(
        &s, 3, 17, 2,
        "waiting for rank 2 (host h, pid 102), which is silent: is it stopped, or cut off?; ranks 0, 1 and 3 wait in "
        "it for rank 2");
    known[1] = KL_ANSWER_NONE;
    expect_report(
        &s, 3, 17, 2,
        "waiting for rank 2 (host h, pid 102), which is silent: is it stopped, or cut off?; ranks 0 and 3 wait in it "
        "for rank 2; rank 1 is silent");
}

/* Ranks 0 and 1 wait for each other, because their data pass through rank 3. */
static void who_is_silent_is_named_where_nobody_waits_for_him(void **state)
{
    struct kl_standings s = all_have_called(1);

    (void)state;
    known[3] = KL_ANSWER_NONE;
    waits(0, kl_call_of(KL_FUNC_SEND, ncclFloat32, 0, 1, 8, 0), 1);
    waits(1, kl_call_of(KL_FUNC_RECV, ncclFloat32, 0, 0, 8, 0), 0);
    expect_report(
        &s, 0, 0, 3,
        "waiting for rank 3 (host h, pid 103), which is silent: is it stopped, or cut off?; rank 0 waits in it for "
        "rank 1; rank 1 waits in Recv of 8 float from rank 0 for rank 0");
}

/* Others' answers may be anything. */
static void nonsense_does_no_harm(void **state)
{
    struct kl_standings s = all_have_called(3);
    struct kl_called called[N];
    char text[64];
    int culprit;
    bool all;

    (void)state;
    for (int r = 0; r < N; r++) {
        memset(&of[r], 0xff, sizeof of[r]);
        of[r].state = KL_STANDING_STALLED;
    }
    kl_standings_report(&s, 0, 3, text, sizeof text);
    kl_standings_report(&s, 0, 0, text, sizeof text);
    assert_false(kl_standings_differ(&s, 3, called, text, sizeof text, &culprit, &all));
}

/* ---- calls ---- */

static void the_first_call_that_differs_is_told(void **state)
{
    struct kl_standings s = all_have_called(17);
    struct kl_called called[N];
    char text[256];
    int culprit;
    bool all;

    (void)state;
    assert_false(kl_standings_differ(&s, 17, called, text, sizeof text, &culprit, &all));
    assert_true(all);
    of[1].calls[2] = allreduce(9, 16);
    of[2].calls[3] = allreduce(9, 17);
    assert_true(kl_standings_differ(&s, 17, called, text, sizeof text, &culprit, &all));
    assert_string_equal(text,
                        "rank 1 called AllReduce(9 elements) as #16 where the others called AllReduce(8 elements)");
    assert_int_equal(culprit, 1);
    has_called(3, 15, 17);
    assert_true(kl_standings_differ(&s, 17, called, text, sizeof text, &culprit, &all));
    assert_string_equal(text,
                        "rank 1 called AllReduce(9 elements) as #16 where ranks 0 and 2 called AllReduce(8 elements)");
    assert_false(all);
    known[3] = KL_ANSWER_LEFT;
    assert_true(kl_standings_differ(&s, 17, called, text, sizeof text, &culprit, &all));
    assert_true(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_silent_is_named_before_who_waits_for_him),
        cmocka_unit_test(who_never_came_is_named_with_the_last_call),
        cmocka_unit_test(who_is_held_up_elsewhere_is_not_blamed_before_who_is_not),
        cmocka_unit_test(ranks_that_wait_for_each_other_are_shown),
        cmocka_unit_test(who_waits_alike_is_told_together),
        cmocka_unit_test(who_is_silent_is_named_where_nobody_waits_for_him),
        cmocka_unit_test(nonsense_does_no_harm),
        cmocka_unit_test(the_first_call_that_differs_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
