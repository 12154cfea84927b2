/* SPDX-License-Identifier: Apache-2.0 */
/**
 * topology.h - the host's devices in the topology: NCCL_TOPO_FILE, or this machine, as communicators see it.
 */
#ifndef KL_CUDA_TOPOLOGY_H
#define KL_CUDA_TOPOLOGY_H

#include "include/nccl.h"

struct kl_cuda_device;

/** Fill in place, kind and NVLinks of `count` devices. Other fields stay. */
ncclResult_t kl_cuda_topology_describe(struct kl_cuda_device *list, int count);

#endif
