/* SPDX-License-Identifier: Apache-2.0 */
#include "event/loop.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "os/thread.h"
#include "tests/kolo_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- helpers ---- */

static int count_entries(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;

    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static int count_fds(void)
{
    return count_entries("/proc/self/fd");
}

static struct kl_loop *hold(void)
{
    struct kl_loop *loop = NULL;

    assert_int_equal(kl_loop_hold(&loop), ncclSuccess);
    return loop;
}

static int event(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    assert_in_range(fd, 0, 1 << 20);
    return fd;
}

static void signal_event(int fd)
{
    assert_int_equal(eventfd_write(fd, 1), 0);
}

/* Asking for an existing loop does not start one. */
static void only_a_loop_that_exists_is_held(void **state)
{
    struct kl_loop *loop, *same;

    (void)state;
    assert_false(kl_loop_hold_existing(&loop));
    loop = hold();
    assert_true(kl_loop_hold_existing(&same));
    assert_ptr_equal(same, loop);
    kl_loop_drop(loop);
    assert_true(kl_loop_hold_existing(&loop)); /* it lives on */
    kl_loop_drop(loop);
    kl_loop_drop(same);
    assert_false(kl_loop_hold_existing(&loop));
}

/* A source that counts its callbacks, and consumes its event. */
struct counter {
    struct kl_loop *loop;
    struct kl_source *source;
    int fd;
    _Atomic int calls, expired;
    sem_t called;
};

static void count_call(void *ctx, uint32_t events)
{
    struct counter *c = ctx;
    eventfd_t value;

    if (events) eventfd_read(c->fd, &value);
    kl_fetch_add_relaxed(events ? &c->calls : &c->expired, 1);
    sem_post(&c->called);
}

static void counter_add(struct counter *c, struct kl_loop *loop, int fd, kl_source_fn *fn)
{
    *c = (struct counter){.loop = loop, .fd = fd};
    sem_init(&c->called, 0, 0);
    assert_int_equal(kl_loop_add(loop, fd, fd < 0 ? 0 : EPOLLIN, fn, c, &c->source), ncclSuccess);
}

static void counter_remove(struct counter *c)
{
    kl_source_remove(c->source);
    if (c->fd >= 0) close(c->fd);
    sem_destroy(&c->called);
}

/* ---- life ---- */

static void holders_share_one_loop_and_the_last_ends_it(void **state)
{
    (void)state;
    kl_loop_drop(hold()); /* sanitizers start a thread of their own with the process's first */
    int fds = count_fds(), threads = count_entries("/proc/self/task");
    struct kl_loop *a = hold(), *b = hold();

    assert_ptr_equal(a, b);
    assert_int_equal(count_entries("/proc/self/task"), threads + 1);
    assert_false(kl_loop_inside(a));
    kl_loop_drop(a);
    assert_int_equal(count_entries("/proc/self/task"), threads + 1);
    kl_loop_drop(b);
    kl_loop_drop(NULL);
    while (count_entries("/proc/self/task") != threads) sched_yield(); /* a joined thread is listed a moment longer */
    assert_int_equal(count_fds(), fds);
}

static char thread_name[16];

static void note_name(void *ctx, uint32_t events)
{
    struct counter *c = ctx;

    (void)events;
    pthread_getname_np(pthread_self(), thread_name, sizeof thread_name);
    sem_post(&c->called);
}

static void the_thread_has_a_name(void **state)
{
    struct kl_loop *loop = hold();
    struct counter c;

    (void)state;
    counter_add(&c, loop, -1, note_name);
    kl_source_deadline(c.source, 0);
    sem_wait(&c.called);
    counter_remove(&c);
    kl_loop_drop(loop);
    assert_string_equal(thread_name, "kolo-loop");
}

struct ender {
    struct kl_loop *loop;
    struct kl_source *source;
    sem_t ended;
};

static void end_from_inside(void *ctx, uint32_t events)
{
    struct ender *e = ctx;

    (void)events;
    assert_true(kl_loop_inside(e->loop));
    kl_source_remove(e->source);
    kl_loop_drop(e->loop);
    sem_post(&e->ended);
}

/* As a finished rendezvous does. The next holder gets a new loop. */
static void a_callback_may_end_the_loop(void **state)
{
    int fds = count_fds();

    (void)state;
    for (int i = 0; i < 50; i++) {
        struct ender e = {.loop = hold()};
        sem_init(&e.ended, 0, 0);
        assert_int_equal(kl_loop_add(e.loop, -1, 0, end_from_inside, &e, &e.source), ncclSuccess);
        kl_source_deadline(e.source, 0);
        sem_wait(&e.ended);
        kl_loop_drop(hold());
        sem_destroy(&e.ended);
    }
    while (count_fds() != fds) sched_yield(); /* the last thread closes them on its way out */
}

/* ---- events ---- */

static void events_reach_their_callback(void **state)
{
    struct kl_loop *loop = hold();
    struct counter a, b;

    (void)state;
    counter_add(&a, loop, event(), count_call);
    counter_add(&b, loop, event(), count_call);
    for (int i = 1; i <= 3; i++) {
        signal_event(a.fd);
        sem_wait(&a.called);
        assert_int_equal(kl_load_relaxed(&a.calls), i);
    }
    assert_int_equal(kl_load_relaxed(&b.calls), 0);
    counter_remove(&a);
    counter_remove(&b);
    kl_loop_drop(loop);
}

static void leave_event(void *ctx, uint32_t events)
{
    struct counter *c = ctx;

    assert_int_equal(events, EPOLLIN);
    if (kl_fetch_add_relaxed(&c->calls, 1) == 2) kl_source_watch(c->source, 0);
    sem_post(&c->called);
}

static void an_event_comes_again_until_it_is_not_watched(void **state)
{
    struct kl_loop *loop = hold();
    struct counter c, later;

    (void)state;
    counter_add(&c, loop, event(), leave_event);
    counter_add(&later, loop, event(), count_call);
    signal_event(c.fd);
    for (int i = 0; i < 3; i++) sem_wait(&c.called);
    signal_event(later.fd); /* a whole iteration of the loop */
    sem_wait(&later.called);
    assert_int_equal(kl_load_relaxed(&c.calls), 3);
    kl_source_watch(c.source, EPOLLIN);
    sem_wait(&c.called);
    counter_remove(&c);
    counter_remove(&later);
    kl_loop_drop(loop);
}

static void note_events(void *ctx, uint32_t events)
{
    struct counter *c = ctx;

    kl_store_relaxed(&c->calls, (int)events);
    kl_source_watch(c->source, 0);
    sem_post(&c->called);
}

static void the_end_of_a_connection_is_seen_unasked(void **state)
{
    struct kl_loop *loop = hold();
    struct counter c;
    int ends[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    counter_add(&c, loop, ends[0], note_events);
    close(ends[1]);
    sem_wait(&c.called);
    assert_true(kl_load_relaxed(&c.calls) & EPOLLHUP);
    counter_remove(&c);
    kl_loop_drop(loop);
}

static void a_descriptor_that_cannot_be_watched_is_refused(void **state)
{
    struct kl_loop *loop = hold();
    struct kl_source *source = (struct kl_source *)&loop;
    FILE *file = tmpfile(); /* epoll takes no regular files */

    (void)state;
    assert_int_equal(kl_loop_add(loop, fileno(file), EPOLLIN, count_call, NULL, &source), ncclSystemError);
    assert_ptr_equal(source, &loop);
    fclose(file);
    kl_loop_drop(loop);
}

/* ---- deadlines ---- */

struct order {
    pthread_mutex_t lock;
    char text[16];
    sem_t done;
};

struct timer {
    struct order *order;
    struct kl_source *source;
    char name;
};

static void note_timer(void *ctx, uint32_t events)
{
    struct timer *t = ctx;

    assert_int_equal(events, 0);
    pthread_mutex_lock(&t->order->lock);
    strncat(t->order->text, &t->name, 1);
    pthread_mutex_unlock(&t->order->lock);
    sem_post(&t->order->done);
}

static void deadlines_pass_in_order_and_once(void **state)
{
    struct kl_loop *loop = hold();
    struct order order = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct timer timers[] = {{.name = 'd'}, {.name = 'b'}, {.name = 'c'}, {.name = 'a'}, {.name = 'x'}};
    uint64_t start = kl_now_ns();

    (void)state;
    sem_init(&order.done, 0, 0);
    for (int i = 0; i < 5; i++) {
        timers[i].order = &order;
        assert_int_equal(kl_loop_add(loop, -1, 0, note_timer, &timers[i], &timers[i].source), ncclSuccess);
    }
    kl_source_deadline(timers[4].source, start + 20000000); /* disarmed below */
    for (int i = 0; i < 4; i++)
        kl_source_deadline(timers[i].source, start + 20000000 + (uint64_t)(timers[i].name - 'a') * 1000000);
    kl_source_deadline(timers[4].source, KL_NO_DEADLINE);
    for (int i = 0; i < 4; i++) sem_wait(&order.done);
    for (int i = 0; i < 5; i++) kl_source_remove(timers[i].source);
    kl_loop_drop(loop);
    assert_string_equal(order.text, "abcd");
    assert_in_range(kl_now_ns() - start, 20000000, UINT64_MAX);
}

static void a_source_may_have_both(void **state)
{
    struct kl_loop *loop = hold();
    struct counter c;

    (void)state;
    counter_add(&c, loop, event(), count_call);
    kl_source_deadline(c.source, kl_deadline_in_ms(1));
    sem_wait(&c.called);
    signal_event(c.fd);
    sem_wait(&c.called);
    assert_int_equal(kl_load_relaxed(&c.expired), 1);
    assert_int_equal(kl_load_relaxed(&c.calls), 1);
    counter_remove(&c);
    kl_loop_drop(loop);
}

/* ---- removal ---- */

struct slow {
    struct kl_source *source;
    int fd;
    sem_t entered, go_on;
};

static void be_slow(void *ctx, uint32_t events)
{
    struct slow *s = ctx;
    eventfd_t value;

    (void)events;
    eventfd_read(s->fd, &value);
    sem_post(&s->entered);
    sem_wait(&s->go_on);
}

struct witness {
    struct kl_source *source;
    int fd;
    sem_t entered;
    _Atomic bool removed, too_early;
};

/* The thread that removes the source has 50 ms to return too early. */
static void watch_the_remover(void *ctx, uint32_t events)
{
    struct witness *w = ctx;
    uint64_t end = kl_deadline_in_ms(50);
    eventfd_t value;

    (void)events;
    eventfd_read(w->fd, &value);
    sem_post(&w->entered);
    while (!kl_deadline_passed(end) && !kl_load_acquire(&w->removed)) sched_yield();
    kl_store_relaxed(&w->too_early, kl_load_acquire(&w->removed));
}

static void removal_waits_for_the_callback(void **state)
{
    struct kl_loop *loop = hold();
    static struct witness w;

    (void)state;
    w.fd = event();
    sem_init(&w.entered, 0, 0);
    assert_int_equal(kl_loop_add(loop, w.fd, EPOLLIN, watch_the_remover, &w, &w.source), ncclSuccess);
    signal_event(w.fd);
    sem_wait(&w.entered);
    kl_source_remove(w.source);
    kl_store_release(&w.removed, true);
    kl_loop_drop(loop);
    assert_false(kl_load_relaxed(&w.too_early));
    close(w.fd);
}

struct twins {
    struct kl_source *a, *b;
    _Atomic int calls;
    sem_t done;
};

static void remove_both(void *ctx, uint32_t events)
{
    struct twins *t = ctx;

    (void)events;
    kl_source_remove(t->a);
    kl_source_remove(t->b);
    kl_fetch_add_relaxed(&t->calls, 1);
    sem_post(&t->done);
}

/* Both are ready in one batch: the callback that runs first removes the other source, which must not be called. */
static void a_callback_removes_itself_and_others(void **state)
{
    struct kl_loop *loop = hold();
    struct slow gate = {.fd = event()};
    static struct twins all[100]; /* still there if a late callback comes */

    (void)state;
    sem_init(&gate.entered, 0, 0);
    sem_init(&gate.go_on, 0, 0);
    assert_int_equal(kl_loop_add(loop, gate.fd, EPOLLIN, be_slow, &gate, &gate.source), ncclSuccess);
    FOR_EACH_CASE(c, all)
    {
        struct twins *t = &all[c - all];
        int fd = event(), twin = dup(fd);

        sem_init(&t->done, 0, 0);
        signal_event(gate.fd);
        sem_wait(&gate.entered); /* the loop is busy: the following events become ready together */
        assert_int_equal(kl_loop_add(loop, fd, EPOLLIN, remove_both, t, &t->a), ncclSuccess);
        assert_int_equal(kl_loop_add(loop, twin, EPOLLIN, remove_both, t, &t->b), ncclSuccess);
        signal_event(fd);
        sem_post(&gate.go_on);
        sem_wait(&t->done);
        close(fd);
        close(twin);
    }
    kl_source_remove(gate.source);
    close(gate.fd);
    kl_loop_drop(loop); /* every callback has returned */
    FOR_EACH_CASE(t, all) assert_int_equal(kl_load_relaxed(&t->calls), 1);
}

/* Threads add, signal and remove at full speed; the counters are on their stacks, so a late callback would be seen. */
/* ---- errands ---- */

enum { ERRANDS = 500, ERRAND_THREADS = 4 };

struct ledger {
    struct kl_loop *loop;
    int errands; /* no lock: all run on one thread */
    bool outside;
    _Atomic int wrong; /* wrong results or texts */
};

static ncclResult_t note_errand(void *ctx)
{
    struct ledger *l = ctx;

    if (!kl_loop_inside(l->loop)) l->outside = true;
    l->errands++;
    return ncclSuccess;
}

static ncclResult_t nest_errand(void *ctx)
{
    struct ledger *l = ctx;
    int before = l->errands;

    (void)kl_loop_run(l->loop, note_errand, l); /* would deadlock if it did not run at once */
    if (l->errands != before + 1) l->outside = true;
    return KL_FAIL(ncclInvalidUsage, "errand %d", l->errands);
}

static void run_errands(void *arg)
{
    struct ledger *l = arg;

    kl_error_quiet(1); /* on the loop's thread, too, while it fails for this one */
    for (int i = 0; i < ERRANDS; i++) {
        ncclResult_t rc = kl_loop_run(l->loop, i % 2 ? note_errand : nest_errand, l);
        bool right = i % 2 ? !rc : rc == ncclInvalidUsage && !strncmp(kl_error_text(), "errand ", 7);
        if (!right) kl_store_release(&l->wrong, 1);
    }
}

static void errands_run_one_by_one_on_the_loops_thread(void **state)
{
    struct ledger l = {.loop = hold()};
    struct kl_thread threads[ERRAND_THREADS] = {0};

    (void)state;
    for (int i = 0; i < ERRAND_THREADS; i++)
        assert_int_equal(kl_thread_start(&threads[i], "errands", run_errands, &l), ncclSuccess);
    for (int i = 0; i < ERRAND_THREADS; i++) kl_thread_join(&threads[i]);
    assert_int_equal(l.errands, ERRANDS * ERRAND_THREADS);
    assert_false(l.outside);
    assert_false(l.wrong);
    kl_loop_drop(l.loop);
}

static void churn(void *arg)
{
    struct kl_loop *loop = arg;

    for (int i = 0; i < 300; i++) {
        struct counter c;
        counter_add(&c, loop, event(), count_call);
        signal_event(c.fd);
        if (i % 3 == 0) kl_source_deadline(c.source, kl_now_ns() + 1000);
        if (i % 2) sem_wait(&c.called);
        counter_remove(&c);
        memset(&c, 0xee, sizeof c);
    }
}

static void sources_come_and_go_under_fire(void **state)
{
    struct kl_loop *loop = hold();
    struct kl_thread threads[4];

    (void)state;
    for (int i = 0; i < 4; i++) assert_int_equal(kl_thread_start(&threads[i], "churn", churn, loop), ncclSuccess);
    for (int i = 0; i < 4; i++) kl_thread_join(&threads[i]);
    kl_loop_drop(loop);
}

static void holders_come_and_go_under_fire(void **state)
{
    int fds = count_fds();
    struct kl_thread threads[4];

    (void)state;
    for (int round = 0; round < 20; round++) {
        struct kl_loop *loop = hold();
        for (int i = 0; i < 2; i++) assert_int_equal(kl_thread_start(&threads[i], "churn", churn, loop), ncclSuccess);
        for (int i = 0; i < 2; i++) kl_thread_join(&threads[i]);
        kl_loop_drop(loop);
    }
    assert_int_equal(count_fds(), fds);
}

/* ---- fork ---- */

#ifdef __SANITIZE_THREAD__
static const bool children_may_start_threads = false;
#else
static const bool children_may_start_threads = true;
#endif

static void need_threads_in_children(void)
{
    if (children_may_start_threads) return;
    print_message("skipped: ThreadSanitizer knows no threads in the child of a process with threads\n");
    skip();
}

static int child_of_fork(struct kl_loop *inherited, struct counter *c)
{
    struct kl_loop *own = NULL;
    struct counter mine = {.fd = event()};

    if (!kl_loop_inherited(inherited)) return 1;
    if (fcntl(c->fd, F_GETFD) != -1) return 2; /* the child has closed its copy of the parent's connection */
    kl_source_watch(c->source, 0);             /* all without effect on the parent */
    kl_source_deadline(c->source, 0);
    kl_source_remove(c->source);
    if (kl_loop_hold(&own) || own == inherited || kl_loop_inherited(own)) return 3;
    sem_init(&mine.called, 0, 0);
    if (kl_loop_add(own, mine.fd, EPOLLIN, count_call, &mine, &mine.source)) return 4;
    signal_event(mine.fd);
    sem_wait(&mine.called);
    kl_source_remove(mine.source);
    kl_loop_drop(own);
    kl_loop_drop(inherited);
    return 0;
}

static void a_child_starts_afresh(void **state)
{
    (void)state;
    need_threads_in_children();
    struct kl_loop *loop = hold();
    struct counter c;
    int status;

    counter_add(&c, loop, event(), count_call);
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (!child) _exit(child_of_fork(loop, &c));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    signal_event(c.fd);
    sem_wait(&c.called); /* the parent's source still works */
    counter_remove(&c);
    kl_loop_drop(loop);
}

static void forks_do_not_stumble_over_locks(void **state)
{
    (void)state;
    need_threads_in_children();
    struct kl_loop *loop = hold();
    struct kl_thread threads[2];
    int status;

    for (int i = 0; i < 2; i++) assert_int_equal(kl_thread_start(&threads[i], "churn", churn, loop), ncclSuccess);
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        assert_int_not_equal(child, -1);
        if (!child) {
            struct kl_loop *own = NULL;
            int rc = kl_loop_hold(&own);
            kl_loop_drop(own);
            _exit(rc);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    for (int i = 0; i < 2; i++) kl_thread_join(&threads[i]);
    kl_loop_drop(loop);
}

/* ---- cost ---- */

static uint64_t switches(void)
{
    static const char label[] = "voluntary_ctxt_switches:";
    uint64_t n = 0;
    DIR *d = opendir("/proc/self/task");

    for (struct dirent *e; (e = readdir(d));) {
        char path[300], line[128];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = fopen(path, "r");
        bool mine = false;
        while (f && fgets(line, sizeof line, f)) {
            mine |= !strcmp(line, "Name:\tkolo-loop\n");
            if (mine && !strncmp(line, label, strlen(label))) n += strtoul(line + strlen(label), NULL, 10);
        }
        if (f) fclose(f);
    }
    closedir(d);
    return n;
}

/* With sources and nothing to do, the thread is not scheduled at all, once it sleeps again. */
static void an_idle_loop_sleeps(void **state)
{
    struct kl_loop *loop = hold();
    struct counter c;
    struct timespec nap = {.tv_nsec = 50000000};

    (void)state;
    counter_add(&c, loop, event(), count_call);
    signal_event(c.fd);
    sem_wait(&c.called);
    for (uint64_t before = 0, now = switches(); now != before;) { /* the test's time limit is the deadline */
        nanosleep(&nap, NULL);
        before = now;
        now = switches();
    }
    counter_remove(&c);
    kl_loop_drop(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holders_share_one_loop_and_the_last_ends_it),
        cmocka_unit_test(only_a_loop_that_exists_is_held),
        cmocka_unit_test(the_thread_has_a_name),
        cmocka_unit_test(a_callback_may_end_the_loop),
        cmocka_unit_test(events_reach_their_callback),
        cmocka_unit_test(an_event_comes_again_until_it_is_not_watched),
        cmocka_unit_test(the_end_of_a_connection_is_seen_unasked),
        cmocka_unit_test(a_descriptor_that_cannot_be_watched_is_refused),
        cmocka_unit_test(deadlines_pass_in_order_and_once),
        cmocka_unit_test(a_source_may_have_both),
        cmocka_unit_test(removal_waits_for_the_callback),
        cmocka_unit_test(a_callback_removes_itself_and_others),
        cmocka_unit_test(errands_run_one_by_one_on_the_loops_thread),
        cmocka_unit_test(sources_come_and_go_under_fire),
        cmocka_unit_test(holders_come_and_go_under_fire),
        cmocka_unit_test(a_child_starts_afresh),
        cmocka_unit_test(forks_do_not_stumble_over_locks),
        cmocka_unit_test(an_idle_loop_sleeps),
    };

    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
