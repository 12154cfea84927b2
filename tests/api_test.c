/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public interface with several ranks in one thread: refused calls, and operations, groups, streams and events that
 * behave as NCCL's.
 */
#include "include/kolo.h"

#include <pthread.h>
#include <stdlib.h>

enum { RANKS = 4, COUNT = 50000 };

#include "tests/api_comms.h"
#include "tests/leftovers.h"

/* ---- refused calls ---- */

static void wrong_arguments_are_refused_in_words(void **state)
{
    float a[4] = {0}, b[4];
    ncclComm_t c = comms[0], none;
    ncclUniqueId id = {{0}};
    size_t huge = SIZE_MAX / 4;

    (void)state;
    expect_refused(ncclAllReduce(a, b, 4, ncclFloat, ncclSum, NULL, NULL), ncclInvalidArgument, "communicator is NULL");
    expect_refused(ncclAllReduce(NULL, b, 4, ncclFloat, ncclSum, c, NULL), ncclInvalidArgument, "send buffer is NULL");
    expect_refused(ncclAllReduce(a, NULL, 4, ncclFloat, ncclSum, c, NULL), ncclInvalidArgument,
                   "receive buffer is NULL");
    expect_refused(ncclAllReduce(a, b, 4, (ncclDataType_t)12, ncclSum, c, NULL), ncclInvalidArgument, "data type 12");
    expect_refused(ncclAllReduce(a, b, 4, (ncclDataType_t)-1, ncclSum, c, NULL), ncclInvalidArgument, "data type -1");
    expect_refused(ncclAllReduce(a, b, 4, ncclFloat, (ncclRedOp_t)5, c, NULL), ncclInvalidArgument, "operation 5");
    expect_refused(ncclAllReduce(a, b, SIZE_MAX, ncclFloat, ncclSum, c, NULL), ncclInvalidArgument, "address space");
    expect_refused(ncclAllGather(a, b, huge, ncclInt8, c, NULL), ncclInvalidArgument, "address space");
    expect_refused(ncclReduceScatter(a, b, huge, ncclInt8, ncclSum, c, NULL), ncclInvalidArgument, "address space");
    expect_refused(ncclBroadcast(a, b, 4, ncclFloat, RANKS, c, NULL), ncclInvalidArgument, "root 4");
    expect_refused(ncclReduce(a, b, 4, ncclFloat, ncclSum, -1, c, NULL), ncclInvalidArgument, "root -1");
    expect_refused(ncclSend(a, 4, ncclFloat, RANKS, c, NULL), ncclInvalidArgument, "peer 4");
    expect_refused(ncclSend(a, 4, ncclFloat, 0, c, NULL), ncclInvalidUsage, "same group");
    expect_refused(ncclCommInitRank(&none, 2, id, 2), ncclInvalidArgument, "rank 2 of 2");
    expect_refused(ncclCommInitRank(&none, 0, id, 0), ncclInvalidArgument, "0 ranks");
    expect_refused(ncclCommInitRank(NULL, 2, id, 0), ncclInvalidArgument, "NULL");
    expect_refused(ncclCommInitAll(&none, 2, (int[]){1, 1}), ncclInvalidUsage, "twice");
    expect_refused(ncclCommInitAll(&none, 1, (int[]){-1}), ncclInvalidArgument, "device -1");
    expect_refused(ncclCommCount(c, NULL), ncclInvalidArgument, "NULL");
    expect_refused(ncclGetVersion(NULL), ncclInvalidArgument, "NULL");
    expect_refused(ncclGetUniqueId(NULL), ncclInvalidArgument, "NULL");
    expect_refused(ncclGroupEnd(), ncclInvalidUsage, "without ncclGroupStart");
    expect_refused(koloInitFromEnv(NULL), ncclInvalidArgument, "NULL");
    assert_string_equal(ncclGetErrorString((ncclResult_t)99), "unknown result code");
}

