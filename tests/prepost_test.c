/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of queued operations are posted before their turn, but only if they are the data that they would send in
 * their turn: processes that queue many operations, whose data come from operations before them, from functions and
 * streams between them, or from another process that shares the memory.
 */
#include "include/kolo.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_RANKS = 3, TIMES = 100, QUEUED = 8 };

/* ---- shared by the processes ---- */

static struct shared {
    ncclUniqueId id;
    _Atomic int has_id, step;
    pid_t pid[MOST_RANKS];
    int32_t data[1024]; /* on a page of its own, or nearly */
} * shared;

static struct {
    int number, n;
    ncclComm_t comm;
    koloStream_t stream;
} rank;

static void must(ncclResult_t rc)
{
    if (!rc) return;
    fprintf(stderr, "rank %d: %s: %s\n", rank.number, ncclGetErrorString(rc), ncclGetLastError(rank.comm));
    _exit(1);
}

static void expect(int64_t got, int64_t want, const char *what)
{
    if (got == want) return;
    fprintf(stderr, "rank %d: %s: %lld instead of %lld\n", rank.number, what, (long long)got, (long long)want);
    _exit(1);
}

static void reach(int step)
{
    atomic_store(&shared->step, step);
}

static void await(int step)
{
    while (atomic_load(&shared->step) < step) sched_yield();
}

static void wait_for_all(void)
{
    must(koloStreamSynchronize(rank.stream));
}

/* Run queued operations as far as they go. */
static void poll(void)
{
    for (int i = 0; i < 100; i++) {
        ncclResult_t rc = koloStreamQuery(rank.stream);
        if (rc != ncclInProgress) must(rc);
    }
}

static void all_reduce(const uint32_t *from, uint32_t *to)
{
    must(ncclAllReduce(from, to, 1, ncclUint32, ncclSum, rank.comm, rank.stream));
}

static void all_gather(const int32_t *from, int32_t *to)
{
    must(ncclAllGather(from, to, 1, ncclInt32, rank.comm, rank.stream));
}

static void pass_on(const int32_t *from, int32_t *to)
{
    must(ncclGroupStart());
    must(ncclSend(from, 1, ncclInt32, (rank.number + 1) % rank.n, rank.comm, rank.stream));
    must(ncclRecv(to, 1, ncclInt32, (rank.number + rank.n - 1) % rank.n, rank.comm, rank.stream));
    must(ncclGroupEnd());
}

/* All is connected, and everything used for the first time was used. */
static void warm_up(void)
{
    uint32_t one[2] = {0};
    int32_t two[1 + MOST_RANKS] = {0};

    for (int i = 0; i < 20; i++) {
        all_reduce(&one[0], &one[1]);
        wait_for_all();
        all_gather(&two[0], &two[1]);
        wait_for_all();
        pass_on(&two[0], &two[1]);
        wait_for_all();
    }
}

/* ---- processes ---- */

static int be_rank(int number, int n, void (*run)(void))
{
    alarm(kolo_test_hang_s());
    rank.number = number;
    rank.n = n;
    shared->pid[number] = getpid();
    if (!number) must(ncclGetUniqueId(&shared->id));
    if (!number) atomic_store(&shared->has_id, 1);
    while (!atomic_load(&shared->has_id)) sched_yield();
    must(ncclCommInitRank(&rank.comm, n, shared->id, number));
    must(koloStreamCreate(&rank.stream, KOLO_STREAM_DEFAULT));
    warm_up();
    run();
    must(ncclCommDestroy(rank.comm));
    must(koloStreamDestroy(rank.stream));
    return 0;
}

/* If a rank has failed, the others wait until their alarm. */
static void run_ranks(int n, void (*run)(void))
{
    pid_t child[MOST_RANKS];
    int failed = 0, status;

    memset(shared, 0, sizeof *shared);
    fflush(NULL);
    for (int r = 0; r < n; r++) {
        child[r] = fork();
        assert_true(child[r] >= 0);
        if (!child[r]) _exit(be_rank(r, n, run));
    }
    for (int i = 0; i < n; i++) {
        pid_t ended = wait(&status);
        if (ended > 0 && !(WIFEXITED(status) && !WEXITSTATUS(status)) && !failed++)
            for (int r = 0; r < n; r++)
                if (child[r] != ended) kill(child[r], SIGKILL);
    }
    assert_int_equal(failed, 0);
}

/* ---- data from earlier operations ---- */

static void run_chain(void)
{
    uint32_t a = 1, b = 0, want = 1;

    for (int i = 0; i < TIMES; i++) {
        all_reduce(&a, &b);
        all_reduce(&b, &a);
        want *= (uint32_t)(rank.n * rank.n);
    }
    wait_for_all();
    expect(a, want, "a chain of sums");
}

static void run_in_place(void)
{
    uint32_t a = 1, want = 1;

    for (int i = 0; i < TIMES; i++) {
        all_reduce(&a, &a);
        want *= (uint32_t)rank.n;
    }
    wait_for_all();
    expect(a, want, "sums in place");
}

