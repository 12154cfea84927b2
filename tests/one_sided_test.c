/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided operations: the data of a put are there when its signal is, by threads, processes and hosts, into memory of
 * every kind. */
#include "bootstrap/bootstrap.h"
#include "tests/api_check.h"
#include "tests/hang.h"

#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, ROUNDS = 12, PART = 3 << 20, WINDOW = RANKS * PART, CONTEXTS = 2, SIGNALS = 40 };

struct rank {
    int rank;
    bool foreign; /* its window is memory of malloc */
    ncclComm_t comm;
    koloStream_t stream;
    unsigned char *own, *from;
    ncclWindow_t window;
};

static unsigned char byte_of(int from, int to, int round, size_t i)
{
    return (unsigned char)(i * 7 + i / 251 + (size_t)(from * 31 + to * 5 + round * 3));
}

static void open_rank(struct rank *r, const ncclUniqueId *id)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    config.numRmaCtx = CONTEXTS;
    config.numRmaSig = SIGNALS;
    ok(ncclCommInitRankConfig(&r->comm, RANKS, *id, r->rank, &config));
    ok(koloStreamCreate(&r->stream, 0));
    if (r->foreign)
        r->own = aligned_alloc(4096, WINDOW);
    else
        ok(ncclMemAlloc((void **)&r->own, WINDOW));
    r->from = malloc(PART);
    ok(ncclCommWindowRegister(r->comm, r->own, WINDOW, &r->window, NCCL_WIN_COLL_SYMMETRIC));
}

static void close_rank(struct rank *r)
{
    ok(ncclCommWindowDeregister(r->comm, r->window));
    ok(ncclCommDestroy(r->comm));
    ok(koloStreamDestroy(r->stream));
    if (r->foreign)
        free(r->own);
    else
        ok(ncclMemFree(r->own));
    free(r->from);
}

/* ---- calls of a rank ---- */

/* Every rank writes a part of every rank, itself included, by every context and several signals. */
static bool put_round(struct rank *r, int round, size_t bytes)
{
    const int context = round % CONTEXTS, signal = round % 3 * (SIGNALS - 1) / 2;
    ncclWaitSignalDesc_t wanted[RANKS];
    bool right = true;

    for (int to = 0; to < RANKS; to++) {
        for (size_t i = 0; i < bytes; i++) r->from[i] = byte_of(r->rank, to, round, i);
        ok(ncclPutSignal(r->from, bytes, ncclUint8, to, r->window, (size_t)r->rank * PART + (size_t)round, signal,
                         context, 0, r->comm, r->stream));
        ok(koloStreamSynchronize(r->stream)); /* the buffer may be filled again */
    }
    for (int from = 0; from < RANKS; from++) wanted[from] = (ncclWaitSignalDesc_t){1, from, signal, context};
    ok(ncclWaitSignal(RANKS, wanted, r->comm, r->stream));
    ok(koloStreamSynchronize(r->stream));
    for (int from = 0; from < RANKS; from++)
        for (size_t i = 0; i < bytes; i++)
            right &= r->own[(size_t)from * PART + (size_t)round + i] == byte_of(from, r->rank, round, i);
    ok(koloBarrier(r->comm, r->stream)); /* read before it is overwritten */
    ok(koloStreamSynchronize(r->stream));
    return right;
}

/* The target waits in another operation meanwhile, in which the source takes part later: another thread has to receive. */
static bool put_to_the_busy(struct rank *r)
{
    const size_t bytes = PART;
    float in = 1, out = 0;
    bool right = true;

    if (!r->rank) {
        for (int to = 1; to < RANKS; to++) {
            for (size_t i = 0; i < bytes; i++) r->from[i] = byte_of(0, to, 99, i);
            ok(ncclPutSignal(r->from, bytes, ncclUint8, to, r->window, 0, 0, 0, 0, r->comm, r->stream));
            ok(koloStreamSynchronize(r->stream));
        }
    }
    ok(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, r->comm, r->stream));
    if (r->rank) ok(ncclWaitSignal(1, &(ncclWaitSignalDesc_t){1, 0, 0, 0}, r->comm, r->stream));
    ok(koloStreamSynchronize(r->stream));
    for (size_t i = 0; r->rank && i < bytes; i++) right &= r->own[i] == byte_of(0, r->rank, 99, i);
    ok(koloBarrier(r->comm, r->stream));
    ok(koloStreamSynchronize(r->stream));
    return right && out == RANKS;
}

