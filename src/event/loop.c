/* SPDX-License-Identifier: Apache-2.0 */
#include "event/loop.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/wakeup_fd.h"
#include "os/fault_inject.h"
#include "os/fd_limit.h"
#include "os/thread.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 64 };

/* A source is in `sources` until it is removed, then in `dead` until the loop thread has forgotten it. */
struct kl_source {
    struct kl_loop *loop;
    kl_source_fn *fn;
    void *ctx;
    int fd;

    /* under the loop's lock: */
    uint32_t events; /* 0 once removed */
    uint64_t deadline;
    bool registered;                  /* epoll knows it */
    struct kl_source *prev, *next;    /* in sources or dead */
    struct kl_source *sooner, *later; /* in timers, while deadline is set */
};

/* A call that another thread has requested (kl_loop_run); lies on that thread's stack while it waits. */
struct errand {
    struct errand *next;
    ncclResult_t (*fn)(void *ctx);
    void *ctx;
    int quiet; /* the thread's kl_error_quiet */
    ncclResult_t rc;
    char text[KL_ERROR_TEXT]; /* of a failure */
    bool done;
};

struct kl_loop {
    struct kl_thread thread;
    int epoll;
    int wake; /* a wakeup descriptor (os/wakeup_fd.h): wakes the thread */
    /* the reserve descriptor; -1: in use, or none could be opened. Used on the loop's thread once that runs */
    int spare;
    bool spare_used;
    bool inherited; /* set in the child by fork only */
    int holders;    /* under the registry's lock */

    pthread_mutex_t lock;
    pthread_cond_t callback_done;
    /* under lock: */
    struct kl_source *sources, *dead;
    struct kl_source *soonest, *latest; /* timers in order of their deadlines */
    struct errand *errands;
    struct kl_source *running;
    uint64_t turn; /* callbacks begun */
    bool ending;
    bool frees_itself; /* ended by one of its own callbacks: the thread is detached and frees the loop */
};

