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

enum {
    KL_COPY_OUT_LEAST = 1024
}; /* bytes: below, stores go into the caches, and no lines are asked for ahead, by which 512 bytes lost */

/** Who copies to one place after the other; all zeros at first. */
struct kl_copy_out {
    uint32_t line_ns; /* that lines took lately, in the mean */
    bool past;        /* go past the caches */
};

/** A line is taken from here on, until kl_copy_out_timed: ns. What a look at the clock takes is not counted. */
static inline uint64_t kl_copy_out_time(void)
{
    const uint64_t first = kl_now_ns(), second = kl_now_ns();

    kl_cpu_serialize();
    return second + (second - first);
}

void kl_copy_out_timed(struct kl_copy_out *out, uint64_t began);

/** The same, in ns. */
void kl_copy_out_took(struct kl_copy_out *out, uint64_t ns);

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
