/* SPDX-License-Identifier: Apache-2.0 */
/**
 * filelimit.h - the limit of the size of files (`ulimit -f`), which counts for segments of memory, too.
 *
 * The system ends a process that tries to exceed it, by SIGXFSZ. With this it is an error like others: EFBIG.
 *
 * Threads:  any; a guard begins and ends in one thread.
 * Source:   setrlimit(2), signal(7).
 */
#ifndef KL_BASE_FILELIMIT_H
#define KL_BASE_FILELIMIT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/** May a file of this process have so many bytes? False: errno is EFBIG. To be asked before one is given its size. */
bool kl_filelimit_allows(uint64_t bytes);

struct kl_filelimit_guard {
    sigset_t before;
    bool pending; /* a signal of the program's own, which stays */
};

/** From here to the end, writes of this thread beyond the limit fail. */
void kl_filelimit_begin(struct kl_filelimit_guard *guard);

/** errno is kept. */
void kl_filelimit_end(const struct kl_filelimit_guard *guard);

#endif
