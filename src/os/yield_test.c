/* SPDX-License-Identifier: Apache-2.0 */
#include "os/yield.h"

#include "tests/kolo_test.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHORT_NS = 100000, LONG_NS = 3000000 };

/* For sched_setattr(2); the kernel's header conflicts with <sched.h>. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static struct attributes attributes(void)
{
    struct attributes a = {.size = sizeof a};

    assert_int_equal(syscall(SYS_sched_getattr, 0, &a, sizeof a, 0), 0);
    return a;
}

static void set(struct attributes a)
{
    assert_int_equal(syscall(SYS_sched_setattr, 0, &a, 0), 0);
}

/* In a thread of its own, so that its scheduling attributes end with it. */
static void in_thread(void *(*body)(void *))
{
    pthread_t t;

    assert_int_equal(pthread_create(&t, NULL, body, NULL), 0);
    pthread_join(t, NULL);
}

static void *yield_first(void *arg)
{
    const int nice = getpriority(PRIO_PROCESS, (id_t)gettid());
    const uint64_t before = attributes().runtime; /* 0 if the kernel does not report it */

    kl_yield();
    assert_int_equal(attributes().runtime, before ? SHORT_NS : 0);
    assert_int_equal(getpriority(PRIO_PROCESS, (id_t)gettid()), nice);
    return arg;
}

static void who_yields_has_short_slices(void **state)
{
    (void)state;
    in_thread(yield_first);
}

/* Requested only once: later settings by the program stay. */
static void *yield_again(void *arg)
{
    kl_yield();
    struct attributes a = attributes();
    a.runtime = a.runtime ? LONG_NS : 0;
    set(a);
    kl_yield();
    assert_int_equal(attributes().runtime, a.runtime);
    return arg;
}

static void they_are_asked_for_once(void **state)
{
    (void)state;
    in_thread(yield_again);
}

/* A value that is not a time slice is left alone. */
static void *yield_when_idle(void *arg)
{
    struct attributes a = attributes();

    a.policy = SCHED_IDLE;
    set(a);
    a = attributes();
    kl_yield();
    assert_int_equal(attributes().policy, SCHED_IDLE);
    assert_int_equal(attributes().runtime, a.runtime);
    return arg;
}

static void other_policies_are_left_alone(void **state)
{
    (void)state;
    in_thread(yield_when_idle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_yields_has_short_slices),
        cmocka_unit_test(they_are_asked_for_once),
        cmocka_unit_test(other_policies_are_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
