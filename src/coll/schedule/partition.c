/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/schedule/partition.h"

#include "coll/schedule/func.h"

enum { LEAST_TRAFFIC = 16384, GRAIN = 16 }; /* bytes */

static size_t ceil_div(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Number of times that a byte of a buffer, or of a part, crosses a channel. */
static size_t traffic_per_byte(const struct kl_partition_request *q)
{
    size_t times = q->func == KL_FUNC_ALL_REDUCE ? 2 : kl_func_bytes(q->func, 1, q->nranks);

    return q->ll ? 4 * times : times;
}

/** Cells: the number per channel, and the division among the three kinds of channels. */
struct cells {
    size_t lo, mid_each, mids, hi;
};

static struct cells deal(size_t cells, size_t each, int nchannels)
{
    struct cells d = {.lo = nchannels == 1 ? cells : at_most(cells, each)};

    d.mid_each = at_most(cells, each);
    d.mids = (cells - d.lo) / d.mid_each;
    d.hi = (cells - d.lo) % d.mid_each;
    if ((size_t)(d.lo != 0) + d.mids + (d.hi != 0) > (size_t)nchannels) {
        d.mids = (size_t)nchannels - 2;
        d.mid_each = (cells - d.lo) / (d.mids + 1);
        d.hi = d.mid_each + (cells - d.lo) % (d.mids + 1);
    }
    if (!d.hi && d.mids) {
        d.hi = d.mid_each;
        d.mids--;
    }
    return d;
}

struct kl_partition kl_partition_channels(const struct kl_partition_request *q)
{
    size_t per_byte = traffic_per_byte(q), bytes = q->count * q->elem_bytes;
    size_t cell = ceil_div(ceil_div(LEAST_TRAFFIC, per_byte), GRAIN) * GRAIN; /* bytes */
    size_t cells = ceil_div(bytes, cell), traffic = bytes * per_byte / (size_t)q->nchannels;

    if (cells <= 1) return (struct kl_partition){.nchannels = 1, .lo = q->count};
    if (traffic < LEAST_TRAFFIC) traffic = LEAST_TRAFFIC;
    struct cells d = deal(cells, ceil_div(traffic, cell * per_byte), q->nchannels);
    size_t elems = cell / q->elem_bytes, excess = cells * elems - q->count;
    struct kl_partition partition = {
        .nchannels = (int)((d.lo != 0) + d.mids + (d.hi != 0)),
        .lo = d.lo * elems,
        .mid = d.mids ? d.mid_each * elems : 0,
        .hi = d.hi * elems,
    };
    if (partition.hi)
        partition.hi -= excess;
    else
        partition.lo -= excess;
    return partition;
}
