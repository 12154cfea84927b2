/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hundreds of ranks, which are threads of several processes that play hosts: the cost of init for each of them is
 * bounded by the logarithm of their number, whether there is one root or several. The bounds stand in
 * docs/emulation.md.
 */
#include "comm/comm.h"
#include "include/kolo.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { PROCESSES = 6, THREADS = 8 };
#else
enum { PROCESSES = 8, THREADS = 32 };
#endif
enum { RANKS = PROCESSES * THREADS, MAX_ROOTS = 3, COUNT = 100, STACK = 1 << 20 };

/* Shared by the processes. */
struct shared {
    ncclUniqueId id[MAX_ROOTS];
    pthread_barrier_t roots_run;
    struct outcome {
        ncclResult_t rc;
        uint64_t messages;
        int64_t sum[COUNT];
        char text[KL_ERROR_TEXT];
    } outcome[RANKS];
};

static struct shared *shared;
static int nroots;
static bool bounded; /* in descriptors */

/* ---- the bounds ---- */

static int log2_up(int n)
{
    int log = 0;

    while (1 << log < n) log++;
    return log;
}

static int most_messages(void)
{
    return (nroots > 1 ? 10 : 6) * log2_up(RANKS) + 8;
}

/*
 * Two connections for each step of an exchange and a few more of each rank, beside the process's; of a root one to each
 * rank. With several roots a rank is in its root's bootstrap as long as it joins the common one.
 */
static int most_descriptors(int process)
{
    int rank = 2 * log2_up(RANKS) + 6;

    return THREADS * (nroots > 1 ? 2 * rank : rank) + 64 + (process < nroots ? RANKS : 0);
}

/* ---- ranks ---- */

static ncclResult_t count_messages(ncclComm_t handle, struct outcome *mine)
{
    struct ncclComm *comm;

    KL_TRY(kl_handle_enter(handle, __func__, &comm));
    mine->messages = kl_bootstrap_traffic(comm->bootstrap).messages;
    kl_handle_leave(comm);
    return ncclSuccess;
}

static ncclResult_t reduce(ncclComm_t comm, int rank, struct outcome *mine)
{
    for (int i = 0; i < COUNT; i++) mine->sum[i] = rank * (i + 1);
    KL_TRY(ncclAllReduce(mine->sum, mine->sum, COUNT, ncclInt64, ncclSum, comm, NULL));
    return koloStreamSynchronize(NULL);
}

static ncclResult_t live(int rank, struct outcome *mine)
{
    ncclComm_t comm;

    KL_TRY(ncclCommInitRankScalable(&comm, RANKS, rank, nroots, shared->id, NULL));
    KL_TRY(count_messages(comm, mine));
    if (!bounded) KL_TRY(reduce(comm, rank, mine)); /* which connects hosts: the bound is for init */
    return ncclCommDestroy(comm);
}

struct me {
    pthread_t thread;
    int rank;
};

static void *rank_main(void *arg)
{
    const struct me *me = arg;
    struct outcome *mine = &shared->outcome[me->rank];

    mine->rc = live(me->rank, mine);
    if (!mine->rc) return NULL;
    snprintf(mine->text, sizeof mine->text, "%s", kl_error_text());
    fprintf(stderr, "rank %d: %s\n", me->rank, mine->text);
    _exit(1); /* the others are told */
}

static void run_process(int process)
{
    const struct rlimit bound = {.rlim_cur = (rlim_t)most_descriptors(process),
                                 .rlim_max = (rlim_t)most_descriptors(process)};
    static struct me me[THREADS];
    pthread_attr_t small;
    char host[32], timeout[16];

    alarm(kolo_test_hang_s()); /* one that fails before the barrier leaves the others waiting */
    snprintf(host, sizeof host, "host%d", process);
    setenv("NCCL_HOSTID", host, 1);
    snprintf(timeout, sizeof timeout, "%u", kolo_test_hang_s());
    setenv("KOLO_BOOTSTRAP_TIMEOUT", timeout, 1);
    if (bounded) setrlimit(RLIMIT_NOFILE, &bound);
    if (process < nroots && ncclGetUniqueId(&shared->id[process])) _exit(2);
    pthread_barrier_wait(&shared->roots_run);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    for (int i = 0; i < THREADS; i++) {
        me[i].rank = process * THREADS + i;
        if (pthread_create(&me[i].thread, &small, rank_main, &me[i])) _exit(3);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(me[i].thread, NULL);
    exit(0); /* a sanitizer looks for leaks */
}

/* ---- jobs ---- */

static void make_barrier(void)
{
    pthread_barrierattr_t between_processes;

    pthread_barrierattr_init(&between_processes);
    pthread_barrierattr_setpshared(&between_processes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->roots_run, &between_processes, PROCESSES);
}

static void run_job(void)
{
    int status, bad = 0;

    memset(shared, 0, sizeof *shared);
    make_barrier();
    for (int p = 0; p < PROCESSES; p++)
        if (!fork()) run_process(p);
    for (int p = 0; p < PROCESSES; p++) {
        assert_true(wait(&status) > 0);
        bad += status != 0;
    }
    assert_int_equal(bad, 0);
}

static void expect_right_sums(void)
{
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++)
            if (shared->outcome[r].sum[i] != (int64_t)(i + 1) * RANKS * (RANKS - 1) / 2)
                fail_msg("rank %d, element %d: %lld", r, i, (long long)shared->outcome[r].sum[i]);
}

static void expect_few_messages(void)
{
    uint64_t most = 0;

    for (int r = 0; r < RANKS; r++) {
        assert_true(shared->outcome[r].messages >= (uint64_t)log2_up(RANKS)); /* they are counted */
        if (shared->outcome[r].messages > most) most = shared->outcome[r].messages;
    }
    if (most > (uint64_t)most_messages())
        fail_msg("%llu messages of a rank; %d are the bound", (unsigned long long)most, most_messages());
}

static void run_within_bounds(int roots)
{
    nroots = roots;
    bounded = true;
    run_job();
    expect_few_messages();
    bounded = false;
    run_job();
    expect_right_sums();
}

static void with_one_root(void **state)
{
    (void)state;
    run_within_bounds(1);
}

static void with_several_roots(void **state)
{
    (void)state;
    run_within_bounds(MAX_ROOTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_one_root),
        cmocka_unit_test(with_several_roots),
    };

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
