/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/tune_measure.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "include/kolo.h"
#include "os/affinity.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_RANKS = 8,
    SIZE_NS = 15000000, /* for one size, unless three blocks of it take longer */
    BLOCK_NS = 500000,
    MOST_BLOCKS = 40,
    MOST_OPERATIONS = 256,
    GRACE_S = 600, /* beyond the deadline, for begun measurements: only hanging ones are ended */
};

/* The memory that all processes map. */
struct shared {
    ncclUniqueId id;
    _Alignas(KL_LINE) _Atomic unsigned arrived, passed;
    uint64_t ns[MOST_RANKS];
    bool go_on; /* is there time for another line? */
    float us[KL_FUNCS][KL_ALGOS][KL_MEASURED_SIZES];
    struct kl_tune_spread spread; /* the first rank's */
};

/* One process. */
struct rank {
    struct shared *shared;
    int rank, nranks;
    unsigned round;
    uint64_t deadline;
    ncclComm_t comm;
    koloStream_t stream;
    float *send, *recv;
};

/* ---- together ---- */

/* The parent kills a process that waits forever. */
static void meet(struct rank *r)
{
    unsigned round = ++r->round;

    if (kl_fetch_add_acq_rel(&r->shared->arrived, 1u) + 1 == round * (unsigned)r->nranks)
        kl_store_release(&r->shared->passed, round);
    while ((int)(kl_load_acquire(&r->shared->passed) - round) < 0) sched_yield();
}

static uint64_t largest(struct rank *r, uint64_t ns)
{
    r->shared->ns[r->rank] = ns;
    meet(r);
    for (int i = 0; i < r->nranks; i++)
        if (r->shared->ns[i] > ns) ns = r->shared->ns[i];
    meet(r);
    return ns;
}

static bool goes_on(struct rank *r)
{
    if (!r->rank) r->shared->go_on = !kl_deadline_passed(r->deadline);
    meet(r);
    bool on = r->shared->go_on;
    meet(r);
    return on;
}

/* ---- one operation ---- */

static ncclResult_t launch(const struct rank *r, int func, size_t bytes)
{
    size_t all = bytes / sizeof(float), piece = all / (size_t)r->nranks ? all / (size_t)r->nranks : 1;

    switch (func) {
    case KL_FUNC_BROADCAST:
        return ncclBroadcast(r->recv, r->recv, all, ncclFloat, 0, r->comm, r->stream);
    case KL_FUNC_REDUCE:
        return ncclReduce(r->send, r->recv, all, ncclFloat, ncclSum, 0, r->comm, r->stream);
    case KL_FUNC_ALL_GATHER:
        return ncclAllGather(r->send, r->recv, piece, ncclFloat, r->comm, r->stream);
    case KL_FUNC_REDUCE_SCATTER:
        return ncclReduceScatter(r->send, r->recv, piece, ncclFloat, ncclSum, r->comm, r->stream);
    default:
        return ncclAllReduce(r->send, r->recv, all, ncclFloat, ncclSum, r->comm, r->stream);
    }
}

/* Nanoseconds of `operations`, of the slowest rank. */
static ncclResult_t time_block(struct rank *r, int func, size_t bytes, int operations, uint64_t *ns)
{
    meet(r);
    uint64_t begin = kl_now_ns();

    for (int i = 0; i < operations; i++) KL_TRY(launch(r, func, bytes));
    KL_TRY(koloStreamSynchronize(r->stream));
    *ns = largest(r, kl_now_ns() - begin);
    return ncclSuccess;
}

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void note_spread(struct kl_tune_spread *spread, double *times, int n)
{
    qsort(times, (size_t)n, sizeof *times, by_time);
    spread->times++;
    spread->apart += times[n / 2] > KL_TUNE_SPREAD_LIMIT * times[0];
}

/*
 * The least time of some blocks: other load on the machine only adds. The first block connects, and touches memory. Blocks
 * grow while they are short, so that a disturbance of milliseconds does little harm.
 */
