/* SPDX-License-Identifier: Apache-2.0 */
/** peer_direct_work.h - Mapped (peer_direct.h) once all ranks' buffers are known: a rank's share of the work, piece by piece. */
#ifndef KL_COLL_ZCOPY_PEER_DIRECT_WORK_H
#define KL_COLL_ZCOPY_PEER_DIRECT_WORK_H

#include "coll/pipeline/algorithm.h"

enum {
    KL_PEER_DIRECT_BLOCK = 4096
}; /* bytes reduced at a time, so that they stay in the nearest cache; two of them are the scratch */

struct kl_peer_direct_work {
    const struct kl_channel_work *share;
    int rank, nranks;
    char **send, **recv; /* by rank: where its buffers are here; NULL: they are not exposed */
    int taken;           /* sources that have been copied, */
    size_t moved;        /* and bytes of the next one, or of the slice */
};

/** Bytes of a rank's buffers. */
size_t kl_peer_direct_send_bytes(const struct kl_peer_direct_work *w);
size_t kl_peer_direct_recv_bytes(const struct kl_peer_direct_work *w);

/** Work on the next piece, between kl_arena_touch and kl_arena_untouch. True: there is no more. */
bool kl_peer_direct_work(struct kl_peer_direct_work *w);

/** `count` elements of n inputs reduced, to where none of them is. A redop with a `first`: at most KL_PEER_DIRECT_BLOCK bytes. */
void kl_peer_direct_reduce(const struct kl_channel_work *share, int n, const void *const *partial, void *to,
                           size_t count);

#endif
