/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/stream_failures.h"

#include "tests/kolo_test.h"

#include <stdio.h>

static struct kl_stream_failures failures;
static const char a, b; /* owners */

static int begin(void **state)
{
    (void)state;
    kl_failures_init(&failures);
    return 0;
}

static ncclResult_t ask(uint64_t end)
{
    return kl_failures_ask(&failures, end, kl_failures_ended(&failures));
}

static void expect_told(uint64_t end, ncclResult_t code, const char *text)
{
    assert_int_equal(ask(end), code);
    assert_string_equal(kl_error_text(), text);
}

static void everybody_is_told_while_the_owner_lives(void **state)
{
    (void)state;
    assert_int_equal(ask(100), ncclSuccess);
    kl_failures_add(&failures, &a, 5, ncclRemoteError, "rank 3 is gone");
    kl_failures_add(&failures, &a, 7, ncclInternalError, "a later one");
    for (int i = 0; i < 3; i++) expect_told(100, ncclRemoteError, "rank 3 is gone");
    expect_told(6, ncclRemoteError, "rank 3 is gone");
    assert_int_equal(ask(5), ncclSuccess); /* work before the failed one */
}

static void after_the_owner_nobody_is_told_who_need_not_be(void **state)
{
    (void)state;
    kl_failures_add(&failures, &a, 5, ncclRemoteError, "of a");
    kl_failures_end(&failures, &a, false); /* reported by its destruction */
    assert_int_equal(ask(100), ncclSuccess);

    kl_failures_add(&failures, &a, 6, ncclRemoteError, "of a");
    expect_told(100, ncclRemoteError, "of a");
    kl_failures_end(&failures, &a, true);
    assert_int_equal(ask(100), ncclSuccess);
}

static void what_nobody_was_told_is_told_once(void **state)
{
    char text[] = "of a";

    (void)state;
    kl_failures_add(&failures, &a, 5, ncclRemoteError, text);
    kl_failures_end(&failures, &a, true);
    memset(text, 'x', sizeof text - 1); /* freed with its owner */
    assert_int_equal(ask(5), ncclSuccess);
    expect_told(100, ncclRemoteError, "of a");
    assert_int_equal(ask(100), ncclSuccess);
}

static void who_waits_is_told_however_the_owner_ends(void **state)
{
    (void)state;
    for (int tell = 0; tell < 2; tell++) {
        uint64_t before = kl_failures_ended(&failures);
        kl_failures_add(&failures, &a, 5, ncclRemoteError, "of a");
        assert_int_equal(ask(100), ncclRemoteError); /* another thread's query */
        kl_failures_end(&failures, &a, tell);
        assert_int_equal(kl_failures_ask(&failures, 5, before), ncclSuccess);
        assert_int_equal(kl_failures_ask(&failures, 6, before), ncclRemoteError);
        assert_int_equal(kl_failures_ask(&failures, 6, before), ncclRemoteError); /* a second waiter */
        assert_int_equal(ask(100), ncclSuccess);
    }
}

static void owners_end_by_themselves(void **state)
{
    (void)state;
    kl_failures_add(&failures, &a, 5, ncclRemoteError, "of a");
    kl_failures_add(&failures, &b, 3, ncclInternalError, "of b");
    expect_told(100, ncclRemoteError, "of a");
    expect_told(4, ncclInternalError, "of b");
    kl_failures_end(&failures, &a, true);
    expect_told(100, ncclInternalError, "of b");
    kl_failures_end(&failures, &b, true);
    assert_int_equal(ask(100), ncclSuccess);
    kl_failures_end(&failures, &b, true); /* it has no failure here */
}

/* Two that were never reported: one sentence, for all work behind either. */
static void two_that_ended_are_told_as_one(void **state)
{
    (void)state;
    kl_failures_add(&failures, &a, 5, ncclRemoteError, "of a");
    kl_failures_add(&failures, &b, 50, ncclInternalError, "of b");
    kl_failures_end(&failures, &a, true);
    kl_failures_end(&failures, &b, true);
    assert_int_equal(ask(10), ncclInternalError);
    assert_int_equal(ask(100), ncclSuccess);
}

static void more_owners_than_there_is_room_for_are_told_of_once(void **state)
{
    static const char owners[KL_STREAM_FAILURES + 2];

    (void)state;
    for (size_t i = 0; i < sizeof owners; i++) kl_failures_add(&failures, &owners[i], i, ncclRemoteError, "text");
    for (size_t i = 0; i < sizeof owners; i++) kl_failures_end(&failures, &owners[i], false);
    assert_int_equal(ask(100), ncclRemoteError);
    assert_int_equal(ask(100), ncclSuccess);
}

static void a_new_user_hears_nothing_of_the_old_one(void **state)
{
    (void)state;
    kl_failures_add(&failures, &a, 5, ncclRemoteError, "of a");
    kl_failures_add(&failures, &b, 5, ncclRemoteError, "of b");
    kl_failures_end(&failures, &b, true);
    kl_failures_clear(&failures);
    assert_int_equal(ask(100), ncclSuccess);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(everybody_is_told_while_the_owner_lives, begin),
        cmocka_unit_test_setup(after_the_owner_nobody_is_told_who_need_not_be, begin),
        cmocka_unit_test_setup(what_nobody_was_told_is_told_once, begin),
        cmocka_unit_test_setup(who_waits_is_told_however_the_owner_ends, begin),
        cmocka_unit_test_setup(owners_end_by_themselves, begin),
        cmocka_unit_test_setup(two_that_ended_are_told_as_one, begin),
        cmocka_unit_test_setup(more_owners_than_there_is_room_for_are_told_of_once, begin),
        cmocka_unit_test_setup(a_new_user_hears_nothing_of_the_old_one, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
