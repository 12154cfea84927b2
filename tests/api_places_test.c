/* SPDX-License-Identifier: Apache-2.0 */
/* Every function that gives a communicator work, in every place where a program may call it: ranks of one thread. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 3, COUNT = 500, ROOM = RANKS * COUNT, ROOT = 1 };

#include "tests/api_comms.h"

/* ---- places ---- */

struct place {
    const char *name;
    int depth;       /* of groups */
    int times;       /* in one group */
    bool in_place;   /* send and receive buffers coincide, as far as the function has such a form */
    bool captures;   /* into a graph, which is launched */
    bool background; /* communicators that are not blocking */
    int streams;     /* 0: NULL; 1: one for each rank; 2: one for all; 3: that of the thread */
};

static const struct place places[] = {
    {.name = "a group", .depth = 1, .times = 1},
    {.name = "nested groups", .depth = 3, .times = 1},
    {.name = "twice in a group", .depth = 1, .times = 2},
    {.name = "in place", .depth = 1, .times = 1, .in_place = true},
    {.name = "in place, twice, nested", .depth = 2, .times = 2, .in_place = true},
    {.name = "own streams", .depth = 1, .times = 1, .streams = 1},
    {.name = "the thread's streams", .depth = 1, .times = 1, .streams = 3},
    {.name = "capture", .depth = 1, .times = 1, .captures = true, .streams = 1},
    {.name = "capture, in place, twice", .depth = 1, .times = 2, .in_place = true, .captures = true, .streams = 1},
    {.name = "not blocking", .depth = 1, .times = 1, .background = true},
    {.name = "not blocking, in place, nested, twice",
     .depth = 2,
     .times = 2,
     .in_place = true,
     .background = true,
     .streams = 1},
};

static const struct place one_stream = {.name = "one stream", .depth = 1, .times = 1, .streams = 2};

static koloStream_t stream[RANKS];

static koloStream_t stream_of(const struct place *p, int r)
{
    if (p->streams == 1) return stream[r];
    if (p->streams == 2) return stream[0];
    return p->streams == 3 ? koloStreamPerThread : NULL;
}

/* ---- operations ---- */

enum {
    ALL_REDUCE,
    BROADCAST,
    BCAST,
    REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    GATHER,
    SCATTER,
    EXCHANGE, /* a send and a receive */
    ALL_GATHER_V,
    REDUCE_SCATTER_V,
    ALL_TO_ALL_V,
    BARRIER,
    OPERATIONS
};

static int32_t in[RANKS][ROOM], out[RANKS][ROOM], before[RANKS][ROOM];
static const size_t counts[RANKS] = {COUNT, COUNT, COUNT}, places_of[RANKS] = {0, COUNT, 2 * COUNT};

static void fill(void)
{
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < ROOM; i++) before[r][i] = in[r][i] = 10000 * (r + 1) + i;
    memset(out, 0xff, sizeof out);
}

/* In place: both in `in`, where the function wants them. */
static void buffers(int which, int r, bool in_place, int32_t **send, int32_t **recv)
{
    *send = in[r];
    *recv = in_place ? in[r] : out[r];
    if (!in_place) return;
    if (which == ALL_GATHER || which == ALL_GATHER_V || (which == GATHER && r == ROOT)) *send = in[r] + r * COUNT;
    if (which == REDUCE_SCATTER || which == REDUCE_SCATTER_V || (which == SCATTER && r == ROOT))
        *recv = in[r] + r * COUNT;
    if (which == EXCHANGE || which == ALL_TO_ALL_V) *recv = out[r];
    if ((which == SCATTER || which == REDUCE || which == GATHER) && r != ROOT) *recv = out[r];
}

