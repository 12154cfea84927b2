/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that are made of other operations, and reductions that are not built in, with several ranks in one thread.
 */

#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 5, COUNT = 700, ROOM = RANKS * COUNT };

#include "tests/api_comms.h"

static int32_t in[RANKS][ROOM], out[RANKS][ROOM];

static void fill(void)
{
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < ROOM; i++) in[r][i] = 100000 * (r + 1) + i;
    memset(out, 0xff, sizeof out);
}

/* ---- messages between all, or with one ---- */

static void all_to_all_exchanges_parts(void **state)
{
    (void)state;
    fill();
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(ncclAlltoAll(in[r], out[r], COUNT, ncclInt32, comms[r], NULL));
    ok(ncclGroupEnd());
    synchronize_all();
    for (int r = 0; r < RANKS; r++)
        for (int from = 0; from < RANKS; from++)
            for (int i = 0; i < COUNT; i++) assert_int_equal(out[r][from * COUNT + i], in[from][r * COUNT + i]);
}

/* Small parts are staged before any is overwritten; of larger ones only the own part is certain. */
static void all_to_all_in_place_is_no_error(void **state)
{
    static const size_t counts[] = {1, COUNT, 1 << 18};
    const size_t room = RANKS * counts[2];
    int32_t *buffer[RANKS];

    (void)state;
    for (int r = 0; r < RANKS; r++) assert_non_null(buffer[r] = malloc(room * sizeof **buffer));
    FOR_EACH_CASE(n, counts)
    {
        for (int r = 0; r < RANKS; r++)
            for (size_t i = 0; i < RANKS * *n; i++) buffer[r][i] = (int32_t)(100 * (i / *n) + (size_t)r);
        ok(ncclGroupStart());
        for (int r = 0; r < RANKS; r++) ok(ncclAlltoAll(buffer[r], buffer[r], *n, ncclInt32, comms[r], NULL));
        ok(ncclGroupEnd());
        synchronize_all();
        for (int r = 0; r < RANKS; r++)
            for (int from = 0; from < RANKS; from++)
                if (from == r || *n <= COUNT) assert_int_equal(buffer[r][(size_t)from * *n], 100 * r + from);
    }
    for (int r = 0; r < RANKS; r++) free(buffer[r]);
}

static void gather_and_scatter_touch_only_what_they_should(void **state)
{
    (void)state;
    for (int root = 0; root < RANKS; root++) {
        fill();
        ok(ncclGroupStart());
        for (int r = 0; r < RANKS; r++)
            ok(ncclGather(in[r], r == root ? out[r] : NULL, COUNT, ncclInt32, root, comms[r], NULL));
        ok(ncclGroupEnd());
        synchronize_all();
        for (int r = 0; r < RANKS; r++)
            for (int i = 0; i < COUNT; i++) assert_int_equal(out[root][r * COUNT + i], in[r][i]);
        fill();
        ok(ncclGroupStart());
        for (int r = 0; r < RANKS; r++)
            ok(ncclScatter(r == root ? in[r] : NULL, out[r], COUNT, ncclInt32, root, comms[r], NULL));
        ok(ncclGroupEnd());
        synchronize_all();
        for (int r = 0; r < RANKS; r++) {
            for (int i = 0; i < COUNT; i++) assert_int_equal(out[r][i], in[root][r * COUNT + i]);
            for (int i = COUNT; i < ROOM; i++) assert_int_equal(out[r][i], -1);
        }
    }
}

static void gather_and_scatter_work_in_place(void **state)
{
    (void)state;
    fill();
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        ok(ncclGather(r == 1 ? in[r] + COUNT : in[r], in[r], COUNT, ncclInt32, 1, comms[r], NULL));
    ok(ncclGroupEnd());
    synchronize_all();
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(in[1][r * COUNT + i], 100000 * (r + 1) + i + (r == 1 ? COUNT : 0));
    fill();
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        ok(ncclScatter(in[r], r == 2 ? in[r] + 2 * COUNT : out[r], COUNT, ncclInt32, 2, comms[r], NULL));
    ok(ncclGroupEnd());
    synchronize_all();
    for (int i = 0; i < COUNT; i++) assert_int_equal(out[4][i], 300000 + 4 * COUNT + i);
    for (int i = 0; i < ROOM; i++) assert_int_equal(in[2][i], 300000 + i);
}

