/* SPDX-License-Identifier: Apache-2.0 */
/**
 * thread.h - a thread of the library inside somebody else's program.
 *
 * It has a name that ps, top and debuggers show, and it takes no signals: the program's handlers run in the program's
 * threads, and none of our system calls is interrupted. Signals that a fault raises (SIGSEGV, SIGBUS, SIGFPE, SIGILL,
 * SIGTRAP, SIGSYS) stay open, or a program's crash reporter would not see a crash here.
 *
 * Its stack is the system's default (`ulimit -s`), but never smaller than KL_THREAD_STACK.
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

/** Bytes of the smallest stack of a thread of ours; communicators are made with a quarter of it. */
#define KL_THREAD_STACK (256 * 1024)

/** Attributes of such a thread, for pthread_create; to be destroyed. */
void kl_thread_attributes(pthread_attr_t *attributes);

/**
 * Has the calling thread, which is the program's, enough stack left to make a communicator? ncclSystemError, which says how to get more.
 * Where that cannot be known (no /proc, a stack that is not the thread's own), it has.
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

/** The same in a thread that nobody joins: its last act is to return from `run`. */
ncclResult_t kl_thread_detached(const char *name, void (*run)(void *arg), void *arg);

/** Wait until `run` has returned. Works on a zeroed struct, after a failed start, and a second time. */
void kl_thread_join(struct kl_thread *thread);

/** The same until `deadline` (base/clock.h) at the latest: false, and it still runs. */
bool kl_thread_join_by(struct kl_thread *thread, uint64_t deadline);

/** A value that no other living thread has. For comparisons only. */
static inline const void *kl_thread_self(void)
{
    return (const void *)(uintptr_t)pthread_self();
}

#endif
