/* SPDX-License-Identifier: Apache-2.0 */
#include "os/thread.h"

#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    STACK_NEEDED = 72 * 1024,  /* 60 KiB were measured, including all logging */
    STACK_PLENTY = 1024 * 1024 /* for the first thread, whose stack grows and is not examined in detail */
};

static const int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

static void *trampoline(void *arg)
{
    struct kl_thread *thread = arg;

    pthread_setname_np(pthread_self(), thread->name);
    kl_error_apart(true);
    thread->run(thread->arg);
    return NULL;
}

static sigset_t signals_to_block(void)
{
    sigset_t set;

    sigfillset(&set);
    for (size_t i = 0; i < sizeof fault_signals / sizeof fault_signals[0]; i++) sigdelset(&set, fault_signals[i]);
    return set;
}

void kl_thread_attributes(pthread_attr_t *attributes)
{
    size_t bytes = 0;

    pthread_attr_init(attributes);
    if (!pthread_attr_getstacksize(attributes, &bytes) && bytes < KL_THREAD_STACK)
        pthread_attr_setstacksize(attributes, KL_THREAD_STACK);
}

/* A thread inherits its creator's signal mask: setting it here leaves no moment for a signal to be delivered. */
static int create_with_signals_blocked(pthread_t *handle, void *(*begin)(void *), struct kl_thread *thread)
{
    sigset_t before, blocked = signals_to_block();

    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    pthread_attr_t attributes;
    kl_thread_attributes(&attributes);
    int err = pthread_create(handle, &attributes, begin, thread);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

ncclResult_t kl_thread_start(struct kl_thread *thread, const char *name, void (*run)(void *arg), void *arg)
{
    *thread = (struct kl_thread){.run = run, .arg = arg};
    snprintf(thread->name, sizeof thread->name, "%s", name);

    int err = create_with_signals_blocked(&thread->handle, trampoline, thread);
    if (err) {
        errno = err; /* pthread_create returns its error instead of setting errno */
        return KL_FAIL_ERRNO("cannot start thread %s", thread->name);
    }
    thread->started = true;
    return ncclSuccess;
}

/* No other thread knows this one: it frees its own arguments. */
static void *alone(void *arg)
{
    struct kl_thread *thread = arg, mine = *thread;

    free(thread);
    pthread_detach(pthread_self());
    pthread_setname_np(pthread_self(), mine.name);
    kl_error_apart(true);
    mine.run(mine.arg);
    return NULL;
}

ncclResult_t kl_thread_detached(const char *name, void (*run)(void *arg), void *arg)
{
    struct kl_thread *thread = calloc(1, sizeof *thread);
    pthread_t handle;

    if (!thread) return KL_NOMEM("a thread");
    *thread = (struct kl_thread){.run = run, .arg = arg};
    snprintf(thread->name, sizeof thread->name, "%s", name);
    int err = create_with_signals_blocked(&handle, alone, thread);
    if (!err) return ncclSuccess;
    free(thread);
    errno = err;
    return KL_FAIL_ERRNO("cannot start thread %s", name);
}

void kl_thread_join(struct kl_thread *thread)
{
    if (!thread->started) return;
    pthread_join(thread->handle, NULL);
    thread->started = false;
}

/* pthread_clockjoin_np with the monotonic clock would do, but ThreadSanitizer does not know it. */
bool kl_thread_join_by(struct kl_thread *thread, uint64_t deadline)
{
    int left = kl_deadline_left_ms(deadline, INT_MAX);
    struct timespec by;

    clock_gettime(CLOCK_REALTIME, &by);
    by.tv_sec += left / 1000;
    by.tv_nsec += left % 1000 * 1000000L;
    if (by.tv_nsec >= 1000000000L) {
        by.tv_sec++;
        by.tv_nsec -= 1000000000L;
    }
    if (thread->started && pthread_timedjoin_np(thread->handle, NULL, &by)) return false;
    thread->started = false;
    return true;
}

/* ---- the program's threads ---- */

static bool is_plenty(void)
{
    struct rlimit limit;

    return getpid() == gettid() && (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= STACK_PLENTY);
}

ncclResult_t kl_thread_check_stack(void)
{
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t bytes = 0;

    if (is_plenty() || pthread_getattr_np(pthread_self(), &attributes)) return ncclSuccess;
    pthread_attr_getstack(&attributes, &lowest, &bytes);
    pthread_attr_destroy(&attributes);
    const size_t left = (uintptr_t)__builtin_frame_address(0) - (uintptr_t)lowest;
    /* more than the whole: the thread runs on another stack */
    if (left >= STACK_NEEDED || left > bytes) return ncclSuccess;
    return KL_FAIL(
        ncclSystemError,
        "this thread has %zu KiB of stack left, and a communicator takes %d KiB; raise `ulimit -s`, or give the "
        "thread a larger stack",
        left / 1024, STACK_NEEDED / 1024);
}