/* Only the last part of a longer result is sent on, behind operations that have nothing to do with it. */
static void run_parts(void)
{
    int32_t none[2] = {0}, out[1 + MOST_RANKS], in[MOST_RANKS];

    for (int i = 0; i < TIMES; i++) {
        out[0] = rank.number + i;
        memset(in, 0xff, sizeof in);
        all_gather(&out[0], in);
        all_gather(&none[0], &out[1]);
        all_gather(&in[rank.n - 1], &out[1]);
        wait_for_all();
        for (int r = 0; r < rank.n; r++) expect(out[1 + r], rank.n - 1 + i, "the last part of a result");
    }
}

static void run_ring(void)
{
    int32_t a = rank.number, b = -1;

    for (int i = 0; i < TIMES; i++) {
        pass_on(&a, &b);
        pass_on(&b, &a);
    }
    wait_for_all();
    expect(a, (rank.number + 2 * TIMES * (rank.n - 1)) % rank.n, "the value that went round");
}

/* Results that are not sent on, in many places. */
static void run_apart(void)
{
    static int32_t out[TIMES], in[TIMES][MOST_RANKS], got[TIMES];

    for (int i = 0; i < TIMES; i++) out[i] = 1000 * rank.number + i;
    for (int i = 0; i < TIMES; i++) {
        all_gather(&out[i], in[i]);
        pass_on(&out[i], &got[i]);
    }
    wait_for_all();
    for (int i = 0; i < TIMES; i++) {
        for (int r = 0; r < rank.n; r++) expect(in[i][r], 1000 * r + i, "gathered");
        expect(got[i], 1000 * ((rank.number + rank.n - 1) % rank.n) + i, "passed on");
    }
}

static void run_sequences(void)
{
    run_apart();
    run_chain();
    run_in_place();
    run_parts();
    run_ring();
    run_apart();
}

/* ---- large operations, before which ranks negotiate now and then, and which the kernel copies if that is faster
 * ---- */

#ifdef __SANITIZE_THREAD__ /* ranks are processes: it sees each by itself, ten times as slowly */
enum { LARGE_ROUNDS = 150 };
#else
enum { LARGE_ROUNDS = 600 };
#endif
enum { LARGE_QUEUED = 16, LARGE_MOST = 24576 }; /* elements, of all ranks together */

static int32_t out_of[LARGE_QUEUED][LARGE_MOST], in_of[LARGE_QUEUED][LARGE_MOST];

struct large {
    size_t count; /* of a rank's part */
    enum { GATHERS, SPREADS, REDUCES, LARGE_KINDS } kind;
};

/* All ranks draw the same. */
static struct large draw_large(uint64_t *seed)
{
    static const size_t all[] = {8192,       8192,       LARGE_MOST,
                                 LARGE_MOST, LARGE_MOST, LARGE_MOST}; /* few: all are compared */

    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (struct large){all[(*seed >> 33) % 6] / (size_t)rank.n, (*seed >> 40) % LARGE_KINDS};
}

static int32_t sent(int from, int op, size_t i)
{
    return (int32_t)(from * 1000003 + op * 7919 + (int)i);
}

static void issue_large(struct large l, int op)
{
    int32_t *out = out_of[op % LARGE_QUEUED], *in = in_of[op % LARGE_QUEUED];
    const size_t n = l.kind == GATHERS ? l.count : l.count * (size_t)rank.n;

    for (size_t i = 0; i < n; i++) out[i] = sent(rank.number, op, i);
    if (l.kind == GATHERS) must(ncclAllGather(out, in, l.count, ncclInt32, rank.comm, rank.stream));
    if (l.kind == SPREADS) must(ncclAlltoAll(out, in, l.count, ncclInt32, rank.comm, rank.stream));
    if (l.kind == REDUCES) must(ncclReduceScatter(out, in, l.count, ncclInt32, ncclSum, rank.comm, rank.stream));
}

static void check_sums(struct large l, int op, const int32_t *in)
{
    for (size_t i = 0; i < l.count; i++) {
        int32_t want = 0;
        for (int r = 0; r < rank.n; r++) want += sent(r, op, (size_t)rank.number * l.count + i);
        expect(in[i], want, "a large sum");
    }
}

static void check_large(struct large l, int op)
{
    const int32_t *in = in_of[op % LARGE_QUEUED];
    const size_t first = l.kind == GATHERS ? 0 : (size_t)rank.number * l.count;

    if (l.kind == REDUCES) {
        check_sums(l, op, in);
        return;
    }
    for (int r = 0; r < rank.n; r++)
        for (size_t i = 0; i < l.count; i++)
            expect(in[(size_t)r * l.count + i], sent(r, op, first + i), "a large part");
}

static void run_large(void)
{
    struct large queued[LARGE_QUEUED];
    uint64_t seed = 1;

    for (int i = 0; i < LARGE_ROUNDS; i++) {
        for (int k = 0; k < LARGE_QUEUED; k++) issue_large(queued[k] = draw_large(&seed), i * LARGE_QUEUED + k);
        wait_for_all();
        for (int k = 0; k < LARGE_QUEUED; k++) check_large(queued[k], i * LARGE_QUEUED + k);
    }
}

