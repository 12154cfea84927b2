/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/backoff.h"

#include "base/clock.h"
#include "os/affinity.h"
#include "os/slice.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHORT_NS = 100000, PATIENCE_S = 60 };

/* sched_setattr(2); the kernel's header does not go with <sched.h>. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/* This thread's time slice, ns; 0 where the kernel has none to tell. */
static uint64_t slice(void)
{
    struct attributes a = {.size = sizeof a};

    assert_int_equal(syscall(SYS_sched_getattr, 0, &a, sizeof a, 0), 0);
    return a.policy == SCHED_OTHER ? a.runtime : 0;
}

/* In a thread of its own: what it asks of the scheduler ends with it. */
static void in_thread(void *(*body)(void *))
{
    pthread_t t;

    assert_int_equal(pthread_create(&t, NULL, body, NULL), 0);
    pthread_join(t, NULL);
}

static void *ask_for_short_ones(void *arg)
{
    int nice = getpriority(PRIO_PROCESS, (id_t)gettid());
    uint64_t before = slice();

    kl_slice_shorten();
    assert_int_equal(slice(), before ? SHORT_NS : 0);
    assert_int_equal(getpriority(PRIO_PROCESS, (id_t)gettid()), nice);
    return arg;
}

static void slices_are_shortened(void **state)
{
    (void)state;
    in_thread(ask_for_short_ones);
}

/* ---- beside a program that computes ---- */

static pid_t start_program_on(int cpu)
{
    struct kl_cpuset one = {{0}};
    pid_t pid = fork();

    if (pid) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    kl_cpuset_add(&one, cpu);
    if (kl_affinity_pin(&one, NULL)) _exit(1);
    for (;;) __asm__ volatile("" ::: "memory");
}

/* Does a yield cost a slice of the other's here? It depends on the kernel. */
static bool yields_lose(void)
{
    uint64_t began = kl_now_ns(), now;

    for (int i = 0; i < 100; i++) sched_yield();
    now = kl_now_ns();
    return now - began > 60000000;
}

static void *yield_beside_it(void *arg)
{
    struct kl_backoff wait = KL_BACKOFF_START;
    struct kl_cpuset all, one = {{0}};
    uint64_t before = slice(), deadline;
    bool *lose = arg;

    assert_int_equal(kl_affinity_get(&all), ncclSuccess);
    kl_cpuset_add(&one, kl_cpuset_next(&all, 0));
    assert_int_equal(kl_affinity_pin(&one, NULL), ncclSuccess);
    pid_t other = start_program_on(kl_cpuset_next(&all, 0));
    assert_true(other > 0);
    *lose = before > SHORT_NS && yields_lose();
    deadline = kl_now_ns() + (uint64_t)PATIENCE_S * 1000000000u;
    while (*lose && slice() != SHORT_NS && kl_now_ns() < deadline) {
        kl_backoff_pause(&wait, 0);
        kl_backoff_reset(&wait); /* no sleeps */
    }
    if (*lose) assert_int_equal(slice(), SHORT_NS);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    return NULL;
}

static void who_goes_on_losing_slices_asks_for_short_ones(void **state)
{
    bool lose = false;
    pthread_t t;

    (void)state;
    assert_int_equal(pthread_create(&t, NULL, yield_beside_it, &lose), 0);
    pthread_join(t, NULL);
    if (lose) return;
    puts("yields lose no slices with this kernel");
    exit(KOLO_TEST_SKIP);
}

/* ---- spinning ---- */

/* Of a wait that goes on until it yields, and looks at the clock there. */
static unsigned polls_to_yield(void)
{
    struct kl_backoff wait = KL_BACKOFF_START;

    while (!wait.since) kl_backoff_pause(&wait, KL_SPIN_POLLS);
    return wait.polls;
}

enum { WAITS = 12, FEW_WAITS = 3, SHORT = KL_SPIN_POLLS / 10 };

/* Polls of waits: of the first ones, after many in vain, and after many that spinning has ended. */
struct spun {
    unsigned first[FEW_WAITS], in_vain, of_use;
};

static void *spin_in_vain(void *arg)
{
    struct spun *spun = arg;

    for (int i = 0; i < FEW_WAITS; i++) spun->first[i] = polls_to_yield();
    for (int i = 0; i < WAITS; i++) (void)polls_to_yield();
    spun->in_vain = polls_to_yield();
    for (int i = 0; i < WAITS; i++) kl_backoff_pause(&KL_BACKOFF_START, KL_SPIN_POLLS);
    spun->of_use = polls_to_yield();
    return NULL;
}

/* Who shares a core with the one it waits for soon yields early, until spinning helps again. */
static void spinning_in_vain_is_kept_short(void **state)
{
    struct spun spun;
    pthread_t t;

    (void)state;
    assert_int_equal(pthread_create(&t, NULL, spin_in_vain, &spun), 0);
    pthread_join(t, NULL);
    for (int i = 0; i < FEW_WAITS; i++) assert_true(spun.first[i] > KL_SPIN_POLLS);
    assert_true(spun.in_vain < SHORT);
    assert_true(spun.of_use > KL_SPIN_POLLS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_are_shortened),
        cmocka_unit_test(spinning_in_vain_is_kept_short),
        cmocka_unit_test(who_goes_on_losing_slices_asks_for_short_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
