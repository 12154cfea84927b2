/* SPDX-License-Identifier: Apache-2.0 */
/**
 * copy_out.h - copies to where another core reads them, and has read what was there before.
 *
 * A store to such a line first takes it from the other core. Where cores are far apart (in other chiplets, or sockets) that takes long, even if many lines are
 * asked for ahead; stores that go past the caches do not ask for them, and the reader gets the data from memory no later. Where cores are near, or one,
 * it is the other way round. Which it is may change, as hosts move the cores of virtual machines: so now and then the first line of a copy is timed.
 *
 * Threads:      one at a time.
 * Memory order: as memcpy: a release store that follows publishes all of it.
 */
#ifndef KL_DEVICE_HOST_COPY_OUT_H
#define KL_DEVICE_HOST_COPY_OUT_H

#include "base/prefetch.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { KL_COPY_OUT_LEAST = 1024 }; /* bytes: below, stores always go into the caches */

/** Who copies to one place after the other; all zeros at first. */
struct kl_copy_out {
    _Atomic uint32_t looks; /* counted to wait for a store */
    uint32_t copies;
    uint32_t line_ns; /* the last time that one was timed */
    bool past;        /* go past the caches */
};

void kl_copy_out_large(struct kl_copy_out *out, void *to, const void *from, size_t bytes);

static inline void kl_copy_out(struct kl_copy_out *out, void *to, const void *from, size_t bytes)
{
    if (bytes < KL_COPY_OUT_LEAST)
        kl_copy_prefetched(to, from, bytes);
    else
        kl_copy_out_large(out, to, from, bytes);
}

#endif
