/* SPDX-License-Identifier: Apache-2.0 */
/**
 * foreign.h - read and write the memory of another process of this machine, which has told where it is.
 *
 * Who lets others do so has a mark, a random number somewhere in its memory, which is read with the data, or before they are written: a process
 * that only has the same number, in another pid namespace or after the first has gone, is not taken for it. Reading the mark takes 0.3 us. So it is not read
 * again for KL_FOREIGN_SEEN_MS: numbers are given in turn, so that none comes round as soon. A process that calls execve(2) within that time is the same one
 * here: what lies at its addresses then, if anything, is taken for its data.
 *
 * Threads:  any, with a `seen` of their own.
 * Source:   process_vm_readv(2) and process_vm_writev(2). They are allowed where ptrace(2) is: mostly to processes of one user, unless a container or Yama forbids it.
 */
#ifndef KL_OS_FOREIGN_H
#define KL_OS_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How others know a process; may travel between processes of a machine. */
struct kl_foreign {
    uint64_t mark_at, mark;
    int32_t pid;
};

enum { KL_FOREIGN_SEEN_MS = 10 }; /* for which a mark that was found is not read again */

/** Most bytes of one call, where the caller has other work between calls. Calls for a quarter as many take 1.02 to 1.05 times as long in all (8 MiB, 2 ranks). */
enum { KL_FOREIGN_PIECE = 4 << 20 };

/** What the reader keeps of a process; zeros at first. */
struct kl_foreign_seen {
    struct kl_foreign process; /* whose mark was found, */
    uint64_t at;               /* ns, kl_now_coarse_ns; 0: none was */
};

/** This process, which keeps a mark at `mark` for as long as others may read or write. */
struct kl_foreign kl_foreign_self(const uint64_t *mark);

/** Read `bytes`, more than 0, at the address `from` of it. False: not allowed, it has gone, or not all of it is there; `to` has any contents then. */
bool kl_foreign_read(const struct kl_foreign *process, struct kl_foreign_seen *seen, void *to, uint64_t from,
                     size_t bytes);

/** Write `bytes`, more than 0, to the address `to` of it. False: as for reading; any of them may have been written. */
bool kl_foreign_write(const struct kl_foreign *process, struct kl_foreign_seen *seen, uint64_t to, const void *from,
                      size_t bytes);

/** May this process read and write the memory of that one, and is it the one that is meant? */
bool kl_foreign_is_open(const struct kl_foreign *process);

#endif
