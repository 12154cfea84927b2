/* SPDX-License-Identifier: Apache-2.0 */
/**
 * channel.h - the connectors of one ring, as one rank sees them.
 *
 * `order` is the ring rotated to start with this rank: order[0] is this rank, order[1] the one it sends to, and
 * order[nranks - 1] the one it receives from. `index` is this rank's distance from rank 0 along the ring: the same
 * place has the same index for everybody, so that ranks agree on chunks.
 */
#ifndef KL_CHANNEL_CHANNEL_H
#define KL_CHANNEL_CHANNEL_H

#include "transport/transport.h"

struct kl_ring {
    int nranks;
    int index;
    int *order;
    struct kl_connector from_prev, to_next;
};

struct kl_channel {
    struct kl_ring ring;
};

/** Prepare the ring of `rank` from the ranks in ring order, from any start. Nothing is connected yet. */
ncclResult_t kl_ring_init(struct kl_ring *ring, const int *ranks, int nranks, int rank);

/** Free the connectors and the order. Works on zeroed memory. */
void kl_ring_free(struct kl_ring *ring);

static inline int kl_ring_next(const struct kl_ring *ring)
{
    return ring->order[1 % ring->nranks];
}

static inline int kl_ring_prev(const struct kl_ring *ring)
{
    return ring->order[ring->nranks - 1];
}

#endif
