/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "tests/kolo_test.h"
#include "tools/kolo/perf_watch.h"

enum { RANKS = 6, TEXT = 512 };

static struct kl_watch_slot slots[RANKS];

static const struct kl_watch_step timing = {KL_PHASE_TIMING, 1024, ncclFloat, false};
static const struct kl_watch_step checking = {KL_PHASE_CHECK, 8, ncclBfloat16, true};

static int fresh(void **state)
{
    (void)state;
    memset(slots, 0, sizeof slots);
    return 0;
}

static bool stuck(uint64_t after_ms, char *text)
{
    return kl_watch_stuck(slots, RANKS, 0, kl_now_ns() + after_ms * 1000000, 5000, "all_reduce", text, TEXT);
}

static void who_is_not_in_a_step_is_not_stuck(void **state)
{
    char text[TEXT];

    (void)state;
    assert_false(stuck(1000000, text));
    for (int r = 0; r < RANKS; r++) kl_watch_begin(&slots[r], &timing);
    assert_false(stuck(4000, text));
    for (int r = 0; r < RANKS; r++) kl_watch_end(&slots[r]);
    assert_false(stuck(1000000, text));
}

static void all_in_the_same_step(void **state)
{
    char text[TEXT];

    (void)state;
    for (int r = 0; r < RANKS; r++) kl_watch_begin(&slots[r], &timing);
    assert_true(stuck(6000, text));
    assert_string_equal(text,
                        "stuck for 5 s: all_reduce of 1024 bytes of float, out-of-place (timing); not finished by "
                        "ranks 0-5");
}

static void one_has_not_come(void **state)
{
    char text[TEXT];

    (void)state;
    for (int r = 0; r < RANKS; r++)
        if (r != 3) kl_watch_begin(&slots[r], &checking);
    assert_true(stuck(6000, text));
    assert_string_equal(text,
                        "stuck for 5 s: all_reduce of 8 bytes of bfloat16, in-place (checking); not finished by ranks "
                        "0-5, not even begun by 3");
}

/* Some have gone on, and wait in the next step for the ranks in this one. */
static void some_are_ahead(void **state)
{
    char text[TEXT];

    (void)state;
    for (int r = 0; r < RANKS; r++) kl_watch_begin(&slots[r], &timing);
    for (int r = 0; r < RANKS; r++)
        if (r != 1 && r != 4) kl_watch_end(&slots[r]), kl_watch_begin(&slots[r], &checking);
    assert_true(stuck(6000, text));
    assert_string_equal(text,
                        "stuck for 5 s: all_reduce of 1024 bytes of float, out-of-place (timing); not finished by "
                        "ranks 1,4");
}

static void joining_has_no_size(void **state)
{
    struct kl_watch_step join = {.phase = KL_PHASE_JOIN};
    char text[TEXT];

    (void)state;
    kl_watch_begin(&slots[2], &join);
    assert_true(kl_watch_stuck(&slots[2], 1, 7, kl_now_ns() + 2000000000, 500, "all_reduce", text, sizeof text));
    assert_string_equal(text, "stuck for 0.5 s: joining the communicator; not finished by rank 7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(who_is_not_in_a_step_is_not_stuck, fresh),
        cmocka_unit_test_setup(all_in_the_same_step, fresh),
        cmocka_unit_test_setup(one_has_not_come, fresh),
        cmocka_unit_test_setup(some_are_ahead, fresh),
        cmocka_unit_test_setup(joining_has_no_size, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
