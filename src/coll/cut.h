/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cut.h - how an operation is cut among channels: pure arithmetic, the same on every rank.
 *
 * Elements are dealt out in cells that cause at least 16 KiB of traffic, so that no channel runs for less. The first
 * channel gets `lo` elements, each middle one `mid`, the last `hi`; the channels' ranges follow one another in memory.
 *
 * Source: the graph specification, 12.5, for a single operation.
 */
#ifndef KL_COLL_CUT_H
#define KL_COLL_CUT_H

#include <stdbool.h>
#include <stddef.h>

struct kl_cut_request {
    int func, nranks;
    size_t count, elem_bytes; /* of the buffer, or of one part of it */
    int nchannels;            /* at most */
    bool ll;                  /* protocol LL: four times the traffic */
};

struct kl_cut {
    int nchannels; /* channels with elements; at least 1 */
    size_t lo, mid, hi;
};

struct kl_cut kl_cut_among(const struct kl_cut_request *request);

/** Elements [*first, *end) of channel c < cut->nchannels. */
static inline void kl_cut_range(const struct kl_cut *cut, int c, size_t *first, size_t *end)
{
    *first = c ? cut->lo + (size_t)(c - 1) * cut->mid : 0;
    *end = *first + (!c ? cut->lo : c == cut->nchannels - 1 && cut->hi ? cut->hi : cut->mid);
}

#endif
