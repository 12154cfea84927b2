/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/collectives/start.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_child(struct area_end *end, void (*rank)(struct area_end *, void *), void *context, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1); /* it went before that */
    rank(end, context);
    fflush(NULL);
    _exit(0);
}

static void kill_all(const pid_t *pids, int n)
{
    for (int r = 0; r < n; r++)
        if (pids[r]) kill(pids[r], SIGKILL);
}

/* pids: 0 once ended, so that no foreign process is killed */
static int wait_for_all(pid_t *pids, int n, bool failed)
{
    int status;

    if (failed) kill_all(pids, n);
    for (pid_t pid; (pid = wait(&status)) > 0;) {
        for (int r = 0; r < n; r++)
            if (pids[r] == pid) pids[r] = 0;
        if (!status || failed) continue;
        failed = true;
        kill_all(pids, n);
    }
    return failed;
}

int start_processes(int nranks, void (*rank)(struct area_end *, void *), void *context)
{
    struct area *area = area_create();
    pid_t pids[AREA_RANKS], parent = getpid();
    int started = 0;

    if (!area || nranks < 1 || nranks > AREA_RANKS) return 1;
    for (; started < nranks; started++) {
        struct area_end end = {.area = area, .rank = started, .nranks = nranks};
        pids[started] = fork();
        if (pids[started] < 0) break;
        if (!pids[started]) run_child(&end, rank, context, parent);
    }
    if (started < nranks) perror("bench: fork");
    return wait_for_all(pids, started, started < nranks);
}

struct thread {
    struct area_end end;
    void (*rank)(struct area_end *, void *);
    void *context;
};

static void *run_thread(void *arg)
{
    struct thread *t = arg;

    t->rank(&t->end, t->context);
    return NULL;
}

int start_threads(int nranks, void (*rank)(struct area_end *, void *), void *context)
{
    struct area *area = area_create();
    struct thread threads[AREA_RANKS];
    pthread_t ids[AREA_RANKS];

    if (!area || nranks < 1 || nranks > AREA_RANKS) return 1;
    for (int r = 0; r < nranks; r++) {
        threads[r] = (struct thread){{.area = area, .rank = r, .nranks = nranks}, rank, context};
        if (pthread_create(&ids[r], NULL, run_thread, &threads[r])) exit(1);
    }
    for (int r = 0; r < nranks; r++) pthread_join(ids[r], NULL);
    return 0;
}