static void large_blocks_arrive_complete(void **state)
{
    (void)state;
    for (int n = 2; n <= 3; n++) run_ranks(n, run_large);
}

static void data_of_operations_before_are_waited_for(void **state)
{
    (void)state;
    for (int n = 2; n <= 3; n++) run_ranks(n, run_sequences);
}

/* ---- writers between operations ---- */

static void add_one(void *arg)
{
    ++*(int32_t *)arg;
}

/* Rank 0 has queued everything before the other one begins. */
static void run_functions(void)
{
    int32_t out = 0, in[TIMES][MOST_RANKS];

    if (rank.number) await(1);
    for (int i = 0; i < TIMES; i++) {
        must(koloStreamLaunch(rank.stream, add_one, &out));
        all_gather(&out, in[i]);
    }
    if (!rank.number) reach(1);
    wait_for_all();
    for (int i = 0; i < TIMES; i++)
        for (int r = 0; r < rank.n; r++) expect(in[i][r], i + 1, "the count of a function");
}

static void functions_between_are_waited_for(void **state)
{
    (void)state;
    run_ranks(2, run_functions);
}

/* Another stream writes the buffer after it has been sent. */
static void run_streams(void)
{
    koloStream_t other;
    koloEvent_t sent, written;
    int32_t out = 0, in[QUEUED][MOST_RANKS];

    must(koloStreamCreate(&other, KOLO_STREAM_DEFAULT));
    must(koloEventCreate(&sent));
    must(koloEventCreate(&written));
    if (rank.number) await(1);
    for (int i = 0; i < QUEUED; i++) {
        must(koloStreamLaunch(other, add_one, &out));
        must(koloEventRecord(written, other));
        must(koloStreamWaitEvent(rank.stream, written, 0));
        all_gather(&out, in[i]);
        must(koloEventRecord(sent, rank.stream));
        must(koloStreamWaitEvent(other, sent, 0));
    }
    if (!rank.number) reach(1);
    wait_for_all();
    for (int i = 0; i < QUEUED; i++)
        for (int r = 0; r < rank.n; r++) expect(in[i][r], i + 1, "the count of another stream");
    must(koloStreamSynchronize(other));
    must(koloStreamDestroy(other));
    must(koloEventDestroy(sent));
    must(koloEventDestroy(written));
}

static void streams_between_are_waited_for(void **state)
{
    (void)state;
    run_ranks(2, run_streams);
}

/* ---- from other processes ---- */

/* Rank 1 writes the buffer that rank 0 sends, and signals it by the operation before. */
static void run_shared(void)
{
    int32_t none[1 + MOST_RANKS] = {0}, in[MOST_RANKS], *own = &shared->data[512];

    for (int i = 0; i < TIMES; i++) {
        if (rank.number) await(2 * i + 1);
        if (rank.number) *own = i + 1;
        all_gather(&none[0], &none[1]);
        all_gather(rank.number ? &none[0] : own, in);
        poll();
        if (!rank.number) reach(2 * i + 1);
        wait_for_all();
        expect(in[0], i + 1, "the value that another process wrote");
    }
}

static void memory_that_others_write_is_sent_in_its_turn(void **state)
{
    (void)state;
    run_ranks(2, run_shared);
}

/* ---- it is done at all ---- */

static bool is_stopped(pid_t pid)
{
    char name[64], text[256] = "";

    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(name, "r");
    if (!file) return false;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = 0;
    const char *end = strrchr(text, ')');
    return end && end[1] && end[2] == 'T';
}

/* Rank 0 has queued all, and runs no more; rank 1 gets the data all the same. */
static void run_stopped(void (*issue)(const int32_t *from, int32_t *to))
{
    static int32_t out[QUEUED], in[QUEUED][MOST_RANKS];

    for (int i = 0; i < QUEUED; i++) out[i] = 10 * rank.number + i;
    if (rank.number) {
        await(1);
        kill(shared->pid[0], SIGSTOP);
        while (!is_stopped(shared->pid[0])) sched_yield();
    }
    for (int i = 0; i < QUEUED; i++) issue(&out[i], in[i]);
    if (!rank.number) {
        poll();
        reach(1);
    }
    wait_for_all();
    if (rank.number) kill(shared->pid[0], SIGCONT);
    for (int i = 0; i < QUEUED; i++)
        expect(in[i][0], issue == all_gather ? i : 10 * (1 - rank.number) + i, "from a rank that was stopped");
}

static void run_stopped_collectives(void)
{
    run_stopped(all_gather);
}

static void run_stopped_messages(void)
{
    run_stopped(pass_on);
}

static void queued_data_are_posted_before_their_turn(void **state)
{
    (void)state;
    run_ranks(2, run_stopped_collectives);
    run_ranks(2, run_stopped_messages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_of_operations_before_are_waited_for),
        cmocka_unit_test(large_blocks_arrive_complete),
        cmocka_unit_test(functions_between_are_waited_for),
        cmocka_unit_test(streams_between_are_waited_for),
        cmocka_unit_test(memory_that_others_write_is_sent_in_its_turn),
        cmocka_unit_test(queued_data_are_posted_before_their_turn),
    };

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
