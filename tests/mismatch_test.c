/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that make different calls: whatever the algorithm, the protocol and the transport, no rank gets wrong data and
 * none hangs; all report the same sentence. Three ranks, as threads of this process and as processes of their own, with
 * rank 1 as the odd one.
 *
 * The test runs its own program again as ranks: mismatch_test CASE RANK ID.
 */
#include "include/kolo.h"

#include "bootstrap/bootstrap.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 3, FEW = 1000, MANY = 1000000, ROOM = 3 * MANY, EXIT_AS_EXPECTED = 42 };

struct rank {
    int rank;
    bool odd;
    ncclComm_t comm;
    koloStream_t stream, other;
    float *send, *recv;
};

/* ---- calls of ranks ---- */

static ncclResult_t reduce(struct rank *r, size_t count, ncclDataType_t type, ncclRedOp_t op)
{
    return ncclAllReduce(r->send, r->recv, count, type, op, r->comm, r->stream);
}

static ncclResult_t broadcast(struct rank *r, int root)
{
    return ncclBroadcast(r->send, r->recv, FEW, ncclFloat, root, r->comm, r->stream);
}

static ncclResult_t count(struct rank *r)
{
    return reduce(r, r->odd ? FEW - 1 : FEW, ncclFloat, ncclSum);
}

static ncclResult_t count_of_same_chunks(struct rank *r)
{
    return reduce(r, r->odd ? 11 : 12, ncclFloat, ncclSum);
}

static ncclResult_t large_count(struct rank *r)
{
    return reduce(r, r->odd ? MANY - 1 : MANY, ncclFloat, ncclSum);
}

static ncclResult_t far_count(struct rank *r)
{
    return reduce(r, r->odd ? 8 : MANY, ncclFloat, ncclSum);
}

static ncclResult_t empty_and_leave(struct rank *r)
{
    return reduce(r, r->odd ? 0 : FEW, ncclFloat, ncclSum);
}

static ncclResult_t empty_and_go_on(struct rank *r)
{
    ncclResult_t rc = reduce(r, r->odd ? 0 : FEW, ncclFloat, ncclSum);

    return rc ? rc : reduce(r, FEW, ncclFloat, ncclSum);
}

static ncclResult_t type_of_same_size(struct rank *r)
{
    return reduce(r, FEW, r->odd ? ncclInt : ncclFloat, ncclSum);
}

static ncclResult_t type(struct rank *r)
{
    return reduce(r, FEW, r->odd ? ncclDouble : ncclFloat, ncclSum);
}

static ncclResult_t type_of_same_bytes(struct rank *r)
{
    return reduce(r, r->odd ? 2 * FEW : FEW, r->odd ? ncclHalf : ncclFloat, ncclSum);
}

static ncclResult_t operator(struct rank *r)
{
    return reduce(r, FEW, ncclFloat, r->odd ? ncclMax : ncclSum);
}

static ncclResult_t large_operator(struct rank *r)
{
    return reduce(r, MANY, ncclFloat, r->odd ? ncclMax : ncclSum);
}

static ncclResult_t average(struct rank *r)
{
    return ncclReduceScatter(r->send, r->recv, FEW, ncclFloat, r->odd ? ncclAvg : ncclSum, r->comm, r->stream);
}

static ncclResult_t root_of_broadcast(struct rank *r)
{
    return broadcast(r, r->odd ? 1 : 0);
}

static ncclResult_t root_of_reduce(struct rank *r)
{
    return ncclReduce(r->send, r->recv, FEW, ncclFloat, ncclSum, r->odd ? 1 : 0, r->comm, r->stream);
}

static ncclResult_t reduce_or_broadcast(struct rank *r)
{
    return r->odd ? broadcast(r, 1) : reduce(r, FEW, ncclFloat, ncclSum);
}

static ncclResult_t all_reduce_or_reduce(struct rank *r)
{
    if (!r->odd) return reduce(r, FEW, ncclFloat, ncclSum);
    return ncclReduce(r->send, r->recv, FEW, ncclFloat, ncclSum, 0, r->comm, r->stream);
}

static ncclResult_t gather_or_scatter(struct rank *r)
{
    if (r->odd) return ncclReduceScatter(r->send, r->recv, FEW, ncclFloat, ncclSum, r->comm, r->stream);
    return ncclAllGather(r->send, r->recv, FEW, ncclFloat, r->comm, r->stream);
}

static ncclResult_t reduce_or_gather(struct rank *r)
{
    if (!r->odd) return reduce(r, RANKS * FEW, ncclFloat, ncclSum);
    return ncclAllGather(r->send, r->recv, FEW, ncclFloat, r->comm, r->stream);
}

