/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first operations of communicators, in which their ranks connect: many communicators at once, in any order, and ranks that
 * leave, abort, die or stop meanwhile. Each job is some processes, forked before anything is started, with some threads each.
 */
#include "include/kolo.h"

#include "base/atomic.h"
#include "tests/hang.h"
#include "tests/holdings.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COMMS = 6, MOST_THREADS = 4, MOST_PROCESSES = 8, COUNT = 9000 };

/* Shared by the processes of a job. */
static struct shared {
    ncclUniqueId id[COMMS];
    _Atomic int ids;     /* that have been made */
    _Atomic int arrived; /* ranks that came to the point that all wait for */
    _Atomic int gone;    /* ranks that have left */
} * shared;

struct member {
    int rank, size;
    uint64_t seed; /* of the job */
    int ncomms;
    ncclComm_t comm[COMMS];
    koloStream_t stream[COMMS];
    int32_t *send, *recv; /* COMMS x size x COUNT */
    pthread_t thread;
    int (*run)(struct member *m);
    int status;
};

/* ---- little helpers ---- */

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

static int complain(const struct member *m, const char *what, ncclResult_t rc)
{
    fprintf(stderr, "rank %d of %d: %s: %d %s\n", m->rank, m->size, what, rc, ncclGetLastError(NULL));
    return 1;
}

static void wait_for(_Atomic int *number, int value)
{
    while (kl_load_acquire(number) < value) sched_yield();
}

/* A point that all ranks of the job pass together; once. */
static void meet(const struct member *m)
{
    kl_fetch_add_acq_rel(&shared->arrived, 1);
    wait_for(&shared->arrived, m->size);
}

static void yield_for_a_while(const struct member *m, uint64_t most)
{
    uint64_t seed = m->seed + (uint64_t)m->rank * 977;

    for (uint64_t i = draw(&seed, most); i; i--) sched_yield();
}

/* ---- communicators ---- */

static ncclResult_t create(struct member *m, int c)
{
    if (m->rank == 0) {
        ncclResult_t rc = ncclGetUniqueId(&shared->id[c]);
        kl_store_release(&shared->ids, c + 1);
        if (rc) return rc;
    }
    wait_for(&shared->ids, c + 1);
    return ncclCommInitRank(&m->comm[c], m->size, shared->id[c], m->rank);
}

static ncclResult_t create_all(struct member *m, int ncomms)
{
    size_t elements = (size_t)COMMS * (size_t)m->size * COUNT;
    ncclResult_t rc = ncclSuccess;

    m->ncomms = ncomms;
    m->send = malloc(elements * sizeof *m->send);
    m->recv = malloc(elements * sizeof *m->recv);
    for (size_t i = 0; i < elements; i++) m->send[i] = (int32_t)(i % 1009 + (size_t)m->rank);
    for (int c = 0; c < ncomms && !rc; c++) {
        rc = create(m, c);
        if (!rc) rc = koloStreamCreate(&m->stream[c], KOLO_STREAM_DEFAULT);
    }
    return rc;
}

static void destroy_all(struct member *m)
{
    for (int c = 0; c < m->ncomms; c++) {
        ncclCommDestroy(m->comm[c]);
        koloStreamDestroy(m->stream[c]);
    }
    free(m->send);
    free(m->recv);
}

/* ---- work of one communicator, and the expected results ---- */

static int32_t *send_of(const struct member *m, int c)
{
    return m->send + (size_t)c * (size_t)m->size * COUNT;
}

static int32_t *recv_of(const struct member *m, int c)
{
    return m->recv + (size_t)c * (size_t)m->size * COUNT;
}

static int32_t input(const struct member *m, int c, int rank, size_t i)
{
    return (int32_t)(((size_t)c * (size_t)m->size * COUNT + i) % 1009 + (size_t)rank);
}

