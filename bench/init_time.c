/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init_time kolo|ring PROCESSES THREADS [ROOTS]: the cost of one communicator of threads of several processes, each of which
 * emulates a host of its own (NCCL_HOSTID); its use and its end, too. With `ring` the linear bootstrap of ring_join.h does the
 * work of the first two phases of init: all ranks exchange addresses and identities.
 *
 * Prints one line of "name value" pairs: seconds until all have joined (and met: bootstrap and peers), and until init is over; the
 * seconds of an all-reduce and of the end; the most messages and bytes that a rank has sent, of the bootstrap; KiB of resident memory
 * that a rank adds, and at the worst moment; the most descriptors of a process, and of one with a root while it works.
 */
#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "bench/ring_join.h"
#include "comm/comm.h"
#include "include/kolo.h"
#include "tests/holdings.h"
#include "transport/peer.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PROCESSES = 1024, MAX_THREADS = 4096, MAX_ROOTS = 64, COUNT = 1000, STACK = 1 << 20, LOOK_MS = 20 };

/* The moments at which all threads meet. */
enum { BEGIN, MET, INITED, MEASURED, REDUCED, ENDED, MOMENTS };

/* Shared by the processes. */
struct shared {
    ncclUniqueId id[MAX_ROOTS];
    union kl_address ring_root;
    pthread_barrier_t roots_run, barrier;
    uint64_t at[MOMENTS]; /* ns, when the last one arrived */
    _Atomic uint64_t kib, peak_kib, cpu_us;
    _Atomic uint64_t messages, bytes, met_ns, fds, root_fds; /* the most of all */
};

static struct shared *shared;
static int nprocesses, nthreads, nranks, nroots;

/* Of this process. */
static int process;
static uint64_t kib_before;
static _Atomic bool watched; /* init is over */

enum { FDS_OF_COUNTING = 3 }; /* ".", "..", and the directory */

static void meet(int moment)
{
    if (pthread_barrier_wait(&shared->barrier)) shared->at[moment] = kl_now_ns();
}

static void at_least(_Atomic uint64_t *most, uint64_t value)
{
    uint64_t seen = kl_load_relaxed(most);

    while (seen < value && !kl_cas_acq_rel(most, &seen, value)) continue;
}

/* ---- resources of a process ---- */

/* Open descriptors, without the count's own. */
static uint64_t descriptors(void)
{
    return (uint64_t)(count_fds() - FDS_OF_COUNTING);
}

