/* SPDX-License-Identifier: Apache-2.0 */
/** found.h - the findings of finding.h. */
#ifndef KL_PLAN_FOUND_H
#define KL_PLAN_FOUND_H

#include "topo/product.h"

enum kl_finding_code {
    KL_FINDING_NONE,
    KL_FINDING_NO_NVLINK,    /* n GPUs of `product` on a board have none in the file */
    KL_FINDING_MANY_NVLINKS, /* n GPUs have more than the product */
    KL_FINDING_AMD           /* n AMD GPUs; their search models are missing */
};

struct kl_finding {
    enum kl_finding_code code;
    int n;
    const struct kl_gpu_product *product;
    float now, mended; /* as the file is, and with the NVLinks of the product; mended 0: their wiring is unknown */
};

#endif
