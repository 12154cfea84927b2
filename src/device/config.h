/* SPDX-License-Identifier: Apache-2.0 */
/** config.h - what users may set about the devices of a process. Source: NCCL has nothing of the kind. */
#ifndef KL_DEVICE_CONFIG_H
#define KL_DEVICE_CONFIG_H

#include "base/param.h"

struct kl_device_config {
    bool nvml;             /* do plans look for GPUs? */
    int64_t host_devices;  /* 0: as the topology, the job or the CPUs suggest */
    int64_t device_memory; /* bytes of each, for who emulates memory of devices; 0: the machine's, divided by them */
};

extern const struct kl_param_set kl_device_param_set;

#endif
