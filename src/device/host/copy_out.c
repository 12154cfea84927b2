/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/copy_out.h"

#include "base/prefetch.h"
#include "device/host/bulk_copy.h"

void kl_copy_out_timed(struct kl_copy_out *out, uint64_t began)
{
    kl_cpu_serialize();
    const uint64_t now = kl_now_ns();
    kl_copy_out_took(out, now > began ? now - began : 0);
}

void kl_copy_out_large(const struct kl_copy_out *out, void *to, const void *from, size_t bytes)
{
    if (out->past) {
        kl_copy_nontemporal(to, from, bytes, NULL);
        kl_nontemporal_fence();
    } else {
        kl_copy_prefetched(to, from, bytes);
    }
}
