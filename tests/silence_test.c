/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank is stopped (SIGSTOP) in init, in a split, in a shrink or in an operation: the others find
 * that this one is silent, and name it; none accuses a neighbour that waits as well.
 *
 *   silence_test                     some stops
 *   silence_test FIRST LAST STEP     each rank, at each of these chances to stop (KOLO_CHAOS=1:stop@N), with the others'
 *                                    messages
 *
 * The test runs its own program again as ranks: silence_test rank RANK.
 */
#include "include/kolo.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "tests/free_port.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { AT_A_TIME = 6, STEP = 80 }; /* the code that finds a silent rank is the same in each */
#else
enum { AT_A_TIME = 12, STEP = 32 }; /* they wait most of the time */
#endif
enum { RANKS = 4, COUNT = 1000, FAILED = 3, SAID = 1200, TIMEOUT_S = 3 };

/* ---- a rank ---- */

static int my_rank;

static ncclResult_t tell(ncclResult_t rc)
{
    if (rc) printf("%d: %s\n", my_rank, ncclGetLastError(NULL));
    return rc;
}

static ncclResult_t reduce(ncclComm_t comm)
{
    static float from[COUNT], to[COUNT];
    ncclResult_t rc = ncclAllReduce(from, to, COUNT, ncclFloat, ncclSum, comm, NULL);

    return rc ? rc : koloStreamSynchronize(NULL);
}

/* A rank that fails to make the child does not desert the others. */
static ncclResult_t use_child(ncclComm_t comm, ncclResult_t made, const ncclComm_t *child)
{
    ncclResult_t rc = tell(made);

    if (!rc) rc = tell(reduce(*child));
    if (!made) (void)ncclCommDestroy(*child);
    ncclResult_t later = tell(reduce(comm));
    return rc ? rc : later;
}

static ncclResult_t live(ncclComm_t comm, int rank)
{
    ncclComm_t child = NULL;
    ncclResult_t rc = tell(reduce(comm));
    int last = RANKS - 1;

    if (!rc) rc = use_child(comm, ncclCommSplit(comm, 0, rank, &child, NULL), &child);
    if (!rc) rc = use_child(comm, ncclCommSplit(comm, rank / 2, rank, &child, NULL), &child);
    if (!rc && rank == last) return tell(reduce(comm));
    return rc ? rc : use_child(comm, ncclCommShrink(comm, &last, 1, &child, NULL, NCCL_SHRINK_DEFAULT), &child);
}

static int be_rank(int rank)
{
    ncclComm_t comm;

    my_rank = rank;
    if (tell(koloInitFromEnv(&comm))) return FAILED;
    ncclResult_t rc = live(comm, rank);
    (void)ncclCommDestroy(comm);
    return rc ? FAILED : 0;
}

/* ---- a job ---- */

static const char *self;