/* Many small puts without a pause, and more than can be in flight; then one wait for all. */
static bool ring_of_signals(struct rank *r)
{
    enum { MANY = 700 };
    int next = (r->rank + 1) % RANKS, before = (r->rank + RANKS - 1) % RANKS;
    bool right = true;
    int *values = malloc(sizeof *values * MANY);

    for (int i = 0; i < MANY; i++) {
        values[i] = 1000 * r->rank + i;
        ok(ncclPutSignal(&values[i], 1, ncclInt32, next, r->window, sizeof(int) * (size_t)i, 5, 1, 0, r->comm,
                         r->stream));
    }
    ok(ncclSignal(next, 6, 0, 0, r->comm, r->stream));
    ok(ncclWaitSignal(2, (ncclWaitSignalDesc_t[]){{MANY, before, 5, 1}, {1, before, 6, 0}}, r->comm, r->stream));
    ok(koloStreamSynchronize(r->stream));
    for (int i = 0; i < MANY; i++) right &= ((int *)(void *)r->own)[i] == 1000 * before + i;
    free(values);
    ok(koloBarrier(r->comm, r->stream));
    ok(koloStreamSynchronize(r->stream));
    return right;
}

/* A put that is called after an all-reduce in a group sends its result; a signal called before both goes first. */
static bool in_a_group(struct rank *r)
{
    enum { SUMS = 1000 };
    int next = (r->rank + 1) % RANKS, before = (r->rank + RANKS - 1) % RANKS;
    const float *got = (const float *)(const void *)r->own;
    float in[SUMS], sum[SUMS];
    bool right = true;

    for (int i = 0; i < SUMS; i++) in[i] = (float)(r->rank + i);
    ok(ncclGroupStart());
    ok(ncclSignal(next, 7, 0, 0, r->comm, r->stream));
    ok(ncclAllReduce(in, sum, SUMS, ncclFloat, ncclSum, r->comm, r->stream));
    ok(ncclPutSignal(sum, SUMS, ncclFloat, next, r->window, 0, 8, 0, 0, r->comm, r->stream));
    ok(ncclWaitSignal(2, (ncclWaitSignalDesc_t[]){{1, before, 8, 0}, {1, before, 7, 0}}, r->comm, r->stream));
    ok(ncclGroupEnd());
    ok(koloStreamSynchronize(r->stream));
    for (int i = 0; i < SUMS; i++) right &= got[i] == (float)(RANKS * i + RANKS * (RANKS - 1) / 2);
    ok(koloBarrier(r->comm, r->stream));
    ok(koloStreamSynchronize(r->stream));
    return right;
}

static bool swap_words(struct rank *r, ncclWindow_t window, const int *own)
{
    int next = (r->rank + 1) % RANKS, before = (r->rank + RANKS - 1) % RANKS, mine = r->rank + 50;

    ok(ncclPutSignal(&mine, 1, ncclInt32, next, window, sizeof mine, 10, 0, 0, r->comm, r->stream));
    ok(ncclWaitSignal(1, &(ncclWaitSignalDesc_t){1, before, 10, 0}, r->comm, r->stream));
    ok(koloStreamSynchronize(r->stream));
    bool right = own[1] == before + 50;
    ok(koloBarrier(r->comm, r->stream));
    ok(koloStreamSynchronize(r->stream));
    return right;
}

/* More windows, of the other kind of memory; a registration that fails leaves all ranks with the same numbers. */
static bool more_windows(struct rank *r)
{
    ncclWindow_t none, second;
    void *memory;
    bool right = true;

    if (r->foreign)
        ok(ncclMemAlloc(&memory, 4096));
    else
        memory = aligned_alloc(4096, 4096);
    assert_int_equal(ncclCommWindowRegister(r->comm, memory, 4096, &none, r->rank ? NCCL_WIN_COLL_SYMMETRIC : 0),
                     ncclInvalidUsage); /* flags that differ */
    ok(ncclCommWindowRegister(r->comm, memory, 4096, &second, NCCL_WIN_COLL_SYMMETRIC));
    right &= swap_words(r, second, memory);
    right &= swap_words(r, r->window, (const int *)(const void *)r->own);
    ok(ncclCommWindowDeregister(r->comm, second));
    assert_int_equal(ncclPutSignal(r->from, 1, ncclInt, 0, second, 0, 0, 0, 0, r->comm, r->stream),
                     ncclInvalidArgument);
    right &= swap_words(r, r->window, (const int *)(const void *)r->own);
    if (r->foreign)
        ok(ncclMemFree(memory));
    else
        free(memory);
    return right;
}

