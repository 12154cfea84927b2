/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives with a configuration of the call, and encryption that a program asks for. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RANKS = 4, COUNT = 1000, ROOM = RANKS * COUNT };

#include "base/error.h"
#include "tests/api_comms.h"

static int32_t in[RANKS][ROOM], out[RANKS][ROOM];

static void fill(void)
{
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < ROOM; i++) in[r][i] = 1000 * (r + 1) + i % 7;
    memset(out, 0xff, sizeof out);
}

/* ---- results ---- */

enum { ALL_REDUCE, BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, GATHER, SCATTER, CALLS };

static ncclResult_t call(int which, int r, const ncclCollConfig_t *c)
{
    switch (which) {
    case ALL_REDUCE:
        return ncclAllReduceConfig(in[r], out[r], ROOM, ncclInt32, ncclSum, comms[r], NULL, c);
    case BROADCAST:
        return ncclBroadcastConfig(in[r], out[r], ROOM, ncclInt32, 1, comms[r], NULL, c);
    case REDUCE:
        return ncclReduceConfig(in[r], out[r], ROOM, ncclInt32, ncclMax, 2, comms[r], NULL, c);
    case ALL_GATHER:
        return ncclAllGatherConfig(in[r], out[r], COUNT, ncclInt32, comms[r], NULL, c);
    case REDUCE_SCATTER:
        return ncclReduceScatterConfig(in[r], out[r], COUNT, ncclInt32, ncclSum, comms[r], NULL, c);
    case ALL_TO_ALL:
        return ncclAlltoAllConfig(in[r], out[r], COUNT, ncclInt32, comms[r], NULL, c);
    case GATHER:
        return ncclGatherConfig(in[r], out[r], COUNT, ncclInt32, 0, comms[r], NULL, c);
    default:
        return ncclScatterConfig(in[r], out[r], COUNT, ncclInt32, 3, comms[r], NULL, c);
    }
}

static int32_t sum_at(int i)
{
    int32_t sum = 0;

    for (int r = 0; r < RANKS; r++) sum += in[r][i];
    return sum;
}

/* Element i of rank r; -1: nothing is written there. */
static int32_t expected(int which, int r, int i)
{
    switch (which) {
    case ALL_REDUCE:
        return sum_at(i);
    case BROADCAST:
        return in[1][i];
    case REDUCE:
        return r == 2 ? in[RANKS - 1][i] : -1;
    case ALL_GATHER:
        return in[i / COUNT][i % COUNT];
    case REDUCE_SCATTER:
        return i < COUNT ? sum_at(r * COUNT + i) : -1;
    case ALL_TO_ALL:
        return in[i / COUNT][r * COUNT + i % COUNT];
    case GATHER:
        return r == 0 ? in[i / COUNT][i % COUNT] : -1;
    default:
        return i < COUNT ? in[3][r * COUNT + i] : -1;
    }
}

static void run(int which, const ncclCollConfig_t *c)
{
    fill();
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(call(which, r, c));
    ok(ncclGroupEnd());
    synchronize_all();
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < ROOM; i++)
            if (out[r][i] != expected(which, r, i)) fail_msg("call %d, rank %d, element %d", which, r, i);
}

static void every_call_is_as_its_twin(void **state)
{
    ncclCollConfig_t limited = NCCL_COLLCONFIG_INITIALIZER, plain = limited;

    (void)state;
    limited.maxCTAs = 1;
    limited.nvlsCTAs = 1;
    limited.CTAPolicy = NCCL_CTA_POLICY_ZERO;
    limited.cgaClusterSize = 4;
    limited.algSelection = "ring";
    limited.forceAlgSelection = 0;
    limited.userProfilerTag = 77;
    for (int i = 0; i < CALLS; i++) {
        run(i, NULL);
        run(i, &plain);
        run(i, &limited);
    }
}

/* ---- algorithms ---- */

static char folder[] = "/tmp/kolo-call-config-XXXXXX";

