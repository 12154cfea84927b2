/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nvml_state.h - the checks at the start of all functions: is NVML initialised, and is the handle valid?
 *
 * Handles are the host's devices, whatever the value of CUDA_VISIBLE_DEVICES.
 * Threads: any.
 */
#ifndef KL_NVML_STATE_H
#define KL_NVML_STATE_H

#include "compat/cuda/core/device.h"
#include "compat/cuda/include/nvml.h"

#define KL_NVML_TRY(expr)                                                                                              \
    do {                                                                                                               \
        nvmlReturn_t kl_nvml_try_rc = (expr);                                                                          \
        if (kl_nvml_try_rc) return kl_nvml_try_rc;                                                                     \
    } while (0)

/** 1 before nvmlInit. */
nvmlReturn_t kl_nvml_ready(void);

/** The device behind a handle; 2: there is none. */
nvmlReturn_t kl_nvml_device(nvmlDevice_t handle, const struct kl_cuda_device **device);
nvmlDevice_t kl_nvml_handle(const struct kl_cuda_device *device);

/** The number that this process sees the device under; -1: it does not. */
int kl_nvml_visible(const struct kl_cuda_device *device);
nvmlMemory_t kl_nvml_memory(const struct kl_cuda_device *device);

/** A place, with its texts. */
nvmlPciInfo_t kl_nvml_pci(const struct kl_cuda_place *at);

/** Copy a text; 7: it does not fit. */
nvmlReturn_t kl_nvml_text(const char *from, char *to, unsigned bytes);

#endif