/* A rank that has put data, and finished, may leave: the data arrive all the same. */
static bool put_and_leave(struct rank *r)
{
    bool right = true;

    if (!r->rank) {
        for (size_t i = 0; i < PART; i++) r->from[i] = byte_of(0, 1, 7, i);
        for (int to = 1; to < RANKS; to++)
            ok(ncclPutSignal(r->from, PART, ncclUint8, to, r->window, 0, 9, 0, 0, r->comm, r->stream));
        return true;
    }
    ok(ncclWaitSignal(1, &(ncclWaitSignalDesc_t){1, 0, 9, 0}, r->comm, r->stream));
    ok(koloStreamSynchronize(r->stream));
    for (size_t i = 0; i < PART; i++) right &= r->own[i] == byte_of(0, 1, 7, i);
    return right;
}

static bool run_rank(int rank, bool foreign, const ncclUniqueId *id)
{
    static const size_t sizes[] = {0, 1, 200, 256, 257, 5000, 1 << 20, PART - ROUNDS};
    struct rank r = {.rank = rank, .foreign = foreign};
    bool right = true;

    open_rank(&r, id);
    for (int round = 0; round < ROUNDS; round++) right &= put_round(&r, round, sizes[round % 8]);
    if (!right) fprintf(stderr, "rank %d: other data than were put\n", rank);
    right &= put_to_the_busy(&r);
    if (!right) fprintf(stderr, "rank %d: while it was busy\n", rank);
    right &= ring_of_signals(&r);
    if (!right) fprintf(stderr, "rank %d: in a ring\n", rank);
    right &= in_a_group(&r);
    if (!right) fprintf(stderr, "rank %d: in a group\n", rank);
    right &= more_windows(&r);
    if (!right) fprintf(stderr, "rank %d: in another window\n", rank);
    right &= put_and_leave(&r);
    if (!right) fprintf(stderr, "rank %d: of one that leaves\n", rank);
    close_rank(&r);
    return right;
}

/* ---- threads ---- */

struct thread {
    const ncclUniqueId *id;
    int rank;
    bool foreign, right;
};

static void *run_thread(void *arg)
{
    struct thread *t = arg;

    t->right = run_rank(t->rank, t->foreign, t->id);
    return NULL;
}

static void threads(void **state)
{
    (void)state;
    for (int foreign = 0; foreign < 2; foreign++) {
        pthread_t thread[RANKS];
        struct thread t[RANKS];
        ncclUniqueId id;
        ok(ncclGetUniqueId(&id));
        for (int r = 0; r < RANKS; r++) {
            t[r] = (struct thread){.id = &id, .rank = r, .foreign = foreign};
            assert_int_equal(pthread_create(&thread[r], NULL, run_thread, &t[r]), 0);
        }
        for (int r = 0; r < RANKS; r++) {
            pthread_join(thread[r], NULL);
            assert_true(t[r].right);
        }
    }
}

/* ---- processes ---- */

/* Ranks of `foreign` have memory of malloc. */
static void run_processes(int nhosts, unsigned foreign)
{
    const char *odd_plugin = getenv("ONE_SIDED_ODD_PLUGIN"), *plugin = getenv("NCCL_RMA_PLUGIN"); /* of rank 1 */
    char text[2 * NCCL_UNIQUE_ID_BYTES + 1];
    pid_t pid[RANKS];
    ncclUniqueId id;

    ok(ncclGetUniqueId(&id));
    kl_bootstrap_id_format(&id, text);
    for (int r = 0; r < RANKS; r++) {
        char rank[12], kind[12], host[12];
        char *argv[] = {(char *)"one_sided_test", text, rank, kind, NULL};
        snprintf(rank, sizeof rank, "%d", r);
        snprintf(kind, sizeof kind, "%u", foreign >> r & 1);
        snprintf(host, sizeof host, "h%d", r % nhosts);
        if (nhosts > 1) setenv("NCCL_HOSTID", host, 1);
        if (r == 1 && odd_plugin) setenv("NCCL_RMA_PLUGIN", odd_plugin, 1);
        assert_int_equal(posix_spawn(&pid[r], "/proc/self/exe", NULL, NULL, argv, environ), 0);
        unsetenv("NCCL_HOSTID");
        if (r == 1 && odd_plugin) setenv("NCCL_RMA_PLUGIN", plugin, 1);
    }
    for (int r = 0; r < RANKS; r++) {
        int status;
        waitpid(pid[r], &status, 0);
        if (status) fail_msg("rank %d of %d hosts: status %#x", r, nhosts, (unsigned)status);
    }
}