static ncclResult_t issue(int which, int r, const struct place *p, bool configured)
{
    static const ncclCollConfig_t plain = NCCL_COLLCONFIG_INITIALIZER;
    const ncclCollConfig_t *c = configured ? &plain : NULL;
    koloStream_t s = stream_of(p, r);
    int32_t *a, *b;
    ncclComm_t comm = comms[r];

    buffers(which, r, p->in_place, &a, &b);
    switch (which) {
    case ALL_REDUCE:
        return ncclAllReduceConfig(a, b, ROOM, ncclInt32, ncclMax, comm, s, c);
    case BROADCAST:
        return ncclBroadcastConfig(a, b, ROOM, ncclInt32, ROOT, comm, s, c);
    case BCAST:
        return ncclBcast(in[r], ROOM, ncclInt32, ROOT, comm, s);
    case REDUCE:
        return ncclReduceConfig(a, b, ROOM, ncclInt32, ncclMax, ROOT, comm, s, c);
    case ALL_GATHER:
        return ncclAllGatherConfig(a, b, COUNT, ncclInt32, comm, s, c);
    case REDUCE_SCATTER:
        return ncclReduceScatterConfig(a, b, COUNT, ncclInt32, ncclMax, comm, s, c);
    case ALL_TO_ALL:
        return ncclAlltoAllConfig(a, b, COUNT, ncclInt32, comm, s, c);
    case GATHER:
        return ncclGatherConfig(a, b, COUNT, ncclInt32, ROOT, comm, s, c);
    case SCATTER:
        return ncclScatterConfig(a, b, COUNT, ncclInt32, ROOT, comm, s, c);
    case EXCHANGE:
        ok(ncclSend(a, ROOM, ncclInt32, (r + 1) % RANKS, comm, s));
        return ncclRecv(b, ROOM, ncclInt32, (r + RANKS - 1) % RANKS, comm, s);
    case ALL_GATHER_V:
        return koloAllGatherV(a, COUNT, b, counts, places_of, ncclInt32, comm, s);
    case REDUCE_SCATTER_V:
        return koloReduceScatterV(a, b, counts, ncclInt32, ncclMax, comm, s);
    case ALL_TO_ALL_V:
        return koloAllToAllV(a, counts, places_of, b, counts, places_of, ncclInt32, comm, s);
    default:
        return koloBarrier(comm, s);
    }
}

/* Of each operation once, element i of rank r's receive buffer; -1: it is not looked at. */
static int32_t expected(int which, int r, int i, bool in_place)
{
    const int own = r * COUNT + i % COUNT;

    switch (which) {
    case ALL_REDUCE:
        return before[RANKS - 1][i];
    case BROADCAST:
        return before[ROOT][i];
    case REDUCE:
        return r == ROOT ? before[RANKS - 1][i] : -1;
    case ALL_GATHER:
    case ALL_GATHER_V:
        return before[i / COUNT][in_place ? i / COUNT * COUNT + i % COUNT : i % COUNT];
    case GATHER:
        if (r != ROOT) return -1;
        return before[i / COUNT][in_place && i / COUNT == ROOT ? own : i % COUNT];
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_V:
        return i < COUNT ? before[RANKS - 1][own] : -1;
    case SCATTER:
        return i < COUNT ? before[ROOT][own] : -1;
    case ALL_TO_ALL:
    case ALL_TO_ALL_V:
        return before[i / COUNT][own];
    case EXCHANGE:
        return before[(r + RANKS - 1) % RANKS][i];
    default:
        return -1;
    }
}

static void check(int which, const struct place *p)
{
    for (int r = 0; r < RANKS; r++) {
        int32_t *a, *b;
        buffers(which, r, p->in_place, &a, &b);
        for (int i = 0; i < ROOM && which != BCAST; i++) {
            const int32_t want = expected(which, r, i, p->in_place);
            if (want != -1 && b[i] != want)
                fail_msg("%s: operation %d, rank %d, element %d is %d, not %d", p->name, which, r, i, b[i], want);
        }
        for (int i = 0; i < ROOM && which == BCAST; i++) assert_int_equal(in[r][i], before[ROOT][i]);
    }
}

/* ---- one operation in one place ---- */

static void open_groups(int depth)
{
    while (depth--) ok(ncclGroupStart());
}

static ncclResult_t close_groups(int depth)
{
    ncclResult_t rc = ncclSuccess;

    while (depth--) rc = ncclGroupEnd();
    return rc;
}

/* Maxima may be taken twice, and a message that comes twice is the same: but data sent in place must not have changed. */
static int times_of(int which, const struct place *p)
{
    return p->in_place && (which == REDUCE_SCATTER || which == REDUCE_SCATTER_V || which == ALL_TO_ALL) ? 1 : p->times;
}