static ncclResult_t exchange(struct member *m, int c, size_t count)
{
    int next = (m->rank + c + 1) % m->size, prev = (m->rank + (c + 1) * (m->size - 1)) % m->size;
    ncclResult_t rc = ncclGroupStart();

    if (!rc) rc = ncclSend(send_of(m, c), count, ncclInt32, next, m->comm[c], m->stream[c]);
    if (!rc) rc = ncclRecv(recv_of(m, c), count, ncclInt32, prev, m->comm[c], m->stream[c]);
    ncclResult_t end = ncclGroupEnd();
    return rc ? rc : end;
}

/* By its number: a collective, or messages. */
static ncclResult_t issue(struct member *m, int c)
{
    switch (c % 3) {
    case 0:
        return ncclAllReduce(send_of(m, c), recv_of(m, c), COUNT, ncclInt32, ncclSum, m->comm[c], m->stream[c]);
    case 1:
        return exchange(m, c, COUNT);
    default:
        return ncclAllGather(send_of(m, c), recv_of(m, c), COUNT, ncclInt32, m->comm[c], m->stream[c]);
    }
}

static int32_t wanted(const struct member *m, int c, size_t i)
{
    int32_t sum = 0;

    if (c % 3 == 1) return input(m, c, (m->rank + (c + 1) * (m->size - 1)) % m->size, i);
    if (c % 3 == 2) return input(m, c, (int)(i / COUNT), i % COUNT);
    for (int r = 0; r < m->size; r++) sum += input(m, c, r, i);
    return sum;
}

static bool is_right(const struct member *m, int c)
{
    size_t elements = c % 3 == 2 ? (size_t)m->size * COUNT : COUNT;

    for (size_t i = 0; i < elements; i++)
        if (recv_of(m, c)[i] != wanted(m, c, i)) {
            fprintf(stderr, "rank %d of %d, communicator %d: element %zu is %d, not %d\n", m->rank, m->size, c, i,
                    recv_of(m, c)[i], wanted(m, c, i));
            return false;
        }
    return true;
}

/* ---- jobs ---- */

/* The event loop closes its own descriptors a little later; SIGALRM ends the wait if it does not. */
static void expect_nothing_left(int descriptors)
{
    while (count_fds() > descriptors || count_segments()) sched_yield();
}

static void *run_member(void *arg)
{
    struct member *m = arg;

    m->status = m->run(m);
    return NULL;
}

/* One process of a job: ranks first, first + 1, ... */
static int run_process(const struct member *like, int process, int threads)
{
    static struct member members[MOST_THREADS];
    int before = count_fds(), status = 0;

    alarm(kolo_test_hang_s());
    for (int t = 0; t < threads; t++) {
        members[t] = *like;
        members[t].rank = process * threads + t;
        if (t) pthread_create(&members[t].thread, NULL, run_member, &members[t]);
    }
    run_member(&members[0]);
    for (int t = 1; t < threads; t++) pthread_join(members[t].thread, NULL);
    for (int t = 0; t < threads; t++) status |= members[t].status;
    if (!status) expect_nothing_left(before);
    return status;
}

static void start_job(pid_t *pids, int processes, int threads, uint64_t seed, int (*run)(struct member *))
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    struct member like = {.size = processes * threads, .seed = seed, .run = run};

    memset(shared, 0, sizeof *shared);
    fflush(NULL);
    for (int p = 0; p < processes; p++) {
        pids[p] = fork();
        assert_true(pids[p] >= 0);
        if (pids[p]) continue;
        FOR_EACH_CASE(number, signals) signal(*number, SIG_DFL); /* a crash is a crash, and no failed assertion */
        _exit(run_process(&like, p, threads));
    }
}

