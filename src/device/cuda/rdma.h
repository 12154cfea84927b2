/* SPDX-License-Identifier: Apache-2.0 */
/**
 * rdma.h - memory of GPUs that NICs read and write themselves (GPUDirect RDMA): which memory, by which name a NIC gets it,
 * and the flush that makes data from a NIC visible to the GPU.
 *
 * A NIC knows memory by its address, with nvidia_peermem loaded, or by a DMA-BUF. The program may free memory, and get
 * its address again with other memory behind it: `id` tells them apart.
 *
 * Threads: any.
 * Source:  the CUDA driver API: pointer attributes, cuMemGetHandleForAddressRange, device attributes 116 to 118 and 124.
 */
#ifndef KL_DEVICE_CUDA_RDMA_H
#define KL_DEVICE_CUDA_RDMA_H

#include "device/cuda/context.h"

/** An allocation of a GPU. */
struct kl_cuda_region {
    uint64_t id; /* differs for each allocation of the process */
    int device;
    char *base;
    size_t bytes;
    bool by_address; /* CUDA gives its pages to NICs that ask for the address */
};

/** The abilities of a GPU. */
struct kl_cuda_rdma {
    bool by_address, by_dma_buf; /* how NICs reach its memory */
    bool ordered;                /* a NIC's writes are visible to its streams without a flush */
    bool can_flush;              /* kl_cuda_flush works */
};

ncclResult_t kl_cuda_rdma_of(int device, struct kl_cuda_rdma *rdma);

/** The allocation of a device that has `bytes` from `ptr` on, and is in its memory alone. False: there is none. */
bool kl_cuda_region_find(int device, const void *ptr, size_t bytes, struct kl_cuda_region *region);

/** Whole pages around the region. */
void kl_cuda_region_pages(const struct kl_cuda_region *region, char **start, size_t *bytes);

/** The descriptor of the DMA-BUF of these pages, the caller's to close; -1: CUDA makes none of this memory. */
int kl_cuda_region_export(const struct kl_cuda_region *region);

/** Before a NIC uses it: let copies that the program waits for have ended in its memory. */
void kl_cuda_region_synchronise(const struct kl_cuda_region *region);

/** Earlier writes of NICs are visible to the device afterwards. */
ncclResult_t kl_cuda_flush(int device);

#endif
