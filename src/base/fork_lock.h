/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fork_lock.h - a lock that fork(2) takes, so that a child finds the data under it whole, and owns the lock.
 *
 * Order:  handlers that are installed later take their lock earlier. A module that locks another module's lock under its
 *         own installs its handlers after those of the other.
 * Source: pthread_atfork(3).
 */
#ifndef KL_BASE_FORK_LOCK_H
#define KL_BASE_FORK_LOCK_H

#include <pthread.h>

/**
 * Define `install_fork_handlers`, for pthread_once, for a mutex of this file. `in_child`: an expression that the child
 * evaluates under the lock, for data that are the parent's only; (void)0: none.
 */
#define KL_FORK_LOCK(mutex, in_child)                                                                                  \
    static void before_fork(void)                                                                                      \
    {                                                                                                                  \
        pthread_mutex_lock(&(mutex));                                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    static void after_fork_in_parent(void)                                                                             \
    {                                                                                                                  \
        pthread_mutex_unlock(&(mutex));                                                                                \
    }                                                                                                                  \
                                                                                                                       \
    static void after_fork_in_child(void)                                                                              \
    {                                                                                                                  \
        in_child;                                                                                                      \
        pthread_mutex_unlock(&(mutex));                                                                                \
    }                                                                                                                  \
                                                                                                                       \
    static void install_fork_handlers(void)                                                                            \
    {                                                                                                                  \
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);                                        \
    }                                                                                                                  \
    _Static_assert(sizeof(mutex) == sizeof(pthread_mutex_t), "a mutex, not a pointer to one")

#endif
