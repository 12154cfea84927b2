/* SPDX-License-Identifier: Apache-2.0 */
/** place.h - PCI addresses, also as text: "0000:3b:00.0". Threads: any. */
#ifndef KL_CUDA_PLACE_H
#define KL_CUDA_PLACE_H

#include <stdbool.h>

struct kl_cuda_place {
    unsigned domain, bus, device, function;
};

/** The text may lack the domain, or the function, which are 0 then. False: no address, or more text behind it. */
bool kl_cuda_place_read(const char *text, struct kl_cuda_place *place);

/** CUDA's form, in small letters, for a buffer of this size. False: it does not fit, and nothing is written. */
bool kl_cuda_place_text(const struct kl_cuda_place *place, char *text, int bytes);

bool kl_cuda_place_same(const struct kl_cuda_place *a, const struct kl_cuda_place *b);

#endif
