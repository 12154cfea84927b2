/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/workers.h"

#include "base/error.h"
#include "base/fork_lock.h"
#include "os/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { IDLE_S = 1 };

struct worker {
    pthread_cond_t called;
    void (*run)(void *arg); /* NULL: idle */
    void *arg;
    struct worker *next; /* in the list of idle ones */
};

/* All under lock, as all data of workers. */
static struct {
    pthread_mutex_t lock;
    struct worker *idle;
    struct kl_worker_task *first, **end; /* to be run in order */
    bool running;                        /* a worker runs errands until none is left */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = &pool.first};

/* A child of fork has no workers. */
static void forget_workers(void)
{
    pool.idle = NULL;
    pool.first = NULL;
    pool.end = &pool.first;
    pool.running = false;
}

KL_FORK_LOCK(pool.lock, forget_workers());

/* ---- a worker ---- */

static void remove_idle(const struct worker *w)
{
    struct worker **link = &pool.idle;

    while (*link != w) link = &(*link)->next;
    *link = w->next;
}

/* Under lock. False: timed out without a call. */
static bool wait_for_call(struct worker *w)
{
    struct timespec until;
    int err = 0;

    w->run = NULL;
    w->next = pool.idle;
    pool.idle = w;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_S;
    while (!w->run && !err) err = pthread_cond_timedwait(&w->called, &pool.lock, &until);
    if (w->run) return true;
    remove_idle(w);
    return false;
}

static void work(void *arg)
{
    struct worker *w = arg;
    bool called;

    kl_error_mark_internal(false); /* it runs functions of the program, whose failures are the program's */
    do {
        w->run(w->arg);
        pthread_mutex_lock(&pool.lock);
        called = wait_for_call(w);
        pthread_mutex_unlock(&pool.lock);
    } while (called);
    pthread_cond_destroy(&w->called);
    free(w);
}

static bool start_worker(void (*run)(void *), void *arg)
{
    struct worker *w = calloc(1, sizeof *w);
    pthread_condattr_t monotonic;

    if (!w) return false;
    w->run = run;
    w->arg = arg;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->called, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (!kl_thread_start_detached("kolo worker", work, w)) return true;
    pthread_cond_destroy(&w->called);
    free(w);
    return false;
}

/* ---- calling ---- */

static bool call_idle(void (*run)(void *), void *arg)
{
    pthread_mutex_lock(&pool.lock);
    struct worker *w = pool.idle;
    if (w) {
        pool.idle = w->next;
        w->run = run;
        w->arg = arg;
        pthread_cond_signal(&w->called);
    }
    pthread_mutex_unlock(&pool.lock);
    return w;
}

static void be_forked_well(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, install_fork_handlers);
}

bool kl_workers_run(void (*run)(void *), void *arg)
{
    be_forked_well();
    return call_idle(run, arg) || start_worker(run, arg);
}

/* ---- errands ---- */

/* NULL: none is left, and the next kl_workers_submit starts another worker. */
static struct kl_worker_task *next_errand(void)
{
    pthread_mutex_lock(&pool.lock);
    struct kl_worker_task *e = pool.first;
    if (e) pool.first = e->next;
    if (!pool.first) pool.end = &pool.first;
    pool.running = e;
    pthread_mutex_unlock(&pool.lock);
    return e;
}

static void run_errands(void *unused)
{
    (void)unused;
    for (struct kl_worker_task *e; (e = next_errand());) e->run(e);
}

void kl_workers_submit(struct kl_worker_task *errand)
{
    be_forked_well();
    errand->next = NULL;
    pthread_mutex_lock(&pool.lock);
    *pool.end = errand;
    pool.end = &errand->next;
    const bool running = pool.running;
    pool.running = true;
    pthread_mutex_unlock(&pool.lock);
    if (!running && !kl_workers_run(run_errands, NULL)) run_errands(NULL);
}
