/* SPDX-License-Identifier: Apache-2.0 */
/**
 * dump.h - NCCL_PROXY_DUMP_SIGNAL: at this signal every communicator of the process prints the ranks that its
 * operations wait for.
 *
 * The handler only sets a flag. The event loop prints the state of the process; the runner of an operation that stalls
 * prints the operation's: each state is printed by the thread that owns it.
 *
 * Threads: any.
 */
#ifndef KL_COMM_DUMP_H
#define KL_COMM_DUMP_H

#include "base/atomic.h"
#include "include/nccl.h"

#include <stdbool.h>
#include <stdint.h>

struct ncclComm;

/** How often it was asked. */
extern _Atomic uint32_t kl_dump_asked;

/** Install the handler until the last disarm; the first call chooses the signal. */
ncclResult_t kl_dump_arm(int signal);
void kl_dump_disarm(void);

/** Has a dump been requested since the last call with the same `seen`? */
static inline bool kl_dump_due(uint32_t *seen)
{
    uint32_t asked = kl_load_relaxed(&kl_dump_asked);
    bool due = asked != *seen;

    *seen = asked;
    return due;
}

/** Called by the runner: print the operations in progress. */
void kl_comm_dump(struct ncclComm *comm);

#endif
