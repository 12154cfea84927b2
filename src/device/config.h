/* SPDX-License-Identifier: Apache-2.0 */
/** config.h - parameters of a process's devices. Source: NCCL has no counterpart. */
#ifndef KL_DEVICE_CONFIG_H
#define KL_DEVICE_CONFIG_H

#include "base/param.h"

enum kl_devices_wanted { KL_DEVICES_AUTO, KL_DEVICES_HOST, KL_DEVICES_CUDA };
enum kl_cuda_mover {
    KL_CUDA_MOVER_AUTO,
    KL_CUDA_MOVER_DIRECT,
    KL_CUDA_MOVER_COPY,
    KL_CUDA_MOVER_LINES,
    KL_CUDA_MOVER_SCHEDULE,
    KL_CUDA_MOVER_NVLS
};
enum kl_cuda_spin { KL_CUDA_SPIN_OFF, KL_CUDA_SPIN_ON, KL_CUDA_SPIN_AUTO };

struct kl_device_config {
    int devices;          /* enum kl_devices_wanted */
    int cuda_mover;       /* enum kl_cuda_mover */
    int cuda_spin;        /* enum kl_cuda_spin */
    int64_t cuda_lines;   /* bytes of a message in lines, at most */
    int64_t cuda_threads; /* of a block that follows a schedule, or uses NVLS; 0: by the GPU's size */
    int64_t cuda_blocks;  /* of a kernel, at most; 0: by the GPU's size */
    int64_t cuda_round;   /* bytes of a rank's larger buffer that go over host memory at a time, between hosts */
    int64_t cuda_chunk;   /* bytes of a rank in host memory at a time, between GPUs without P2P */
    int64_t cuda_engines; /* bytes from which copy engines read that memory, not kernels */
    int64_t cuda_rdma;    /* bytes from which a NIC moves messages from and into memory of GPUs, where it can */
    bool dma_buf;         /* may it get at that by DMA-BUFs? */
    char cuda_library[KL_PARAM_TEXT];
    bool nvml;            /* do plans use the GPUs that NVML lists? */
    int64_t host_devices; /* 0: derived from the topology, the job or the CPUs */
    /* emulated memory of each device, bytes; 0: the machine's, divided by the number of devices */
    int64_t device_memory;
};

extern const struct kl_param_set kl_device_param_set;

#endif