static void nothing_is_done_with_nothing(void **state)
{
    (void)state;
    ok(ncclAlltoAll(NULL, NULL, 0, ncclInt32, comms[0], NULL)); /* alone: it would wait for the others */
    ok(ncclGather(NULL, NULL, 0, ncclInt32, 1, comms[1], NULL));
    ok(ncclScatter(NULL, NULL, 0, ncclInt32, 1, comms[1], NULL));
    synchronize_all();
}

static void wrong_arguments_are_refused(void **state)
{
    int32_t *a = in[0], *b = out[0];
    size_t counts[RANKS] = {1, 1, 1, 1, 1};
    ncclComm_t c = comms[0];
    ncclRedOp_t op;
    float half = 0.5f;

    (void)state;
    expect_refused(ncclAlltoAll(a, b, 1, ncclInt32, NULL, NULL), ncclInvalidArgument, "ncclAlltoAll: the communicator");
    expect_refused(ncclAlltoAll(NULL, b, 1, ncclInt32, c, NULL), ncclInvalidArgument, "send buffer is NULL");
    expect_refused(ncclAlltoAll(a, NULL, 1, ncclInt32, c, NULL), ncclInvalidArgument, "receive buffer is NULL");
    expect_refused(ncclAlltoAll(a, b, 1, (ncclDataType_t)40, c, NULL), ncclInvalidArgument, "data type 40");
    expect_refused(ncclAlltoAll(a, b, SIZE_MAX / 4, ncclInt32, c, NULL), ncclInvalidArgument, "address space");
    expect_refused(ncclGather(a, b, 1, ncclInt32, RANKS, c, NULL), ncclInvalidArgument, "ncclGather: root 5");
    expect_refused(ncclGather(a, NULL, 1, ncclInt32, 0, c, NULL), ncclInvalidArgument, "receive buffer is NULL");
    expect_refused(ncclScatter(a, b, 1, ncclInt32, -1, c, NULL), ncclInvalidArgument, "ncclScatter: root -1");
    expect_refused(ncclScatter(NULL, b, 1, ncclInt32, 0, c, NULL), ncclInvalidArgument, "send buffer is NULL");
    expect_refused(koloAllGatherV(a, 1, b, NULL, counts, ncclInt32, c, NULL), ncclInvalidArgument, "is NULL");
    expect_refused(koloAllGatherV(a, 2, b, counts, counts, ncclInt32, c, NULL), ncclInvalidArgument,
                   "sends 2 elements, and its entry in recvcounts is 1");
    expect_refused(koloAllToAllV(a, counts, counts, b, counts, NULL, ncclInt32, c, NULL), ncclInvalidArgument,
                   "is NULL");
    expect_refused(koloReduceScatterV(NULL, b, counts, ncclInt32, ncclSum, c, NULL), ncclInvalidArgument,
                   "send buffer is NULL");
    expect_refused(koloBarrier(NULL, NULL), ncclInvalidArgument, "communicator is NULL");
    expect_refused(ncclAllReduce(a, b, 1, ncclFloat, koloBitAnd, c, NULL), ncclInvalidArgument, "of integers");
    expect_refused(ncclAllReduce(a, b, 1, ncclInt32, (ncclRedOp_t)77, c, NULL), ncclInvalidArgument, "operation 77");
    expect_refused(ncclAllReduce(a, b, 1, ncclInt32, (ncclRedOp_t)-1, c, NULL), ncclInvalidArgument, "operation -1");
    expect_refused(ncclRedOpCreatePreMulSum(NULL, &half, ncclFloat, ncclScalarHostImmediate, c), ncclInvalidArgument,
                   "result pointer is NULL");
    expect_refused(ncclRedOpCreatePreMulSum(&op, NULL, ncclFloat, ncclScalarHostImmediate, c), ncclInvalidArgument,
                   "scalar is NULL");
    expect_refused(ncclRedOpCreatePreMulSum(&op, &half, ncclFloat, (ncclScalarResidence_t)2, c), ncclInvalidArgument,
                   "residence 2");
    expect_refused(ncclRedOpCreatePreMulSum(&op, &half, (ncclDataType_t)12, ncclScalarDevice, c), ncclInvalidArgument,
                   "data type 12");
    expect_refused(ncclRedOpDestroy(ncclSum, c), ncclInvalidArgument, "no operation of this communicator");
    expect_refused(ncclRedOpDestroy((ncclRedOp_t)5, c), ncclInvalidArgument, "no operation of this communicator");
    ok(ncclRedOpCreatePreMulSum(&op, &half, ncclFloat, ncclScalarHostImmediate, c));
    expect_refused(ncclAllReduce(a, b, 1, ncclInt32, op, c, NULL), ncclInvalidArgument, "made for float");
    expect_refused(ncclRedOpDestroy(op, comms[1]), ncclInvalidArgument, "no operation of this communicator");
    ok(ncclRedOpDestroy(op, c));
    expect_refused(ncclRedOpDestroy(op, c), ncclInvalidArgument, "no operation of this communicator");
}

