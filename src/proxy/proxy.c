/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/proxy.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/wakeup_fd.h"
#include "os/process.h"
#include "os/thread.h"
#include "os/yield.h"

#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SPIN_NS = 50000, LONGEST_SLEEP_MS = 1000, LAST_WAIT_MS = 5000 };

struct kl_proxy_sleep {
    struct pollfd *fd;
    nfds_t n, room;
    int ms;
};

struct kl_proxy {
    struct kl_thread thread;
    uint32_t generation; /* of the process that started it */
    int users;           /* under the registry's lock */
    int wakeup_fd;
    _Atomic bool asleep; /* or about to; the thread that clears it rings */
    _Atomic bool stop;
    _Atomic bool alone; /* the thread itself was the last user: it frees everything */
    pthread_mutex_t running;
    struct kl_proxy_task *duties; /* under `running` */
    struct kl_proxy_sleep rest;   /* the thread's */
};

static struct {
    pthread_mutex_t lock;
    struct kl_proxy *proxy;      /* under lock */
    _Atomic uint32_t generation; /* of the process that has it */
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- rounds ---- */

static void forget(struct kl_proxy *p, const struct kl_proxy_task *duty)
{
    struct kl_proxy_task **link = &p->duties;

    while (*link && *link != duty) link = &(*link)->next;
    if (*link) *link = duty->next;
}

static bool run_proxy_round(struct kl_proxy *p)
{
    bool moved = false;

    for (struct kl_proxy_task *d = p->duties, *next; d; d = next) {
        enum kl_progress got = d->progress(d);
        next = d->next;
        moved |= got != KL_STALLED;
        if (got != KL_DONE) continue;
        forget(p, d);
        d->end(d);
    }
    return moved;
}

static bool locked_round(struct kl_proxy *p)
{
    pthread_mutex_lock(&p->running);
    bool moved = run_proxy_round(p);
    pthread_mutex_unlock(&p->running);
    return moved;
}

/* ---- sleep ---- */

static bool has_room(struct kl_proxy_sleep *r)
{
    if (r->n < r->room) return true;
    nfds_t room = r->room ? 2 * r->room : 16;
    struct pollfd *fd = realloc(r->fd, room * sizeof *fd);
    if (!fd) return false;
    r->fd = fd;
    r->room = room;
    return true;
}

void kl_proxy_sleep_on(struct kl_proxy_sleep *r, int fd)
{
    if (has_room(r))
        r->fd[r->n++] = (struct pollfd){.fd = fd, .events = POLLIN};
    else
        kl_proxy_sleep_at_most(r, 1);
}

void kl_proxy_sleep_at_most(struct kl_proxy_sleep *r, int ms)
{
    if (ms < r->ms) r->ms = ms;
}

/* From now on a thread that adds work wakes the proxy; this round sees work that was added before. */
static bool prepare_sleep(struct kl_proxy *p)
{
    struct kl_proxy_sleep *r = &p->rest;

    r->n = 0;
    r->ms = LONGEST_SLEEP_MS;
    (void)kl_swap_acq_rel(&p->asleep, true); /* pairs with kl_proxy_wake */
    kl_proxy_sleep_on(r, p->wakeup_fd);
    pthread_mutex_lock(&p->running);
    for (struct kl_proxy_task *d = p->duties; d; d = d->next) d->rest(d, r);
    bool moved = run_proxy_round(p);
    pthread_mutex_unlock(&p->running);
    return !moved;
}

static void sleep_until_woken(struct kl_proxy *p)
{
    if (!prepare_sleep(p)) return;
    poll(p->rest.fd, p->rest.n, p->rest.ms);
    kl_wakeup_clear(p->wakeup_fd);
}

/* ---- life ---- */

static void free_proxy(struct kl_proxy *p)
{
    if (p->wakeup_fd >= 0) close(p->wakeup_fd);
    pthread_mutex_destroy(&p->running);
    free(p->rest.fd);
    free(p);
}

static void run(void *arg)
{
    struct kl_proxy *p = arg;
    uint64_t idle_since = 0;

    while (!kl_load_acquire(&p->stop)) {
        if (locked_round(p)) {
            idle_since = 0;
            continue;
        }
        uint64_t now = kl_now_ns();
        if (!idle_since) idle_since = now;
        if (now - idle_since < SPIN_NS) {
            kl_yield();
            continue;
        }
        sleep_until_woken(p);
        idle_since = 0;
    }
    if (!kl_load_acquire(&p->alone)) return;
    pthread_detach(pthread_self());
    free_proxy(p);
}

static ncclResult_t start(struct kl_proxy **proxy)
{
    struct kl_proxy *p = calloc(1, sizeof *p);

    if (!p) return KL_NOMEM("the proxy");
    p->generation = kl_process_generation();
    kl_store_relaxed(&process.generation, p->generation);
    pthread_mutex_init(&p->running, NULL);
    p->wakeup_fd = kl_wakeup_open();
    ncclResult_t rc =
        p->wakeup_fd < 0 ? KL_FAIL_ERRNO("cannot start the proxy") : kl_thread_start(&p->thread, "kolo proxy", run, p);
    if (rc)
        free_proxy(p);
    else
        *proxy = p;
    return rc;
}

ncclResult_t kl_proxy_ref(struct kl_proxy **proxy)
{
    ncclResult_t rc = ncclSuccess;

    pthread_mutex_lock(&process.lock);
    if (!process.proxy || !kl_process_is(process.proxy->generation)) rc = start(&process.proxy);
    if (!rc) {
        process.proxy->users++;
        *proxy = process.proxy;
    }
    pthread_mutex_unlock(&process.lock);
    return rc;
}

static bool is_last_user(struct kl_proxy *p)
{
    pthread_mutex_lock(&process.lock);
    bool last = --p->users == 0;
    if (last && process.proxy == p) process.proxy = NULL;
    pthread_mutex_unlock(&process.lock);
    return last;
}

void kl_proxy_unref(struct kl_proxy *p)
{
    if (!p || !kl_process_is(p->generation) || !is_last_user(p)) return;
    bool inside = pthread_equal(pthread_self(), p->thread.handle);
    if (inside) kl_store_release(&p->alone, true); /* pairs with run */
    kl_store_release(&p->stop, true);              /* pairs with run */
    if (inside) return;
    kl_wakeup_signal(p->wakeup_fd);
    kl_thread_join(&p->thread);
    free_proxy(p);
}

/* ---- duties ---- */

void kl_proxy_lock(struct kl_proxy *p)
{
    pthread_mutex_lock(&p->running);
}

void kl_proxy_unlock(struct kl_proxy *p)
{
    pthread_mutex_unlock(&p->running);
}

void kl_proxy_add(struct kl_proxy *p, struct kl_proxy_task *duty)
{
    pthread_mutex_lock(&p->running);
    duty->next = p->duties;
    p->duties = duty;
    pthread_mutex_unlock(&p->running);
    kl_proxy_wake(p);
}

void kl_proxy_remove(struct kl_proxy *p, struct kl_proxy_task *duty)
{
    if (!kl_process_is(p->generation)) return;
    pthread_mutex_lock(&p->running);
    forget(p, duty);
    pthread_mutex_unlock(&p->running);
    kl_proxy_wake(p); /* it may sleep on descriptors that are closed now */
}

void kl_proxy_wake(struct kl_proxy *p)
{
    if (kl_swap_acq_rel(&p->asleep, false)) kl_wakeup_signal(p->wakeup_fd); /* pairs with prepare_sleep */
}

int kl_proxy_wakeup_fd(const struct kl_proxy *p)
{
    return p->wakeup_fd;
}

enum kl_progress kl_proxy_help(struct kl_proxy *p)
{
    if (pthread_mutex_trylock(&p->running)) return KL_DONE;
    bool moved = run_proxy_round(p);
    pthread_mutex_unlock(&p->running);
    return moved ? KL_MOVED : KL_STALLED;
}

/* ---- the end of the process ---- */

/* Is an orphaned duty left, on which other ranks rely? */
static bool has_orphans(struct kl_proxy *p)
{
    bool found = false;

    pthread_mutex_lock(&p->running);
    for (const struct kl_proxy_task *d = p->duties; d; d = d->next) found |= d->orphan;
    pthread_mutex_unlock(&p->running);
    return found;
}

/* The proxy, if this process has one; NULL also in a child of the process that had. */
static struct kl_proxy *ref_existing(void)
{
    struct kl_proxy *p = NULL;

    if (!kl_process_is(kl_load_relaxed(&process.generation)))
        return NULL; /* its lock may have been taken at the fork */
    pthread_mutex_lock(&process.lock);
    if (process.proxy) {
        p = process.proxy;
        p->users++;
    }
    pthread_mutex_unlock(&process.lock);
    return p;
}

static bool is_needed(void)
{
    struct kl_proxy *p = ref_existing();
    bool needed = p && has_orphans(p);

    kl_proxy_unref(p);
    return needed;
}

__attribute__((destructor(1000))) static void finish_duties(void)
{
    uint64_t deadline = kl_deadline_in_ms(LAST_WAIT_MS);
    const struct timespec nap = {.tv_nsec = 200000};

    while (is_needed() && !kl_deadline_passed(deadline)) nanosleep(&nap, NULL);
}
