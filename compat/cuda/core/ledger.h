/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ledger.h - what each process of a job has been given of the devices' memory, so that a device has no more than its memory for all of them.
 *
 * A file in shared memory, which only its user can open, named after the job and the host, with a slot for each process. A process holds a
 * lock on its slot as long as it lives, so the system itself says whose slots count, however a process ended. Who leaves last removes the
 * file; one that was left behind by processes that were killed is removed by whoever comes later.
 *
 * Processes that no launcher started (kolo run, MPI, Slurm, torchrun) have none, and count alone.
 * Threads: any.
 */
#ifndef KL_CUDA_LEDGER_H
#define KL_CUDA_LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Is this device of the host counted here? */
bool kl_cuda_ledger_has(int ordinal);

/** Give this process `bytes` more of it, or, negative, less. False: with all other processes that is more than `limit`. */
bool kl_cuda_ledger_count(int ordinal, int64_t bytes, uint64_t limit);

/** What all processes of the job have of it, and what one of them has. */
uint64_t kl_cuda_ledger_used(int ordinal);
uint64_t kl_cuda_ledger_used_by(int ordinal, pid_t pid);

#endif