/* The process's loop. */
static struct {
    pthread_mutex_t lock;
    struct kl_loop *loop;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t fork_handlers_once = PTHREAD_ONCE_INIT;
static _Thread_local const struct kl_loop *inside_of;

/* ---- lists; all under the loop's lock ---- */

static void push(struct kl_source **list, struct kl_source *s)
{
    s->prev = NULL;
    s->next = *list;
    if (*list) (*list)->prev = s;
    *list = s;
}

static void unlink_from(struct kl_source **list, struct kl_source *s)
{
    if (s->prev)
        s->prev->next = s->next;
    else
        *list = s->next;
    if (s->next) s->next->prev = s->prev;
}

static void disarm(struct kl_loop *loop, struct kl_source *s)
{
    if (s->deadline == KL_NO_DEADLINE) return;
    if (s->sooner)
        s->sooner->later = s->later;
    else
        loop->soonest = s->later;
    if (s->later)
        s->later->sooner = s->sooner;
    else
        loop->latest = s->sooner;
    s->deadline = KL_NO_DEADLINE;
}

/* New deadlines are mostly the latest: search from the end of the list. */
static void arm(struct kl_loop *loop, struct kl_source *s, uint64_t deadline)
{
    struct kl_source *before = loop->latest;

    while (before && before->deadline > deadline) before = before->sooner;
    s->deadline = deadline;
    s->sooner = before;
    s->later = before ? before->later : loop->soonest;
    if (s->later)
        s->later->sooner = s;
    else
        loop->latest = s;
    if (before)
        before->later = s;
    else
        loop->soonest = s;
}

/* ---- the thread ---- */

static void wake(struct kl_loop *loop)
{
    if (!loop->inherited && !kl_loop_inside(loop)) kl_wakeup_signal(loop->wake);
}

/* Called with the lock held, which is released during the callback. */
static void call(struct kl_loop *loop, struct kl_source *s, uint32_t events)
{
    loop->running = s;
    loop->turn++;
    pthread_mutex_unlock(&loop->lock);
    s->fn(s->ctx, events);
    pthread_mutex_lock(&loop->lock);
    loop->running = NULL;
    pthread_cond_broadcast(&loop->callback_done);
}

static void call_ready(struct kl_loop *loop, const struct epoll_event *events, int n)
{
    for (int i = 0; i < n; i++) {
        struct kl_source *s = events[i].data.ptr;
        if (!s) {
            kl_wakeup_clear(loop->wake);
            continue;
        }
        /* An earlier callback of this batch may have removed the source, or changed its events. */
        uint32_t wanted = s->events ? s->events | EPOLLERR | EPOLLHUP : 0;
        if (events[i].events & wanted) call(loop, s, events[i].events & wanted);
    }
}

static void call_expired(struct kl_loop *loop)
{
    uint64_t now = kl_now_ns();

    for (struct kl_source *s; (s = loop->soonest) && s->deadline <= now;) {
        disarm(loop, s);
        call(loop, s, 0);
    }
}

static void run_errands(struct kl_loop *loop)
{
    for (struct errand *e; (e = loop->errands);) {
        loop->errands = e->next;
        pthread_mutex_unlock(&loop->lock);
        int quiet = kl_error_quiet(e->quiet);
        e->rc = e->fn(e->ctx);
        kl_error_quiet(quiet);
        if (e->rc) snprintf(e->text, sizeof e->text, "%s", kl_error_text());
        pthread_mutex_lock(&loop->lock);
        e->done = true;
        pthread_cond_broadcast(&loop->callback_done);
    }
}

/* Called only between batches: events of a batch may point to dead sources. */
static void free_dead(struct kl_loop *loop)
{
    for (struct kl_source *s; (s = loop->dead);) {
        loop->dead = s->next;
        free(s);
    }
}

static int sleep_ms(const struct kl_loop *loop)
{
    return loop->soonest ? kl_deadline_left_ms(loop->soonest->deadline, INT_MAX) : -1;
}

static void loop_free(struct kl_loop *loop)
{
    free_dead(loop);
    if (!loop->inherited) {
        if (loop->epoll >= 0) close(loop->epoll);
        if (loop->wake >= 0) close(loop->wake);
        if (loop->spare >= 0) close(loop->spare);
    }
    pthread_cond_destroy(&loop->callback_done);
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

static void run(void *arg)
{
    struct kl_loop *loop = arg;
    struct epoll_event events[BATCH];

    inside_of = loop;
    pthread_mutex_lock(&loop->lock);
    while (!loop->ending) {
        run_errands(loop);
        free_dead(loop);
        int ms = sleep_ms(loop);
        pthread_mutex_unlock(&loop->lock);
        int n = epoll_wait(loop->epoll, events, BATCH, ms);
        pthread_mutex_lock(&loop->lock);
        call_ready(loop, events, n);
        call_expired(loop);
    }
    bool mine = loop->frees_itself;
    pthread_mutex_unlock(&loop->lock);
    if (mine) loop_free(loop);
}

/* ---- life ---- */

static ncclResult_t open_descriptors(struct kl_loop *loop)
{
    struct epoll_event e = {.events = EPOLLIN}; /* data.ptr NULL: the wake event */

    do loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    while (loop->epoll < 0 && kl_fd_limit_make_room(errno));
    loop->wake = kl_wakeup_open();
    loop->spare = kl_wakeup_open();
    if (loop->epoll < 0 || loop->wake < 0 || loop->spare < 0)
        return KL_FAIL_ERRNO("cannot open the descriptors of the event loop");
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake, &e)) return KL_FAIL_ERRNO("cannot watch a wakeup descriptor");
    return ncclSuccess;
}

static ncclResult_t loop_create(struct kl_loop **out)
{
    struct kl_loop *loop = kl_inject_calloc(1, sizeof *loop);
    ncclResult_t rc;

    if (!loop) return KL_NOMEM("the event loop");
    loop->epoll = loop->wake = loop->spare = -1;
    pthread_mutex_init(&loop->lock, NULL);
    pthread_cond_init(&loop->callback_done, NULL);
    KL_TRY_OR(rc, out, open_descriptors(loop));
    KL_TRY_OR(rc, out, kl_thread_start(&loop->thread, "kolo-loop", run, loop));
    *out = loop;
    return ncclSuccess;
out:
    loop_free(loop);
    return rc;
}

