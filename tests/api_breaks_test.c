/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators that grow, that are revoked, and that release their resources for a while.
 */
#include "tests/holdings.h"

#include <stdlib.h>

enum { RANKS = 4, COUNT = 100000 };

#include "tests/api_comms.h"
#include "tests/leftovers.h"

static int in[RANKS][COUNT], out[RANKS][COUNT];

static void sum_over(ncclComm_t *which, int n)
{
    for (int r = 0; r < n; r++)
        for (int i = 0; i < COUNT; i++) in[r][i] = (r + 1) * i;
    ok(ncclGroupStart());
    for (int r = 0; r < n; r++) ok(ncclAllReduce(in[r], out[r], COUNT, ncclInt, ncclSum, which[r], NULL));
    ok(ncclGroupEnd());
    for (int r = 0; r < n; r++) {
        int device;
        ok(ncclCommCuDevice(which[r], &device));
        ok(synchronize_device(device));
        for (int i = 0; i < COUNT; i++) assert_int_equal(out[r][i], n * (n + 1) / 2 * i);
    }
}

/* ---- growing ---- */

static void new_ranks_join_the_old_ones(void **state)
{
    ncclComm_t pair[2], grown[RANKS];
    ncclUniqueId id;
    int n, rank;

    (void)state;
    ok(ncclCommInitAll(pair, 2, NULL));
    for (int round = 0; round < 2; round++) { /* rank 0 or 1 has the id, and passes it or not */
        ok(ncclCommGetUniqueId(pair[round], &id));
        ok(ncclGroupStart());
        for (int r = 0; r < RANKS; r++) {
            ok(koloSetDevice(r));
            if (r < 2)
                ok(ncclCommGrow(pair[r], RANKS, round && r ? &id : NULL, -1, &grown[r], NULL));
            else
                ok(ncclCommGrow(NULL, RANKS, &id, r, &grown[r], NULL));
        }
        ok(ncclGroupEnd());
        for (int r = 0; r < RANKS; r++) {
            ok(ncclCommCount(grown[r], &n));
            ok(ncclCommUserRank(grown[r], &rank));
            assert_int_equal(n, RANKS);
            assert_int_equal(rank, r);
        }
        sum_over(grown, RANKS);
        sum_over(pair, 2);
        for (int r = 0; r < RANKS; r++) ok(ncclCommDestroy(grown[r]));
    }
    for (int r = 0; r < 2; r++) ok(ncclCommDestroy(pair[r]));
}

static void growing_is_checked(void **state)
{
    ncclComm_t none[RANKS];
    ncclUniqueId id;

    (void)state;
    expect_refused(ncclCommGetUniqueId(comms[0], NULL), ncclInvalidArgument, "result pointer is NULL");
    expect_refused(ncclCommGrow(comms[0], 9, NULL, -1, NULL, NULL), ncclInvalidArgument, "result pointer is NULL");
    expect_refused(ncclCommGrow(comms[0], 9, NULL, 0, none, NULL), ncclInvalidArgument, "-1 keeps it");
    expect_refused(ncclCommGrow(comms[0], RANKS, NULL, -1, none, NULL), ncclInvalidArgument, "that has 4");
    expect_refused(ncclCommGrow(NULL, 9, NULL, 5, none, NULL), ncclInvalidArgument, "needs the id");
    ok(ncclGetUniqueId(&id));
    expect_refused(ncclCommGrow(NULL, 9, &id, 9, none, NULL), ncclInvalidArgument, "rank 9 of 9");
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(ncclCommGrow(comms[r], 9, NULL, -1, &none[r], NULL));
    expect_refused(ncclGroupEnd(), ncclInvalidUsage, "no rank has an id");
    sum_over(comms, RANKS); /* which is harmless */
}

/* ---- revoking ---- */

static void revoked_ones_have_children_and_nothing_else(void **state)
{
    ncclComm_t parents[RANKS], children[RANKS];
    ncclResult_t code;

    (void)state;
    ok(ncclCommInitAll(parents, RANKS, NULL));
    sum_over(parents, RANKS); /* connected */
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS - 1; r++) /* the last one does not come */
        ok(ncclAllReduce(in[r], out[r], COUNT, ncclInt, ncclSum, parents[r], NULL));
    ok(ncclGroupEnd());
    for (int r = 0; r < RANKS - 1; r++) {
        ok(koloSetDevice(r));
        assert_int_equal(koloStreamQuery(NULL), ncclInProgress); /* it moves the data that can be moved */
    }
    expect_refused(ncclCommRevoke(parents[0], 1), ncclInvalidArgument, "flags 1");
    for (int r = 0; r < RANKS; r++) ok(ncclCommRevoke(parents[r], NCCL_REVOKE_DEFAULT));
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(synchronize_device(r), r < RANKS - 1 ? ncclInternalError : ncclSuccess);
        ok(synchronize_device(r)); /* reported once; the stream works again */
        ok(ncclCommGetAsyncError(parents[r], &code));
        assert_int_equal(code, ncclSuccess);
    }
    expect_refused(ncclAllReduce(in[0], out[0], 1, ncclInt, ncclSum, parents[0], NULL), ncclInternalError, "revoked");
    expect_refused(ncclCommFinalize(parents[0]), ncclInvalidUsage, "revoked");
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(ncclCommSplit(parents[r], 0, 0, &children[r], NULL));
    ok(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) ok(ncclCommDestroy(parents[r]));
    sum_over(children, RANKS);
    for (int r = 0; r < RANKS; r++) ok(ncclCommDestroy(children[r]));
}

