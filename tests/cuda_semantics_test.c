/* SPDX-License-Identifier: Apache-2.0 */
/* Expectations of programs that were written for CUDA around the operations of a communicator. */
#include "base/atomic.h"
#include "tests/api_check.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3 };

/* ---- finalize ---- */

static void a_collective_and_a_finalize_in_one_group_both_happen(void **state)
{
    ncclComm_t comm[RANKS];
    int32_t one = 1, sum[RANKS] = {0};

    (void)state;
    ok(ncclCommInitAll(comm, RANKS, NULL));
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        ok(ncclAllReduce(&one, &sum[r], 1, ncclInt32, ncclSum, comm[r], NULL));
        ok(ncclCommFinalize(comm[r]));
    }
    ok(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) assert_int_equal(sum[r], RANKS); /* only finalize has waited for it */
    expect_refused(ncclAllReduce(&one, &sum[0], 1, ncclInt32, ncclSum, comm[0], NULL), ncclInvalidArgument,
                   "finalized");
    for (int r = 0; r < RANKS; r++) ok(ncclCommDestroy(comm[r]));
}

static void a_group_that_fails_finalizes_nothing(void **state)
{
    ncclComm_t comm;
    int32_t one = 1, sum = 0;

    (void)state;
    ok(ncclCommInitAll(&comm, 1, NULL));
    ok(ncclGroupStart());
    ok(ncclCommFinalize(comm));
    expect_refused(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, NULL, NULL), ncclInvalidArgument, "NULL");
    assert_int_equal(ncclGroupEnd(), ncclInvalidArgument);
    ok(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, NULL));
    ok(ncclCommFinalize(comm));
    assert_int_equal(sum, 1);
    ok(ncclCommDestroy(comm));
}

static void who_has_left_does_not_matter_to_a_finalize(void **state)
{
    ncclComm_t comm[2];
    int32_t one = 1, sum[2] = {0};

    (void)state;
    ok(ncclCommInitAll(comm, 2, NULL));
    ok(ncclGroupStart());
    for (int r = 0; r < 2; r++) ok(ncclAllReduce(&one, &sum[r], 1, ncclInt32, ncclSum, comm[r], NULL));
    ok(ncclGroupEnd());
    ok(ncclCommDestroy(comm[1]));
    ok(ncclCommFinalize(comm[0]));
    assert_true(sum[0] == 2 && sum[1] == 2);
    ok(ncclCommDestroy(comm[0]));
}

/* ---- errors ---- */

static void *count_nothing(void *unused)
{
    expect_refused(ncclCommCount(NULL, (int[]){0}), ncclInvalidArgument, "ncclCommCount");
    return unused;
}

static void the_last_error_is_that_of_any_thread(void **state)
{
    pthread_t thread;

    (void)state;
    expect_refused(ncclGetVersion(NULL), ncclInvalidArgument, "ncclGetVersion");
    assert_int_equal(pthread_create(&thread, NULL, count_nothing, NULL), 0);
    pthread_join(thread, NULL);
    assert_non_null(strstr(ncclGetLastError(NULL), "ncclCommCount"));
    expect_refused(ncclGetVersion(NULL), ncclInvalidArgument, "ncclGetVersion");
}

static void after_an_abort_the_stream_works_again(void **state)
{
    ncclComm_t comm[2];
    koloStream_t s;
    int32_t one = 1, sum = 0, copy = 0;
    ncclResult_t failed;

    (void)state;
    ok(ncclCommInitAll(comm, 2, NULL));
    ok(koloStreamCreate(&s, KOLO_STREAM_DEFAULT));
    ok(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm[0], s)); /* rank 1 never comes */
    ok(koloMemcpyAsync(&copy, &one, sizeof one, s));
    assert_int_equal(koloStreamQuery(s), ncclInProgress);
    ok(ncclCommAbort(comm[0]));
    assert_int_not_equal(koloStreamSynchronize(s), ncclSuccess); /* once */
    assert_int_equal(copy, 1);                                   /* the work behind it has run */
    ok(koloMemcpyAsync(&sum, &one, sizeof one, s));
    ok(koloStreamSynchronize(s));
    assert_int_equal(sum, 1);
    ok(ncclCommGetAsyncError(comm[1], &failed)); /* known by now, or not yet */
    ok(ncclCommAbort(comm[1]));
    ok(koloStreamDestroy(s));
}

/* ---- devices ---- */