/* The last operation's, as the flight record of rank 0 has it. */
static void last_algorithm(char to[32])
{
    char pattern[64], line[1 << 12], *at;

    snprintf(pattern, sizeof pattern, "%s/%%r", folder);
    ok(koloFlightRecorder(comms[0], pattern));
    snprintf(pattern, sizeof pattern, "%s/0", folder);
    FILE *f = fopen(pattern, "r");
    assert_non_null(f);
    *to = 0;
    while (fgets(line, sizeof line, f))
        for (at = line; (at = strstr(at, "\"algorithm\":")); at++) sscanf(at, "\"algorithm\": \"%31[^\"]", to);
    fclose(f);
    unlink(pattern);
}

static void the_selection_decides(void **state)
{
    static const struct {
        const char *selection;
        int force;
        const char *want;
    } cases[] = {
        {"ring", 1, "Ring"},
        {"tree", 1, "Tree"},
        {"^flat,tree,nvls,oneshot", 1, "Ring"},
        {"Broadcast:ring;AllReduce:tree", 1, "Tree"},
        {"nvlstree", 0, NULL},
        {"", 1, NULL},
        {NULL, 1, NULL},
    };
    char plain[32], found[32];

    (void)state;
    run(ALL_REDUCE, NULL);
    last_algorithm(plain);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ncclCollConfig_t c = NCCL_COLLCONFIG_INITIALIZER;

        c.algSelection = cases[i].selection;
        c.forceAlgSelection = cases[i].force;
        run(ALL_REDUCE, &c);
        last_algorithm(found);
        assert_string_equal(found, cases[i].want ? cases[i].want : plain);
    }
    run(ALL_REDUCE, NULL); /* the next call is free again */
    last_algorithm(found);
    assert_string_equal(found, plain);
}

/* All ranks' messages name the configuration, or, where the call has a root, that rank 2 is waited for. */
static void expect_told_apart(int which, const char *words)
{
    ncclCollConfig_t c = NCCL_COLLCONFIG_INITIALIZER;

    c.algSelection = "ring";
    for (int r = 0; r < RANKS; r++) ok(koloSetTimeout(comms[r], 2000));
    fill();
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(call(which, r, r == 2 ? NULL : &c));
    ok(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) assert_int_not_equal(synchronize_device(r), ncclSuccess);
    if (!strstr(ncclGetLastError(comms[0]), words)) fail_msg("\"%s\"", ncclGetLastError(comms[0]));
    for (int r = 0; r < RANKS; r++) (void)ncclCommAbort(comms[r]);
    for (int r = 0; r < RANKS; r++) (void)synchronize_device(r);
    ok(ncclCommInitAll(comms, RANKS, NULL));
}

static void ranks_that_differ_are_told_apart(void **state)
{
    (void)state;
    kl_error_quiet(1);
    expect_told_apart(ALL_REDUCE, "configuration");
    expect_told_apart(BROADCAST, "configuration");
    kl_error_quiet(0);
}

/* ---- refusals ---- */

static void wrong_configurations_are_refused_by_name(void **state)
{
#define WITH(statement, rc, words)                                                                                     \
    do {                                                                                                               \
        ncclCollConfig_t c = NCCL_COLLCONFIG_INITIALIZER;                                                              \
        statement;                                                                                                     \
        for (int i = 0; i < CALLS; i++) expect_refused(call(i, 0, &c), rc, words);                                     \
    } while (0)
    (void)state;
    WITH(c.magic = 1, ncclInvalidArgument, "NCCL_COLLCONFIG_INITIALIZER");
    WITH(c.size = 8, ncclInvalidArgument, "NCCL_COLLCONFIG_INITIALIZER");
    WITH(c.minCTAs = 0, ncclInvalidArgument, "minCTAs is 0");
    WITH((c.minCTAs = 3, c.maxCTAs = 2), ncclInvalidArgument, "minCTAs 3 of the configuration of the call exceeds");
    WITH(c.nvlsCTAs = -1, ncclInvalidArgument, "nvlsCTAs is -1");
    WITH(c.cgaClusterSize = -1, ncclInvalidArgument, "cgaClusterSize is -1");
    WITH(c.CTAPolicy = 4, ncclInvalidArgument, "CTAPolicy is 4");
    WITH(c.forceAlgSelection = 2, ncclInvalidArgument, "forceAlgSelection is 2");
    WITH(c.algSelection = "circle", ncclInvalidUsage, "circle");
#undef WITH
}

