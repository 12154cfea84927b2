/* SPDX-License-Identifier: Apache-2.0 */
#include "channel/channel.h"

#include "base/error.h"

#include <stdlib.h>

static int position(const int *ranks, int nranks, int rank)
{
    for (int i = 0; i < nranks; i++)
        if (ranks[i] == rank) return i;
    return -1;
}

ncclResult_t kl_ring_init(struct kl_ring *ring, const int *ranks, int nranks, int rank)
{
    int me = position(ranks, nranks, rank), zero = position(ranks, nranks, 0);

    if (me < 0 || zero < 0)
        return KL_FAIL(ncclInternalError, "a ring of %d ranks lacks rank %d", nranks, me < 0 ? rank : 0);
    int *order = malloc((size_t)nranks * sizeof *order);
    if (!order) return KL_NOMEM("a ring");
    for (int i = 0; i < nranks; i++) order[i] = ranks[(me + i) % nranks];
    *ring = (struct kl_ring){.nranks = nranks, .index = (me - zero + nranks) % nranks, .order = order};
    return ncclSuccess;
}

void kl_ring_free(struct kl_ring *ring)
{
    kl_connector_free(&ring->from_prev);
    kl_connector_free(&ring->to_next);
    free(ring->order);
    ring->order = NULL;
}