static ncclResult_t measure_size(struct rank *r, int func, size_t bytes, float *us)
{
    double times[MOST_BLOCKS], least = 0;
    int operations = 1, n = 0;
    uint64_t ns, spent = 0;

    for (int block = 0; block < 3 || (spent < SIZE_NS && block < MOST_BLOCKS); block++) {
        KL_TRY(time_block(r, func, bytes, operations, &ns));
        if (!block) continue;
        times[n++] = (double)ns / operations;
        if (n == 1 || times[n - 1] < least) least = times[n - 1];
        spent += ns;
        if (ns < BLOCK_NS && operations < MOST_OPERATIONS) operations *= 4;
    }
    *us = (float)(least / 1000);
    if (!r->rank) note_spread(&r->shared->spread, times, n);
    return ncclSuccess;
}

/* If the algorithm cannot do it, the first call fails, on all ranks alike. */
static ncclResult_t measure_line(struct rank *r, int func, int algo)
{
    float us[KL_MEASURED_SIZES];
    uint64_t ns;
    ncclResult_t rc = time_block(r, func, (size_t)kl_measured_bytes[0], 1, &ns);

    if (rc == ncclInvalidUsage) return ncclSuccess;
    for (int s = 0; s < KL_MEASURED_SIZES && !rc; s++) rc = measure_size(r, func, (size_t)kl_measured_bytes[s], &us[s]);
    if (!rc && !r->rank) memcpy(r->shared->us[func][algo], us, sizeof us);
    return rc;
}

/* ---- one process ---- */

static ncclResult_t join(struct rank *r, int algo)
{
    setenv("NCCL_ALGO", kl_algo_name[algo], 1);
    if (!r->rank) KL_TRY(ncclGetUniqueId(&r->shared->id));
    meet(r);
    return ncclCommInitRank(&r->comm, r->nranks, r->shared->id, r->rank);
}

/* All other times are seen beside the ring's: however short the time is, there is one. */
static bool is_first(int func, int algo)
{
    return func == KL_FUNC_ALL_REDUCE && algo == KL_ALGO_RING;
}

static ncclResult_t measure_algorithm(struct rank *r, int algo)
{
    ncclResult_t rc = join(r, algo), end;

    for (int func = KL_FUNCS - 1; func >= 0 && !rc; func--)
        if (is_first(func, algo) || goes_on(r)) rc = measure_line(r, func, algo);
    end = r->comm ? ncclCommDestroy(r->comm) : ncclSuccess;
    r->comm = NULL;
    return rc ? rc : end;
}

uint64_t kl_tune_share(uint64_t end, int left)
{
    uint64_t now = kl_now_ns();

    return now + (end > now ? (end - now) / (uint64_t)left : 0);
}

static bool is_setting(const char *entry)
{
    return !strncmp(entry, "NCCL_", 5) || !strncmp(entry, "KOLO_", 5);
}

/* Unset all settings except the ones for measuring. */
static void set_environment(void)
{
    char **kept = environ;

    for (char **e = environ; *e; e++)
        if (!is_setting(*e)) *kept++ = *e;
    *kept = NULL;
    setenv("NCCL_CONF_FILE", "/dev/null", 1);
    setenv("NCCL_PROTO", "Simple", 1);
    setenv("KOLO_TUNING", "none", 1);
    setenv("KOLO_NVML", "0", 1);
}

/* A share of the CPUs each, while there are enough, as `kolo run` does it. */
static void take_cpus(const struct rank *r)
{
    struct kl_cpuset all, own = {0};
    int n = 0, there = kl_affinity_count();

    if (r->nranks > there || kl_affinity_get(&all)) return;
    for (int cpu = -1; (cpu = kl_cpuset_next(&all, cpu + 1)) >= 0; n++)
        if (n * r->nranks / there == r->rank) kl_cpuset_add(&own, cpu);
    kl_affinity_pin(&own, NULL);
}