static void begin_capture(void)
{
    koloEvent_t fork;

    ok(koloSetDevice(0));
    ok(koloEventCreate(&fork));
    ok(koloStreamBeginCapture(stream[0], koloCaptureModeRelaxed));
    ok(koloEventRecord(fork, stream[0]));
    for (int r = 1; r < RANKS; r++) ok(koloStreamWaitEvent(stream[r], fork, 0));
    ok(koloEventDestroy(fork));
}

static void end_capture_and_launch(void)
{
    koloGraphExec_t exec;
    koloGraph_t graph;
    koloEvent_t join;

    for (int r = 1; r < RANKS; r++) {
        ok(koloSetDevice(r));
        ok(koloEventCreate(&join));
        ok(koloEventRecord(join, stream[r]));
        ok(koloStreamWaitEvent(stream[0], join, 0));
        ok(koloEventDestroy(join));
    }
    ok(koloStreamEndCapture(stream[0], &graph));
    ok(koloGraphInstantiate(&exec, graph));
    ok(koloGraphLaunch(exec, stream[0]));
    ok(koloStreamSynchronize(stream[0]));
    ok(koloGraphExecDestroy(exec));
    ok(koloGraphDestroy(graph));
}

static void synchronize_place(const struct place *p)
{
    for (int r = 0; r < RANKS; r++) {
        ok(koloSetDevice(r));
        ok(koloStreamSynchronize(stream_of(p, r)));
        ok(koloDeviceSynchronize());
    }
}

static void run(int which, const struct place *p, bool configured)
{
    fill();
    if (p->captures) begin_capture();
    open_groups(p->depth);
    for (int t = 0; t < times_of(which, p); t++)
        for (int r = 0; r < RANKS; r++) ok(issue(which, r, p, configured));
    ncclResult_t rc = close_groups(p->depth);
    if (rc != ncclInProgress) ok(rc);
    for (int r = 0; r < RANKS && p->background; r++) ok(await(comms[r]));
    if (p->captures)
        end_capture_and_launch();
    else
        synchronize_place(p);
    check(which, p);
}

/* ---- communicators and streams ---- */

static void make_comms(bool blocking)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;

    config.blocking = blocking;
    ok(ncclGetUniqueId(&id));
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        ok(koloSetDevice(r));
        ncclResult_t rc = ncclCommInitRankConfig(&comms[r], RANKS, id, r, &config);
        if (rc != ncclInProgress) ok(rc);
    }
    ncclResult_t rc = ncclGroupEnd();
    if (rc != ncclInProgress) ok(rc);
    for (int r = 0; r < RANKS; r++) ok(await(comms[r]));
}

static void finish_comms(bool blocking)
{
    for (int r = 0; r < RANKS && !blocking; r++) {
        ncclResult_t rc = ncclCommFinalize(comms[r]);
        if (rc != ncclInProgress) ok(rc);
    }
    for (int r = 0; r < RANKS; r++) {
        if (!blocking) ok(await(comms[r]));
        ok(ncclCommDestroy(comms[r]));
    }
}

static void make_streams(void)
{
    for (int r = 0; r < RANKS; r++) {
        ok(koloSetDevice(r));
        ok(koloStreamCreate(&stream[r], KOLO_STREAM_DEFAULT));
    }
}

static int run_all(const struct place *p)
{
    for (int which = 0; which < OPERATIONS; which++)
        for (int configured = 0; configured < 2; configured++) run(which, p, configured);
    return 2 * OPERATIONS;
}

static void every_operation_on_one_stream(void **state)
{
    (void)state;
    make_streams();
    make_comms(true);
    (void)run_all(&one_stream);
    finish_comms(true);
    for (int r = 0; r < RANKS; r++) ok(koloStreamDestroy(stream[r]));
}

static void every_operation_in_every_place(void **state)
{
    int tried = 0;

    (void)state;
    make_streams();
    for (int background = 0; background < 2; background++) {
        make_comms(!background);
        FOR_EACH_CASE(p, places)
        {
            if (p->background == background) tried += run_all(p);
        }
        finish_comms(!background);
    }
    for (int r = 0; r < RANKS; r++) ok(koloStreamDestroy(stream[r]));
    print_message("%d operations in their places\n", tried);
}

/* ---- calls that take long, in groups ---- */

enum { WINDOWS = 3 };