static int wait_for_exit(pid_t pid)
{
    int status;

    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void end_job(const pid_t *pids, int processes, int odd, int odd_status)
{
    int bad = 0;

    for (int p = 0; p < processes; p++) {
        int status = wait_for_exit(pids[p]);
        if (status == (p == odd ? odd_status : 0)) continue;
        fprintf(stderr, "process %d of %d ended with %d%s\n", p, processes, status,
                status == 1000 + SIGALRM ? ": it hung" : "");
        bad++;
    }
    if (bad) fail();
}

static void run_job(int processes, int threads, uint64_t seed, int (*run)(struct member *))
{
    pid_t pids[MOST_PROCESSES];

    start_job(pids, processes, threads, seed, run);
    end_job(pids, processes, -1, 0);
}

/* ---- many at once ---- */

/* All communicators connect at the same time, and every rank begins with another one. */
static int use_all_at_once(struct member *m)
{
    ncclResult_t rc = create_all(m, COMMS);
    int status = 0;

    if (rc) return complain(m, "creating", rc);
    for (int k = 0; k < COMMS && !rc; k++) rc = issue(m, (m->rank + k) % COMMS);
    if (rc) return complain(m, "issuing", rc);
    for (int k = COMMS - 1; k >= 0 && !rc; k--) rc = koloStreamSynchronize(m->stream[(m->rank * 5 + k) % COMMS]);
    if (rc) return complain(m, "waiting", rc);
    for (int c = 0; c < COMMS; c++) status |= !is_right(m, c);
    destroy_all(m);
    return status;
}

static void many_communicators_connect_at_once(void **state)
{
    static const int layouts[][2] = {{2, 1}, {3, 2}, {1, 4}, {2, 4}};

    (void)state;
    FOR_EACH_CASE(l, layouts) run_job((*l)[0], (*l)[1], 1, use_all_at_once);
}

/* One thread, all ranks, several communicators, no group: each call returns before the other ranks have come. */
static int drive_all_ranks(struct member *m)
{
    enum { RANKS = 4 };
    ncclComm_t comms[3][RANKS];
    koloStream_t streams[3][RANKS];
    int32_t in[RANKS], out[3][RANKS];
    ncclResult_t rc = ncclSuccess;

    for (int c = 0; c < 3 && !rc; c++) rc = ncclCommInitAll(comms[c], RANKS, NULL);
    for (int i = 0; i < 3 * RANKS && !rc; i++) rc = koloStreamCreate(&streams[i % 3][i / 3], KOLO_STREAM_DEFAULT);
    for (int r = 0; r < RANKS; r++) in[r] = 1 << r;
    for (int r = RANKS - 1; r >= 0; r--)
        for (int k = 0; k < 3 && !rc; k++) {
            int c = (r + k) % 3;
            rc = ncclAllReduce(&in[r], &out[c][r], 1, ncclInt32, ncclSum, comms[c][r], streams[c][r]);
        }
    for (int i = 0; i < 3 * RANKS && !rc; i++) rc = koloStreamSynchronize(streams[i % 3][i / 3]);
    for (int i = 0; i < 3 * RANKS && !rc; i++)
        if (out[i % 3][i / 3] != (1 << RANKS) - 1) return complain(m, "a wrong sum", rc);
    for (int i = 0; i < 3 * RANKS && !rc; i++) rc = ncclCommDestroy(comms[i % 3][i / 3]);
    for (int i = 0; i < 3 * RANKS && !rc; i++) rc = koloStreamDestroy(streams[i % 3][i / 3]);
    return rc ? complain(m, "driving all ranks", rc) : 0;
}

static void one_thread_connects_all_ranks_of_several_communicators(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 5; i++) run_job(1, 1, i, drive_all_ranks);
}

/* Even ranks use the one communicator first, odd ones the other. Each waits first for its last call. */
static int use_in_opposite_orders(struct member *m)
{
    int first = m->rank % 2 ? 3 : 0;
    ncclResult_t rc = create_all(m, 4);

    if (!rc) rc = issue(m, first);
    if (!rc) rc = issue(m, 3 - first);
    if (!rc) rc = koloStreamSynchronize(m->stream[3 - first]);
    if (!rc) rc = koloStreamSynchronize(m->stream[first]);
    if (rc) return complain(m, "opposite orders", rc);
    bool right = is_right(m, 0) && is_right(m, 3);
    destroy_all(m);
    return !right;
}

static void two_communicators_may_be_used_in_opposite_orders(void **state)
{
    static const int layouts[][2] = {{2, 1}, {4, 1}, {1, 4}, {2, 2}};

    (void)state;
    for (uint64_t i = 0; i < 3; i++) FOR_EACH_CASE(l, layouts) run_job((*l)[0], (*l)[1], i, use_in_opposite_orders);
}

