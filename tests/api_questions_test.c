/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of programs: parameters, properties, teams; and functions that host devices do not have.
 */
#include "include/nccl_device.h"
#include "tests/api_check.h"

#include <stdlib.h>

/* ---- parameters ---- */

static ncclParamHandle_t bind(const char *key)
{
    ncclParamHandle_t handle;

    ok(ncclParamBind(&handle, key));
    return handle;
}

static void numbers_are_read_where_they_fit(void **state)
{
    uint64_t wide;
    int64_t number;
    int8_t narrow;
    int bytes;

    (void)state;
    ok(ncclParamGetI64(bind("KOLO_BOOTSTRAP_TIMEOUT"), &number));
    assert_int_equal(number, 60);
    ok(ncclParamGetI8(bind("KOLO_BOOTSTRAP_TIMEOUT"), &narrow));
    assert_int_equal(narrow, 60);
    setenv("NCCL_BUFFSIZE", "1M", 1);
    ok(ncclParamGetU64(bind("NCCL_BUFFSIZE"), &wide));
    assert_int_equal(wide, 1 << 20);
    expect_refused(ncclParamGetI8(bind("NCCL_BUFFSIZE"), &narrow), ncclInvalidArgument, "does not fit");
    ok(ncclParamGet(bind("NCCL_BUFFSIZE"), &number, sizeof number, &bytes));
    assert_int_equal(bytes, 8);
    assert_int_equal(number, 1 << 20);
    unsetenv("NCCL_BUFFSIZE");
    ok(ncclParamGetI64(bind("NCCL_BUFFSIZE"), &number));
    assert_int_equal(number, -2);
    expect_refused(ncclParamGetU64(bind("NCCL_BUFFSIZE"), &wide), ncclInvalidArgument, "does not fit");
    expect_refused(ncclParamGetI64(bind("NCCL_HOSTID"), &number), ncclInvalidArgument, "is a text");
    expect_refused(ncclParamGetI64(bind("NCCL_BUFFSIZE"), NULL), ncclInvalidArgument, "NULL");
}

static void texts_are_read_but_no_secrets(void **state)
{
    const char *text;
    char bytes[8];
    int n;

    (void)state;
    setenv("NCCL_HOSTID", "here", 1);
    setenv("KOLO_SECRET", "hush", 1);
    ok(ncclParamGetStr(bind("NCCL_HOSTID"), &text));
    assert_string_equal(text, "here");
    ok(ncclParamGet(bind("NCCL_HOSTID"), bytes, sizeof bytes, &n));
    assert_int_equal(n, 5);
    assert_string_equal(bytes, "here");
    expect_refused(ncclParamGet(bind("NCCL_HOSTID"), bytes, 4, &n), ncclInvalidArgument, "room for 4");
    ok(ncclParamGetParameter("KOLO_SECRET", &text, &n));
    assert_string_equal(text, "(set)");
    assert_int_equal(n, 5);
    unsetenv("NCCL_HOSTID");
    unsetenv("KOLO_SECRET");
}

static void all_are_listed(void **state)
{
    const char **keys, *text;
    int n, len;

    (void)state;
    ok(ncclParamGetAllParameterKeys(&keys, &n));
    assert_true(n > 50);
    for (int i = 0; i < n; i++) ok(ncclParamGetParameter(keys[i], &text, &len));
    ncclParamDumpAll();
}

static void what_is_no_parameter_is_refused(void **state)
{
    ncclParamHandle_t handle = (ncclParamHandle_t)(void *)state;
    const char *text;
    int n;

    expect_refused(ncclParamBind(&handle, "NCCL_ELEPHANTS"), ncclInvalidArgument, "no parameter NCCL_ELEPHANTS");
    assert_null(handle);
    expect_refused(ncclParamBind(&handle, NULL), ncclInvalidArgument, "no parameter NULL");
    expect_refused(ncclParamBind(NULL, "NCCL_DEBUG"), ncclInvalidArgument, "NULL");
    expect_refused(ncclParamGetStr((ncclParamHandle_t)(void *)state, &text), ncclInvalidArgument, "no handle");
    expect_refused(ncclParamGetStr(NULL, &text), ncclInvalidArgument, "no handle");
    expect_refused(ncclParamGetParameter("NCCL_ELEPHANTS", &text, &n), ncclInvalidArgument, "no parameter");
    expect_refused(ncclParamGetAllParameterKeys(NULL, &n), ncclInvalidArgument, "NULL");
}

/* ---- properties, teams, kernels ---- */

