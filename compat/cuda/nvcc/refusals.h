/* SPDX-License-Identifier: Apache-2.0 */
/** refusals.h - why kernels keep their fibres, by their places in the source. */
#ifndef KL_NVCC_REFUSALS_H
#define KL_NVCC_REFUSALS_H

#include <stddef.h>

struct refusal {
    char *place, *why;
};

struct refusals {
    struct refusal *at;
    size_t count;
};

/** The reason of the kernel at `place`, NULL: it was not refused. */
const char *refusal_of(const struct refusals *r, const char *place);

/** Keep a reason; both texts are copied. */
void refuse_kernel(struct refusals *r, const char *place, const char *why);
void refusals_drop(struct refusals *r);

#endif
