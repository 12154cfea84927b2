/* SPDX-License-Identifier: Apache-2.0 */
/**
 * thread.h - a thread of the library inside the user's program.
 *
 * It has a name that ps, top and debuggers show, and it blocks signals: the program's handlers run in the program's
 * threads, and none of its system calls is interrupted. Signals raised by faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL,
 * SIGTRAP, SIGSYS) stay unblocked, so that a program's crash reporter sees a crash here.
 *
 * Its stack is the system's default (`ulimit -s`), but at least KL_THREAD_STACK.
 *
 * Errors:   ncclSystemError when the system grants no thread.
 * Threads:  start and join come from one thread at a time; a thread never joins itself.
 */
#ifndef KL_OS_THREAD_H
#define KL_OS_THREAD_H

#include "include/nccl.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/** Bytes of a name, its final zero included (a limit of the kernel). */
#define KL_THREAD_NAME 16

/** Bytes of the smallest stack of a library thread; making a communicator needs a quarter of it. */
#define KL_THREAD_STACK (256 * 1024)

/** Attributes of such a thread, for pthread_create; the caller destroys them. */
void kl_thread_attributes(pthread_attr_t *attributes);

/**
 * Has the calling thread, which is the program's, enough stack left to make a communicator? If not, ncclSystemError,
 * with the remedy. Success also where that is unknown (no /proc, a stack that is not the thread's own).
 */
ncclResult_t kl_thread_check_stack(void);

/** Stays at its address from start to join. */
struct kl_thread {
    pthread_t handle;
    void (*run)(void *arg);
    void *arg;
    char name[KL_THREAD_NAME];
    bool started;
};

/** Run `run(arg)` in a new thread called `name`, of which 15 characters are kept. */
ncclResult_t kl_thread_start(struct kl_thread *thread, const char *name, void (*run)(void *arg), void *arg);

/** The same in a thread that is never joined: its last act is to return from `run`. */
ncclResult_t kl_thread_detached(const char *name, void (*run)(void *arg), void *arg);

/** Wait until `run` has returned. Works on a zeroed struct, after a failed start, and a second time. */
void kl_thread_join(struct kl_thread *thread);

/** The same until `deadline` (base/clock.h) at the latest; false: it still runs. */
bool kl_thread_join_by(struct kl_thread *thread, uint64_t deadline);

/** A value that no other living thread has. For comparisons only. */
static inline const void *kl_thread_self(void)
{
    return (const void *)(uintptr_t)pthread_self();
}

#endif