static ncclResult_t other_order(struct rank *r)
{
    ncclResult_t rc = r->odd ? broadcast(r, 0) : reduce(r, FEW, ncclFloat, ncclSum);

    return rc ? rc : r->odd ? reduce(r, FEW, ncclFloat, ncclSum) : broadcast(r, 0);
}

static ncclResult_t other_order_of_streams(struct rank *r)
{
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < 2 && !rc; i++) {
        bool first = r->odd ? i == 1 : i == 0;
        rc = ncclAllReduce(r->send, r->recv + (first ? MANY : 0), FEW, ncclFloat, first ? ncclSum : ncclMax, r->comm,
                           first ? r->other : r->stream);
    }
    return rc;
}

/* After many successful calls: numbers go on. */
static ncclResult_t later(struct rank *r)
{
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < 40 && !rc; i++) rc = i % 2 ? broadcast(r, i % RANKS) : reduce(r, FEW, ncclFloat, ncclSum);
    return rc ? rc : reduce(r, FEW, r->odd ? ncclInt : ncclFloat, ncclSum);
}

static ncclResult_t in_a_group(struct rank *r)
{
    ncclResult_t rc = ncclGroupStart();

    rc = rc ? rc : reduce(r, FEW, ncclFloat, ncclSum);
    rc = rc ? rc : root_of_broadcast(r);
    ncclResult_t end = ncclGroupEnd();
    return rc ? rc : end;
}

/* ---- messages ---- */

static ncclResult_t message(struct rank *r, size_t sent, size_t received, ncclDataType_t type)
{
    if (r->rank == 0) return ncclSend(r->send, sent, ncclFloat, 1, r->comm, r->stream);
    return r->rank == 1 ? ncclRecv(r->recv, received, type, 0, r->comm, r->stream) : ncclSuccess;
}

static ncclResult_t less_received(struct rank *r)
{
    return message(r, FEW, FEW / 2, ncclFloat);
}

static ncclResult_t more_received(struct rank *r)
{
    return message(r, FEW / 2, FEW, ncclFloat);
}

static ncclResult_t received_as_other_type(struct rank *r)
{
    return message(r, FEW, FEW, ncclInt);
}

static ncclResult_t two_sent_one_received(struct rank *r)
{
    ncclResult_t rc = ncclGroupStart();

    rc = rc ? rc : message(r, FEW, 2 * FEW, ncclFloat);
    if (!rc && r->rank == 0) rc = message(r, FEW, 0, ncclFloat);
    ncclResult_t end = ncclGroupEnd();
    return rc ? rc : end;
}

static ncclResult_t send_without_receive(struct rank *r)
{
    return r->rank == 0 ? ncclSend(r->send, FEW, ncclFloat, 1, r->comm, r->stream) : ncclSuccess;
}

static ncclResult_t receive_without_send(struct rank *r)
{
    return r->rank == 0 ? ncclRecv(r->recv, FEW, ncclFloat, 1, r->comm, r->stream) : ncclSuccess;
}

static ncclResult_t all_send_first(struct rank *r)
{
    ncclResult_t rc = ncclSend(r->send, MANY, ncclFloat, (r->rank + 1) % RANKS, r->comm, r->stream);

    return rc ? rc : ncclRecv(r->recv, MANY, ncclFloat, (r->rank + RANKS - 1) % RANKS, r->comm, r->stream);
}

static ncclResult_t unmatched_empty_send(struct rank *r)
{
    ncclResult_t rc = r->rank == 0 ? ncclSend(r->send, 0, ncclFloat, 1, r->comm, r->stream) : ncclSuccess;

    return rc ? rc : reduce(r, FEW, ncclFloat, ncclSum);
}

static ncclResult_t one_more(struct rank *r)
{
    ncclResult_t rc = reduce(r, FEW, ncclFloat, ncclSum);

    return rc || !r->odd ? rc : reduce(r, FEW, ncclFloat, ncclSum);
}

/* ---- the table ---- */