/* ---- counts beyond the address space ---- */

typedef ncclResult_t (*call_of_count)(size_t count, ncclDataType_t type, ncclComm_t comm);

#define CALL(name, ...)                                                                                                \
    static ncclResult_t call_##name(size_t n, ncclDataType_t type, ncclComm_t c)                                       \
    {                                                                                                                  \
        size_t counts[RANKS] = {n}, places[RANKS] = {0}, ones[RANKS] = {1, 1, 1, 1, 1};                                \
        (void)counts, (void)places, (void)ones, (void)type, (void)c;                                                   \
        return __VA_ARGS__;                                                                                            \
    }

CALL(all_reduce, ncclAllReduce(in, out, n, type, ncclSum, c, NULL))
CALL(reduce, ncclReduce(in, out, n, type, ncclSum, 0, c, NULL))
CALL(reduce_elsewhere, ncclReduce(in, NULL, n, type, ncclSum, 1, c, NULL))
CALL(broadcast, ncclBroadcast(in, out, n, type, 0, c, NULL))
CALL(broadcast_elsewhere, ncclBroadcast(NULL, out, n, type, 1, c, NULL))
CALL(bcast, ncclBcast(in, n, type, 0, c, NULL))
CALL(all_gather, ncclAllGather(in, out, n, type, c, NULL))
CALL(reduce_scatter, ncclReduceScatter(in, out, n, type, ncclSum, c, NULL))
CALL(send, ncclSend(in, n, type, 1, c, NULL))
CALL(recv, ncclRecv(out, n, type, 1, c, NULL))
CALL(all_to_all, ncclAlltoAll(in, out, n, type, c, NULL))
CALL(gather, ncclGather(in, out, n, type, 0, c, NULL))
CALL(gather_elsewhere, ncclGather(in, NULL, n, type, 1, c, NULL))
CALL(scatter, ncclScatter(in, out, n, type, 0, c, NULL))
CALL(scatter_elsewhere, ncclScatter(NULL, out, n, type, 1, c, NULL))
CALL(all_gather_v, koloAllGatherV(in, n, out, counts, places, type, c, NULL))
CALL(all_gather_v_place, koloAllGatherV(in, 1, out, ones, (places[1] = n, places), type, c, NULL))
CALL(all_to_all_v, koloAllToAllV(in, counts, places, out, counts, places, type, c, NULL))
CALL(all_to_all_v_place, koloAllToAllV(in, ones, places, out, ones, (places[4] = n, places), type, c, NULL))
CALL(reduce_scatter_v, koloReduceScatterV(in, out, counts, type, ncclSum, c, NULL))
CALL(copy, koloMemcpyAsync(out, in, type == ncclInt8 ? n : SIZE_MAX, NULL))
CALL(fill, koloMemsetAsync(out, 0, type == ncclInt8 ? n : SIZE_MAX, NULL))
CALL(enlist, ncclCommRegister(c, in, type == ncclInt8 ? n : SIZE_MAX, &(void *){NULL}))

