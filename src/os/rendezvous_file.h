/* SPDX-License-Identifier: Apache-2.0 */
/**
 * rendezvous_file.h - pass a few bytes from one process of a job to the others on the same host, which share only the
 * job's name.
 *
 * The bytes lie in a private file (private_file.h), in the first usable folder; readers look in all. Its writer holds a
 * lock on it until it removes it: readers and later writers remove the file of a dead process and do not read it. A
 * name is used by one writer at a time; the next waits for it. A file appears at once with all of its contents, and
 * never changes.
 *
 * Folders:  a list that ends with NULL; kl_private_folders() except in tests.
 * Errors:   ncclSystemError if no folder is usable, ncclRemoteError at a deadline; the sentence names the files.
 * Threads:  any.
 * Fork:     a child does not inherit the lock, unless it was made by clone(2) directly.
 */
#ifndef KL_OS_RENDEZVOUS_FILE_H
#define KL_OS_RENDEZVOUS_FILE_H

#include "include/nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kl_rendezvous_file;

/** Make it; waits until `deadline` (base/clock.h) for another process to remove a file of the same name. */
ncclResult_t kl_rendezvous_file_write(const char *const *folders, const char *name, const void *data, size_t bytes,
                                      uint64_t deadline, struct kl_rendezvous_file **file);

/** Remove the file, and free. NULL is fine. */
void kl_rendezvous_file_remove(struct kl_rendezvous_file *file);

/**
 * Wait until `deadline` for a file of `bytes` bytes that `is_alive` accepts; it is called repeatedly, also for the same
 * file. NULL: accept any.
 */
ncclResult_t kl_rendezvous_file_read(const char *const *folders, const char *name, void *data, size_t bytes,
                                     bool (*is_alive)(const void *data), uint64_t deadline);

#endif