static const struct mismatch {
    const char *name;
    ncclResult_t (*call)(struct rank *r);
    ncclResult_t code;
    const char *words;
    unsigned leaves;  /* ranks that destroy their communicators as soon as they have succeeded */
    const char *wait; /* KOLO_TIMEOUT, which a rank may notice late; NULL: it ends without a timeout */
} mismatches[] = {
    {"count", count, ncclInvalidUsage,
     "rank 1 called AllReduce(999 elements) as #1 where the others called AllReduce(1000 elements)", 0, NULL},
    {"count of same chunks", count_of_same_chunks, ncclInvalidUsage,
     "rank 1 called AllReduce(11 elements) as #1 where the others called AllReduce(12 elements)", 0, NULL},
    {"large count", large_count, ncclInvalidUsage,
     "rank 1 called AllReduce(999999 elements) as #1 where the others called AllReduce(1000000 elements)", 0, NULL},
    {"far count", far_count, ncclInvalidUsage,
     "rank 1 called AllReduce(8 elements) as #1 where the others called AllReduce(1000000 elements)", 0, NULL},
    {"empty, and leave", empty_and_leave, ncclInvalidUsage,
     "rank 1 called AllReduce(0 elements) as #1 where the others called AllReduce(1000 elements)", 1u << 1, NULL},
    {"empty, and go on", empty_and_go_on, ncclInvalidUsage,
     "rank 1 called AllReduce(0 elements) as #1 where the others called AllReduce(1000 elements)", 0, NULL},
    {"type of same size", type_of_same_size, ncclInvalidUsage,
     "rank 1 called AllReduce(int32) as #1 where the others called AllReduce(float)", 0, NULL},
    {"type", type, ncclInvalidUsage, "rank 1 called AllReduce(double) as #1 where the others called AllReduce(float)",
     0, NULL},
    {"type of same bytes", type_of_same_bytes, ncclInvalidUsage,
     "rank 1 called AllReduce(half, 2000 elements) as #1 where the others called AllReduce(float, 1000 elements)", 0,
     NULL},
    {"operator", operator, ncclInvalidUsage,
     "rank 1 called AllReduce(max) as #1 where the others called AllReduce(sum)", 0, NULL},
    {"large operator", large_operator, ncclInvalidUsage,
     "rank 1 called AllReduce(max) as #1 where the others called AllReduce(sum)", 0, NULL},
    {"average", average, ncclInvalidUsage,
     "rank 1 called ReduceScatter(avg) as #1 where the others called ReduceScatter(sum)", 0, NULL},
    {"root of broadcast", root_of_broadcast, ncclInvalidUsage,
     "rank 1 called Broadcast(root 1) as #1 where the others called Broadcast(root 0)", 0, NULL},
    {"root of reduce", root_of_reduce, ncclInvalidUsage,
     "rank 1 called Reduce(root 1) as #1 where the others called Reduce(root 0)", 0, NULL},
    {"all-reduce or broadcast", reduce_or_broadcast, ncclInvalidUsage,
     "rank 1 called Broadcast(root 1) as #1 where the others called AllReduce", 0, NULL},
    {"all-reduce or reduce", all_reduce_or_reduce, ncclInvalidUsage,
     "rank 1 called Reduce(root 0) as #1 where the others called AllReduce", 0, NULL},
    {"all-gather or reduce-scatter", gather_or_scatter, ncclInvalidUsage,
     "rank 1 called ReduceScatter as #1 where the others called AllGather", 0, NULL},
    {"all-reduce or all-gather", reduce_or_gather, ncclInvalidUsage,
     "rank 1 called AllGather(1000 elements) as #1 where the others called AllReduce(3000 elements)", 0, NULL},
    {"other order", other_order, ncclInvalidUsage,
     "rank 1 called Broadcast(root 0) as #1 where the others called AllReduce", 0, NULL},
    {"other order of streams", other_order_of_streams, ncclInvalidUsage,
     "rank 1 called AllReduce(max) as #1 where the others called AllReduce(sum)", 0, NULL},
    {"later", later, ncclInvalidUsage, "rank 1 called AllReduce(int32) as #41 where the others called AllReduce(float)",
     0, NULL},
    {"in a group", in_a_group, ncclInvalidUsage,
     "rank 1 called Broadcast(root 1) as #2 where the others called Broadcast(root 0)", 0, NULL},
    {"less received", less_received, ncclInvalidUsage, "rank 0 sends 1000 float where 500 float are received", 0, NULL},
    {"more received", more_received, ncclInvalidUsage, "rank 0 sends 500 float where 1000 float are received", 0, NULL},
    {"received as another type", received_as_other_type, ncclInvalidUsage,
     "rank 0 sends 1000 float where 1000 int32 are received", 0, NULL},
    {"two sent, one received", two_sent_one_received, ncclInvalidUsage,
     "rank 0 sends 1000 float where 2000 float are received", 0, NULL},
    {"send without receive", send_without_receive, ncclRemoteError, "Send of 1000 float to rank 1: rank 1 (host ",
     1u << 1, NULL},
    {"receive without send", receive_without_send, ncclRemoteError, "Recv of 1000 float from rank 1: rank 1 (host ",
     1u << 1, NULL},
    {"one more", one_more, ncclRemoteError, "AllReduce #2 of 1000 float (sum): rank ", 1u << 0 | 1u << 2, NULL},
    {"all send first", all_send_first, ncclRemoteError, " s, waiting for rank ", 0, "1"},
    {"unmatched empty send", unmatched_empty_send, ncclRemoteError, " s, waiting for rank ", 0, "1"},
};
enum { MISMATCHES = sizeof mismatches / sizeof mismatches[0] };

