/* SPDX-License-Identifier: Apache-2.0 */
/**
 * partition.h - how an operation is cut among channels: pure arithmetic, the same on every rank.
 *
 * Elements are dealt out in cells that cause at least 16 KiB of traffic, so that no channel runs for less. The first
 * channel gets `lo` elements, each middle one `mid`, the last `hi`; the channels' ranges follow one another in memory.
 *
 * Source: the graph specification, 12.5, for a single operation.
 */
#ifndef KL_COLL_SCHEDULE_PARTITION_H
#define KL_COLL_SCHEDULE_PARTITION_H

#include <stdbool.h>
#include <stddef.h>

struct kl_partition_request {
    int func, nranks;
    size_t count, elem_bytes; /* of the buffer, or of one part of it */
    int nchannels;            /* at most */
    bool ll;                  /* protocol LL: four times the traffic */
};

struct kl_partition {
    int nchannels; /* channels with elements; at least 1 */
    size_t lo, mid, hi;
};

struct kl_partition kl_partition_channels(const struct kl_partition_request *request);

/** Elements [*first, *end) of channel c < partition->nchannels. */
static inline void kl_partition_range(const struct kl_partition *partition, int c, size_t *first, size_t *end)
{
    *first = c ? partition->lo + (size_t)(c - 1) * partition->mid : 0;
    *end = *first + (!c                                               ? partition->lo
                     : c == partition->nchannels - 1 && partition->hi ? partition->hi
                                                                      : partition->mid);
}

#endif
