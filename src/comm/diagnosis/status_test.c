/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/diagnosis/status.h"

#include "tests/kolo_test.h"

#include <stdio.h>

static struct kl_status sample(void)
{
    struct kl_status s = {.communicator = 0x1234567890abcdef, .rank = 3, .nranks = 7, .device = 5, .pid = 77};

    snprintf(s.host, sizeof s.host, "host");
    s.state = KL_STATUS_FAILED;
    snprintf(s.phase, sizeof s.phase, "graphs");
    s.failed = ncclRemoteError;
    snprintf(s.text, sizeof s.text, "rank 2 is gone");
    for (int f = 0; f < KL_FUNC_ROWS; f++) s.issued[f] = 100u + (uint64_t)f;
    s.ended = 9;
    s.collectives_issued = 8;
    s.collectives_ended = 7;
    s.number = 10;
    s.collective = 6;
    s.count = 1000;
    s.bytes = 4000;
    s.func = KL_FUNC_REDUCE;
    s.type = ncclInt32;
    s.op = ncclMin;
    s.op_state = 1;
    s.peer = 2;
    s.waits_for = 4;
    s.for_ns = UINT64_MAX;
    return s;
}

static bool pass(const struct kl_status *from, struct kl_status *to)
{
    unsigned char wire[KL_STATUS_WIRE];
    struct kl_writer w = kl_writer_on(wire, sizeof wire);

    kl_status_put(&w, from);
    assert_true(!w.bad && w.at == w.end);
    struct kl_reader r = kl_reader_on(wire, sizeof wire);
    return kl_status_get(&r, to);
}

static void encoding_round_trips(void **state)
{
    struct kl_status s = sample(), got;

    (void)state;
    memset(&got, 0, sizeof got);
    assert_true(pass(&s, &got));
    assert_int_equal(got.communicator, s.communicator);
    assert_int_equal(got.rank, 3);
    assert_int_equal(got.device, 5);
    assert_string_equal(got.host, "host");
    assert_string_equal(got.phase, "graphs");
    assert_string_equal(got.text, "rank 2 is gone");
    assert_memory_equal(got.issued, s.issued, sizeof s.issued);
    assert_int_equal(got.bytes, 4000);
    assert_int_equal(got.op_state, 1);
    assert_int_equal(got.waits_for, 4);
    assert_int_equal(got.for_ns, UINT64_MAX);
}

static void values_out_of_range_are_refused(void **state)
{
    struct kl_status got, bad[] = {sample(), sample(), sample(), sample(), sample(), sample(), sample(), sample()};

    (void)state;
    bad[0].rank = 7;
    bad[1].nranks = 0;
    bad[2].state = KL_STATUS_STATES;
    bad[3].func = KL_FUNC_ROWS;
    bad[4].type = 200;
    bad[5].waits_for = 7;
    bad[6].peer = -2;
    bad[7].failed = -1;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(pass(&bad[i], &got));
}

static void texts_are_printable_and_end(void **state)
{
    struct kl_status s = sample(), got;

    (void)state;
    memset(s.host, 'x', sizeof s.host);
    snprintf(s.text, sizeof s.text, "a\nb\x1b[2J");
    assert_true(pass(&s, &got));
    assert_int_equal(strlen(got.host), sizeof got.host - 1);
    assert_string_equal(got.text, "a?b?[2J");
}

static void a_short_record_is_refused(void **state)
{
    unsigned char wire[KL_STATUS_WIRE];
    struct kl_status s = sample(), got;
    struct kl_writer w = kl_writer_on(wire, sizeof wire);

    (void)state;
    kl_status_put(&w, &s);
    for (size_t n = 0; n < sizeof wire; n++) {
        struct kl_reader r = kl_reader_on(wire, n);
        assert_false(kl_status_get(&r, &got));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding_round_trips),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(texts_are_printable_and_end),
        cmocka_unit_test(a_short_record_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
