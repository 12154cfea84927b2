/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/soak/stage.h"

#include "base/atomic.h"
#include "tests/leftovers.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Shared by all processes of a job. */
struct shared {
    _Atomic uint32_t id_there;
    ncclUniqueId id;
    struct soak_note note[SOAK_RANKS];
};

struct rank {
    const struct soak_program *p;
    struct shared *shared;
    int rank;
    pthread_t thread;
};

/* ---- in a process of the job ---- */

static void put_settings(const struct soak_program *p, int process)
{
    char host[32];

    for (int i = 0; i < p->nsettings; i++) putenv(strdup(p->setting[i]));
    snprintf(host, sizeof host, "soak-%d", process * p->hosts / p->processes);
    if (p->hosts > 1) setenv("NCCL_HOSTID", host, 1);
    snprintf(host, sizeof host, "%d", process);
    setenv("KOLO_RANK", host, 1); /* identifies the rank where faults are injected */
}

/* Rank 0 makes the id; a rank that still waits for it is ended with the job. */
static bool get_id(struct rank *r)
{
    if (!r->rank) {
        ncclResult_t rc = ncclGetUniqueId(&r->shared->id);
        if (rc)
            snprintf(r->shared->note[0].text, sizeof r->shared->note[0].text,
                     "rank 0: ncclGetUniqueId: result %d, %.300s", rc, ncclGetLastError(NULL));
        kl_store_release(&r->shared->id_there, rc ? 2 : 1);
    }
    while (!kl_load_acquire(&r->shared->id_there)) usleep(200);
    if (kl_load_acquire(&r->shared->id_there) == 1) return true;
    kl_store_release(&r->shared->note[r->rank].outcome, SOAK_FAILED);
    return false;
}

static void *run_rank(void *arg)
{
    struct rank *r = arg;

    if (get_id(r)) soak_perform(r->p, r->rank, r->shared->id, r->shared->note);
    return NULL;
}

/* On GPUs the memory of the stand-in's devices, its executor and the descriptors in which that sleeps, and the memory
 * that aborted communicators shared. An id that some never
 * joined, because they failed before, stays open for a while. */
enum { GPU_KEEPS = 6 };
#define NO_NAME "-" /* nothing has it */
struct kolo_test_keep kolo_test_keeps[] = {{"/memfd:kolo-cuda-", 64, 0},
                                           {"/memfd:kolo-cuda ", 64, 0}, /* of NVLS */
                                           {"/memfd:kolo-fifo", SOAK_COMMS, 0},
                                           {"/memfd:kolo-memory", 4 * SOAK_COMMS, 0},
                                           {"kolo-executor", 1, 0},
                                           {"anon_inode:[event", 4, 0},
                                           KOLO_TEST_UNUSED_IDS,
                                           {NULL, 0, 0}};

static int run_process(const struct soak_program *p, int process, struct shared *shared)
{
    struct rank rank[SOAK_RANKS];

    kolo_test_look_from_here();
    for (int i = 0; i < GPU_KEEPS && !soak_is_on_gpus(); i++) kolo_test_keeps[i].name = NO_NAME;
    if (!p->hard) kolo_test_keeps[GPU_KEEPS].name = NULL;
    put_settings(p, process);
    for (int t = 0; t < p->threads; t++) {
        rank[t] = (struct rank){.p = p, .shared = shared, .rank = process * p->threads + t};
        if (pthread_create(&rank[t].thread, NULL, run_rank, &rank[t])) return 3;
    }
    for (int t = 0; t < p->threads; t++) pthread_join(rank[t].thread, NULL);
    return 0;
}

/* ---- the watcher ---- */

struct watch {
    const struct soak_program *p;
    struct shared *shared;
    struct soak_ending *ending;
    pid_t pid[SOAK_RANKS]; /* 0: over */
    pid_t stopped[SOAK_RANKS];
    int running;
};

__attribute__((format(printf, 2, 3))) static void add_line(struct soak_ending *e, const char *form, ...)
{
    size_t used = strlen(e->text);
    va_list args;

    va_start(args, form);
    vsnprintf(e->text + used, sizeof e->text - used, form, args);
    va_end(args);
}

