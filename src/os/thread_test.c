/* SPDX-License-Identifier: Apache-2.0 */
#include "os/thread.h"

#include "base/error.h"
#include "tests/kolo_test.h"

#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct seen {
    char name[KL_THREAD_NAME];
    sigset_t blocked;
    int ran;
};

static void look_around(void *arg)
{
    struct seen *seen = arg;

    pthread_getname_np(pthread_self(), seen->name, sizeof seen->name);
    pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
    seen->ran++;
}

static void has_its_name(void **state)
{
    static const struct {
        const char *asked, *got;
    } names[] = {
        {"kolo-proxy", "kolo-proxy"},
        {"exactly-fifteen", "exactly-fifteen"},
        {"sixteen-letters!", "sixteen-letters"},
    };

    (void)state;
    FOR_EACH_CASE(c, names)
    {
        struct kl_thread thread;
        struct seen seen = {0};

        assert_int_equal(kl_thread_start(&thread, c->asked, look_around, &seen), ncclSuccess);
        kl_thread_join(&thread);
        assert_int_equal(seen.ran, 1);
        assert_string_equal(seen.name, c->got);
    }
}

static void takes_no_signals_but_faults(void **state)
{
    struct kl_thread thread;
    struct seen seen = {0};
    sigset_t before, after;

    (void)state;
    sigemptyset(&before);
    sigaddset(&before, SIGUSR1);
    sigaddset(&before, SIGSEGV); /* not inherited by a new thread */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(kl_thread_start(&thread, "test", look_around, &seen), ncclSuccess);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    kl_thread_join(&thread);

    assert_true(sigismember(&seen.blocked, SIGINT));
    assert_true(sigismember(&seen.blocked, SIGTERM));
    assert_true(sigismember(&seen.blocked, SIGCHLD));
    assert_true(sigismember(&seen.blocked, SIGALRM));
    assert_false(sigismember(&seen.blocked, SIGSEGV));
    assert_false(sigismember(&seen.blocked, SIGBUS));
    for (int s = 1; s < SIGRTMIN; s++) assert_int_equal(sigismember(&after, s), sigismember(&before, s));
}

static void join_works_on_nothing_and_twice(void **state)
{
    struct kl_thread thread = {0};
    struct seen seen = {0};

    (void)state;
    kl_thread_join(&thread);
    assert_int_equal(kl_thread_start(&thread, "test", look_around, &seen), ncclSuccess);
    kl_thread_join(&thread);
    kl_thread_join(&thread);
    assert_int_equal(seen.ran, 1);
}

static void sleep_until_told(void *arg)
{
    sem_wait(arg);
}

static void a_join_has_a_deadline(void **state)
{
    struct kl_thread thread = {0};
    sem_t told;

    (void)state;
    sem_init(&told, 0, 0);
    assert_int_equal(kl_thread_start(&thread, "test", sleep_until_told, &told), ncclSuccess);
    assert_false(kl_thread_join_by(&thread, 0));
    sem_post(&told);
    assert_true(kl_thread_join_by(&thread, UINT64_MAX / 2));
    assert_true(kl_thread_join_by(&thread, 0));
    sem_destroy(&told);
}

/* ---- stacks ---- */

static void use_much_stack(void *arg)
{
    volatile char room[KL_THREAD_STACK * 3 / 4];

    memset((char *)room, 1, sizeof room);
    *(int *)arg = room[sizeof room - 1];
}

/* With a small system default (`ulimit -s`), threads of the library still have enough stack. */
static void its_stack_is_large_enough(void **state)
{
    pthread_attr_t small, before;
    struct kl_thread thread;
    int ran = 0;

    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("skipped: ThreadSanitizer takes stack of its own\n");
    skip();
#endif
    pthread_getattr_default_np(&before);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    assert_int_equal(pthread_setattr_default_np(&small), 0);
    assert_int_equal(kl_thread_start(&thread, "test", use_much_stack, &ran), ncclSuccess);
    kl_thread_join(&thread);
    assert_int_equal(ran, 1);
    pthread_setattr_default_np(&before);
    pthread_attr_destroy(&before);
    pthread_attr_destroy(&small);
}

static void *check_stack(void *arg)
{
    kl_error_quiet(1);
    *(ncclResult_t *)arg = kl_thread_check_stack();
    return strstr(kl_error_text(), "raise `ulimit -s`") ? arg : NULL;
}

static void a_small_stack_is_refused(void **state)
{
    static const struct {
        size_t bytes;
        ncclResult_t rc;
    } cases[] = {{64 * 1024, ncclSystemError}, {128 * 1024, ncclSuccess}};

    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("skipped: ThreadSanitizer takes stack of its own\n");
    skip();
#endif
    assert_int_equal(kl_thread_check_stack(), ncclSuccess);
    FOR_EACH_CASE(c, cases)
    {
        pthread_attr_t attributes;
        pthread_t thread;
        ncclResult_t rc;
        void *said;

        pthread_attr_init(&attributes);
        void *stack = aligned_alloc(4096, c->bytes); /* one that the system chooses may be larger */
        assert_non_null(stack);
        pthread_attr_setstack(&attributes, stack, c->bytes);
        assert_int_equal(pthread_create(&thread, &attributes, check_stack, &rc), 0);
        pthread_join(thread, &said);
        pthread_attr_destroy(&attributes);
        free(stack);
        assert_int_equal(rc, c->rc);
        assert_int_equal(said != NULL, c->rc != ncclSuccess);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_its_name),
        cmocka_unit_test(takes_no_signals_but_faults),
        cmocka_unit_test(join_works_on_nothing_and_twice),
        cmocka_unit_test(a_join_has_a_deadline),
        cmocka_unit_test(its_stack_is_large_enough),
        cmocka_unit_test(a_small_stack_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