static void streams_and_devices_are_checked(void **state)
{
    float a[4] = {0}, b[4];

    (void)state;
    expect_refused(ncclAllReduce(a, b, 4, ncclFloat, ncclSum, comms[0], (cudaStream_t)(void *)a), ncclInvalidArgument,
                   "not a host stream");
    expect_refused(koloSetDevice(1 << 20), ncclInvalidArgument, "KOLO_HOST_DEVICES");
}

static void an_error_in_a_group_drops_the_group(void **state)
{
    float a[4] = {1, 2, 3, 4}, b[4] = {0};

    (void)state;
    ok(ncclGroupStart());
    ok(ncclAllReduce(a, b, 4, ncclFloat, ncclSum, comms[0], NULL));
    expect_refused(ncclBroadcast(a, b, 4, ncclFloat, 9, comms[1], NULL), ncclInvalidArgument, "root 9");
    expect_refused(ncclGroupEnd(), ncclInvalidArgument, "root 9");
    ok(koloStreamSynchronize(NULL)); /* nothing was queued, so nothing waits for rank 1 */
    assert_true(b[0] == 0);
}

/* Also an error of a call that creates communicators; the group's other communicators are not created. */
static void an_error_in_creating_drops_the_group(void **state)
{
    ncclComm_t one = (ncclComm_t)(void *)state, none;
    ncclUniqueId id;

    (void)state;
    ok(ncclGetUniqueId(&id));
    ok(ncclGroupStart());
    ok(ncclCommInitRank(&one, 1, id, 0));
    expect_refused(ncclCommInitAll(&none, 2, (int[]){1, 1}), ncclInvalidUsage, "twice");
    expect_refused(ncclGroupEnd(), ncclInvalidUsage, "twice");
    assert_null(one);

    assert_int_equal(setenv("KOLO_RANK", "0", 1), 0);
    ok(ncclGroupStart());
    expect_refused(koloInitFromEnv(&none), ncclInvalidUsage, "KOLO_SIZE is not set");
    expect_refused(ncclGroupEnd(), ncclInvalidUsage, "KOLO_SIZE is not set");
    assert_int_equal(unsetenv("KOLO_RANK"), 0);
}

static void an_error_found_at_the_end_of_a_group_drops_the_group(void **state)
{
    float a[4] = {1, 2, 3, 4}, other[4] = {9}, b[4] = {0};

    (void)state;
    ok(ncclGroupStart());
    ok(ncclSend(a, 4, ncclFloat, 1, comms[0], NULL)); /* valid, and of another communicator than the invalid call */
    ok(ncclSend(a, 4, ncclFloat, 1, comms[1], NULL));
    expect_refused(ncclGroupEnd(), ncclInvalidUsage, "opposite call");

    ok(ncclGroupStart()); /* so this message is not blocked by another one */
    ok(ncclSend(other, 4, ncclFloat, 1, comms[0], NULL));
    ok(ncclRecv(b, 4, ncclFloat, 0, comms[1], NULL));
    ok(ncclGroupEnd());
    synchronize_all();
    assert_true(b[0] == 9);
}

static void questions_are_answered(void **state)
{
    int n, rank, device, version;
    ncclResult_t async;

    (void)state;
    for (int r = 0; r < RANKS; r++) {
        ok(ncclCommCount(comms[r], &n));
        ok(ncclCommUserRank(comms[r], &rank));
        ok(ncclCommCuDevice(comms[r], &device));
        ok(ncclCommGetAsyncError(comms[r], &async));
        assert_int_equal(n, RANKS);
        assert_int_equal(rank, r);
        assert_int_equal(device, r);
        assert_int_equal(async, ncclSuccess);
        assert_string_equal(ncclGetLastError(comms[r]) ? "text" : "", "text");
    }
    ok(pncclGetVersion(&version));
    assert_int_equal(version, NCCL_VERSION_CODE);
}

