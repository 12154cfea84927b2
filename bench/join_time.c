/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join_time PROCESSES THREADS: the cost of joining if every thread is a rank of one bootstrap. Prints the seconds that all
 * together take for joining, for an all-gather of 256 bytes each, for a barrier, and for leaving; the CPU seconds of all
 * processes; and the resident memory and open descriptors per rank.
 */
#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "tests/holdings.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_PROCESSES = 256, MAX_THREADS = 4096, BYTES = 256, TIMEOUT_MS = 120000 };

/* The moments at which all threads meet. */
enum { BEGIN, JOINED, GATHERED, PASSED, MEASURED, LEFT, MOMENTS };

/* Shared by the processes. */
struct shared {
    ncclUniqueId id;
    pthread_barrier_t barrier;
    uint64_t at[MOMENTS];              /* ns, when the last one arrived */
    _Atomic uint64_t kib, fds, cpu_us; /* of all processes */
};

static struct shared *shared;

/* Of this process. */
static int nranks, nthreads, first_rank;
static uint64_t kib_before, fds_before;

static void meet(int moment)
{
    if (pthread_barrier_wait(&shared->barrier)) shared->at[moment] = kl_now_ns();
}

static void measure_process(void)
{
    kl_fetch_add_acq_rel(&shared->kib, resident_kib() - kib_before);
    kl_fetch_add_acq_rel(&shared->fds, (uint64_t)count_fds() - fds_before);
}

static ncclResult_t exchange(struct kl_bootstrap *b, int rank)
{
    unsigned char *all = calloc((size_t)nranks, BYTES);

    if (!all) return KL_NOMEM("the records");
    ncclResult_t rc = kl_bootstrap_allgather(b, all, BYTES);
    free(all);
    if (rc) return rc;
    meet(GATHERED);
    KL_TRY(kl_bootstrap_barrier(b));
    meet(PASSED);
    if (rank == first_rank) measure_process();
    meet(MEASURED);
    return ncclSuccess;
}

static ncclResult_t join_and_leave(int rank)
{
    struct kl_bootstrap_config config = {.id = shared->id, .rank = rank, .nranks = nranks, .timeout_ms = TIMEOUT_MS};
    struct kl_bootstrap *b;

    meet(BEGIN);
    KL_TRY(kl_bootstrap_join(&config, &b));
    meet(JOINED);
    ncclResult_t rc = exchange(b, rank);
    kl_bootstrap_leave(b);
    if (!rc) meet(LEFT);
    return rc;
}

static void *rank_main(void *arg)
{
    int rank = first_rank + (int)(intptr_t)arg;

    if (!join_and_leave(rank)) return NULL;
    fprintf(stderr, "rank %d: %s\n", rank, kl_error_text());
    kill(0, SIGTERM); /* the others would wait for ever */
    return NULL;
}

static void run_process(void)
{
    static pthread_t threads[MAX_THREADS];
    struct rusage u;

    signal(SIGTERM, SIG_DFL);
    kib_before = resident_kib();
    fds_before = (uint64_t)count_fds();
    for (int i = 0; i < nthreads; i++)
        if (pthread_create(&threads[i], NULL, rank_main, (void *)(intptr_t)i)) _exit(1);
    for (int i = 0; i < nthreads; i++) pthread_join(threads[i], NULL);
    getrusage(RUSAGE_SELF, &u);
    kl_fetch_add_acq_rel(&shared->cpu_us, (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000u +
                                              (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec));
    _exit(0);
}

static double seconds(int moment)
{
    return (double)(shared->at[moment] - shared->at[moment - 1]) / 1e9;
}

static void print_all(void)
{
    printf("%d ranks: join %.3f s, all-gather %.3f s, barrier %.3f s, leave %.3f s; %.2f CPU s\n", nranks,
           seconds(JOINED), seconds(GATHERED), seconds(PASSED), seconds(LEFT), (double)shared->cpu_us / 1e6);
    printf("a rank: %.0f KiB resident, %.1f descriptors\n", (double)shared->kib / nranks, (double)shared->fds / nranks);
}

int main(int argc, char **argv)
{
    int nprocesses = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
    nthreads = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    pthread_barrierattr_t between_processes;
    nranks = nprocesses * nthreads;
    int bad = 0, status;

    if (nprocesses < 1 || nprocesses > MAX_PROCESSES || nthreads < 1 || nthreads > MAX_THREADS) {
        fprintf(stderr, "usage: join_time PROCESSES THREADS\n");
        return 2;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || kl_bootstrap_id_create(&shared->id)) return 1;
    pthread_barrierattr_init(&between_processes);
    pthread_barrierattr_setpshared(&between_processes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &between_processes, (unsigned)nranks);
    setpgid(0, 0); /* a failing rank ends this group */
    signal(SIGTERM, SIG_IGN);
    for (int p = 0; p < nprocesses; p++) {
        first_rank = p * nthreads;
        if (!fork()) run_process();
    }
    while (wait(&status) > 0) bad |= status;
    if (!bad) print_all();
    return bad != 0;
}
