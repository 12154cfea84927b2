/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/copy_out.h"

#include "base/prefetch.h"
#include "device/host/bulk_copy.h"

/* Above, how many were timed; below, the mean after the last one. */
static _Atomic uint64_t latest;

uint32_t kl_copy_out_latest(uint32_t *number)
{
    const uint64_t now = kl_load_relaxed(&latest);

    *number = (uint32_t)(now >> 32);
    return (uint32_t)now;
}

void kl_copy_out_timed(struct kl_copy_out *out, uint64_t began)
{
    kl_cpu_serialize();
    const uint64_t now = kl_now_ns();
    kl_copy_out_took(out, now > began ? now - began : 0);
    kl_store_relaxed(&latest, ((kl_load_relaxed(&latest) >> 32) + 1) << 32 | out->line_ns);
}

void kl_copy_out_large(const struct kl_copy_out *out, void *to, const void *from, size_t bytes)
{
    if (out->nontemporal) {
        kl_copy_nontemporal(to, from, bytes, NULL);
        kl_nontemporal_fence();
    } else {
        kl_copy_prefetched(to, from, bytes);
    }
}