struct counted {
    const char *function, *argument;
    call_of_count call;
};

static const struct counted counted[] = {
    {"ncclAllReduce", "count", call_all_reduce},
    {"ncclReduce", "count", call_reduce},
    {"ncclReduce", "count", call_reduce_elsewhere},
    {"ncclBroadcast", "count", call_broadcast},
    {"ncclBroadcast", "count", call_broadcast_elsewhere},
    {"ncclBcast", "count", call_bcast},
    {"ncclAllGather", "sendcount", call_all_gather},
    {"ncclReduceScatter", "recvcount", call_reduce_scatter},
    {"ncclSend", "count", call_send},
    {"ncclRecv", "count", call_recv},
    {"ncclAlltoAll", "count", call_all_to_all},
    {"ncclGather", "count", call_gather},
    {"ncclGather", "count", call_gather_elsewhere},
    {"ncclScatter", "count", call_scatter},
    {"ncclScatter", "count", call_scatter_elsewhere},
    {"koloAllGatherV", "count 0", call_all_gather_v},
    {"koloAllGatherV", "place 1", call_all_gather_v_place},
    {"koloAllToAllV", "count 0", call_all_to_all_v},
    {"koloAllToAllV", "place 4", call_all_to_all_v_place},
    {"koloReduceScatterV", "count 0", call_reduce_scatter_v},
    {"ncclCommRegister", "size", call_enlist},
};
static const struct counted copies[] = {
    {"koloMemcpyAsync", "bytes", call_copy},
    {"koloMemsetAsync", "bytes", call_fill},
};

static void expect_counts_refused(const struct counted *c)
{
    char expected[64];

    for (int bits = 47; bits <= 64; bits++)
        for (int less = 0; less < 2; less++)
            for (int wide = 0; wide < 2; wide++) {
                const size_t count = (bits < 64 ? (size_t)1 << bits : 0) - (size_t)(less || bits == 64);

                snprintf(expected, sizeof expected, "%s: %s is ", c->function, c->argument);
                expect_refused(c->call(count, wide ? ncclInt64 : ncclInt8, comms[0]), ncclInvalidArgument, expected);
            }
}

static void counts_beyond_the_address_space_are_refused(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, counted) expect_counts_refused(c);
    synchronize_all(); /* nothing was queued */
}

static void copies_beyond_the_address_space_are_refused(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, copies) expect_counts_refused(c);
    synchronize_all();
}

/* ---- parts of different sizes ---- */

static size_t part_of(int rank)
{
    return rank == 3 ? 0 : 10 + 31 * (size_t)rank;
}

static void parts_may_differ(void **state)
{
    size_t counts[RANKS], displs[RANKS], first = 0, total = 0;

    (void)state;
    for (int r = RANKS - 1; r >= 0; first += counts[r--]) { /* placed backwards */
        counts[r] = part_of(r);
        displs[r] = first;
    }
    fill();
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        ok(koloAllGatherV(in[r], counts[r], out[r], counts, displs, ncclInt32, comms[r], NULL));
    ok(ncclGroupEnd());
    synchronize_all();
    for (int r = 0; r < RANKS; r++)
        for (int from = 0; from < RANKS; from++)
            for (size_t i = 0; i < counts[from]; i++) assert_int_equal(out[r][displs[from] + i], in[from][i]);

    fill();
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(koloReduceScatterV(in[r], out[r], counts, ncclInt32, ncclMax, comms[r], NULL));
    ok(ncclGroupEnd());
    synchronize_all();
    for (int r = 0; r < RANKS; total += counts[r++]) {
        for (size_t i = 0; i < counts[r]; i++) assert_int_equal(out[r][i], in[RANKS - 1][total + i]);
        assert_int_equal(out[r][counts[r]], -1);
    }
}

