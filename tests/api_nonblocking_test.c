/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations, communicators that are not blocking, and aborts of communicators that are being made.
 */
#include "comm/job.h"
#include "tests/api_check.h"
#include "tests/holdings.h"
#include "tests/leftovers.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { RANKS = 3, COUNT = 1000 };

static ncclConfig_t config_with(int blocking)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    config.blocking = blocking;
    return config;
}

static void await_all(ncclComm_t *comms)
{
    for (int r = 0; r < RANKS; r++) assert_int_equal(await(comms[r]), ncclSuccess);
}

static void reduce_and_check(ncclComm_t *comms)
{
    static int in[RANKS][COUNT], out[RANKS][COUNT];

    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++) in[r][i] = i + r;
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(ncclAllReduce(in[r], out[r], COUNT, ncclInt, ncclSum, comms[r], NULL));
    ok(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) {
        int device;
        ok(ncclCommCuDevice(comms[r], &device));
        ok(koloSetDevice(device));
        ok(koloStreamSynchronize(NULL));
    }
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++) assert_int_equal(out[r][i], RANKS * i + RANKS * (RANKS - 1) / 2);
}

/* ---- not blocking ---- */

static void one_thread_makes_and_ends_several_without_a_group(void **state)
{
    ncclConfig_t config = config_with(0);
    ncclComm_t comms[RANKS];
    ncclUniqueId id;

    (void)state;
    ok(ncclGetUniqueId(&id));
    for (int r = 0; r < RANKS; r++) {
        ok(koloSetDevice(r));
        assert_int_equal(ncclCommInitRankConfig(&comms[r], RANKS, id, r, &config), ncclInProgress);
        assert_non_null(comms[r]);
    }
    await_all(comms);
    reduce_and_check(comms);
    for (int r = 0; r < RANKS; r++) assert_int_equal(ncclCommFinalize(comms[r]), ncclInProgress);
    await_all(comms);
    expect_refused(ncclCommFinalize(comms[0]), ncclInvalidArgument, "finalized before");
    assert_int_equal(await(comms[0]), ncclSuccess); /* a user error, and no failure */
    for (int r = 0; r < RANKS; r++) ok(ncclCommDestroy(comms[r]));
}

static _Atomic bool let_go;

static void hold_on(void *unused)
{
    (void)unused;
    while (!kl_load_acquire(&let_go)) sched_yield();
}

static void await_failure_of(ncclComm_t handle)
{
    struct ncclComm *comm = kl_handle_try(handle);

    while (!kl_load_acquire(&comm->failed)) sched_yield();
    kl_handle_leave(comm);
}

/* The result is reported when the call has ended: a caller that has read it can destroy the communicator. */
static void one_whose_end_fails_can_be_destroyed_at_once(void **state)
{
    static int in[COUNT], out[COUNT];
    ncclConfig_t config = config_with(0);
    ncclComm_t comms[RANKS];
    ncclResult_t code;
    ncclUniqueId id;

    (void)state;
    ok(ncclGetUniqueId(&id));
    for (int r = 0; r < RANKS; r++) {
        ok(koloSetDevice(r));
        assert_int_equal(ncclCommInitRankConfig(&comms[r], RANKS, id, r, &config), ncclInProgress);
    }
    await_all(comms);
    ok(koloSetDevice(0));
    ok(koloStreamLaunch(NULL, hold_on, NULL));
    ok(ncclAllReduce(in, out, COUNT, ncclInt, ncclSum, comms[0], NULL));
    assert_int_equal(ncclCommFinalize(comms[0]), ncclInProgress);
    for (int r = 1; r < RANKS; r++) ok(ncclCommAbort(comms[r]));
    await_failure_of(comms[0]);
    ok(ncclCommGetAsyncError(comms[0], &code));
    assert_int_equal(code, ncclInProgress);
    kl_store_release(&let_go, true);
    assert_int_equal(await(comms[0]), ncclRemoteError);
    assert_int_not_equal(ncclCommDestroy(comms[0]), ncclInvalidArgument);
}

