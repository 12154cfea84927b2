/* SPDX-License-Identifier: Apache-2.0 */
/**
 * filelimit.h - the limit of the size of files (`ulimit -f`), which also applies to shared-memory segments.
 *
 * The system ends a process that tries to exceed it, by SIGXFSZ. Inside a guard, exceeding it is an ordinary error,
 * EFBIG.
 *
 * Threads:  any; a guard begins and ends in one thread.
 * Source:   setrlimit(2), signal(7).
 */
#ifndef KL_BASE_FILELIMIT_H
#define KL_BASE_FILELIMIT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * Does the limit allow a file of this many bytes? False: errno is EFBIG. To be called before the file gets its size.
 */
bool kl_filelimit_allows(uint64_t bytes);

struct kl_filelimit_guard {
    sigset_t before;
    bool pending; /* a SIGXFSZ was pending before the guard began, and stays pending */
};

/** From here until kl_filelimit_end, writes of this thread beyond the limit fail. */
void kl_filelimit_begin(struct kl_filelimit_guard *guard);

/** Leaves errno alone. */
void kl_filelimit_end(const struct kl_filelimit_guard *guard);

#endif