static size_t from_to(int from, int to)
{
    return (from + 2 * to) % 3 ? (size_t)(7 * from + to) : 0;
}

static void all_pairs_exchange_different_data(void **state)
{
    size_t send[RANKS][RANKS], recv[RANKS][RANKS], places[RANKS];

    (void)state;
    fill();
    for (int r = 0; r < RANKS; r++) places[r] = (size_t)r * 100;
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        for (int k = 0; k < RANKS; k++) send[r][k] = from_to(r, k), recv[r][k] = from_to(k, r);
        ok(koloAllToAllV(in[r], send[r], places, out[r], recv[r], places, ncclInt32, comms[r], NULL));
    }
    ok(ncclGroupEnd());
    synchronize_all();
    for (int r = 0; r < RANKS; r++)
        for (int k = 0; k < RANKS; k++) {
            for (size_t i = 0; i < recv[r][k]; i++) assert_int_equal(out[r][k * 100 + i], in[k][r * 100 + i]);
            assert_int_equal(out[r][k * 100 + recv[r][k]], -1);
        }
}

/* A rank that passes a barrier sees the writes of all ranks before it. */
static void a_barrier_waits_for_everybody(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        koloEvent_t event;
        ok(koloEventCreate(&event));
        ok(koloSetDevice(0));
        ok(koloBarrier(comms[0], NULL));
        ok(koloEventRecord(event, NULL));
        for (int r = 1; r < RANKS; r++) {
            assert_int_equal(koloEventQuery(event), ncclInProgress);
            ok(koloBarrier(comms[r], NULL));
        }
        ok(koloEventSynchronize(event));
        ok(koloEventDestroy(event));
    }
    synchronize_all();
}

/* ---- operations ---- */

/* For each function that reduces, over sizes that choose different algorithms. */
static void reduce_each_way(size_t count, ncclDataType_t type, const ncclRedOp_t *ops)
{
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) ok(ncclAllReduce(in[r], out[r], count, type, ops[r], comms[r], NULL));
    ok(ncclGroupEnd());
    synchronize_all();
}

static void contributions_are_scaled_by_each_rank(void **state)
{
    static const size_t counts[] = {1, 3, 100, ROOM};
    ncclRedOp_t ops[RANKS];

    (void)state;
    FOR_EACH_CASE(count, counts)
    {
        fill();
        for (int r = 0; r < RANKS; r++) {
            int32_t scalar = r - 2;
            ok(ncclRedOpCreatePreMulSum(&ops[r], &scalar, ncclInt32, ncclScalarHostImmediate, comms[r]));
            assert_true(ops[r] >= ncclNumOps);
        }
        reduce_each_way(*count, ncclInt32, ops);
        for (int r = 0; r < RANKS; r++)
            for (size_t i = 0; i < *count; i++) {
                int32_t want = 0;
                for (int k = 0; k < RANKS; k++) want += (k - 2) * in[k][i];
                assert_int_equal(out[r][i], want);
            }
        for (int r = 0; r < RANKS; r++) ok(ncclRedOpDestroy(ops[r], comms[r]));
    }
}