static int process_main(char **argv)
{
    ncclUniqueId id;

    alarm(kolo_test_hang_s());
    if (kl_bootstrap_id_parse(argv[1], &id)) return 1;
    return !run_rank((int)strtol(argv[2], NULL, 10), *argv[3] == '1', &id);
}

static void processes_that_map_each_other(void **state)
{
    (void)state;
    run_processes(1, 0);
}

static void processes_that_cannot(void **state)
{
    (void)state;
    run_processes(1, 7);
    run_processes(1, 2);
}

static void hosts(void **state)
{
    (void)state;
    run_processes(RANKS, 0);
    run_processes(2, 5);
}

/* ---- refused calls, and ends of a wait ---- */

static void wrong_calls_are_refused(void **state)
{
    ncclUniqueId id;
    ncclComm_t comm;
    ncclWindow_t window;
    void *own;
    int x = 0;

    (void)state;
    ok(ncclGetUniqueId(&id));
    ok(ncclCommInitRank(&comm, 1, id, 0));
    ok(ncclMemAlloc(&own, 8192));
    expect_refused(ncclSignal(0, 0, 0, 0, comm, NULL), ncclInvalidUsage, "no window was registered yet");
    ok(ncclCommWindowRegister(comm, own, 8192, &window, 0));
    expect_refused(ncclSignal(1, 0, 0, 0, comm, NULL), ncclInvalidArgument, "ncclSignal: rank 1");
    expect_refused(ncclSignal(0, 16, 0, 0, comm, NULL), ncclInvalidArgument, "signal 16");
    expect_refused(ncclSignal(0, 0, 1, 0, comm, NULL), ncclInvalidArgument, "context 1");
    expect_refused(ncclSignal(0, 0, 0, 8, comm, NULL), ncclInvalidArgument, "flags 8");
    expect_refused(ncclPutSignal(&x, 1, ncclInt, 0, window, 8189, 0, 0, 0, comm, NULL), ncclInvalidArgument,
                   "4 bytes at offset 8189, the window of rank 0 has 8192");
    expect_refused(ncclPutSignal(&x, SIZE_MAX / 2, ncclInt, 0, window, 0, 0, 0, 0, comm, NULL), ncclInvalidArgument,
                   "beyond the address space");
    expect_refused(ncclPutSignal(NULL, 1, ncclInt, 0, window, 0, 0, 0, 0, comm, NULL), ncclInvalidArgument, "is NULL");
    expect_refused(ncclPutSignal(&x, 1, ncclInt, 0, NULL, 0, 0, 0, 0, comm, NULL), ncclInvalidArgument, "is NULL");
    expect_refused(ncclPutSignal(&x, 1, ncclInt, 0, (ncclWindow_t)&x, 0, 0, 0, 0, comm, NULL), ncclInvalidArgument,
                   "is no window");
    expect_refused(ncclPutSignal(&x, 1, (ncclDataType_t)99, 0, window, 0, 0, 0, 0, comm, NULL), ncclInvalidArgument,
                   "data type 99");
    expect_refused(ncclWaitSignal(1, &(ncclWaitSignalDesc_t){-1, 0, 0, 0}, comm, NULL), ncclInvalidArgument,
                   "opCnt -1");
    expect_refused(ncclWaitSignal(1, NULL, comm, NULL), ncclInvalidArgument, "1 descriptors");
    ok(ncclWaitSignal(0, NULL, comm, NULL));
    ok(ncclCommWindowDeregister(comm, window));
    expect_refused(ncclPutSignal(&x, 1, ncclInt, 0, window, 0, 0, 0, 0, comm, NULL), ncclInvalidArgument,
                   "is no window");
    ok(ncclCommDestroy(comm));
    ok(ncclMemFree(own));
}

/* Two ranks of this thread, each with half of `own`. */
struct couple {
    ncclComm_t comm[2];
    ncclWindow_t window[2];
    void *own;
};

static void open_couple(struct couple *c)
{
    ok(ncclCommInitAll(c->comm, 2, NULL));
    ok(ncclMemAlloc(&c->own, 8192));
    ok(ncclGroupStart());
    for (int r = 0; r < 2; r++)
        ok(ncclCommWindowRegister(c->comm[r], (char *)c->own + 4096 * r, 4096, &c->window[r], 0));
    ok(ncclGroupEnd());
}