static void older_structs_are_read_as_far_as_they_go(void **state)
{
    ncclCollConfig_t c = NCCL_COLLCONFIG_INITIALIZER;

    (void)state;
    c.size = 40;
    c.algSelection = "circle"; /* behind its end */
    for (int i = 0; i < CALLS; i++) run(i, &c);
}

static void what_cannot_be_honoured_is_refused(void **state)
{
    ncclCollConfig_t c = NCCL_COLLCONFIG_INITIALIZER;
    ncclConfig_t own = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    ncclComm_t alone;

    (void)state;
    c.algSelection = "pat"; /* not for all-reduces */
    expect_refused(call(ALL_REDUCE, 0, &c), ncclInvalidUsage, "forceAlgSelection 0");
    expect_refused(call(ALL_TO_ALL, 0, &c), ncclInvalidUsage, "made of messages");
    own.maxCTAs = 2;
    ok(ncclGetUniqueId(&id));
    ok(ncclCommInitRankConfig(&alone, 1, id, 0, &own));
    c.algSelection = NULL;
    c.maxCTAs = 3;
    expect_refused(ncclAllReduceConfig(in[0], out[0], 1, ncclInt32, ncclSum, alone, NULL, &c), ncclInvalidUsage,
                   "maxCTAs 3 of the configuration of the call exceeds the communicator's 2");
    ok(ncclCommDestroy(alone));
}

/* ---- NVLS, which a communicator may do without ---- */

static ncclResult_t use_nvls(int mode)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclCollConfig_t c = NCCL_COLLCONFIG_INITIALIZER;
    ncclResult_t rc = ncclSuccess;
    ncclUniqueId id;

    config.nvlsHostMode = mode;
    c.algSelection = "nvls";
    ok(ncclGetUniqueId(&id));
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        ok(koloSetDevice(r));
        ok(ncclCommInitRankConfig(&comms[r], RANKS, id, r, &config));
    }
    ok(ncclGroupEnd());
    fill();
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS && !rc; r++) rc = call(ALL_REDUCE, r, &c);
    (void)ncclGroupEnd();
    for (int r = 0; r < RANKS && !rc; r++) rc = synchronize_device(r);
    for (int r = 0; r < RANKS; r++) (void)ncclCommAbort(comms[r]);
    return rc;
}

static void a_communicator_may_do_without_nvls(void **state)
{
    (void)state;
    setenv("KOLO_MACHINE", "dgx-h100", 1);
    assert_int_equal(use_nvls(ncclNvlsHostModeDefault), ncclSuccess);
    assert_int_equal(use_nvls(ncclNvlsHostModeDisableSymmetricMultimem), ncclSuccess);
    assert_int_equal(use_nvls(ncclNvlsHostModeDisableTransport), ncclInvalidUsage);
    assert_int_equal(use_nvls(ncclNvlsHostModeDisable), ncclInvalidUsage);
    unsetenv("KOLO_MACHINE");
}

/* ---- the event ---- */

static _Atomic int go;

static void wait_for_go(void *arg)
{
    (void)arg;
    while (!go) sched_yield();
}