/* The scalar is read when the operation begins, and may be destroyed as soon as that was issued. */
static void a_scalar_may_be_read_later(void **state)
{
    float scalar = 1, *a = (float *)(void *)in[0], *b = (float *)(void *)out[0];
    ncclRedOp_t op;
    ncclComm_t one;

    (void)state;
    ok(koloSetDevice(0));
    ok(ncclCommInitAll(&one, 1, NULL));
    for (int i = 0; i < COUNT; i++) a[i] = (float)i;
    ok(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat, ncclScalarDevice, one));
    ok(ncclGroupStart());
    ok(ncclAllReduce(a, b, COUNT, ncclFloat, op, one, NULL));
    ok(ncclRedOpDestroy(op, one));
    scalar = 4;
    ok(ncclGroupEnd());
    ok(koloStreamSynchronize(NULL));
    for (int i = 0; i < COUNT; i++) assert_true(b[i] == 4.0f * (float)i);
    ok(ncclCommDestroy(one));
}

static void entries_are_used_again(void **state)
{
    ncclRedOp_t op, before = ncclSum;
    float one = 1;

    (void)state;
    for (int i = 0; i < 40000; i++) {
        ok(ncclRedOpCreatePreMulSum(&op, &one, ncclFloat, ncclScalarHostImmediate, comms[0]));
        assert_int_not_equal(op, before);
        ok(ncclRedOpDestroy(op, comms[0]));
        before = op;
    }
}

static int32_t expected(ncclRedOp_t op, int i)
{
    int32_t bits = in[0][i], truths = in[0][i] != 0;

    for (int r = 1; r < RANKS; r++) {
        int32_t x = in[r][i];
        bits = op == koloBitAnd ? bits & x : op == koloBitOr ? bits | x : bits ^ x;
        truths = op == koloLogicalAnd ? truths & (x != 0) : op == koloLogicalOr ? truths | (x != 0) : truths ^ (x != 0);
    }
    return op <= koloBitXor ? bits : truths;
}

static void bits_and_truths_are_reduced(void **state)
{
    static const size_t counts[] = {1, 100, ROOM};

    (void)state;
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < ROOM; i++) in[r][i] = (i + r) % 3 ? (i * 2654435761u) ^ (unsigned)(r << i % 20) : 0;
    for (unsigned op = koloBitAnd; op <= koloLogicalXor; op++) FOR_EACH_CASE(count, counts)
        {
            ncclRedOp_t ops[RANKS];
            for (int r = 0; r < RANKS; r++) ops[r] = (ncclRedOp_t)op;
            reduce_each_way(*count, ncclInt32, ops);
            for (int r = 0; r < RANKS; r++)
                for (size_t i = 0; i < *count; i++) assert_int_equal(out[r][i], expected((ncclRedOp_t)op, (int)i));
        }
}

/* A step carries its operator; ranks that disagree get an error. */
static void different_operators_are_found_out(void **state)
{
    ncclComm_t pair[2];
    ncclResult_t rc[2];

    (void)state;
    ok(koloSetDevice(0));
    ok(ncclCommInitAll(pair, 2, NULL));
    ok(ncclGroupStart());
    ok(ncclAllReduce(in[0], out[0], 4, ncclInt32, koloBitAnd, pair[0], NULL));
    ok(ncclAllReduce(in[1], out[1], 4, ncclInt32, koloBitOr, pair[1], NULL));
    ok(ncclGroupEnd());
    for (int r = 0; r < 2; r++) {
        ok(koloSetDevice(r));
        rc[r] = koloStreamSynchronize(NULL);
    }
    assert_true(rc[0] || rc[1]);
    for (int r = 0; r < 2; r++) ok(ncclCommAbort(pair[r]));
    for (int r = 0; r < 2; r++) {
        ok(koloSetDevice(r));
        (void)koloStreamSynchronize(NULL); /* may report once that the abort withdrew work */
    }
}

/* ---- streams in groups ---- */