static void a_group_of_them_goes_on_in_the_background(void **state)
{
    ncclConfig_t config = config_with(0);
    ncclComm_t comms[RANKS];
    ncclUniqueId id;

    (void)state;
    ok(ncclGetUniqueId(&id));
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        ok(koloSetDevice(r));
        ok(ncclCommInitRankConfig(&comms[r], RANKS, id, r, &config));
    }
    assert_int_equal(ncclGroupEnd(), ncclInProgress);
    await_all(comms);
    reduce_and_check(comms);
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(ncclCommFinalize(comms[r]));
    assert_int_equal(ncclGroupEnd(), ncclInProgress);
    await_all(comms);
    for (int r = 0; r < RANKS; r++) ok(ncclCommDestroy(comms[r]));
}

static void one_that_is_not_ready_can_be_asked_and_aborted_only(void **state)
{
    ncclConfig_t config = config_with(0);
    ncclResult_t code;
    ncclUniqueId id;
    ncclComm_t comm;
    float x = 1;
    int n;

    (void)state;
    ok(ncclGetUniqueId(&id));
    assert_int_equal(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress); /* rank 1 does not join */
    ok(ncclCommGetAsyncError(comm, &code));
    assert_int_equal(code, ncclInProgress);
    expect_refused(ncclCommCount(comm, &n), ncclInvalidArgument, "its creation is in progress");
    expect_refused(ncclCommUserRank(comm, &n), ncclInvalidArgument, "not ready");
    expect_refused(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, NULL), ncclInvalidArgument, "not ready");
    expect_refused(ncclCommFinalize(comm), ncclInvalidArgument, "not ready");
    expect_refused(ncclCommDestroy(comm), ncclInvalidArgument, "not ready");
    ok(ncclCommAbort(comm));
    expect_refused(ncclCommGetAsyncError(comm, &code), ncclInvalidArgument, "aborted");
}

static void a_failure_while_it_is_made_is_its_state(void **state)
{
    ncclConfig_t config = config_with(0);
    ncclComm_t comms[2];
    ncclUniqueId id;

    (void)state;
    ok(ncclGetUniqueId(&id));
    assert_int_equal(ncclCommInitRankConfig(&comms[0], 2, id, 0, &config), ncclInProgress);
    assert_int_equal(ncclCommInitRankConfig(&comms[1], 3, id, 1, &config), ncclInProgress); /* another size */
    for (int r = 0; r < 2; r++) {
        assert_int_equal(await(comms[r]), ncclInvalidUsage);
        assert_non_null(strstr(ncclGetLastError(comms[r]), "give all ranks the same number"));
        ok(ncclCommAbort(comms[r]));
    }
}

static void a_group_is_of_one_kind(void **state)
{
    ncclConfig_t config = config_with(0);
    ncclComm_t comms[2];
    ncclUniqueId id;

    (void)state;
    ok(ncclGetUniqueId(&id));
    ok(ncclGroupStart());
    ok(ncclCommInitRankConfig(&comms[0], 2, id, 0, &config));
    ok(ncclCommInitRank(&comms[1], 2, id, 1));
    expect_refused(ncclGroupEnd(), ncclInvalidArgument, "a group of its own");
    assert_null(comms[0]);
    assert_null(comms[1]);
}

static void an_abort_takes_a_communicator_out_of_the_open_group(void **state)
{
    ncclUniqueId id;
    ncclComm_t comm;

    (void)state;
    ok(ncclGetUniqueId(&id));
    ok(ncclGroupStart());
    ok(ncclCommInitRank(&comm, 2, id, 0));
    ok(ncclCommAbort(comm));
    ok(ncclGroupEnd());
    assert_null(comm);
}

/* ---- aborts while a blocking one is being made ---- */

struct joining {
    ncclUniqueId id;
    _Atomic(ncclComm_t) comm;
    ncclResult_t rc;
    char text[KL_ERROR_TEXT];
};

static void *join(void *arg)
{
    struct joining *j = arg;

    j->rc = ncclCommInitRank((ncclComm_t *)&j->comm, 2, j->id, 0);
    snprintf(j->text, sizeof j->text, "%s", ncclGetLastError(NULL));
    return NULL;
}

static void another_thread_aborts_a_blocking_init(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) { /* at different points */
        struct joining j = {0};
        ncclComm_t comm;
        pthread_t thread;

        ok(ncclGetUniqueId(&j.id));
        assert_int_equal(pthread_create(&thread, NULL, join, &j), 0);
        while (!(comm = kl_load_acquire(&j.comm))) sched_yield();
        for (int k = 0; k < i * 100; k++) sched_yield();
        ok(ncclCommAbort(comm));
        pthread_join(thread, NULL);
        assert_int_equal(j.rc, ncclInternalError);
        assert_non_null(strstr(j.text, "rank 0 aborted the communicator"));
        assert_null(j.comm);
    }
}