/* Its ranks are not waited for any more. */
static void note_gone(struct watch *w, int process)
{
    uint32_t none = 0;

    w->ending->killed++;
    for (int t = 0; t < w->p->threads; t++) {
        struct soak_note *note = &w->shared->note[process * w->p->threads + t];
        if (kl_load_acquire(&note->outcome) == SOAK_RUNNING) kl_store_release(&note->outcome, SOAK_GONE);
    }
    if (!process) kl_cas_acq_rel(&w->shared->id_there, &none, 2);
}

static void note_end(struct watch *w, int process, int status)
{
    if (WIFSTOPPED(status)) {
        if (!w->p->hard) return;
        w->stopped[process] = w->pid[process];
    }
    w->pid[process] = 0;
    w->running--;
    if (!status) return;
    if (w->p->hard && (WIFSTOPPED(status) || WTERMSIG(status) == SIGKILL)) {
        note_gone(w, process);
        return;
    }
    w->ending->crashed++;
    if (WIFSIGNALED(status))
        add_line(w->ending, "  process %d ended by signal %d\n", process, WTERMSIG(status));
    else
        add_line(w->ending, "  process %d ended with exit code %d\n", process, WEXITSTATUS(status));
}

static void reap(struct watch *w)
{
    for (int i = 0; i < w->p->processes; i++) {
        int status;
        if (w->pid[i] && waitpid(w->pid[i], &status, WNOHANG | WUNTRACED) == w->pid[i]) note_end(w, i, status);
    }
}

static void kill_rest(struct watch *w)
{
    w->ending->late = true;
    for (int r = 0; r < w->p->n; r++)
        if (kl_load_acquire(&w->shared->note[r].outcome) == SOAK_RUNNING)
            add_line(w->ending, "  rank %d is in step %u of %d\n", r, kl_load_relaxed(&w->shared->note[r].step),
                     w->p->nsteps);
    for (int i = 0; i < w->p->processes; i++) {
        if (!w->pid[i]) continue;
        kill(w->pid[i], SIGKILL);
        waitpid(w->pid[i], NULL, 0);
        add_line(w->ending, "  process %d did not end\n", i);
    }
}

/* Rounds are counted, not time: a watcher that was stopped together with the job counts none. */
static void watch(struct watch *w, int limit_s)
{
    const struct timespec between = {.tv_nsec = 2000000};

    for (long looks = 0; w->running; looks++) {
        reap(w);
        if (looks > limit_s * 500L) {
            kill_rest(w);
            return;
        }
        if (w->running) nanosleep(&between, NULL);
    }
}

static void sum_up(const struct watch *w)
{
    for (int r = 0; r < w->p->n; r++) {
        uint32_t outcome = kl_load_acquire(&w->shared->note[r].outcome);
        w->ending->ranks[outcome]++;
        if (outcome != SOAK_RIGHT && outcome != SOAK_GONE && *w->shared->note[r].text)
            add_line(w->ending, "  %s\n", w->shared->note[r].text);
    }
}

static void start(struct watch *w)
{
    fflush(NULL);
    for (int i = 0; i < w->p->processes; i++) {
        w->pid[i] = fork();
        if (!w->pid[i]) exit(run_process(w->p, i, w->shared));
        if (w->pid[i] > 0)
            w->running++;
        else
            w->pid[i] = 0, w->ending->crashed++;
    }
}

void soak_stage(const struct soak_program *p, int limit_s, struct soak_ending *ending)
{
    struct watch w = {.p = p, .ending = ending};

    memset(ending, 0, sizeof *ending);
    w.shared = mmap(NULL, sizeof *w.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (w.shared == MAP_FAILED) abort();
    start(&w);
    watch(&w, limit_s);
    for (int i = 0; i < p->processes; i++) {
        if (!w.stopped[i]) continue;
        kill(w.stopped[i], SIGKILL);
        waitpid(w.stopped[i], NULL, 0);
    }
    sum_up(&w);
    munmap(w.shared, sizeof *w.shared);
}