static int current_device(void)
{
    int device = -1;

    ok(koloGetDevice(&device));
    return device;
}

static void make_and_end(const int *devices)
{
    ncclComm_t comm[RANKS];

    ok(ncclCommInitAll(comm, RANKS, devices));
    for (int r = 0; r < RANKS; r++) ok(ncclCommDestroy(comm[r]));
}

static void *join_without_a_choice(void *unused)
{
    make_and_end((int[]){2, 1, 3});
    assert_int_equal(current_device(), 0);
    ok(koloSetDevice(1));
    make_and_end(NULL);
    assert_int_equal(current_device(), 1);
    return unused;
}

static void joining_does_not_change_the_current_device(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, join_without_a_choice, NULL), 0);
    pthread_join(thread, NULL);
}

/* In a process of its own: the variable is read once. */
static int look_at_devices(const char *visible, int want, const int *ordinals)
{
    int count, ordinal, device, one = 1, sum = 0;
    ncclComm_t comm;

    setenv("KOLO_HOST_DEVICES", "4", 1);
    setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    if (koloGetDeviceCount(&count) || count != want) return 1;
    if (koloGetDeviceOrdinal(count, &ordinal) != ncclInvalidArgument || koloSetDevice(count) != ncclInvalidArgument)
        return 2;
    for (int i = 0; i < count; i++) {
        if (koloGetDeviceOrdinal(i, &ordinal) || ordinal != ordinals[i]) return 3;
        if (koloSetDevice(i) || ncclCommInitAll(&comm, 1, &i)) return 4;
        if (ncclCommCuDevice(comm, &device) || device != i) return 5;
        if (ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, NULL) || koloStreamSynchronize(NULL)) return 6;
        if (ncclCommDestroy(comm)) return 7;
    }
    return ncclCommInitAll(&comm, count + 1, NULL) == ncclUnhandledCudaError ? 0 : 8;
}

static void a_process_sees_the_devices_that_it_is_told(void **state)
{
    static const struct {
        const char *visible;
        int n, ordinals[4];
    } cases[] = {{"2,0", 2, {2, 0}}, {"", 0, {0}}, {"0,2,-1,1", 2, {0, 2}}, {"3", 1, {3}}, {"1,4", 1, {1}}};
    int status;

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        pid_t child = fork();
        if (!child) _exit(look_at_devices(c->visible, c->n, c->ordinals));
        waitpid(child, &status, 0);
        expect_case(c->visible, status == 0);
    }
}

static void two_ranks_may_have_one_device(void **state)
{
    ncclComm_t comm[2];
    ncclUniqueId id;
    int device;

    (void)state;
    ok(ncclGetUniqueId(&id));
    ok(koloSetDevice(1));
    ok(ncclGroupStart());
    for (int r = 0; r < 2; r++) ok(ncclCommInitRank(&comm[r], 2, id, r));
    ok(ncclGroupEnd());
    for (int r = 0; r < 2; r++) {
        ok(ncclCommCuDevice(comm[r], &device));
        assert_int_equal(device, 1);
        ok(ncclCommDestroy(comm[r]));
    }
    assert_int_equal(current_device(), 1);
    ok(koloSetDevice(0));
}

static void more_ranks_than_devices_are_an_error_of_the_device(void **state)
{
    ncclComm_t *comm;
    int count;

    (void)state;
    ok(koloGetDeviceCount(&count));
    comm = calloc((size_t)count + 1, sizeof(void *));
    expect_refused(ncclCommInitAll(comm, count + 1, NULL), ncclUnhandledCudaError, "KOLO_HOST_DEVICES");
    expect_refused(ncclCommInitAll(comm, 1, &count), ncclInvalidArgument, "KOLO_HOST_DEVICES");
    free(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_sees_the_devices_that_it_is_told), /* first: nothing has been read */
        cmocka_unit_test(joining_does_not_change_the_current_device), /* before any thread has chosen */
        cmocka_unit_test(a_collective_and_a_finalize_in_one_group_both_happen),
        cmocka_unit_test(a_group_that_fails_finalizes_nothing),
        cmocka_unit_test(who_has_left_does_not_matter_to_a_finalize),
        cmocka_unit_test(the_last_error_is_that_of_any_thread),
        cmocka_unit_test(after_an_abort_the_stream_works_again),
        cmocka_unit_test(two_ranks_may_have_one_device),
        cmocka_unit_test(more_ranks_than_devices_are_an_error_of_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