/* ---- operations ---- */

struct buffers {
    int32_t *send[RANKS], *recv[RANKS];
};

static void make_buffers(struct buffers *b)
{
    for (int r = 0; r < RANKS; r++) {
        b->send[r] = malloc(sizeof(int32_t) * COUNT * RANKS);
        b->recv[r] = malloc(sizeof(int32_t) * COUNT * RANKS);
        for (int i = 0; i < COUNT * RANKS; i++) {
            b->send[r][i] = (i % 1000) * (r + 1);
            b->recv[r][i] = -1;
        }
    }
}

static void free_buffers(struct buffers *b)
{
    for (int r = 0; r < RANKS; r++) {
        free(b->send[r]);
        free(b->recv[r]);
    }
}

static void one_thread_drives_all_ranks(void **state)
{
    struct buffers b;

    (void)state;
    make_buffers(&b);
    for (int r = 0; r < RANKS; r++) /* no group: each call returns before the others have come */
        ok(ncclAllReduce(b.send[r], b.recv[r], COUNT, ncclInt32, ncclSum, comms[r], NULL));
    synchronize_all();
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++) assert_int_equal(b.recv[r][i], 10 * (i % 1000));

    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        ok(ncclReduceScatter(b.send[r], b.recv[r], COUNT, ncclInt32, ncclMax, comms[r], NULL));
    for (int r = 0; r < RANKS; r++) ok(ncclAllGather(b.recv[r], b.send[r], COUNT, ncclInt32, comms[r], NULL));
    ok(ncclGroupEnd());
    synchronize_all();
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT * RANKS; i++) assert_int_equal(b.send[r][i], 4 * (i % 1000));
    free_buffers(&b);
}

static void rooted_operations_touch_only_what_they_should(void **state)
{
    struct buffers b;

    (void)state;
    make_buffers(&b);
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        ok(ncclReduce(b.send[r], r == 2 ? b.recv[r] : NULL, COUNT, ncclInt32, ncclSum, 2, comms[r], NULL));
    for (int r = 0; r < RANKS; r++)
        ok(ncclBroadcast(r == 1 ? b.send[r] : NULL, b.recv[r] + COUNT, COUNT, ncclInt32, 1, comms[r], NULL));
    for (int r = 0; r < RANKS; r++) ok(ncclBcast(b.send[r], 10, ncclInt32, 3, comms[r], NULL));
    ok(ncclGroupEnd());
    synchronize_all();
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(b.recv[2][i], 10 * (i % 1000));
        for (int r = 0; r < RANKS; r++) assert_int_equal(b.recv[r][COUNT + i], 2 * (i % 1000));
        assert_int_equal(b.recv[0][i], -1);
    }
    for (int r = 0; r < RANKS; r++) assert_int_equal(b.send[r][9], 36);
    free_buffers(&b);
}

/* Each rank sends its block k to rank k, itself included: an all-to-all, in opposite orders of calls. */
static void a_group_of_messages_is_an_all_to_all(void **state)
{
    struct buffers b;

    (void)state;
    make_buffers(&b);
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < RANKS; k++) {
            ok(ncclSend(b.send[r] + k * COUNT, COUNT, ncclInt32, k, comms[r], NULL));
            ok(ncclRecv(b.recv[r] + (RANKS - 1 - k) * COUNT, COUNT, ncclInt32, RANKS - 1 - k, comms[r], NULL));
        }
    ok(ncclGroupEnd());
    synchronize_all();
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < RANKS; k++)
            for (int i = 0; i < COUNT; i++) assert_int_equal(b.recv[r][k * COUNT + i], b.send[k][r * COUNT + i]);
    free_buffers(&b);
}

