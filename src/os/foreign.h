/* SPDX-License-Identifier: Apache-2.0 */
/**
 * foreign.h - read and write the memory of another process of this machine (cross-memory attach).
 *
 * A process that permits access keeps a mark, a random number, in its memory; it is read with the data, or before data
 * is written, so that another process with the same pid (in another namespace, or later) is not mistaken for it.
 * Reading the mark takes 0.3 us, so it is not repeated for KL_FOREIGN_SEEN_MS: the kernel assigns pids in turn, and
 * reuses none as soon. A process that calls execve(2) within that time is not noticed: whatever lies at its addresses
 * is taken for data.
 *
 * Threads:  any, with a `seen` of their own.
 * Source:   process_vm_readv(2) and process_vm_writev(2). They are allowed where ptrace(2) is: mostly to processes of
 *           one user, unless a container or Yama forbids it.
 */
#ifndef KL_OS_FOREIGN_H
#define KL_OS_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Identifies a process to others; may be sent to other processes of the machine. */
struct kl_foreign {
    uint64_t mark_at, mark;
    int32_t pid;
};

enum { KL_FOREIGN_SEEN_MS = 10 }; /* a mark that was found is not read again for this long */

/**
 * Most bytes of one call, for callers that have other work between calls. Calls of a quarter of that take 1.02 to 1.05
 * times as long in all (8 MiB, 2 ranks).
 */
enum { KL_FOREIGN_PIECE = 4 << 20 };

/** A reader's cache for one process; zeroed at first. */
struct kl_foreign_seen {
    struct kl_foreign process; /* the process whose mark was found */
    uint64_t at;               /* when it was found, ns of kl_now_coarse_ns; 0: never */
};

/** This process, which keeps a mark at `mark` for as long as others may read or write. */
struct kl_foreign kl_foreign_self(const uint64_t *mark);

/**
 * Read `bytes`, more than 0, at the address `from` of it. False: not permitted, the process has ended, or not all of
 * the memory is mapped; the contents of `to` are undefined then.
 */
bool kl_foreign_read(const struct kl_foreign *process, struct kl_foreign_seen *seen, void *to, uint64_t from,
                     size_t bytes);

/** Write `bytes`, more than 0, to the address `to` of it. False: as for reading; any part may have been written. */
bool kl_foreign_write(const struct kl_foreign *process, struct kl_foreign_seen *seen, uint64_t to, const void *from,
                      size_t bytes);

/** May this process read and write the memory of that one, and is its mark right? */
bool kl_foreign_is_open(const struct kl_foreign *process);

#endif