/* Its memory may be another stream's by then; nothing of the group is queued, and the communicators go on. */
static void a_stream_that_is_destroyed_in_a_group_fails_the_group(void **state)
{
    int32_t x[2] = {1, 2}, y[2] = {0};
    koloStream_t streams[2], other;

    (void)state;
    for (int reused = 0; reused < 2; reused++) {
        for (int i = 0; i < 2; i++) ok(koloStreamCreate(&streams[i], 0));
        ok(ncclGroupStart());
        for (int i = 0; i < 2; i++)
            ok(ncclAllReduce(&x[i], &y[i], 1, ncclInt32, ncclSum, comms[i], (cudaStream_t)(void *)streams[i]));
        ok(koloStreamDestroy(streams[1]));
        if (reused) ok(koloStreamCreate(&other, 0));
        expect_refused(ncclGroupEnd(), ncclInvalidUsage,
                       "the stream of AllReduce was destroyed between ncclGroupStart");
        ok(koloStreamQuery(streams[0]));
        ok(koloStreamDestroy(streams[0]));
        if (reused) ok(koloStreamDestroy(other));
        assert_int_equal(y[0] + y[1], 0);
    }
}

/* ---- groups that are only simulated, buffers that are registered ---- */

static float simulated(size_t count, int operations)
{
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;

    ok(ncclGroupStart());
    for (int i = 0; i < operations; i++)
        for (int r = 0; r < RANKS; r++) ok(ncclAllReduce(in[r], out[r], count, ncclInt32, ncclSum, comms[r], NULL));
    ok(ncclGroupSimulateEnd(&info));
    return info.estimatedTime;
}

static void a_simulated_group_takes_time_and_does_nothing(void **state)
{
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;

    (void)state;
    fill();
    float small = simulated(1, 1), large = simulated(ROOM, 1);
    assert_true(small > 0 && large > small);
    assert_true(simulated(1, 3) > 2.9f * small);
    assert_true(simulated(1, 0) == 0);
    synchronize_all();
    for (int r = 0; r < RANKS; r++) assert_int_equal(out[r][0], -1);

    expect_refused(ncclGroupSimulateEnd(&info), ncclInvalidUsage, "without ncclGroupStart");
    ok(ncclGroupStart());
    expect_refused(ncclGroupSimulateEnd(NULL), ncclInvalidArgument, "NCCL_SIM_INFO_INITIALIZER");
    ok(ncclGroupStart());
    info.magic = 3;
    expect_refused(ncclGroupSimulateEnd(&info), ncclInvalidArgument, "NCCL_SIM_INFO_INITIALIZER");
    expect_refused(ncclGroupEnd(), ncclInvalidUsage, "without ncclGroupStart");
}

static void buffers_are_registered_until_they_are_not(void **state)
{
    void *handle, *again, *memory;

    (void)state;
    ok(ncclMemAlloc(&memory, 1 << 20));
    ok(ncclCommRegister(comms[0], memory, 1 << 20, &handle));
    ok(ncclCommRegister(comms[0], memory, 1 << 20, &again));
    assert_ptr_not_equal(handle, again);
    ok(ncclCommDeregister(comms[0], handle));
    expect_refused(ncclCommDeregister(comms[0], handle), ncclInvalidUsage,
                   "nothing that this communicator has registered");
    expect_refused(ncclCommDeregister(comms[1], again), ncclInvalidUsage,
                   "nothing that this communicator has registered");
    ok(ncclMemFree(memory)); /* it is mapped nevertheless */
    memset(memory, 1, 1 << 20);
    ok(ncclCommDeregister(comms[0], again));
    ok(ncclCommDeregister(comms[0], NULL));
    expect_refused(ncclCommRegister(comms[0], NULL, 1, &handle), ncclInvalidArgument, "is NULL");
    expect_refused(ncclCommRegister(comms[0], in, 0, &handle), ncclInvalidArgument, "is empty");
    expect_refused(ncclCommRegister(comms[0], in, 4, NULL), ncclInvalidArgument, "result pointer is NULL");
    ok(ncclCommRegister(comms[0], in, sizeof in, &handle)); /* any memory; its communicator ends it */
}

