/* SPDX-License-Identifier: Apache-2.0 */
/**
 * copy_out.h - copies to memory that another core has read before and reads next.
 *
 * A store to such a line first takes it from the other core. If the cores are far apart (other chiplets or sockets)
 * that is slow, even with many prefetches; non-temporal stores avoid it, and the reader gets the data from memory no
 * later. If the cores are near, or the same, ordinary stores are faster. The distance can change, as hosts move the
 * cores of virtual machines: so the writer times a line now and then, one that certainly comes from the other core.
 *
 * Threads:      one at a time.
 * Memory order: as memcpy: a release store that follows publishes all of it.
 */
#ifndef KL_DEVICE_HOST_COPY_OUT_H
#define KL_DEVICE_HOST_COPY_OUT_H

#include "base/atomic.h"
#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Bytes: below, stores are always ordinary, and no lines are prefetched: from far, a reduce of 256 bytes takes 5 to
 * 17 % longer with non-temporal ones. */
enum { KL_COPY_OUT_LEAST = 512 };

/** State of a writer that copies to one place after the other; zeroed at first. */
struct kl_copy_out {
    uint32_t line_ns; /* moving average of the time that a line takes */
    bool nontemporal; /* use non-temporal stores */
};

/* The reader is far if a line takes that long on average; the average starts with the first sample, and gives a new
 * one the weight 1/SHARE. Much longer samples are ignored: an interrupt, or a page fault. Measured on EPYC: 20 to 80
 * ns from a near core, 30 to 61 on average; 110 to 200 from a far one. */
enum { KL_COPY_OUT_FAR_NS = 90, KL_COPY_OUT_MOST_NS = 200, KL_COPY_OUT_NOTHING_NS = 600, KL_COPY_OUT_SHARE = 4 };

/** Record that a line took `ns`. */
static inline void kl_copy_out_took(struct kl_copy_out *out, uint64_t ns)
{
    if (ns > KL_COPY_OUT_NOTHING_NS) return;
    const uint32_t line_ns = ns < KL_COPY_OUT_MOST_NS ? (uint32_t)ns : KL_COPY_OUT_MOST_NS;
    out->line_ns = out->line_ns ? ((KL_COPY_OUT_SHARE - 1) * out->line_ns + line_ns) / KL_COPY_OUT_SHARE : line_ns;
    out->nontemporal = out->line_ns > KL_COPY_OUT_FAR_NS;
}

/** Are this many bytes copied with non-temporal stores? */
static inline bool kl_copy_out_is_nontemporal(const struct kl_copy_out *out, size_t bytes)
{
    return bytes >= KL_COPY_OUT_LEAST && out->nontemporal;
}

/** Start of a sample, ended by kl_copy_out_timed: ns. The clock's own cost is not counted. */
static inline uint64_t kl_copy_out_time(void)
{
    const uint64_t first = kl_now_ns(), second = kl_now_ns();

    kl_cpu_serialize();
    return second + (second - first);
}

void kl_copy_out_timed(struct kl_copy_out *out, uint64_t began);

/** The mean, ns, of whoever in this process has timed a line last; 0: nobody has. *number: so many were timed. Any thread. */
uint32_t kl_copy_out_latest(uint32_t *number);

__attribute__((noinline)) void kl_copy_out_large(const struct kl_copy_out *out, void *to, const void *from,
                                                 size_t bytes);

static inline void kl_copy_out(const struct kl_copy_out *out, void *to, const void *from, size_t bytes)
{
    if (bytes < KL_COPY_OUT_LEAST)
        memcpy(to, from, bytes);
    else
        kl_copy_out_large(out, to, from, bytes);
}

#endif