static void end_group(void)
{
    ncclResult_t rc = ncclGroupEnd();

    if (rc != ncclInProgress) ok(rc);
    for (int r = 0; r < RANKS; r++) ok(await(comms[r]));
}

/* Several of each communicator, and operations behind them, in one group. */
static void register_many(void)
{
    static const struct place plain = {.name = "with windows", .depth = 1, .times = 1};
    ncclWindow_t win[RANKS][WINDOWS];
    void *memory[RANKS][WINDOWS], *handle[RANKS];

    for (int r = 0; r < RANKS; r++)
        for (int w = 0; w < WINDOWS; w++) ok(ncclMemAlloc(&memory[r][w], 1 << 16));
    fill();
    open_groups(2);
    for (int r = 0; r < RANKS; r++)
        for (int w = 0; w < WINDOWS; w++) {
            ok(ncclCommWindowRegister(comms[r], memory[r][w], 1 << 16, &win[r][w], NCCL_WIN_COLL_SYMMETRIC));
            ok(ncclCommRegister(comms[r], memory[r][w], 1 << 16, &handle[r]));
            ok(ncclCommDeregister(comms[r], handle[r]));
        }
    for (int r = 0; r < RANKS; r++) ok(issue(ALL_REDUCE, r, &plain, false));
    ok(ncclGroupEnd());
    end_group();
    synchronize_place(&plain);
    check(ALL_REDUCE, &plain);
    for (int r = 0; r < RANKS; r++)
        for (int w = 0; w < WINDOWS; w++) {
            void *at;
            ok(ncclWinGetUserPtr(comms[r], win[r][w], &at));
            assert_ptr_equal(at, memory[r][w]);
            ok(ncclCommWindowDeregister(comms[r], win[r][w]));
            ok(ncclMemFree(memory[r][w]));
        }
}

/* Two children of each, and a window, in one group. */
static void split_twice(void)
{
    ncclComm_t child[2][RANKS];
    ncclWindow_t win[RANKS];
    void *memory[RANKS];
    int n;

    for (int r = 0; r < RANKS; r++) ok(ncclMemAlloc(&memory[r], 1 << 12));
    ok(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        ok(ncclCommSplit(comms[r], r % 2, r, &child[0][r], NULL));
        ok(ncclCommWindowRegister(comms[r], memory[r], 1 << 12, &win[r], 0));
        ok(ncclCommSplit(comms[r], 0, -r, &child[1][r], NULL));
    }
    end_group();
    for (int c = 0; c < 2; c++)
        for (int r = 0; r < RANKS; r++) ok(await(child[c][r]));
    for (int r = 0; r < RANKS; r++) {
        ok(ncclCommCount(child[0][r], &n));
        assert_int_equal(n, r % 2 ? RANKS / 2 : (RANKS + 1) / 2);
        ok(ncclCommUserRank(child[1][r], &n));
        assert_int_equal(n, RANKS - 1 - r);
        ok(ncclCommWindowDeregister(comms[r], win[r]));
        ok(ncclMemFree(memory[r]));
    }
    for (int c = 0; c < 2; c++)
        for (int r = 0; r < RANKS; r++) (void)ncclCommAbort(child[c][r]);
}

/* Queued calls are dropped with the group, and the communicators are as before. */
static void drop_many(void)
{
    ncclWindow_t win;
    ncclComm_t child;
    void *memory;

    ok(ncclMemAlloc(&memory, 1 << 12));
    ok(ncclGroupStart());
    ok(ncclCommWindowRegister(comms[0], memory, 1 << 12, &win, 0));
    ok(ncclCommSplit(comms[0], 0, 0, &child, NULL));
    assert_int_equal(ncclAllReduce(NULL, NULL, 1, ncclInt32, ncclSum, comms[0], NULL), ncclInvalidArgument);
    assert_int_equal(ncclGroupEnd(), ncclInvalidArgument);
    ok(ncclMemFree(memory));
    assert_null(child);
}

static void calls_that_take_long_are_queued(void **state)
{
    (void)state;
    for (int background = 0; background < 2; background++) {
        make_comms(!background);
        register_many();
        drop_many();
        split_twice();
        register_many();
        finish_comms(!background);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_in_every_place),
        cmocka_unit_test(every_operation_on_one_stream),
        cmocka_unit_test(calls_that_take_long_are_queued),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
