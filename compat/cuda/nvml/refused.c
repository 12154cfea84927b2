/* SPDX-License-Identifier: Apache-2.0 */
/**
 * refused.c - quantities that no topology has: NVML_ERROR_NOT_SUPPORTED, which tools show as N/A. Nothing is invented.
 */
#include "compat/cuda/nvml/nvml_state.h"

#define REFUSED(name)                                                                                                  \
    __attribute__((visibility("default"))) nvmlReturn_t name(void);                                                    \
    nvmlReturn_t name(void)                                                                                            \
    {                                                                                                                  \
        KL_NVML_TRY(kl_nvml_ready());                                                                                  \
        return NVML_ERROR_NOT_SUPPORTED;                                                                               \
    }

#include "compat/cuda/nvml/refused.inc"
