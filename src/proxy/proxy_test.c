/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/proxy.h"

#include "base/atomic.h"
#include "tests/hang.h"
#include "tests/holdings.h"
#include "tests/kolo_test.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/** A duty that counts its calls. */
struct chore {
    struct kl_duty duty;
    struct kl_proxy *held;     /* to be dropped at its end; NULL: none */
    _Atomic int left;          /* to do */
    _Atomic int done, rested;  /* so often */
    _Atomic bool over;         /* then it says that it is done */
    int fd, told;              /* descriptors to sleep on, and to write to at its end; -1: none */
    _Atomic pthread_t by;      /* the thread that ran it last */
    sem_t worked, sleeps, end; /* posted for each */
};

static struct chore *chore_of(struct kl_duty *duty)
{
    return (struct chore *)(void *)duty;
}

static enum kl_progress progress(struct kl_duty *duty)
{
    struct chore *c = chore_of(duty);

    if (kl_load_acquire(&c->left)) {
        kl_fetch_sub_acq_rel(&c->left, 1);
        kl_fetch_add_acq_rel(&c->done, 1);
        kl_store_release(&c->by, pthread_self());
        sem_post(&c->worked);
        return KL_MOVED;
    }
    return kl_load_acquire(&c->over) ? KL_DONE : KL_STALLED;
}

static void rest(struct kl_duty *duty, struct kl_rest *r)
{
    struct chore *c = chore_of(duty);

    if (c->fd >= 0) kl_rest_until(r, c->fd);
    kl_fetch_add_acq_rel(&c->rested, 1);
    sem_post(&c->sleeps);
}

static void end(struct kl_duty *duty)
{
    struct chore *c = chore_of(duty);

    if (c->told >= 0) (void)!write(c->told, "e", 1);
    if (c->held) kl_proxy_drop(c->held);
    sem_post(&c->end);
}

static void prepare(struct chore *c)
{
    memset(c, 0, sizeof *c);
    c->duty = (struct kl_duty){.progress = progress, .rest = rest, .end = end};
    c->fd = c->told = -1;
    sem_init(&c->worked, 0, 0);
    sem_init(&c->sleeps, 0, 0);
    sem_init(&c->end, 0, 0);
}

static struct kl_proxy *hold(void)
{
    struct kl_proxy *proxy;

    assert_int_equal(kl_proxy_hold(&proxy), ncclSuccess);
    return proxy;
}

/* ---- the proxy itself ---- */

static void there_is_one_proxy_while_somebody_holds_it(void **state)
{
    (void)state;
    kl_proxy_drop(hold()); /* a sanitizer has a thread of its own from the first one on */
    int fds = count_fds(), tasks = count_entries("/proc/self/task");
    struct kl_proxy *a = hold(), *b = hold();
    assert_ptr_equal(a, b);
    assert_int_equal(count_entries("/proc/self/task"), tasks + 1);
    kl_proxy_drop(a);
    assert_int_equal(count_fds(), fds + 1);
    kl_proxy_drop(b);
    kl_proxy_drop(NULL);
    assert_int_equal(count_fds(), fds);
    assert_int_equal(count_entries("/proc/self/task"), tasks);
}

/* It sleeps: with nothing to do it rests once, and nothing runs until it is woken. */
static void who_sleeps_is_woken_by_what_there_is_to_do(void **state)
{
    struct kl_proxy *proxy = hold();
    struct chore c;
    const uint64_t one = 1;

    (void)state;
    prepare(&c);
    kl_proxy_add(proxy, &c.duty);
    for (int i = 0; i < 200; i++) {
        sem_wait(&c.sleeps);
        kl_fetch_add_acq_rel(&c.left, 1);
        if (i % 2)
            kl_proxy_wake(proxy);
        else
            assert_int_equal(write(kl_proxy_bell(proxy), &one, sizeof one), sizeof one);
        sem_wait(&c.worked);
        assert_false(pthread_equal(kl_load_acquire(&c.by), pthread_self()));
    }
    assert_int_equal(kl_load_acquire(&c.done), 200);
    kl_proxy_remove(proxy, &c.duty);
    kl_proxy_drop(proxy);
}

/* Work is added at any moment, also between the last poll and the sleep. */
static void no_work_is_missed(void **state)
{
    struct kl_proxy *proxy = hold();
    struct chore c;

    (void)state;
    prepare(&c);
    kl_proxy_add(proxy, &c.duty);
    for (int i = 0; i < 3000; i++) {
        struct timespec until;
        kl_fetch_add_acq_rel(&c.left, 1);
        kl_proxy_wake(proxy);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += kolo_test_hang_s();
        assert_int_equal(sem_timedwait(&c.worked, &until), 0);
        for (int k = 0; k < i % 700 * 10; k++) kl_cpu_pause();
    }
    assert_int_equal(kl_load_acquire(&c.done), 3000);
    kl_proxy_remove(proxy, &c.duty);
    kl_proxy_drop(proxy);
}

static void a_descriptor_wakes_it(void **state)
{
    struct kl_proxy *proxy = hold();
    struct chore c;
    int pipes[2];

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    prepare(&c);
    c.fd = pipes[0];
    kl_proxy_add(proxy, &c.duty);
    sem_wait(&c.sleeps);
    kl_fetch_add_acq_rel(&c.left, 1);
    assert_int_equal(write(pipes[1], "x", 1), 1);
    sem_wait(&c.worked);
    kl_proxy_remove(proxy, &c.duty);
    kl_proxy_drop(proxy);
    close(pipes[0]);
    close(pipes[1]);
}