/* ---- a rank ---- */

static ncclResult_t call_and_wait(struct rank *r, const struct mismatch *m)
{
    ncclResult_t rc = m->call(r);

    rc = rc ? rc : koloStreamSynchronize(r->stream);
    return rc ? rc : koloStreamSynchronize(r->other);
}

/* Some do their part without the others: they get the error, too. */
static ncclResult_t await_failure(struct rank *r)
{
    const time_t until = time(NULL) + kolo_test_hang_s() / 2;
    ncclResult_t rc = ncclSuccess;

    while (!rc && time(NULL) < until && !ncclCommGetAsyncError(r->comm, &rc)) sched_yield();
    return rc;
}

static bool is_expected(ncclComm_t comm, int rank, ncclResult_t rc, const struct mismatch *m)
{
    bool fine = rc == m->code && strstr(ncclGetLastError(comm), m->words);

    if (!fine) fprintf(stderr, "%s: rank %d: %d \"%s\"\n", m->name, rank, rc, ncclGetLastError(comm));
    return fine;
}

static bool meets(struct rank *r, const struct mismatch *m)
{
    ncclResult_t rc = call_and_wait(r, m);

    if (!rc && m->leaves >> r->rank & 1) return true;
    rc = rc ? rc : await_failure(r);
    return is_expected(r->comm, r->rank, rc, m);
}

static bool run_rank(int rank, const ncclUniqueId *id, const struct mismatch *m)
{
    struct rank r = {.rank = rank, .odd = rank == 1};
    ncclResult_t rc = ncclCommInitRank(&r.comm, RANKS, *id, rank);

    r.send = calloc(ROOM, sizeof *r.send);
    r.recv = calloc(ROOM, sizeof *r.recv);
    rc = rc ? rc : koloStreamCreate(&r.stream, 0);
    rc = rc ? rc : koloStreamCreate(&r.other, 0);
    bool fine =
        rc ? is_expected(NULL, rank, rc, m) : meets(&r, m); /* the last rank may learn of it before it is there */
    if (r.comm) ncclCommDestroy(r.comm);
    if (r.stream) koloStreamDestroy(r.stream);
    if (r.other) koloStreamDestroy(r.other);
    free(r.send);
    free(r.recv);
    return fine;
}

/* ---- threads ---- */

struct thread {
    pthread_t thread;
    int rank;
    ncclUniqueId id;
    const struct mismatch *mismatch;
    bool fine;
};

static void *thread_main(void *arg)
{
    struct thread *t = arg;

    t->fine = run_rank(t->rank, &t->id, t->mismatch);
    return NULL;
}

static bool run_threads(const struct mismatch *m)
{
    struct thread t[RANKS];
    ncclUniqueId id;
    bool fine = true;

    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    for (int r = 0; r < RANKS; r++) {
        t[r] = (struct thread){.rank = r, .id = id, .mismatch = m};
        assert_int_equal(pthread_create(&t[r].thread, NULL, thread_main, &t[r]), 0);
    }
    for (int r = 0; r < RANKS; r++) {
        pthread_join(t[r].thread, NULL);
        fine &= t[r].fine;
    }
    return fine;
}

/* ---- processes ---- */

static bool hosts; /* each rank on a host of its own: they communicate over the network */

static pid_t start_process(const struct mismatch *m, int rank, const char *id)
{
    char number[12], rank_text[12];
    char *argv[] = {(char *)"mismatch_test", number, rank_text, (char *)(uintptr_t)id, NULL};
    pid_t pid;

    snprintf(number, sizeof number, "%d", (int)(m - mismatches));
    snprintf(rank_text, sizeof rank_text, "%d", rank);
    if (hosts) setenv("NCCL_HOSTID", rank_text, 1);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    unsetenv("NCCL_HOSTID");
    return pid;
}

static bool run_processes(const struct mismatch *m)
{
    char text[2 * NCCL_UNIQUE_ID_BYTES + 1];
    pid_t pid[RANKS];
    ncclUniqueId id;
    bool fine = true;

    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    kl_bootstrap_id_format(&id, text);
    for (int r = 0; r < RANKS; r++) pid[r] = start_process(m, r, text);
    for (int r = 0; r < RANKS; r++) {
        int status;
        waitpid(pid[r], &status, 0);
        fine &= WIFEXITED(status) && WEXITSTATUS(status) == EXIT_AS_EXPECTED;
    }
    return fine;
}

