/* SPDX-License-Identifier: Apache-2.0 */
/**
 * segment.h - memory that several processes map: a memfd, so it has no name and leaves nothing behind.
 *
 * One process creates a segment and passes the descriptor to its peers (os/fdpass.h); each maps it. The memory lives
 * until the last mapping and the last descriptor are gone, however the processes end. The size is sealed, so that no
 * peer can make accesses fault by shrinking it.
 *
 * Sizes:    bytes, rounded up to whole pages. Pages are allocated when touched; where the system promises no more
 *           memory than it has (overcommit.h), all at creation: later each could be a SIGBUS.
 * Contents: zero at creation.
 * Errors:   ncclSystemError (no memory, no descriptors); ncclInvalidArgument for a size of 0; ncclRemoteError when an
 *           attached descriptor is not a sealed segment of the promised size.
 * Threads:  a segment belongs to one thread at a time; different segments are independent.
 * Source:   memfd_create(2), fcntl(2) F_ADD_SEALS.
 */
#ifndef KL_OS_SEGMENT_H
#define KL_OS_SEGMENT_H

#include "include/nccl.h"

#include <stddef.h>

struct kl_segment {
    void *base;   /* NULL until mapped */
    size_t bytes; /* whole pages */
    int fd;       /* the creator's, to pass on; -1 on the attached side */
};

#define KL_SEGMENT_NONE ((struct kl_segment){.fd = -1})

/** Create and map a segment; `label` shows in /proc/PID/maps. */
ncclResult_t kl_segment_create(struct kl_segment *seg, const char *label, size_t bytes);

/** Map the segment behind `fd`, which must be sealed and hold at least `bytes`. Takes over `fd` in every case. */
ncclResult_t kl_segment_attach(struct kl_segment *seg, int fd, size_t bytes);

/** Unmap it; the descriptor can be handed out as before. */
void kl_segment_unmap(struct kl_segment *seg);

/** Unmap and close. Works on KL_SEGMENT_NONE and after a failure. */
void kl_segment_close(struct kl_segment *seg);

#endif