/* ---- giving back ---- */

static uint64_t held(ncclComm_t comm, ncclCommMemStat_t stat)
{
    uint64_t value;

    ok(ncclCommMemStats(comm, stat, &value));
    return value;
}

static void suspend_all(void)
{
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(ncclCommSuspend(comms[r], NCCL_SUSPEND_MEM));
    ok(ncclGroupEnd());
}

static void resume_all(void)
{
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(ncclCommResume(comms[r]));
    ok(ncclGroupEnd());
}

static void exchange_messages(void)
{
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        ok(ncclSend(in[r], COUNT, ncclInt, (r + 1) % RANKS, comms[r], NULL));
        ok(ncclRecv(out[r], COUNT, ncclInt, (r + RANKS - 1) % RANKS, comms[r], NULL));
    }
    ok(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) ok(synchronize_device(r));
}

static void a_suspended_one_holds_no_connections(void **state)
{
    ncclResult_t code;
    int n;

    (void)state;
    assert_int_equal(held(comms[0], ncclStatGpuMemSuspend), 0);
    for (int round = 0; round < 3; round++) {
        sum_over(comms, RANKS);
        exchange_messages();
        assert_true(held(comms[0], ncclStatGpuMemSuspend) > 0);
        assert_int_equal(held(comms[0], ncclStatGpuMemTotal),
                         held(comms[0], ncclStatGpuMemSuspend) + held(comms[0], ncclStatGpuMemPersist));
        assert_int_equal(held(comms[0], ncclStatGpuMemSuspended), 0);
        suspend_all();
        assert_int_equal(held(comms[0], ncclStatGpuMemSuspend), 0);
        assert_int_equal(held(comms[0], ncclStatGpuMemSuspended), 1);
        expect_refused(ncclAllReduce(in[0], out[0], 1, ncclInt, ncclSum, comms[0], NULL), ncclInvalidUsage,
                       "is suspended");
        expect_refused(ncclCommSuspend(comms[0], NCCL_SUSPEND_MEM), ncclInvalidUsage, "is suspended");
        ok(ncclCommCount(comms[0], &n));
        ok(ncclCommGetAsyncError(comms[0], &code));
        assert_int_equal(code, ncclSuccess);
        resume_all();
    }
    sum_over(comms, RANKS);
    expect_refused(ncclCommResume(comms[0]), ncclInvalidUsage, "is not suspended");
    expect_refused(ncclCommSuspend(comms[0], 2), ncclInvalidArgument, "flags 2");
    expect_refused(ncclCommMemStats(comms[0], (ncclCommMemStat_t)9, &(uint64_t){0}), ncclInvalidArgument, "number 9");
    expect_refused(ncclCommMemStats(comms[0], ncclStatGpuMemTotal, NULL), ncclInvalidArgument, "NULL");
}

static void a_suspended_one_can_be_ended(void **state)
{
    int before = count_fds();

    (void)state;
    for (int abort = 0; abort < 2; abort++) {
        assert_int_equal(create_comms(NULL), 0);
        sum_over(comms, RANKS);
        suspend_all();
        for (int r = 0; r < RANKS; r++) ok(abort ? ncclCommAbort(comms[r]) : ncclCommDestroy(comms[r]));
    }
    assert_true(count_fds() <= before + 4); /* descriptors that the process has once */
}

struct kolo_test_keep kolo_test_keeps[] = {KOLO_TEST_UNUSED_IDS, {NULL, 0, 0}};

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_ranks_join_the_old_ones),
        cmocka_unit_test_setup_teardown(growing_is_checked, create_comms, destroy_comms),
        cmocka_unit_test(revoked_ones_have_children_and_nothing_else),
        cmocka_unit_test_setup_teardown(a_suspended_one_holds_no_connections, create_comms, destroy_comms),
        cmocka_unit_test(a_suspended_one_can_be_ended),
    };

    setenv("NCCL_DEBUG", "NONE", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