static void a_communicator_says_what_it_can_do(void **state)
{
    ncclCommProperties_t p = NCCL_COMM_PROPERTIES_INITIALIZER;
    ncclComm_t pair[2];

    (void)state;
    ok(ncclCommInitAll(pair, 2, NULL));
    ok(ncclCommQueryProperties(pair[1], &p));
    assert_true(p.rank == 1 && p.nRanks == 2 && p.cudaDev == 1);
    assert_false(p.deviceApiSupport || p.multimemSupport);
    assert_true(p.hostRmaSupport);
    p.magic = 7;
    expect_refused(ncclCommQueryProperties(pair[1], &p), ncclInvalidArgument, "NCCL_COMM_PROPERTIES_INITIALIZER");
    expect_refused(ncclCommQueryProperties(pair[1], NULL), ncclInvalidArgument, "NULL");

    ncclTeam_t world = ncclTeamWorld(pair[1]), self = ncclTeamLsa(pair[1]), rail = ncclTeamRail(pair[1]);
    assert_true(world.nRanks == 2 && world.rank == 1 && world.stride == 1);
    assert_true(self.nRanks == 1 && self.rank == 0);
    assert_true(rail.nRanks == 2 && rail.rank == 1);
    assert_int_equal(ncclTeamRankToWorld(pair[1], world, 0), 0);
    assert_int_equal(ncclTeamRankToWorld(pair[1], self, 0), 1);
    assert_int_equal(ncclTeamRankToLsa(pair[1], world, 1), 0);
    assert_int_equal(ncclTeamWorld(NULL).nRanks, 0);
    assert_int_equal(ncclTeamRankToWorld(NULL, world, 0), -1);

    expect_refused(ncclDevCommCreate(pair[0], NULL, NULL), ncclInvalidUsage, "host devices run none");
    expect_refused(ncclDevCommDestroy(pair[0], NULL), ncclInvalidUsage, "host devices run none");
    expect_refused(ncclDevCommCreate(NULL, NULL, NULL), ncclInvalidArgument, "communicator is NULL");
    expect_refused(ncclLsaBarrierCreateRequirement(world, 1, NULL, NULL), ncclInvalidUsage, "host devices run none");
    expect_refused(ncclGinBarrierCreateRequirement(pair[0], world, 1, NULL, NULL), ncclInvalidUsage,
                   "host devices run none");
    ncclDevCommRequirements_t wanted = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    ncclDevComm_t none = {.nRanks = 9};
    expect_refused(ncclDevCommCreate(pair[0], &wanted, &none), ncclInvalidUsage, "host devices run none");
    ok(ncclDevCommDestroy(pair[0], &none));
    expect_refused(ncclLLA2ACreateRequirement(1, 1, NULL, NULL), ncclInvalidUsage, "host devices run none");
    for (int r = 0; r < 2; r++) ok(ncclCommDestroy(pair[r]));
}

static void a_window_says_where_its_memory_is(void **state)
{
    ncclWindow_t window[2];
    ncclComm_t pair[2];
    void *own[2], *at;

    (void)state;
    ok(ncclCommInitAll(pair, 2, NULL));
    ok(ncclGroupStart());
    for (int r = 0; r < 2; r++) {
        ok(ncclMemAlloc(&own[r], 8192));
        ok(ncclCommWindowRegister(pair[r], own[r], 8192, &window[r], 0));
    }
    ok(ncclGroupEnd());
    ok(ncclGetPeerDevicePointer(window[1], 100, 1, &at));
    assert_ptr_equal(at, (char *)own[1] + 100);
    ok(ncclGetPeerDevicePointer(window[1], 100, 0, &at));
    assert_null(at);
    ok(ncclGetLsaDevicePointer(window[0], 8192, 0, &at));
    assert_ptr_equal(at, (char *)own[0] + 8192);
    ok(ncclGetLsaMultimemDevicePointer(window[0], 0, &at));
    assert_null(at);
    expect_refused(ncclGetLsaDevicePointer(window[0], 0, 1, &at), ncclInvalidArgument, "has rank 0 alone");
    expect_refused(ncclGetPeerDevicePointer(window[0], 0, 2, &at), ncclInvalidArgument, "ranks 0 to 1");
    expect_refused(ncclGetPeerDevicePointer(window[0], 8193, 0, &at), ncclInvalidArgument, "has no byte 8193");
    expect_refused(ncclGetPeerDevicePointer(window[0], 0, 0, NULL), ncclInvalidArgument, "is NULL");
    expect_refused(ncclGetPeerDevicePointer((ncclWindow_t)own[0], 0, 0, &at), ncclInvalidArgument, "is no window");
    ok(ncclCommWindowDeregister(pair[0], window[0]));
    expect_refused(ncclGetPeerDevicePointer(window[0], 0, 0, &at), ncclInvalidArgument, "is no window");
    for (int r = 0; r < 2; r++) {
        ok(ncclCommDestroy(pair[r]));
        ok(ncclMemFree(own[r]));
    }
    expect_refused(ncclGetPeerDevicePointer(window[1], 0, 0, &at), ncclInvalidArgument, "is no window");
}

static void teams_are_arithmetic(void **state)
{
    const ncclTeam_t world = {12, 5, 1}, inner = ncclTeamInnerFactor(world, 4), outer = ncclTeamOuterFactor(world, 4);

    (void)state;
    assert_true(inner.nRanks == 4 && inner.rank == 1 && inner.stride == 1);
    assert_true(outer.nRanks == 3 && outer.rank == 1 && outer.stride == 4);
    assert_true(ncclTeamRankIsMember(outer, world, 9) && !ncclTeamRankIsMember(outer, world, 8));
    assert_true(ncclTeamRankIsMember(inner, world, 7) && !ncclTeamRankIsMember(inner, world, 8));
    assert_int_equal(ncclTeamRankToTeam(outer, world, 9), 2);
    assert_int_equal(ncclTeamRankToTeam(world, outer, 0), 1);
    assert_int_equal(ncclLLA2ACalcSlots(3, 9), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_where_they_fit),
        cmocka_unit_test(texts_are_read_but_no_secrets),
        cmocka_unit_test(all_are_listed),
        cmocka_unit_test(what_is_no_parameter_is_refused),
        cmocka_unit_test(a_communicator_says_what_it_can_do),
        cmocka_unit_test(a_window_says_where_its_memory_is),
        cmocka_unit_test(teams_are_arithmetic),
    };

    setenv("NCCL_DEBUG", "NONE", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
