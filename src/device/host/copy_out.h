/* SPDX-License-Identifier: Apache-2.0 */
/**
 * copy_out.h - copies to where another core reads them, and has read what was there before.
 *
 * A store to such a line first takes it from the other core. Where cores are far apart (in other chiplets, or sockets) that takes long, even if many lines are
 * asked for ahead; stores that go past the caches do not ask for them, and the reader gets the data from memory no later. Where cores are near, or one,
 * it is the other way round. Which it is may change, as hosts move the cores of virtual machines: so who copies times a line now and then, one that
 * comes from the other core for sure.
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

/* Bytes: below, stores always go into the caches, and no lines are prefetched: from far, a reduce of 256 bytes takes 5 to 17 % longer past them. */
enum { KL_COPY_OUT_LEAST = 512 };

/** Who copies to one place after the other; all zeros at first. */
struct kl_copy_out {
    uint32_t line_ns; /* that lines took lately, in the mean */
    bool past;        /* go past the caches */
};

/*
 * Lines come from far if they take so long in the mean, of which the first one is all, and a new one 1/SHARE. What takes much longer tells nothing: an interrupt,
 * or a page that is touched for the first time. From a near core 20 to 80 ns were measured, in the mean 30 to 61, from one far away 110 to 200 (EPYC).
 */
enum { KL_COPY_OUT_FAR_NS = 90, KL_COPY_OUT_MOST_NS = 200, KL_COPY_OUT_NOTHING_NS = 600, KL_COPY_OUT_SHARE = 4 };

/** A line took so long. */
static inline void kl_copy_out_took(struct kl_copy_out *out, uint64_t ns)
{
    if (ns > KL_COPY_OUT_NOTHING_NS) return;
    const uint32_t line_ns = ns < KL_COPY_OUT_MOST_NS ? (uint32_t)ns : KL_COPY_OUT_MOST_NS;
    out->line_ns = out->line_ns ? ((KL_COPY_OUT_SHARE - 1) * out->line_ns + line_ns) / KL_COPY_OUT_SHARE : line_ns;
    out->past = out->line_ns > KL_COPY_OUT_FAR_NS;
}

/** Do so many bytes go past the caches? */
static inline bool kl_copy_out_goes_past(const struct kl_copy_out *out, size_t bytes)
{
    return bytes >= KL_COPY_OUT_LEAST && out->past;
}

/** A line is taken from here on, until kl_copy_out_timed: ns. What a look at the clock takes is not counted. */
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