/* ---- ranks that leave ---- */

/* A message is delivered although its sender ends when it has handed it over; a collective, although some end before others. */
static int leave_at_once(struct member *m)
{
    ncclResult_t rc = create_all(m, 3);
    size_t count = (size_t)1 << m->seed % 14;
    bool right = true;

    if (!rc && m->rank == 0) rc = ncclSend(send_of(m, 1), count, ncclInt32, 1, m->comm[1], m->stream[1]);
    if (!rc && m->rank == 1) rc = ncclRecv(recv_of(m, 1), count, ncclInt32, 0, m->comm[1], m->stream[1]);
    if (!rc) rc = ncclCommDestroy(m->comm[1]); /* which waits for the message */
    if (rc) return complain(m, "a message", rc);
    for (size_t i = 0; i < count && m->rank == 1; i++) right = right && recv_of(m, 1)[i] == input(m, 1, 0, i);
    m->comm[1] = NULL;

    rc = issue(m, 0);
    if (!rc) rc = ncclCommDestroy(m->comm[0]);
    if (rc) return complain(m, "a collective", rc);
    m->comm[0] = NULL;
    right = right && is_right(m, 0);
    destroy_all(m);
    return !right;
}

static void who_leaves_at_once_has_done_its_part(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 14; i++) run_job(i % 2 ? 4 : 2, 1 + (int)(i % 3) / 2, i, leave_at_once);
}

static int expect_culprit(struct member *m, ncclResult_t rc, ncclResult_t want, const char *who, const char *what)
{
    const char *text = ncclGetLastError(m->comm[0]);

    if (rc == want && strstr(text, who) && strstr(text, what)) return 0;
    fprintf(stderr, "rank %d of %d: %d, \"%s\" does not say \"%s\" and \"%s\"\n", m->rank, m->size, rc, text, who,
            what);
    return 1;
}

/* Rank 2 takes no part, and the others cannot connect without it. */
static int leave_without_taking_part(struct member *m)
{
    int c = (int)(m->seed % 3), status = 0;
    ncclResult_t rc = create_all(m, 3);

    if (rc) return complain(m, "creating", rc);
    if (m->rank == 2) yield_for_a_while(m, 3000);
    m->comm[0] = m->rank == 2 ? m->comm[0] : m->comm[0];
    if (m->rank != 2) {
        ncclComm_t used = m->comm[c];
        rc = issue(m, c);
        if (!rc) rc = koloStreamSynchronize(m->stream[c]);
        m->comm[c] = m->comm[0];
        m->comm[0] = used;
        /* messages go to the next rank, and come from the one before: not all miss rank 2 */
        if (c != 1 || rc) status = expect_culprit(m, rc, ncclRemoteError, "rank 2", "");
    }
    destroy_all(m);
    return status;
}

static void who_leaves_without_taking_part_is_named(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 9; i++) run_job(4, 1, i, leave_without_taking_part);
    for (uint64_t i = 0; i < 6; i++) run_job(2, 2, i, leave_without_taking_part);
}

/* ---- aborts ---- */

static void *abort_some_time(void *arg)
{
    struct member *m = arg;

    yield_for_a_while(m, 2000);
    return ncclCommAbort(m->comm[0]) ? arg : NULL;
}

/* Rank 0 aborts while all connect. Its own wait ends, and all others'. */
static int abort_while_connecting(struct member *m)
{
    ncclResult_t rc = create_all(m, 1);
    pthread_t thread;
    void *failed = NULL;

    if (rc) return complain(m, "creating", rc);
    meet(m);
    if (m->rank == 0) pthread_create(&thread, NULL, abort_some_time, m);
    rc = issue(m, 0);
    if (!rc) rc = koloStreamSynchronize(m->stream[0]);
    if (m->rank == 0) pthread_join(thread, &failed);
    int status = failed != NULL;
    if (m->rank == 0)
        status |= rc && rc != ncclInternalError && rc != ncclInvalidArgument ? complain(m, "aborting", rc) : 0;
    else if (rc)
        status |= expect_culprit(m, rc, ncclRemoteError, "rank 0", "aborted");
    if (m->rank == 0) m->comm[0] = NULL;
    destroy_all(m);
    return status;
}