/* ---- duties ---- */

static void what_is_done_ends_and_is_forgotten(void **state)
{
    struct kl_proxy *proxy = hold();
    struct chore a, b;

    (void)state;
    prepare(&a);
    prepare(&b);
    kl_proxy_add(proxy, &a.duty);
    kl_proxy_add(proxy, &b.duty);
    kl_store_release(&a.over, true);
    kl_proxy_wake(proxy);
    sem_wait(&a.end);
    kl_fetch_add_acq_rel(&a.left, 1);
    kl_fetch_add_acq_rel(&b.left, 1);
    kl_proxy_wake(proxy);
    sem_wait(&b.worked);
    kl_proxy_remove(proxy, &b.duty);
    kl_proxy_drop(proxy);
    assert_int_equal(kl_load_acquire(&a.done), 0);
}

static void the_last_user_may_be_a_duty_that_ends(void **state)
{
    int pipes[2];
    struct chore c;

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    int fds = count_fds();
    prepare(&c);
    c.held = hold();
    c.fd = pipes[0];
    kl_proxy_add(c.held, &c.duty);
    sem_wait(&c.sleeps);
    kl_store_release(&c.over, true);
    assert_int_equal(write(pipes[1], "x", 1), 1); /* without a reference, the proxy is not used */
    sem_wait(&c.end);
    while (count_fds() != fds) sched_yield();
    close(pipes[0]);
    close(pipes[1]);
}

static void who_waits_helps(void **state)
{
    struct kl_proxy *proxy = hold();
    struct chore c;

    (void)state;
    prepare(&c);
    kl_proxy_add(proxy, &c.duty);
    sem_wait(&c.sleeps);
    for (int i = 0; i < 100; i++) {
        enum kl_progress got = KL_DONE;
        kl_fetch_add_acq_rel(&c.left, 1);
        while (got == KL_DONE) got = kl_proxy_help(proxy); /* while the proxy runs a round itself */
        assert_true(got == KL_MOVED || kl_load_acquire(&c.done) == i + 1);
    }
    assert_int_equal(kl_load_acquire(&c.done), 100);
    kl_proxy_lock(proxy);
    assert_int_equal(kl_proxy_help(proxy), KL_DONE);
    kl_proxy_unlock(proxy);
    kl_proxy_remove(proxy, &c.duty);
    assert_int_equal(kl_proxy_help(proxy), KL_STALLED);
    kl_proxy_drop(proxy);
}

/* ---- processes ---- */

static void need_threads_in_children(void)
{
#ifdef __SANITIZE_THREAD__
    print_message("skipped: ThreadSanitizer knows no threads in the child of a process with threads\n");
    skip();
#endif
}

/* The child's: an orphan that reports its end after some more work. */
static void leave_an_orphan(int told, int work)
{
    static struct chore c;

    prepare(&c);
    c.held = hold();
    c.told = told;
    c.duty.orphan = true;
    kl_store_release(&c.over, true);
    kl_fetch_add_acq_rel(&c.left, work);
    kl_proxy_add(c.held, &c.duty);
    exit(0);
}

static void a_process_does_not_exit_before_its_orphans(void **state)
{
    int pipes[2], status;
    char got = 0;

    (void)state;
    need_threads_in_children();
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (!child) leave_an_orphan(pipes[1], 20000);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct pollfd here = {.fd = pipes[0], .events = POLLIN};
    assert_int_equal(poll(&here, 1, 0), 1);
    assert_int_equal(read(pipes[0], &got, 1), 1);
    assert_int_equal(got, 'e');
    close(pipes[0]);
    close(pipes[1]);
}

static void a_child_has_its_own_proxy(void **state)
{
    struct chore c;
    int status;

    (void)state;
    need_threads_in_children();
    struct kl_proxy *proxy = hold();
    prepare(&c);
    c.duty.orphan = true; /* the parent's: the child does not wait for it */
    kl_proxy_add(proxy, &c.duty);
    pid_t child = fork();
    if (!child) {
        struct kl_proxy *own = NULL;
        struct chore mine;

        prepare(&mine);
        kl_proxy_drop(proxy); /* nothing happens */
        if (kl_proxy_hold(&own) || own == proxy) _exit(1);
        kl_fetch_add_acq_rel(&mine.left, 1);
        kl_proxy_add(own, &mine.duty);
        sem_wait(&mine.worked);
        kl_proxy_remove(own, &mine.duty);
        kl_proxy_drop(own);
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    kl_proxy_remove(proxy, &c.duty);
    kl_proxy_drop(proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_one_proxy_while_somebody_holds_it),
        cmocka_unit_test(who_sleeps_is_woken_by_what_there_is_to_do),
        cmocka_unit_test(no_work_is_missed),
        cmocka_unit_test(a_descriptor_wakes_it),
        cmocka_unit_test(what_is_done_ends_and_is_forgotten),
        cmocka_unit_test(the_last_user_may_be_a_duty_that_ends),
        cmocka_unit_test(who_waits_helps),
        cmocka_unit_test(a_process_does_not_exit_before_its_orphans),
        cmocka_unit_test(a_child_has_its_own_proxy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