/* ---- effects of a configuration ---- */

static ncclResult_t create_with(ncclComm_t *comms, const ncclConfig_t *configs)
{
    ncclUniqueId id;

    ok(ncclGetUniqueId(&id));
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        ncclConfig_t config = configs[r];
        ok(koloSetDevice(r));
        ok(ncclCommInitRankConfig(&comms[r], RANKS, id, r, &config));
        memset(&config, 0, sizeof config); /* it was copied */
    }
    return ncclGroupEnd();
}

static int channels_of(ncclComm_t handle)
{
    struct ncclComm *comm;

    ok(kl_comm_enter(handle, "test", &comm));
    int n = comm->connect->nchannels;
    kl_handle_leave(comm);
    return n;
}

static void limits_of_channels_are_kept(void **state)
{
    ncclConfig_t few[RANKS], many[RANKS];
    ncclComm_t comms[RANKS];

    (void)state;
    for (int r = 0; r < RANKS; r++) {
        few[r] = many[r] = config_with(1);
        few[r].maxCTAs = 1;
        few[r].netName = "sOcKeT";
        many[r].minCTAs = 7;
    }
    ok(create_with(comms, few));
    assert_int_equal(channels_of(comms[0]), 1);
    reduce_and_check(comms);
    for (int r = 0; r < RANKS; r++) ok(ncclCommDestroy(comms[r]));
    ok(create_with(comms, many));
    assert_true(channels_of(comms[RANKS - 1]) >= 7);
    reduce_and_check(comms);
    for (int r = 0; r < RANKS; r++) ok(ncclCommDestroy(comms[r]));
}

static void ranks_that_ask_for_different_channels_are_refused(void **state)
{
    ncclConfig_t configs[RANKS];
    ncclComm_t comms[RANKS];

    (void)state;
    for (int r = 0; r < RANKS; r++) configs[r] = config_with(1);
    configs[2].maxCTAs = 4;
    assert_int_equal(create_with(comms, configs), ncclInvalidUsage);
    assert_non_null(strstr(ncclGetLastError(NULL), "maxCTAs of the configuration is"));
    for (int r = 0; r < RANKS; r++) assert_null(comms[r]);
}

static void wrong_configurations_are_refused(void **state)
{
    ncclConfig_t config = config_with(2);
    ncclUniqueId id;
    ncclComm_t comm;

    (void)state;
    ok(ncclGetUniqueId(&id));
    expect_refused(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument, "blocking is 2");
    config = config_with(1);
    config.magic = 1;
    expect_refused(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument, "NCCL_CONFIG_INITIALIZER");
    config = config_with(1);
    config.netName = "nosuch";
    expect_refused(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidUsage, "no network \"nosuch\"");
    assert_null(comm);
    expect_refused(ncclCommInitRankConfig(NULL, 1, id, 0, &config), ncclInvalidArgument, "result pointer is NULL");
    ok(ncclGetUniqueId(&id));
    ok(ncclCommInitRankConfig(&comm, 1, id, 0, NULL));
    ok(ncclCommDestroy(comm));
}

struct kolo_test_keep kolo_test_keeps[] = {KOLO_TEST_UNUSED_IDS, {NULL, 0, 0}};

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_makes_and_ends_several_without_a_group),
        cmocka_unit_test(one_whose_end_fails_can_be_destroyed_at_once),
        cmocka_unit_test(a_group_of_them_goes_on_in_the_background),
        cmocka_unit_test(one_that_is_not_ready_can_be_asked_and_aborted_only),
        cmocka_unit_test(a_failure_while_it_is_made_is_its_state),
        cmocka_unit_test(a_group_is_of_one_kind),
        cmocka_unit_test(an_abort_takes_a_communicator_out_of_the_open_group),
        cmocka_unit_test(another_thread_aborts_a_blocking_init),
        cmocka_unit_test(limits_of_channels_are_kept),
        cmocka_unit_test(ranks_that_ask_for_different_channels_are_refused),
        cmocka_unit_test(wrong_configurations_are_refused),
    };

    setenv("NCCL_DEBUG", "NONE", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