static void a_signal_that_does_not_come_has_a_timeout(void **state)
{
    struct couple c;

    (void)state;
    open_couple(&c);
    ok(ncclSignal(0, 0, 0, 0, c.comm[1], NULL));
    ok(koloSetDevice(1));
    ok(koloStreamSynchronize(NULL)); /* it has arrived before the wait begins */
    ok(koloSetDevice(0));
    ok(koloSetTimeout(c.comm[0], 50));
    ok(ncclWaitSignal(1, &(ncclWaitSignalDesc_t){3, 1, 0, 0}, c.comm[0], NULL));
    expect_refused(koloStreamSynchronize(NULL), ncclRemoteError,
                   "ncclWaitSignal at rank 0: no signal for 50 ms, waiting for 2 of rank 1");
    for (int r = 0; r < 2; r++) (void)ncclCommDestroy(c.comm[r]);
    ok(ncclMemFree(c.own));
}

/* A rank's mapping of another one's memory holds until it unmaps it itself: writes to a departed rank do not fault. */
static void a_rank_that_has_gone_can_be_written_to(void **state)
{
    struct couple c;

    (void)state;
    for (int round = 0; round < 2; round++) {
        open_couple(&c);
        if (round) ok(ncclSignal(1, 0, 0, 0, c.comm[0], NULL)); /* mapped before it leaves, or not */
        ok(koloStreamSynchronize(NULL));
        ok(ncclCommDestroy(c.comm[1]));
        ok(ncclSignal(1, 0, 0, 0, c.comm[0], NULL));
        (void)koloStreamSynchronize(NULL); /* may report that the rank has left */
        (void)ncclCommDestroy(c.comm[0]);
        ok(ncclMemFree(c.own));
    }
}

static void a_group_whose_stream_captures_is_refused(void **state)
{
    struct couple c;
    koloStream_t stream;
    koloGraph_t graph;
    float x = 1;

    (void)state;
    open_couple(&c);
    ok(koloStreamCreate(&stream, 0));
    ok(koloStreamBeginCapture(stream, koloCaptureModeThreadLocal));
    expect_refused(ncclSignal(0, 0, 0, 0, c.comm[0], stream), ncclInvalidUsage, "the stream captures");
    expect_refused(koloStreamEndCapture(stream, &graph), ncclInvalidUsage, "invalid");
    ok(koloStreamBeginCapture(stream, koloCaptureModeThreadLocal));
    ok(ncclGroupStart());
    ok(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, c.comm[0], stream));
    ok(ncclSignal(0, 0, 0, 0, c.comm[0], NULL));
    expect_refused(ncclGroupEnd(), ncclInvalidUsage, "a one-sided operation of the group");
    expect_refused(koloStreamEndCapture(stream, &graph), ncclInvalidUsage, "invalid");
    ok(koloStreamDestroy(stream));
    for (int r = 0; r < 2; r++) ok(ncclCommDestroy(c.comm[r]));
    ok(ncclMemFree(c.own));
}

static void an_abort_ends_a_wait(void **state)
{
    ncclUniqueId id;
    ncclComm_t comm;
    ncclWindow_t window;
    void *own;

    (void)state;
    ok(ncclGetUniqueId(&id));
    ok(ncclCommInitRank(&comm, 1, id, 0));
    ok(ncclMemAlloc(&own, 8192));
    ok(ncclCommWindowRegister(comm, own, 8192, &window, 0));
    ok(ncclWaitSignal(1, &(ncclWaitSignalDesc_t){1, 0, 0, 0}, comm, NULL));
    ok(ncclCommAbort(comm));
    assert_int_not_equal(koloStreamQuery(NULL), ncclInProgress);
    ok(ncclMemFree(own));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads),
        cmocka_unit_test(processes_that_map_each_other),
        cmocka_unit_test(processes_that_cannot),
        cmocka_unit_test(hosts),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(a_signal_that_does_not_come_has_a_timeout),
        cmocka_unit_test(a_rank_that_has_gone_can_be_written_to),
        cmocka_unit_test(a_group_whose_stream_captures_is_refused),
        cmocka_unit_test(an_abort_ends_a_wait),
    };

    if (argc == 4) return process_main(argv);
    if (argc == 2) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