/* fork: both locks are taken around it, so that the child finds the lists whole and owns the locks. */

static void before_fork(void)
{
    pthread_mutex_lock(&registry.lock);
    if (registry.loop) pthread_mutex_lock(&registry.loop->lock);
}

static void after_fork_in_parent(void)
{
    if (registry.loop) pthread_mutex_unlock(&registry.loop->lock);
    pthread_mutex_unlock(&registry.lock);
}

/* An epoll instance is shared with the parent: changing it here would change it there. Only close it. */
static void after_fork_in_child(void)
{
    struct kl_loop *loop = registry.loop;

    if (loop) {
        loop->inherited = true;
        close(loop->epoll);
        close(loop->wake);
        if (loop->spare >= 0) close(loop->spare);
        for (struct kl_source *s = loop->sources; s; s = s->next)
            if (s->fd >= 0) close(s->fd);
        loop->running = NULL;
        pthread_mutex_unlock(&loop->lock);
    }
    registry.loop = NULL;
    pthread_mutex_unlock(&registry.lock);
}

static void install_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

ncclResult_t kl_loop_ref(struct kl_loop **loop)
{
    ncclResult_t rc = ncclSuccess;

    pthread_once(&fork_handlers_once, install_fork_handlers);
    pthread_mutex_lock(&registry.lock);
    if (!registry.loop) rc = loop_create(&registry.loop);
    if (!rc) {
        registry.loop->holders++;
        *loop = registry.loop;
    }
    pthread_mutex_unlock(&registry.lock);
    return rc;
}

bool kl_loop_ref_existing(struct kl_loop **loop)
{
    pthread_mutex_lock(&registry.lock);
    bool here = registry.loop;
    if (here) {
        registry.loop->holders++;
        *loop = registry.loop;
    }
    pthread_mutex_unlock(&registry.lock);
    return here;
}

/* After the last drop the loop is no longer the process's loop: only the thread has it, and a new holder gets a new
 * one. */
static void loop_end(struct kl_loop *loop)
{
    bool inside = kl_loop_inside(loop);

    if (loop->inherited) {
        loop_free(loop);
        return;
    }
    pthread_mutex_lock(&loop->lock);
    loop->ending = true;
    loop->frees_itself = inside;
    pthread_mutex_unlock(&loop->lock);
    if (inside) {
        pthread_detach(pthread_self());
        return;
    }
    wake(loop);
    kl_thread_join(&loop->thread);
    loop_free(loop);
}

void kl_loop_unref(struct kl_loop *loop)
{
    if (!loop) return;
    pthread_mutex_lock(&registry.lock);
    bool last = !--loop->holders;
    if (last && registry.loop == loop) registry.loop = NULL;
    pthread_mutex_unlock(&registry.lock);
    if (last) loop_end(loop);
}

bool kl_loop_inside(const struct kl_loop *loop)
{
    return inside_of == loop;
}

bool kl_loop_inherited(const struct kl_loop *loop)
{
    return loop->inherited;
}

/* ---- the reserve descriptor ---- */

static bool is_lack(int err)
{
    return err == EMFILE || err == ENFILE;
}

bool kl_loop_use_reserve_fd(struct kl_loop *loop, int err)
{
    if (!is_lack(err) || loop->spare_used) return false;
    if (loop->spare < 0) loop->spare = kl_wakeup_open(); /* could not be reopened when it was returned */
    if (loop->spare < 0) return false;
    const int spare = loop->spare;
    loop->spare = -1; /* before close: a forked child closes the descriptor found here */
    close(spare);
    loop->spare_used = true;
    return true;
}