static int process_main(char **argv)
{
    ncclUniqueId id;

    alarm(kolo_test_hang_s());
    if (kl_bootstrap_id_parse(argv[3], &id)) return 1;
    return run_rank((int)strtol(argv[2], NULL, 10), &id, &mismatches[strtol(argv[1], NULL, 10)]) ? EXIT_AS_EXPECTED : 1;
}

/* ---- all of them ---- */

static void set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

enum { AT_ONCE = 8 }; /* jobs at once: they wait most of the time */

/* Of the variants of the jobs, a sanitizer sees every third mismatch: beginning with another one in each. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { OF_VARIANTS = 3 };
#else
enum { OF_VARIANTS = 1 };
#endif

/* In a process of its own; this one stays without threads. */
static pid_t start_mismatch(bool (*run)(const struct mismatch *m), const struct mismatch *m)
{
    fflush(NULL);
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid) return pid;
    set("KOLO_TIMEOUT", m->wait);
    _exit(!run(m));
}

static bool succeeds(pid_t pid)
{
    int status;

    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Every `step`th mismatch, from `first` on; returns how many were not reported as they should be. */
static int run_some(bool (*run)(const struct mismatch *m), int first, int step)
{
    pid_t pid[MISMATCHES];
    int failed = 0;

    for (int i = first, started = first; i < MISMATCHES; i += step) {
        for (; started < MISMATCHES && started < i + AT_ONCE * step; started += step)
            pid[started] = start_mismatch(run, &mismatches[started]);
        if (succeeds(pid[i])) continue;
        fprintf(stderr, "%s\n", mismatches[i].name);
        failed++;
    }
    return failed;
}

static void run_all(bool (*run)(const struct mismatch *m))
{
    assert_int_equal(run_some(run, 0, 1), 0);
}

static void run_variant(bool (*run)(const struct mismatch *m), const char *algo, const char *proto, const char *check)
{
    static int variant;

    set("NCCL_ALGO", algo);
    set("NCCL_PROTO", proto);
    set("NCCL_CHECK_MODE", check);
    const int failed = run_some(run, variant++ % OF_VARIANTS, OF_VARIANTS);
    if (failed)
        fprintf(stderr, "algorithm %s, protocol %s, %s\n", algo ? algo : "any", proto ? proto : "any",
                check ? check : "compared with the data");
    set("NCCL_ALGO", NULL);
    set("NCCL_PROTO", NULL);
    set("NCCL_CHECK_MODE", NULL);
    assert_int_equal(failed, 0);
}

static void threads_report_different_calls(void **state)
{
    (void)state;
    run_all(run_threads);
}

static void with_every_algorithm_and_protocol(void **state)
{
    static const char *const ways[][2] = {
        {"ring", "simple"}, {"ring", "ll"}, {"ring", "ll128"}, {"tree,ring", "ll128"}, {"nvls,pat,ring", "simple"}};

    (void)state;
    FOR_EACH_CASE(way, ways) run_variant(run_threads, (*way)[0], (*way)[1], NULL);
}

static void processes_report_different_calls(void **state)
{
    (void)state;
    run_all(run_processes);
}

static void hosts_report_the_same_mismatch(void **state)
{
    (void)state;
    hosts = true;
    run_variant(run_processes, NULL, NULL, NULL);
    hosts = false;
}

static void checking_before_reports_the_same(void **state)
{
    (void)state;
    run_variant(run_processes, NULL, NULL, "DEBUG_GLOBAL");
}

static void checking_at_first_use_reports_the_same(void **state)
{
    (void)state;
    run_variant(run_threads, NULL, NULL, "FIRST_USE");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest threads[] = {
        cmocka_unit_test(threads_report_different_calls),
        cmocka_unit_test(with_every_algorithm_and_protocol),
        cmocka_unit_test(checking_at_first_use_reports_the_same),
    };
    const struct CMUnitTest processes[] = {
        cmocka_unit_test(processes_report_different_calls),
        cmocka_unit_test(hosts_report_the_same_mismatch),
        cmocka_unit_test(checking_before_reports_the_same),
    };

    if (argc == 4) return process_main(argv);
    const int failed = KOLO_TEST_THREADS_ONLY ? 0 : cmocka_run_group_tests(processes, NULL, NULL);
    return failed + cmocka_run_group_tests(threads, NULL, NULL);
}
