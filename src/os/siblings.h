/* SPDX-License-Identifier: Apache-2.0 */
/**
 * siblings.h - a few bytes from one process of a job to the others on the same host, when all they share is who started them.
 *
 * They lie in a file below /dev/shm (else /tmp), which only its user can read, and which is named after the job: after settings
 * that the launcher gives to all, or else after the common parent.
 *
 * Errors:  ncclSystemError where a file cannot be written; ncclRemoteError when nobody has left one by the deadline, or somebody else.
 * Threads: any.
 */
#ifndef KL_OS_SIBLINGS_H
#define KL_OS_SIBLINGS_H

#include "include/nccl.h"

#include <stddef.h>
#include <stdint.h>

enum { KL_SIBLINGS_PATH = 96 };

/**
 * The name of the file. `settings`: a NULL-terminated list of variables whose values together name the job; where one is not set,
 * the parent process does. `turn`: counts the occasions of a job.
 */
void kl_siblings_path(const char *const *settings, unsigned turn, char path[KL_SIBLINGS_PATH]);

/** Leave bytes there; unlink(2) the path when all have read them. */
ncclResult_t kl_siblings_leave(const char *path, const void *data, size_t bytes);

/** Wait for them until `deadline` (base/clock.h). */
ncclResult_t kl_siblings_read(const char *path, void *data, size_t bytes, uint64_t deadline);

#endif