bool kl_loop_restore_reserve_fd(struct kl_loop *loop)
{
    loop->spare = kl_wakeup_open();
    loop->spare_used = loop->spare_used && loop->spare < 0;
    return !loop->spare_used;
}

void kl_loop_release_reserve_fd(struct kl_loop *loop)
{
    loop->spare = kl_wakeup_open();
    loop->spare_used = false;
}

/* ---- sources ---- */

/* Register the events that the source wants with epoll; under lock. */
static ncclResult_t apply(struct kl_source *s, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = s};
    int op = !events ? EPOLL_CTL_DEL : s->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    s->events = events;
    if (s->fd < 0 || s->loop->inherited || (!events && !s->registered)) return ncclSuccess;
    if (epoll_ctl(s->loop->epoll, op, s->fd, &e)) return KL_FAIL_ERRNO("cannot watch descriptor %d", s->fd);
    s->registered = events != 0;
    return ncclSuccess;
}

ncclResult_t kl_loop_add(struct kl_loop *loop, int fd, uint32_t events, kl_source_fn *fn, void *ctx,
                         struct kl_source **source)
{
    struct kl_source *s = kl_inject_calloc(1, sizeof *s);

    if (!s) return KL_NOMEM("a source of the event loop");
    *s = (struct kl_source){.loop = loop, .fn = fn, .ctx = ctx, .fd = fd, .deadline = KL_NO_DEADLINE};
    pthread_mutex_lock(&loop->lock);
    struct kl_source *before = *source;
    *source = s; /* before unlock: the callback may use it, and waits for the lock */
    push(&loop->sources, s);
    ncclResult_t rc = apply(s, events);
    if (rc) {
        *source = before;
        unlink_from(&loop->sources, s);
    }
    pthread_mutex_unlock(&loop->lock);
    if (rc) free(s);
    return rc;
}

void kl_source_watch(struct kl_source *s, uint32_t events)
{
    pthread_mutex_lock(&s->loop->lock);
    if (s->events != events) (void)apply(s, events);
    pthread_mutex_unlock(&s->loop->lock);
}

void kl_source_deadline(struct kl_source *s, uint64_t deadline)
{
    struct kl_loop *loop = s->loop;

    pthread_mutex_lock(&loop->lock);
    disarm(loop, s);
    if (deadline != KL_NO_DEADLINE) arm(loop, s, deadline);
    if (loop->soonest == s) wake(loop); /* before unlock: afterwards a callback may end the loop */
    pthread_mutex_unlock(&loop->lock);
}

static void wait_for_callback(struct kl_loop *loop, const struct kl_source *s)
{
    uint64_t turn = loop->turn; /* `s` may be freed, and its address reused, during the wait */

    while (loop->running == s && loop->turn == turn) pthread_cond_wait(&loop->callback_done, &loop->lock);
}

void kl_source_remove(struct kl_source *s)
{
    if (!s) return;
    struct kl_loop *loop = s->loop;

    pthread_mutex_lock(&loop->lock);
    (void)apply(s, 0);
    disarm(loop, s);
    unlink_from(&loop->sources, s);
    push(&loop->dead, s);
    if (!kl_loop_inside(loop)) wait_for_callback(loop, s);
    pthread_mutex_unlock(&loop->lock);
    wake(loop); /* so that the thread frees it */
}

static int my_quiet(void)
{
    int quiet = kl_error_quiet(1);

    kl_error_quiet(quiet);
    return quiet;
}

ncclResult_t kl_loop_run(struct kl_loop *loop, ncclResult_t (*fn)(void *ctx), void *ctx)
{
    struct errand e = {.fn = fn, .ctx = ctx, .quiet = my_quiet()};

    if (loop->inherited || kl_loop_inside(loop)) return fn(ctx);
    pthread_mutex_lock(&loop->lock);
    e.next = loop->errands;
    loop->errands = &e;
    wake(loop);
    while (!e.done) pthread_cond_wait(&loop->callback_done, &loop->lock);
    pthread_mutex_unlock(&loop->lock);
    if (e.rc) kl_error_adopt(e.text);
    return e.rc;
}
