/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ranges.h - ranges of host memory: pinned, exported, and imported from other processes, for device/device.h.
 *
 * A CPU reaches every page at any time: pinning moves and locks nothing, it keeps the block (memory.h). An export is an
 * offer of the block's descriptor (event/fdshare.h).
 */
#ifndef KL_DEVICE_HOST_RANGES_H
#define KL_DEVICE_HOST_RANGES_H

#include "device/memory.h"
#include "include/nccl.h"

ncclResult_t kl_range_pin(const void *ptr, size_t bytes, uint64_t *pin);
ncclResult_t kl_range_unpin(uint64_t pin);

ncclResult_t kl_range_export(const void *ptr, size_t bytes, struct kl_range_export_handle *exported);
ncclResult_t kl_range_unexport(const struct kl_range_export_handle *exported);

ncclResult_t kl_range_import(const struct kl_range_export_handle *exported, uint64_t deadline,
                             struct kl_import **import, void **ptr);
void kl_range_unimport(struct kl_import *import);

#endif
