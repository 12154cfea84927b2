/* SPDX-License-Identifier: Apache-2.0 */
/** config.h - parameters of a process's devices. Source: NCCL has no counterpart. */
#ifndef KL_DEVICE_CONFIG_H
#define KL_DEVICE_CONFIG_H

#include "base/param.h"

struct kl_device_config {
    bool nvml;            /* do plans use the GPUs that NVML lists? */
    int64_t host_devices; /* 0: derived from the topology, the job or the CPUs */
    /* emulated memory of each device, bytes; 0: the machine's, divided by the number of devices */
    int64_t device_memory;
};

extern const struct kl_param_set kl_device_param_set;

#endif