/* Until init has ended: later descriptors belong to ranks. */
static void *watch_descriptors(void *arg)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};

    (void)arg;
    while (!kl_load_acquire(&watched)) {
        at_least(&shared->root_fds, descriptors());
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void measure_process(void)
{
    kl_fetch_add_acq_rel(&shared->kib, resident_kib() - kib_before);
    at_least(&shared->fds, descriptors());
}

static void measure_rest(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    kl_fetch_add_acq_rel(&shared->peak_kib, (uint64_t)u.ru_maxrss - kib_before);
    kl_fetch_add_acq_rel(&shared->cpu_us, (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000u +
                                              (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec));
}

/* ---- Kolo ---- */

static ncclResult_t measure_comm(ncclComm_t handle)
{
    struct ncclComm *comm;

    KL_TRY(kl_handle_enter(handle, __func__, &comm));
    struct kl_bootstrap_traffic t = kl_bootstrap_traffic(comm->bootstrap);
    at_least(&shared->messages, t.messages);
    at_least(&shared->bytes, t.bytes);
    at_least(&shared->met_ns, comm->init.times[0].ns + comm->init.times[1].ns);
    kl_handle_leave(comm);
    return ncclSuccess;
}

static ncclResult_t check_sum(const int64_t *data)
{
    for (int i = 0; i < COUNT; i++) {
        int64_t n = nranks, want = n * (n - 1) / 2 + n * i;
        if (data[i] != want)
            return KL_FAIL(ncclInternalError, "element %d is %lld instead of %lld", i, (long long)data[i],
                           (long long)want);
    }
    return ncclSuccess;
}

static ncclResult_t reduce(ncclComm_t comm, int rank)
{
    int64_t data[COUNT];

    for (int i = 0; i < COUNT; i++) data[i] = rank + i;
    KL_TRY(ncclAllReduce(data, data, COUNT, ncclInt64, ncclSum, comm, NULL));
    KL_TRY(koloStreamSynchronize(NULL));
    return check_sum(data);
}

static ncclResult_t live_in_kolo(int rank)
{
    ncclComm_t comm;

    KL_TRY(ncclCommInitRankScalable(&comm, nranks, rank, nroots, shared->id, NULL));
    meet(MET);
    meet(INITED);
    kl_store_release(&watched, true);
    KL_TRY(measure_comm(comm));
    if (rank % nthreads == 0) measure_process();
    meet(MEASURED);
    KL_TRY(reduce(comm, rank));
    meet(REDUCED);
    return ncclCommDestroy(comm);
}

/* ---- the ring ---- */

static ncclResult_t gather(struct ring *ring, size_t bytes)
{
    void *all = calloc((size_t)nranks, bytes);

    if (!all) return KL_NOMEM("records");
    ncclResult_t rc = ring_allgather(ring, all, bytes);
    free(all);
    return rc;
}

static ncclResult_t live_in_ring(int rank)
{
    struct ring *ring;

    KL_TRY(ring_join(&shared->ring_root, rank, nranks, &ring));
    KL_TRY(gather(ring, ring_record_bytes));
    KL_TRY(gather(ring, sizeof(struct kl_peer)));
    meet(MET);
    meet(INITED);
    kl_store_release(&watched, true);
    at_least(&shared->messages, ring_messages(ring));
    if (rank % nthreads == 0) measure_process();
    meet(MEASURED);
    meet(REDUCED);
    ring_leave(ring);
    return ncclSuccess;
}

/* ---- ranks and processes ---- */

static ncclResult_t (*live)(int rank);

static void *rank_main(void *arg)
{
    int rank = process * nthreads + (int)(intptr_t)arg;

    meet(BEGIN);
    if (!live(rank)) {
        meet(ENDED);
        return NULL;
    }
    fprintf(stderr, "rank %d: %s\n", rank, kl_error_text());
    kill(0, SIGTERM); /* the others would wait for ever */
    return NULL;
}

/* Roots run in the processes of their shares' first ranks. */
static bool start_roots(void)
{
    bool any = false;

    for (int i = 0; i < nroots; i++) {
        if ((int)((long)i * nprocesses / nroots) != process) continue;
        any = true;
        ncclResult_t rc =
            live == live_in_ring ? ring_root_start(&shared->ring_root, nranks) : ncclGetUniqueId(&shared->id[i]);
        if (!rc) continue;
        fprintf(stderr, "root %d: %s\n", i, kl_error_text());
        kill(0, SIGTERM);
    }
    return any;
}

static void run_threads(void)
{
    static pthread_t threads[MAX_THREADS];
    pthread_attr_t small;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    for (int i = 0; i < nthreads; i++)
        if (pthread_create(&threads[i], &small, rank_main, (void *)(intptr_t)i)) kill(0, SIGTERM);
    for (int i = 0; i < nthreads; i++) pthread_join(threads[i], NULL);
}

static void run_process(void)
{
    char host[32];
    pthread_t watcher;

    snprintf(host, sizeof host, "host%d", process);
    signal(SIGTERM, SIG_DFL);
    setenv("NCCL_HOSTID", host, 1);
    kib_before = resident_kib();
    if (start_roots() && pthread_create(&watcher, NULL, watch_descriptors, NULL)) kill(0, SIGTERM);
    pthread_barrier_wait(&shared->roots_run);
    run_threads();
    measure_rest();
    _exit(0);
}

/* ---- */

static double seconds(int from, int to)
{
    return (double)(shared->at[to] - shared->at[from]) / 1e9;
}

static void print_all(void)
{
    double met = live == live_in_kolo ? (double)shared->met_ns / 1e9 : seconds(BEGIN, MET);

    printf("ranks %d met %.3f init %.3f reduce %.3f end %.3f messages %llu bytes %llu kib %.0f peak_kib %.0f fds %llu "
           "root_fds %llu cpu %.2f\n",
           nranks, met, seconds(BEGIN, INITED), seconds(MEASURED, REDUCED), seconds(REDUCED, ENDED),
           (unsigned long long)shared->messages, (unsigned long long)shared->bytes, (double)shared->kib / nranks,
           (double)shared->peak_kib / nranks, (unsigned long long)shared->fds, (unsigned long long)shared->root_fds,
           (double)shared->cpu_us / 1e6);
}

static bool parse(int argc, char **argv)
{
    if (argc < 4) return false;
    live = !strcmp(argv[1], "ring") ? live_in_ring : !strcmp(argv[1], "kolo") ? live_in_kolo : NULL;
    nprocesses = (int)strtol(argv[2], NULL, 10);
    nthreads = (int)strtol(argv[3], NULL, 10);
    nroots = argc > 4 && live == live_in_kolo ? (int)strtol(argv[4], NULL, 10) : 1;
    nranks = nprocesses * nthreads;
    return live && nprocesses >= 1 && nprocesses <= MAX_PROCESSES && nthreads >= 1 && nthreads <= MAX_THREADS &&
           nroots >= 1 && nroots <= MAX_ROOTS && nroots <= nprocesses;
}

static void make_barriers(void)
{
    pthread_barrierattr_t between_processes;

    pthread_barrierattr_init(&between_processes);
    pthread_barrierattr_setpshared(&between_processes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &between_processes, (unsigned)nranks);
    pthread_barrier_init(&shared->roots_run, &between_processes, (unsigned)nprocesses);
}

int main(int argc, char **argv)
{
    int bad = 0, status;

    if (!parse(argc, argv)) {
        fprintf(stderr, "usage: init_time kolo|ring PROCESSES THREADS [ROOTS]\n");
        return 2;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 1;
    make_barriers();
    setpgid(0, 0); /* a failing rank ends this group */
    signal(SIGTERM, SIG_IGN);
    for (process = 0; process < nprocesses; process++)
        if (!fork()) run_process();
    while (wait(&status) > 0) bad |= status;
    if (!bad)
        print_all();
    else
        fprintf(stderr, "a process ended with status %d\n", bad);
    return bad != 0;
}