static void messages_of_a_pair_keep_their_order(void **state)
{
    enum { MESSAGES = 700 }; /* two ways: more than a communicator keeps room for */
    static int32_t out[MESSAGES], in[2][MESSAGES];

    (void)state;
    for (int i = 0; i < MESSAGES; i++) out[i] = i;
    ok(ncclGroupStart());
    for (int i = 0; i < MESSAGES; i++)
        for (int r = 0; r < 2; r++) {
            ok(ncclSend(&out[i], 1, ncclInt32, 1 - r, comms[r], NULL));
            ok(ncclRecv(&in[r][i], 1, ncclInt32, 1 - r, comms[r], NULL));
        }
    ok(ncclGroupEnd());
    synchronize_all();
    for (int i = 0; i < MESSAGES; i++) assert_true(in[0][i] == i && in[1][i] == i);
}

static void messages_to_oneself_pair_up(void **state)
{
    int32_t a[2] = {1, 2}, b[2] = {0, 0};

    (void)state;
    ok(ncclGroupStart());
    ok(ncclSend(&a[0], 1, ncclInt32, 0, comms[0], NULL));
    ok(ncclSend(&a[1], 1, ncclInt32, 0, comms[0], NULL));
    ok(ncclRecv(&b[0], 1, ncclInt32, 0, comms[0], NULL));
    ok(ncclRecv(&b[1], 1, ncclInt32, 0, comms[0], NULL));
    ok(ncclGroupEnd());
    synchronize_all();
    assert_true(b[0] == 1 && b[1] == 2);

    ok(ncclGroupStart());
    ok(ncclSend(&a[0], 1, ncclInt32, 0, comms[0], NULL));
    expect_refused(ncclGroupEnd(), ncclInvalidUsage, "opposite call");
}

/* ---- streams ---- */

static void operations_on_many_streams_keep_their_order(void **state)
{
    koloStream_t s[RANKS][2];
    int32_t x[RANKS], y[RANKS], z[RANKS];

    (void)state;
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < 2; k++) ok(koloStreamCreate(&s[r][k], KOLO_STREAM_DEFAULT));
    for (int round = 0; round < 50; round++) {
        for (int r = 0; r < RANKS; r++) x[r] = r + round;
        for (int r = 0; r < RANKS; r++) { /* the second operation is on another stream, and of the same communicator */
            ok(ncclAllReduce(&x[r], &y[r], 1, ncclInt32, ncclSum, comms[r], s[r][0]));
            ok(ncclAllReduce(&x[r], &z[r], 1, ncclInt32, ncclMax, comms[r], s[r][1]));
        }
        for (int r = RANKS - 1; r >= 0; r--)
            ok(koloStreamSynchronize(s[r][1])); /* runs the operations before it,
                                                                                  * too */
        for (int r = 0; r < RANKS; r++) assert_true(y[r] == 6 + RANKS * round && z[r] == RANKS - 1 + round);
    }
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < 2; k++) ok(koloStreamDestroy(s[r][k]));
}

static void a_group_over_two_streams_joins_them(void **state)
{
    koloStream_t s[RANKS][2];
    int32_t x[RANKS], y[RANKS], z[RANKS];

    (void)state;
    for (int r = 0; r < RANKS; r++) {
        x[r] = r;
        ok(koloSetDevice(r));
        for (int k = 0; k < 2; k++) ok(koloStreamCreate(&s[r][k], KOLO_STREAM_DEFAULT));
    }
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        ok(ncclAllReduce(&x[r], &y[r], 1, ncclInt32, ncclSum, comms[r], s[r][0]));
        ok(ncclAllReduce(&x[r], &z[r], 1, ncclInt32, ncclSum, comms[r], s[r][1]));
    }
    ok(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) ok(koloStreamSynchronize(s[r][0])); /* joined: the launch is on the other one */
    for (int r = 0; r < RANKS; r++) assert_true(y[r] == 6 && z[r] == 6);
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < 2; k++) ok(koloStreamDestroy(s[r][k]));
}