static void the_event_is_recorded_where_the_operation_begins(void **state)
{
    ncclCollConfig_t c = NCCL_COLLCONFIG_INITIALIZER;
    koloEvent_t event[RANKS];
    koloStream_t stream;

    (void)state;
    fill();
    ok(koloSetDevice(0));
    ok(koloStreamCreate(&stream, KOLO_STREAM_DEFAULT));
    ok(koloStreamLaunch(stream, wait_for_go, NULL));
    for (int r = 0; r < RANKS; r++) {
        ok(koloSetDevice(r));
        ok(koloEventCreateWithFlags(&event[r], KOLO_EVENT_DISABLE_TIMING));
    }
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        c.launchCompletionEvent = (cudaEvent_t)(void *)event[r];
        ok(ncclAllReduceConfig(in[r], out[r], ROOM, ncclInt32, ncclSum, comms[r], r ? NULL : stream, &c));
    }
    ok(ncclGroupEnd());
    assert_int_equal(koloEventQuery(event[0]), ncclInProgress);
    for (int r = 1; r < RANKS; r++) ok(koloEventSynchronize(event[r])); /* though rank 0 has not begun */
    go = 1;
    ok(koloStreamSynchronize(stream));
    ok(koloEventQuery(event[0]));
    synchronize_all();
    for (int i = 0; i < ROOM; i++) assert_int_equal(out[0][i], sum_at(i));
    for (int r = 0; r < RANKS; r++) ok(koloEventDestroy(event[r]));
    ok(koloStreamDestroy(stream));
}

/* ---- encryption ---- */

static ncclResult_t set(int mode, const char *psk)
{
    ncclEncryptionConfig_t c = NCCL_ENCRYPTION_CONFIG_INITIALIZER;

    c.mode = mode;
    c.psk = psk;
    return ncclSetEncryption(&c);
}

static void encryption_is_checked_and_joins_only_equals(void **state)
{
    static const char key[] = "0123456789abcdef0123456789abcdef", other[] = "0123456789abcdef0123456789abcdeX";
    ncclEncryptionConfig_t c = {0};
    ncclUniqueId id;
    ncclComm_t comm;

    (void)state;
    expect_refused(ncclSetEncryption(NULL), ncclInvalidArgument, "NCCL_ENCRYPTION_CONFIG_INITIALIZER");
    expect_refused(ncclSetEncryption(&c), ncclInvalidArgument, "NCCL_ENCRYPTION_CONFIG_INITIALIZER");
    expect_refused(set(7, NULL), ncclInvalidArgument, "mode 7");
    expect_refused(set(NCCL_ENCRYPTION_MODE_PSK, NULL), ncclInvalidArgument, "NULL");
    expect_refused(set(NCCL_ENCRYPTION_MODE_PSK, key + 1), ncclInvalidArgument, "31 bytes, and needs 32");
    ok(set(NCCL_ENCRYPTION_MODE_PSK, key));
    ok(ncclGetUniqueId(&id));
    ok(ncclCommInitRank(&comm, 1, id, 0));
    ok(ncclCommDestroy(comm));
    ok(ncclGetUniqueId(&id));
    ok(set(NCCL_ENCRYPTION_MODE_PSK, other));
    setenv("KOLO_BOOTSTRAP_TIMEOUT", "3", 1); /* of calls that wait in vain */
    assert_int_not_equal(ncclCommInitRank(&comm, 1, id, 0), ncclSuccess);
    ok(set(NCCL_ENCRYPTION_MODE_NONE, NULL));
    assert_int_not_equal(ncclCommInitRank(&comm, 1, id, 0), ncclSuccess);
    unsetenv("KOLO_BOOTSTRAP_TIMEOUT");
    ok(set(NCCL_ENCRYPTION_MODE_PSK, key));
    ok(ncclCommInitRank(&comm, 1, id, 0));
    ok(ncclCommDestroy(comm));
    ok(set(NCCL_ENCRYPTION_MODE_NONE, NULL));
}

#define WITH_COMMS(test) cmocka_unit_test_setup_teardown(test, create_comms, destroy_comms)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_COMMS(every_call_is_as_its_twin),
        WITH_COMMS(the_selection_decides),
        WITH_COMMS(ranks_that_differ_are_told_apart),
        WITH_COMMS(wrong_configurations_are_refused_by_name),
        WITH_COMMS(older_structs_are_read_as_far_as_they_go),
        WITH_COMMS(what_cannot_be_honoured_is_refused),
        WITH_COMMS(the_event_is_recorded_where_the_operation_begins),
        cmocka_unit_test(a_communicator_may_do_without_nvls),
        cmocka_unit_test(encryption_is_checked_and_joins_only_equals),
    };

    if (!mkdtemp(folder)) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