static void set_number(const char *name, int value)
{
    char text[32];

    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static pid_t start_rank(int rank, int port, int timeout_s, const char *chaos, int output)
{
    char address[32], number[16];
    pid_t pid = fork();

    if (pid) return pid;
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    snprintf(number, sizeof number, "%d", rank);
    set_number("KOLO_RANK", rank);
    set_number("KOLO_SIZE", RANKS);
    setenv("KOLO_COMM_ID", address, 1);
    setenv("KOLO_SECRET", "silence", 1);
    set_number("KOLO_BOOTSTRAP_TIMEOUT", timeout_s);
    set_number("KOLO_TIMEOUT", timeout_s);
    if (chaos) setenv("KOLO_CHAOS", chaos, 1);
    dup2(output, 1);
    alarm(kolo_test_hang_s());
    execl(self, self, "rank", number, (char *)NULL);
    _exit(127);
}

/* The outcome of a job. */
struct end {
    bool stopped, late;
    int failed, right; /* survivors: failed ones, and of those, ones that name the victim */
    char said[4 * RANKS * SAID];
};

/*
 * Named as the rank that is silent, or missing, or keeps the rendezvous, not only as one that is waited for. In a child
 * it has another rank.
 */
static bool names(const char *line, int timeout_s, int victim, pid_t pid)
{
    char silent[48], missing[48];
    const char *found;

    snprintf(silent, sizeof silent, ", pid %d)", (int)pid);
    snprintf(missing, sizeof missing, "1 of %d ranks did not join within %d s: rank %d", RANKS, timeout_s, victim);
    found = strstr(line, silent);
    if (found && !strncmp(found + strlen(silent), " is silent: ", 12)) return true;
    if (found && strstr(line, "waiting for rank ") && !strncmp(found + strlen(silent), ", which is silent", 17))
        return true;
    return strstr(line, missing) || (!victim && strstr(line, "which rank 0 opens"));
}

static void read_output(struct end *e, int fd, int timeout_s, int victim, pid_t pid)
{
    size_t n = 0;
    ssize_t got;

    while (n + 1 < sizeof e->said && (got = read(fd, e->said + n, sizeof e->said - 1 - n)) > 0) n += (size_t)got;
    e->said[n] = '\0';
    for (char *line = e->said, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        e->failed++;
        e->right += names(line, timeout_s, victim, pid);
        *end = '\n';
    }
}

/* The victim stays stopped until all others have ended. */
static void run(int victim, int turn, int timeout_s, struct end *e)
{
    char chaos[32];
    pid_t pid[RANKS];
    int output[2], status, port = kolo_test_free_port();

    memset(e, 0, sizeof *e);
    snprintf(chaos, sizeof chaos, "1:stop@%d", turn);
    if (pipe(output)) abort();
    for (int r = 0; r < RANKS; r++) pid[r] = start_rank(r, port, timeout_s, r == victim ? chaos : NULL, output[1]);
    close(output[1]);
    for (int r = 0; r < RANKS; r++) {
        if (r == victim) continue;
        waitpid(pid[r], &status, 0);
        e->late |= WIFSIGNALED(status);
    }
    waitpid(pid[victim], &status, WUNTRACED);
    e->stopped = WIFSTOPPED(status);
    kill(pid[victim], SIGKILL);
    if (e->stopped) waitpid(pid[victim], NULL, 0);
    read_output(e, output[0], timeout_s, victim, pid[victim]);
    close(output[0]);
}

/* ---- many jobs ---- */

static struct {
    int first, last, step;
    bool verbose;
} all = {1, 161, STEP, false};

/* Deadlines pass for all while the machine stands still (a frozen group, say): such a run shows nothing. */
static _Atomic bool paused;

static void *watch_for_pauses(void *arg)
{
    for (uint64_t before = kl_now_ns(), now;; before = now) {
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        now = kl_now_ns();
        if (now - before > 1000000000u) kl_store_release(&paused, true);
    }
    return arg;
}

/* True: as expected. If it stopped late, its part of the work may have been done: then the others may succeed. */
static bool try_stop_for(int victim, int turn, int timeout_s)
{
    static struct end e;

    do {
        kl_store_release(&paused, false);
        run(victim, turn, timeout_s, &e);
    } while (kl_load_acquire(&paused));
    bool fine = !e.late && e.right == e.failed;
    if (!fine || all.verbose)
        printf("%s: rank %d, stop@%d, %d s: %s, %d failed, %d named it%s\n%s", fine ? "fine" : "WRONG", victim, turn,
               timeout_s, e.stopped ? "stopped" : "not stopped", e.failed, e.right, e.late ? ", LATE" : "", e.said);
    fflush(stdout);
    return fine;
}

/* Other programs may keep an innocent rank from running for as long as the others are patient, but not for far longer. */
static bool try_stop(int victim, int turn)
{
    return try_stop_for(victim, turn, TIMEOUT_S) || try_stop_for(victim, turn, 5 * TIMEOUT_S);
}

/* Every AT_A_TIMEth stop. */
static int work(int worker)
{
    int wrong = 0, i = 0;
    pthread_t thread;

    pthread_create(&thread, NULL, watch_for_pauses, NULL);
    for (int turn = all.first; turn <= all.last; turn += all.step)
        for (int victim = 0; victim < RANKS; victim++)
            if (i++ % AT_A_TIME == worker) wrong += !try_stop(victim, turn);
    return wrong != 0;
}

static void any_stopped_rank_is_named(void **state)
{
    int status, wrong = 0;

    (void)state;
    for (int w = 0; w < AT_A_TIME; w++)
        if (!fork()) _exit(work(w));
    for (int w = 0; w < AT_A_TIME; w++) {
        wait(&status);
        wrong += status != 0;
    }
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_stopped_rank_is_named)};

    self = argv[0];
    if (argc == 3 && !strcmp(argv[1], "rank")) return be_rank(atoi(argv[2]));
    if (argc == 4) {
        all.verbose = true;
        all.first = atoi(argv[1]);
        all.last = atoi(argv[2]);
        all.step = atoi(argv[3]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
