/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gdr.h - asks the driver for CUDA whether NICs may access the memory of GPUs. No context is made, and no memory is touched.
 *
 * Errors:   without a driver, or if it does not know a GPU: -1, "unknown".
 * Blocking: the first question of a process starts the driver, which takes up to seconds.
 * Source:   the CUDA driver API: device attributes 116 and 124.
 */
#ifndef KL_DEVICE_GDR_H
#define KL_DEVICE_GDR_H

struct kl_nvml_gpu;

/** Sets `gdr` of each GPU: 1 with GPUDirect RDMA or DMA-BUF, 0 without both. */
void kl_gdr_read(struct kl_nvml_gpu *gpu, int n);

#endif