static void a_failure_is_reported_by_every_stream_of_a_group(void **state)
{
    koloStream_t s[2];
    ncclComm_t pair[2];
    int32_t x = 1, y, z;

    (void)state;
    ok(ncclCommInitAll(pair, 2, NULL));
    for (int k = 0; k < 2; k++) ok(koloStreamCreate(&s[k], KOLO_STREAM_DEFAULT));
    ok(ncclGroupStart());
    ok(ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, pair[0], s[0]));
    ok(ncclAllReduce(&x, &z, 1, ncclInt32, ncclSum, pair[0], s[1]));
    ok(ncclGroupEnd());
    ok(ncclCommAbort(pair[1]));
    for (int k = 0; k < 2; k++) assert_int_equal(koloStreamSynchronize(s[k]), ncclRemoteError);
    assert_int_equal(ncclCommDestroy(pair[0]), ncclRemoteError);
    for (int k = 0; k < 2; k++) ok(koloStreamDestroy(s[k]));
}

/* A failure is reported by all calls that concern the communicator's work, and by no others, until it is destroyed. */
static void a_failure_stays_as_long_as_its_communicator(void **state)
{
    koloStream_t s, other;
    koloEvent_t before, after;
    ncclComm_t pair[2], one;
    ncclResult_t async;
    int32_t x = 1, y = 0, z = 0;

    (void)state;
    ok(ncclCommInitAll(pair, 2, NULL));
    ok(ncclCommInitAll(&one, 1, NULL));
    ok(koloStreamCreate(&s, KOLO_STREAM_DEFAULT));
    ok(koloStreamCreate(&other, KOLO_STREAM_DEFAULT));
    ok(koloEventCreate(&before));
    ok(koloEventCreate(&after));
    ok(koloEventRecord(before, s));
    ok(ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, pair[0], s));
    ok(koloEventRecord(after, s));
    ok(ncclCommAbort(pair[1]));
    for (int i = 0; i < 3; i++) {
        expect_refused(koloStreamSynchronize(s), ncclRemoteError, "rank 1");
        expect_refused(koloStreamQuery(s), ncclRemoteError, "rank 1");
        expect_refused(koloEventSynchronize(after), ncclRemoteError, "rank 1");
        expect_refused(koloEventQuery(after), ncclRemoteError, "rank 1");
        expect_refused(ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, pair[0], s), ncclRemoteError, "rank 1");
        ok(ncclCommGetAsyncError(pair[0], &async));
        assert_int_equal(async, ncclRemoteError);
        ok(koloEventSynchronize(before));
        ok(ncclAllReduce(&x, &z, 1, ncclInt32, ncclSum, one, s)); /* queued behind it, and runs */
        ok(ncclAllReduce(&x, &z, 1, ncclInt32, ncclSum, one, other));
        ok(koloStreamSynchronize(other));
        assert_int_equal(z, 1);
    }
    expect_refused(ncclCommFinalize(pair[0]), ncclRemoteError, "rank 1");
    expect_refused(ncclCommDestroy(pair[0]), ncclRemoteError, "rank 1");
    z = 0;
    ok(ncclAllReduce(&x, &z, 1, ncclInt32, ncclSum, one, s));
    ok(koloStreamSynchronize(s));
    ok(koloEventQuery(after));
    assert_int_equal(z, 1);
    ok(ncclCommDestroy(one));
    ok(koloEventDestroy(before));
    ok(koloEventDestroy(after));
    ok(koloStreamDestroy(s));
    ok(koloStreamDestroy(other));
}

