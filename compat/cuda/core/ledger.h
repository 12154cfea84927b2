/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ledger.h - the device memory of each process of a job, so that all together never exceed a device's memory.
 *
 * A file in shared memory, which only its user can open, named after the job and the host, with a slot for each process. A
 * process holds a lock on its slot while it lives, so the kernel shows which slots count, however a process ended. The last
 * process removes the file; a later process removes one that killed processes left behind.
 *
 * Processes without a launcher (kolo run, MPI, Slurm, torchrun) have no ledger, and count alone.
 * Threads: any.
 */
#ifndef KL_CUDA_LEDGER_H
#define KL_CUDA_LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Is this device of the host counted here? */
bool kl_cuda_ledger_has(int ordinal);

/** Count `bytes` more for this process, or, if negative, less. False: the sum of all processes would exceed `limit`. */
bool kl_cuda_ledger_count(int ordinal, int64_t bytes, uint64_t limit);

/** Bytes of the device in use by all processes of the job, and by one of them. */
uint64_t kl_cuda_ledger_used(int ordinal);
uint64_t kl_cuda_ledger_used_by(int ordinal, pid_t pid);

#endif
