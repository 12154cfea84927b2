/* SPDX-License-Identifier: Apache-2.0 */
/** peer_direct_work.h - Mapped (peer_direct.h) once all ranks' buffers are known: a rank's share of the work, piece by piece. */
#ifndef KL_COLL_ZCOPY_PEER_DIRECT_WORK_H
#define KL_COLL_ZCOPY_PEER_DIRECT_WORK_H

#include "coll/pipeline/algorithm.h"

enum {
    KL_MAPPED_BLOCK = 4096
}; /* bytes reduced at a time, so that they stay in the nearest cache; two of them are the scratch */

struct kl_mapped_work {
    const struct kl_channel_work *share;
    int rank, nranks;
    char **send, **recv; /* by rank: where its buffers are here; NULL: they are not lent */
    int taken;           /* sources that have been copied, */
    size_t moved;        /* and bytes of the next one, or of the slice */
};

/** Bytes of a rank's buffers. */
size_t kl_mapped_send_bytes(const struct kl_mapped_work *w);
size_t kl_mapped_recv_bytes(const struct kl_mapped_work *w);

/** Work on the next piece, between kl_arena_touch and kl_arena_untouch. True: there is no more. */
bool kl_mapped_work(struct kl_mapped_work *w);

/** `count` elements of n inputs reduced, to where none of them is. A redop with a `first`: at most KL_MAPPED_BLOCK bytes. */
void kl_mapped_reduce(const struct kl_channel_work *share, int n, const void *const *partial, void *to, size_t count);

#endif