/* The destroyed communicator's calls have reported its failure: a stream without later calls starts clean. */
static void a_stream_works_again_after_its_failed_communicator(void **state)
{
    koloStream_t s;
    ncclComm_t pair[2];
    int32_t x = 1, y[2] = {0};

    (void)state;
    ok(koloStreamCreate(&s, KOLO_STREAM_DEFAULT));
    ok(ncclCommInitAll(pair, 2, NULL));
    ok(ncclAllReduce(&x, &y[0], 1, ncclInt32, ncclSum, pair[0], s));
    ok(ncclCommAbort(pair[1]));
    expect_refused(ncclCommDestroy(pair[0]), ncclRemoteError, "rank 1");
    ok(ncclCommInitAll(pair, 2, NULL));
    ok(ncclGroupStart());
    for (int r = 0; r < 2; r++) ok(ncclAllReduce(&x, &y[r], 1, ncclInt32, ncclSum, pair[r], r ? NULL : s));
    ok(ncclGroupEnd());
    ok(koloStreamSynchronize(s));
    assert_int_equal(y[0], 2);
    for (int r = 0; r < 2; r++) ok(ncclCommDestroy(pair[r]));
    ok(koloStreamDestroy(s));
}

/* Of two communicators with operations in one stream, the later one can be aborted while the earlier one hangs. */
static void an_abort_does_not_wait_for_another_communicator(void **state)
{
    koloStream_t s;
    ncclComm_t first[2], later[2];
    int32_t x = 1, y, z;

    (void)state;
    ok(ncclCommInitAll(first, 2, NULL));
    ok(ncclCommInitAll(later, 2, NULL));
    ok(koloStreamCreate(&s, KOLO_STREAM_DEFAULT));
    ok(ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, first[0], s));
    ok(ncclAllReduce(&x, &z, 1, ncclInt32, ncclSum, later[0], s));
    ok(ncclCommAbort(later[0]));
    ok(ncclAllReduce(&x, &z, 1, ncclInt32, ncclSum, first[1], NULL));
    assert_int_equal(koloStreamSynchronize(s), ncclInternalError); /* reported once: the communicator is no more */
    ok(koloStreamSynchronize(s));
    assert_int_equal(y, 2);    /* and the earlier one goes on */
    ncclCommDestroy(later[1]); /* a failure if it knows of the abort by now */
    for (int r = 0; r < 2; r++) ok(ncclCommDestroy(first[r]));
    ok(koloStreamDestroy(s));
}

static void inline_streams_are_done_when_the_group_ends(void **state)
{
    koloStream_t s[RANKS];
    int32_t x[RANKS], y[RANKS];

    (void)state;
    for (int r = 0; r < RANKS; r++) ok(koloStreamCreate(&s[r], KOLO_STREAM_INLINE));
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        x[r] = r + 1;
        ok(ncclAllReduce(&x[r], &y[r], 1, ncclInt32, ncclProd, comms[r], s[r]));
    }
    ok(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(y[r], 24);
        assert_int_equal(koloStreamQuery(s[r]), ncclSuccess);
        ok(koloStreamDestroy(s[r]));
    }
}

static void queries_and_events_follow_the_work(void **state)
{
    int32_t x[RANKS], y[RANKS];
    koloEvent_t e;

    (void)state;
    ok(koloSetDevice(0));
    ok(koloEventCreate(&e));
    ok(koloEventQuery(e));
    for (int r = 0; r < RANKS; r++) x[r] = 1;
    ok(ncclAllReduce(&x[0], &y[0], 1, ncclInt32, ncclSum, comms[0], NULL));
    ok(koloEventRecord(e, NULL));
    assert_int_equal(koloStreamQuery(NULL), ncclInProgress); /* the others have not called yet */
    assert_int_equal(koloEventQuery(e), ncclInProgress);
    for (int r = 1; r < RANKS; r++) ok(ncclAllReduce(&x[r], &y[r], 1, ncclInt32, ncclSum, comms[r], NULL));
    ok(koloEventSynchronize(e));
    assert_int_equal(y[0], RANKS);
    synchronize_all();
    ok(koloSetDevice(0));
    ok(koloStreamQuery(NULL));
    ok(koloEventDestroy(e));
}

