/* SPDX-License-Identifier: Apache-2.0 */
#include "os/thread.h"

#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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

/* A thread inherits the mask of its creator, whatever that blocks: setting it here leaves no moment in which a signal could slip in. */
static int create_with_signals_blocked(pthread_t *handle, void *(*begin)(void *), struct kl_thread *thread)
{
    sigset_t before, blocked = signals_to_block();

    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int err = pthread_create(handle, NULL, begin, thread);
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

/* Nobody else knows it: it frees what it was started with. */
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

/* There is a join by the monotonic clock as well, which ThreadSanitizer does not know. */
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