static ncclResult_t run_rank(struct rank *r)
{
    static const int algos[] = {KL_ALGO_RING, KL_ALGO_FLAT, KL_ALGO_TREE, KL_ALGO_ONE_SHOT, KL_ALGO_NVLS};
    size_t most = (size_t)kl_measured_bytes[KL_MEASURED_SIZES - 1];
    uint64_t end = r->deadline;

    set_environment();
    take_cpus(r);
    r->send = malloc(most);
    r->recv = malloc(most);
    if (!r->send || !r->recv) return KL_NOMEM("buffers");
    memset(r->send, 0, most);
    memset(r->recv, 0, most);
    KL_TRY(koloStreamCreate(&r->stream, KOLO_STREAM_DEFAULT));
    for (int i = 0, n = sizeof algos / sizeof algos[0]; i < n; i++) {
        r->deadline = kl_tune_share(end, n - i);
        KL_TRY(measure_algorithm(r, algos[i]));
    }
    return ncclSuccess;
}

static void be_rank(struct rank r, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    kl_error_quiet(1); /* errors of algorithms that cannot do the operation are expected */
    ncclResult_t rc = run_rank(&r);
    if (rc) fprintf(stderr, "kolo tune: rank %d of %d: %s\n", r.rank, r.nranks, kl_error_text());
    _exit(rc != ncclSuccess);
}

/* ---- all processes ---- */

static void end_all(const pid_t *pids, int n)
{
    for (int i = 0; i < n; i++)
        if (pids[i]) kill(pids[i], SIGKILL);
}

enum ending { WELL, BADLY, LATE };

/* pids: 0 where it has ended. None is left. */
static enum ending await_all(pid_t *pids, int n, uint64_t deadline)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    enum ending ending = WELL;

    for (int left = n; left > 0;) {
        int status;
        bool moved = false;
        for (int i = 0; i < n; i++) {
            if (!pids[i] || waitpid(pids[i], &status, WNOHANG) != pids[i]) continue;
            pids[i] = 0;
            left--;
            moved = true;
            if (!status || ending) continue;
            ending = BADLY;
            end_all(pids, n);
        }
        if (!ending && kl_deadline_passed(deadline)) {
            ending = LATE;
            end_all(pids, n);
        }
        if (!moved) nanosleep(&pause, NULL);
    }
    return ending;
}

static ncclResult_t run_all(struct shared *shared, int nranks, uint64_t deadline)
{
    pid_t pids[MOST_RANKS] = {0}, parent = getpid();
    int started = 0;

    for (; started < nranks; started++) {
        struct rank r = {.shared = shared, .rank = started, .nranks = nranks, .deadline = deadline};
        pids[started] = fork();
        if (!pids[started]) be_rank(r, parent);
        if (pids[started] < 0) break;
    }
    if (started < nranks) {
        ncclResult_t rc = KL_FAIL_ERRNO("a process to measure with");
        pids[started] = 0;
        end_all(pids, started);
        await_all(pids, started, KL_NO_DEADLINE);
        return rc;
    }
    switch (await_all(pids, nranks, deadline + GRACE_S * (uint64_t)1000000000)) {
    case WELL:
        return ncclSuccess;
    case LATE:
        return KL_FAIL(ncclRemoteError, "measuring with %d ranks took longer than it may; do other programs run?",
                       nranks);
    default:
        return KL_FAIL(ncclRemoteError, "measuring with %d ranks did not end well", nranks);
    }
}

ncclResult_t kl_tune_measure(int at, uint64_t deadline, struct kl_tuning_measured *m, struct kl_tune_spread *spread)
{
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ncclResult_t rc;

    if (shared == MAP_FAILED) return KL_FAIL_ERRNO("memory for %zu bytes of results", sizeof *shared);
    rc = run_all(shared, kl_measured_ranks[at], deadline);
    for (int f = 0; f < KL_FUNCS && !rc; f++)
        for (int a = 0; a < KL_ALGOS; a++) memcpy(m->us[f][a][at], shared->us[f][a], sizeof shared->us[f][a]);
    spread->times += shared->spread.times;
    spread->apart += shared->spread.apart;
    munmap(shared, sizeof *shared);
    return rc;
}