static void memory_and_devices(void **state)
{
    int count, device;
    void *p;

    (void)state;
    ok(koloGetDeviceCount(&count));
    assert_true(count >= RANKS);
    ok(koloSetDevice(1));
    ok(koloGetDevice(&device));
    assert_int_equal(device, 1);
    ok(koloMalloc(&p, 100));
    assert_int_equal((uintptr_t)p % 4096, 0);
    memset(p, 1, 100);
    ok(koloFree(p));
    ok(koloMalloc(&p, 0));
    assert_null(p);
    assert_int_equal(koloMalloc(&p, SIZE_MAX), ncclInvalidArgument);
}

static void memory_is_freed_once_and_by_either_name(void **state)
{
    void *p, *q;

    (void)state;
    ok(ncclMemAlloc(&p, 100));
    ok(koloMalloc(&q, 100));
    assert_int_equal((uintptr_t)p % 4096, 0);
    memset(p, 1, 100);
    ok(koloFree(p));
    ok(ncclMemFree(q));
    assert_int_equal(ncclMemFree(p), ncclInvalidArgument);
    assert_int_equal(koloFree(q), ncclInvalidArgument);
    assert_int_equal(ncclMemFree(&p), ncclInvalidArgument);
    ok(ncclMemFree(NULL));
    ok(pncclMemAlloc(&p, 0));
    assert_null(p);
    ok(pncclMemFree(p));
    assert_int_equal(ncclMemAlloc(&p, SIZE_MAX), ncclInvalidArgument);
    assert_int_equal(ncclMemAlloc(NULL, 100), ncclInvalidArgument);
}

static void allocated_memory_takes_part(void **state)
{
    ncclComm_t pair[2];
    float *data[2], *sum[2];
    enum { N = 10000 };

    (void)state;
    ok(ncclCommInitAll(pair, 2, NULL));
    for (int r = 0; r < 2; r++) {
        ok(koloSetDevice(r));
        ok(ncclMemAlloc((void **)&data[r], N * sizeof(float)));
        ok(ncclMemAlloc((void **)&sum[r], N * sizeof(float)));
        for (int i = 0; i < N; i++) data[r][i] = (float)(i + r);
    }
    ok(ncclGroupStart());
    for (int r = 0; r < 2; r++) ok(ncclAllReduce(data[r], sum[r], N, ncclFloat, ncclSum, pair[r], NULL));
    ok(ncclGroupEnd());
    for (int r = 0; r < 2; r++) {
        ok(koloSetDevice(r));
        ok(koloStreamSynchronize(NULL));
        for (int i = 0; i < N; i++) assert_true(sum[r][i] == (float)(2 * i + 1));
    }
    for (int r = 0; r < 2; r++) {
        ok(ncclCommDestroy(pair[r]));
        ok(ncclMemFree(data[r]));
        ok(ncclMemFree(sum[r]));
    }
}

static void a_finalized_communicator_takes_no_more(void **state)
{
    ncclComm_t one;
    int32_t x = 7, y = 0;

    (void)state;
    ok(ncclCommInitAll(&one, 1, NULL));
    ok(ncclAllReduce(&x, &y, 1, ncclInt32, ncclAvg, one, NULL));
    ok(ncclCommFinalize(one));
    assert_int_equal(y, 7); /* finalize runs queued operations */
    expect_refused(ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, one, NULL), ncclInvalidArgument, "finalized");
    expect_refused(ncclCommFinalize(one), ncclInvalidArgument, "finalized before");
    ok(ncclCommDestroy(one));
    ok(ncclCommDestroy(NULL));
    ok(ncclCommAbort(NULL));
}