static void an_abort_while_ranks_connect_ends_them_all(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 12; i++) run_job(3, 1, i, abort_while_connecting);
    for (uint64_t i = 0; i < 12; i++) run_job(2, 2, i, abort_while_connecting);
}

/* ---- deaths ---- */

static void *die_some_time(void *arg)
{
    yield_for_a_while(arg, 2000);
    kill(getpid(), SIGKILL);
    return NULL;
}

/* Rank 2 dies while all connect. */
static int die_while_connecting(struct member *m)
{
    ncclResult_t rc = create_all(m, 1);
    pthread_t thread;

    if (rc) return complain(m, "creating", rc);
    meet(m);
    if (m->rank == 2) pthread_create(&thread, NULL, die_some_time, m);
    rc = issue(m, 0);
    if (!rc) rc = koloStreamSynchronize(m->stream[0]);
    if (m->rank == 2) pause();
    int status = rc ? expect_culprit(m, rc, ncclRemoteError, "rank 2", "") : 0; /* it may have done its part before */
    destroy_all(m);
    return status;
}

static void who_dies_while_ranks_connect_is_named(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 20; i++) {
        pid_t pids[MOST_PROCESSES];
        start_job(pids, 4, 1, i, die_while_connecting);
        end_job(pids, 4, 2, 1000 + SIGKILL);
    }
}

/* Rank 1 stands still from some point on, as in a debugger. Rank 0 waits until it aborts. */
static int stop_while_connecting(struct member *m)
{
    ncclResult_t rc = create_all(m, 1);
    uint64_t seed = m->seed;

    if (rc) return complain(m, "creating", rc);
    meet(m);
    rc = issue(m, 0);
    if (m->rank == 1) {
        for (uint64_t i = draw(&seed, 40); i; i--) koloStreamQuery(m->stream[0]);
        kl_fetch_add_acq_rel(&shared->gone, 1);
        kill(getpid(), SIGSTOP);
        return 1;
    }
    wait_for(&shared->gone, 1);
    for (int i = 0; i < 300; i++) koloStreamQuery(m->stream[0]);
    if (m->rank == 0) {
        rc = ncclCommAbort(m->comm[0]);
        m->comm[0] = NULL;
        if (rc) return complain(m, "aborting", rc);
    } else {
        rc = koloStreamSynchronize(m->stream[0]);
        if (rc) rc = expect_culprit(m, rc, ncclRemoteError, "rank 0", "aborted");
    }
    destroy_all(m);
    return (int)rc;
}

static void an_abort_does_not_wait_for_who_stands_still(void **state)
{
    (void)state;
    setenv("KOLO_BOOTSTRAP_TIMEOUT", "3600", 1); /* nothing here may wait for that */
    for (uint64_t i = 0; i < 20; i++) {
        pid_t pids[MOST_PROCESSES];
        start_job(pids, 3, 1, i, stop_while_connecting);
        int status[] = {wait_for_exit(pids[0]), wait_for_exit(pids[2])};
        kill(pids[1], SIGKILL);
        assert_int_equal(wait_for_exit(pids[1]), 1000 + SIGKILL);
        assert_int_equal(status[0], 0);
        assert_int_equal(status[1], 0);
    }
    unsetenv("KOLO_BOOTSTRAP_TIMEOUT");
}

static int share(void **state)
{
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_communicators_connect_at_once),
        cmocka_unit_test(one_thread_connects_all_ranks_of_several_communicators),
        cmocka_unit_test(two_communicators_may_be_used_in_opposite_orders),
        cmocka_unit_test(who_leaves_at_once_has_done_its_part),
        cmocka_unit_test(who_leaves_without_taking_part_is_named),
        cmocka_unit_test(an_abort_while_ranks_connect_ends_them_all),
        cmocka_unit_test(who_dies_while_ranks_connect_is_named),
        cmocka_unit_test(an_abort_does_not_wait_for_who_stands_still),
    };

    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, share, NULL);
}
