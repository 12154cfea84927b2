/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/diagnosis/flight.h"

#include "base/clock.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <pthread.h>

static struct kl_flight *flight;

static int create(void **state)
{
    (void)state;
    assert_int_equal(kl_flight_create(&flight), ncclSuccess);
    return 0;
}

static int destroy(void **state)
{
    (void)state;
    kl_flight_free(flight);
    return 0;
}

static struct kl_task all_reduce(size_t count, uint64_t number)
{
    return (struct kl_task){.func = KL_FUNC_ALL_REDUCE,
                            .number = number,
                            .type = ncclFloat64,
                            .op = ncclMax,
                            .count = count,
                            .choice = {.algorithm = 3, .proto = KL_PROTO_LL128, .partition.nchannels = 5}};
}

static void issued_operations_are_read(void **state)
{
    const struct kl_task send = {.func = KL_FUNC_SEND, .type = ncclInt8, .peer = 4, .count = 7}, t = all_reduce(99, 1);
    struct kl_flight_op op;

    (void)state;
    assert_false(kl_flight_read(flight, 1, &op));
    kl_flight_issue(flight, 0, &send, NULL, kl_ticks());
    kl_flight_issue(flight, 1, &t, flight, kl_ticks());
    assert_true(kl_flight_read(flight, 1, &op));
    assert_int_equal(op.func, KL_FUNC_SEND);
    assert_int_equal(op.peer, 4);
    assert_int_equal(op.collective, 0);
    assert_int_equal(op.channels, 0);
    assert_true(kl_flight_read(flight, 2, &op));
    assert_int_equal(op.number, 2);
    assert_int_equal(op.collective, 1);
    assert_int_equal(op.func, KL_FUNC_ALL_REDUCE);
    assert_int_equal(op.type, ncclFloat64);
    assert_int_equal(op.op, ncclMax);
    assert_int_equal(op.algorithm, 3);
    assert_int_equal(op.proto, KL_PROTO_LL128);
    assert_int_equal(op.channels, 5);
    assert_int_equal(op.count, 99);
    assert_int_equal(op.stream, (uintptr_t)flight);
    assert_true(op.issued && !op.begun && !op.ended);
    assert_false(kl_flight_read(flight, 3, &op));
    assert_int_equal(kl_flight_issued(flight), 2);
}

static void states_and_times_follow_each_other(void **state)
{
    struct kl_flight_op op;

    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        const struct kl_task t = all_reduce(1, i + 1);
        kl_flight_issue(flight, i, &t, NULL, kl_ticks());
    }
    assert_int_equal(kl_flight_begin(flight, 3), 3);
    kl_flight_time_begin(flight, 1, 3);
    kl_flight_end(flight, 2, 2);
    kl_flight_time_end(flight, 1, 2);
    assert_true(kl_flight_read(flight, 1, &op) && op.issued && !op.begun && !op.ended); /* it was quick */
    assert_int_equal(op.state, KL_FLIGHT_ENDED);
    assert_true(kl_flight_read(flight, 2, &op) && op.issued <= op.begun && op.begun <= op.ended);
    assert_int_equal(op.state, KL_FLIGHT_ENDED);
    assert_true(kl_flight_read(flight, 3, &op) && op.begun && !op.ended);
    assert_int_equal(op.state, KL_FLIGHT_RUNNING);
    assert_true(kl_flight_read(flight, 4, &op) && !op.begun);
    assert_int_equal(op.state, KL_FLIGHT_QUEUED);
    assert_int_equal(kl_load_relaxed(&flight->collectives_ended), 2);
}

static void the_last_ones_are_kept(void **state)
{
    struct kl_flight_op op;
    const uint64_t n = 3 * KL_FLIGHT_RECORDS + 7;

    (void)state;
    for (uint64_t i = 0; i < n; i++) {
        const struct kl_task t = all_reduce(1, i + 1);
        kl_flight_issue(flight, i, &t, NULL, kl_ticks());
    }
    kl_flight_time_begin(flight, 0, n); /* a group larger than the recorder: overwritten records are left alone */
    kl_flight_time_end(flight, 0, n - 1);
    for (uint64_t i = 1; i <= n; i++) {
        assert_int_equal(kl_flight_read(flight, i, &op), i > n - KL_FLIGHT_RECORDS);
        if (i <= n - KL_FLIGHT_RECORDS) continue;
        assert_int_equal(op.number, i);
        assert_int_equal(op.collective, i);
        assert_int_equal(!op.ended, i == n);
    }
}

static _Atomic bool enough;

static void *write_until_enough(void *unused)
{
    (void)unused;
    for (uint64_t i = 0; !kl_load_acquire(&enough); i++) {
        const struct kl_task t = all_reduce(1000 + i, i + 1);
        kl_flight_issue(flight, i, &t, (void *)(uintptr_t)(2000 + i), kl_ticks());
        kl_flight_time_begin(flight, i, kl_flight_begin(flight, i + 1));
        kl_flight_end(flight, i + 1, i + 1);
    }
    return NULL;
}

static uint64_t torn;

/* Whether some records could be read while others were written: the next ones to be overwritten. */
static bool read_in_the_midst(uint64_t last)
{
    enum { NEXT = 16 };
    const uint64_t oldest = last > KL_FLIGHT_RECORDS ? last - KL_FLIGHT_RECORDS : 1;
    struct kl_flight_op op;
    bool some = false;

    for (uint64_t i = oldest; i <= last && i < oldest + NEXT; i++) {
        if (!kl_flight_read(flight, i, &op)) continue;
        some = true;
        torn += op.count != 1000 + i - 1 || op.stream != 2000 + i - 1 || op.collective != i;
    }
    return some && kl_flight_issued(flight) != last;
}

/* A record that is read while others are written belongs to one operation. The writer continues until that was seen a
 * few times. */
static void a_reader_sees_whole_records(void **state)
{
    const uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());
    uint64_t last = 0;
    int times = 0;
    pthread_t writer;

    (void)state;
    assert_int_equal(pthread_create(&writer, NULL, write_until_enough, NULL), 0);
    while ((times < 3 || last < 200000) && !kl_deadline_passed(deadline)) {
        last = kl_flight_issued(flight);
        times += read_in_the_midst(last);
    }
    kl_store_release(&enough, true);
    pthread_join(writer, NULL);
    assert_int_equal(torn, 0);
    assert_true(times >= 3 && last >= 200000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(issued_operations_are_read, create, destroy),
        cmocka_unit_test_setup_teardown(states_and_times_follow_each_other, create, destroy),
        cmocka_unit_test_setup_teardown(the_last_ones_are_kept, create, destroy),
        cmocka_unit_test_setup_teardown(a_reader_sees_whole_records, create, destroy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