static const char *create_pairs(void)
{
    for (int round = 0; round < 2; round++) {
        int32_t x = 1, y[2] = {0};
        ncclComm_t pair[2];
        ncclUniqueId id;
        ncclResult_t rc = ncclGetUniqueId(&id);
        ncclGroupStart();
        for (int r = 0; r < 2 && !rc; r++) rc = ncclCommInitRank(&pair[r], 2, id, r);
        if (ncclGroupEnd() || rc) return "create";
        ncclGroupStart();
        for (int r = 0; r < 2; r++) ncclAllReduce(&x, &y[r], 1, ncclInt32, ncclSum, pair[r], NULL);
        ncclGroupEnd();
        for (int r = 0; r < 2; r++)
            if (ncclCommDestroy(pair[r])) return "destroy";
        if (y[0] != 2 || y[1] != 2) return "result";
    }
    return NULL;
}

static void *run_create_pairs(void *failed)
{
    *(const char **)failed = create_pairs();
    return NULL;
}

/* On one device, and so in one default stream, the two ranks of the second round would wait for each other. */
static void ranks_of_a_thread_that_chose_no_device_get_one_each_every_time(void **state)
{
    pthread_t thread; /* a new one: this thread has chosen a device */
    const char *failed = NULL;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, run_create_pairs, &failed), 0);
    pthread_join(thread, NULL);
    if (failed) fail_msg("%s", failed);
}

/* One rank of two finalizes: that is ordered after the group's operations, and the other is finished by its destroy. */
static void a_destroy_waits_for_a_group_that_was_open_in_finalize(void **state)
{
    ncclComm_t pair[2];
    int32_t x = 1, y[2] = {0};

    (void)state;
    ok(ncclCommInitAll(pair, 2, NULL));
    ok(ncclGroupStart());
    for (int r = 0; r < 2; r++) ok(ncclAllReduce(&x, &y[r], 1, ncclInt32, ncclSum, pair[r], NULL));
    ok(ncclCommFinalize(pair[0]));
    ok(ncclGroupEnd());
    ok(ncclCommDestroy(pair[0]));
    ok(ncclCommDestroy(pair[1]));
    assert_true(y[0] == 2 && y[1] == 2);
}

struct kolo_test_keep kolo_test_keeps[] = {KOLO_TEST_UNUSED_IDS, {NULL, 0, 0}};

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_arguments_are_refused_in_words),
        cmocka_unit_test(streams_and_devices_are_checked),
        cmocka_unit_test(an_error_in_a_group_drops_the_group),
        cmocka_unit_test(an_error_in_creating_drops_the_group),
        cmocka_unit_test(an_error_found_at_the_end_of_a_group_drops_the_group),
        cmocka_unit_test(questions_are_answered),
        cmocka_unit_test(one_thread_drives_all_ranks),
        cmocka_unit_test(rooted_operations_touch_only_what_they_should),
        cmocka_unit_test(a_group_of_messages_is_an_all_to_all),
        cmocka_unit_test(messages_of_a_pair_keep_their_order),
        cmocka_unit_test(messages_to_oneself_pair_up),
        cmocka_unit_test(operations_on_many_streams_keep_their_order),
        cmocka_unit_test(a_group_over_two_streams_joins_them),
        cmocka_unit_test(a_failure_is_reported_by_every_stream_of_a_group),
        cmocka_unit_test(a_failure_stays_as_long_as_its_communicator),
        cmocka_unit_test(a_stream_works_again_after_its_failed_communicator),
        cmocka_unit_test(an_abort_does_not_wait_for_another_communicator),
        cmocka_unit_test(inline_streams_are_done_when_the_group_ends),
        cmocka_unit_test(queries_and_events_follow_the_work),
        cmocka_unit_test(memory_and_devices),
        cmocka_unit_test(memory_is_freed_once_and_by_either_name),
        cmocka_unit_test(allocated_memory_takes_part),
        cmocka_unit_test(a_finalized_communicator_takes_no_more),
        cmocka_unit_test(ranks_of_a_thread_that_chose_no_device_get_one_each_every_time),
        cmocka_unit_test(a_destroy_waits_for_a_group_that_was_open_in_finalize),
    };

    return cmocka_run_group_tests(tests, create_comms, destroy_comms);
}