static void windows_are_of_all_ranks(void **state)
{
    ncclWindow_t win[RANKS], second;
    void *memory[RANKS], *ptr;

    (void)state;
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        ok(ncclMemAlloc(&memory[r], 8192));
        ok(ncclCommWindowRegister(comms[r], memory[r], 8192, &win[r], NCCL_WIN_COLL_SYMMETRIC));
    }
    ok(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) {
        ok(ncclWinGetUserPtr(comms[r], win[r], &ptr));
        assert_ptr_equal(ptr, memory[r]);
    }
    expect_refused(ncclWinGetUserPtr(comms[0], win[1], &ptr), ncclInvalidArgument, "no window of this communicator");
    expect_refused(ncclWinGetUserPtr(comms[0], win[0], NULL), ncclInvalidArgument, "NULL");
    expect_refused(ncclCommWindowDeregister(comms[0], win[1]), ncclInvalidUsage, "nothing that this communicator");
    expect_refused(ncclCommWindowRegister(comms[0], NULL, 1, &second, 0), ncclInvalidArgument, "is NULL");
    expect_refused(ncclCommWindowRegister(comms[0], memory[0], 0, &second, 0), ncclInvalidArgument, "is empty");
    expect_refused(ncclCommWindowRegister(comms[0], (char *)memory[0] + 64, 64, &second, 0), ncclInvalidArgument,
                   "not aligned");
    expect_refused(ncclCommWindowRegister(comms[0], memory[0], 64, &second, 16), ncclInvalidArgument, "flags 16");
    expect_refused(ncclCommWindowRegister(comms[0], memory[0], 64, &second, NCCL_WIN_CFT_COUNTED), ncclInvalidUsage,
                   "counted fabric writes");
    expect_refused(ncclCommWindowRegister(comms[0], memory[0], 64, NULL, 0), ncclInvalidArgument, "result pointer");
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        ncclWindow_t *to = r ? &win[r] : &second;
        ok(ncclCommWindowDeregister(comms[r], r ? win[r] : NULL));
        ok(ncclCommWindowRegister(comms[r], memory[r], 4096, to, r == 2 ? NCCL_WIN_STRICT_ORDERING : NCCL_WIN_DEFAULT));
    }
    expect_refused(ncclGroupEnd(), ncclInvalidUsage, "they must agree");
    assert_null(second);
    ok(ncclCommWindowDeregister(comms[0], win[0]));
    expect_refused(ncclCommWindowDeregister(comms[0], win[0]), ncclInvalidUsage, "nothing that this communicator");
    for (int r = 0; r < RANKS; r++) ok(ncclMemFree(memory[r]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_to_all_exchanges_parts),
        cmocka_unit_test(all_to_all_in_place_is_no_error),
        cmocka_unit_test(gather_and_scatter_touch_only_what_they_should),
        cmocka_unit_test(gather_and_scatter_work_in_place),
        cmocka_unit_test(nothing_is_done_with_nothing),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(counts_beyond_the_address_space_are_refused),
        cmocka_unit_test(copies_beyond_the_address_space_are_refused),
        cmocka_unit_test(parts_may_differ),
        cmocka_unit_test(all_pairs_exchange_different_data),
        cmocka_unit_test(a_barrier_waits_for_everybody),
        cmocka_unit_test(contributions_are_scaled_by_each_rank),
        cmocka_unit_test(a_scalar_may_be_read_later),
        cmocka_unit_test(entries_are_used_again),
        cmocka_unit_test(bits_and_truths_are_reduced),
        cmocka_unit_test(different_operators_are_found_out),
        cmocka_unit_test(a_stream_that_is_destroyed_in_a_group_fails_the_group),
        cmocka_unit_test(a_simulated_group_takes_time_and_does_nothing),
        cmocka_unit_test(buffers_are_registered_until_they_are_not),
        cmocka_unit_test(windows_are_of_all_ranks),
    };

    setenv("NCCL_DEBUG", "NONE", 0);
    return cmocka_run_group_tests(tests, create_comms, destroy_comms);
}
