/* SPDX-License-Identifier: Apache-2.0 */
/**
 * rendezvous_file.h - a few bytes from one process of a job to the others on the same host, when all they share is the job's name.
 *
 * They lie in a private file (private_file.h), in the first folder in which it can be made; readers look in all. Its writer holds a lock
 * on it until it removes it: what a dead process has left is not read but removed, by readers and by whoever writes next. A name is used
 * by one writer at a time; the next waits for it. A file appears at once with all of its contents, and is never changed.
 *
 * Folders:  a list that ends with NULL; kl_private_folders() but in tests.
 * Errors:   ncclSystemError where no folder will do, ncclRemoteError at a deadline; the sentence names the files.
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

/** Make it; a file of the same name that another process holds is waited for until `deadline` (base/clock.h). */
ncclResult_t kl_rendezvous_file_write(const char *const *folders, const char *name, const void *data, size_t bytes,
                                      uint64_t deadline, struct kl_rendezvous_file **file);

/** Remove the file, and free. From now on nobody finds it. NULL is fine. */
void kl_rendezvous_file_remove(struct kl_rendezvous_file *file);

/**
 * Wait until `deadline` for one of `bytes` bytes which `is_alive` accepts; it is asked again and again, about the same file too. NULL: any.
 */
ncclResult_t kl_rendezvous_file_read(const char *const *folders, const char *name, void *data, size_t bytes,
                                     bool (*is_alive)(const void *data), uint64_t deadline);

#endif
