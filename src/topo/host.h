/* SPDX-License-Identifier: Apache-2.0 */
/**
 * host.h - host devices in a document: CPUs that emulate GPUs.
 *
 * Each NUMA node NN with devices gets a virtual PCI switch ffNN:00:00.0 at 8 GT/s x16, and below it each device i a
 * GPU ffNN:BB:DD.F of the same speed: BB = 1 + i / 32, DD = i mod 32, and F counts further ranks on the same device.
 * So devices of one node reach each other at 12 GB/s over the switch, where P2P is allowed, and devices of different
 * nodes over the CPUs. All numbers are hexadecimal; dev is i, sm 80. Further ranks are marked by `replica`: NCCL from
 * 2.30.7 on takes other GPUs on functions 0 and 4 only.
 */
#ifndef KL_TOPO_HOST_H
#define KL_TOPO_HOST_H

#include "topo/detect.h"

/** Add a host device with its switch and cpu; marks it keep="1". */
ncclResult_t kl_host_device_place(const struct kl_detect *d, const struct kl_host_device *device);

/**
 * Let another rank use the GPU of element `gpu` too: a copy of its PCI device with the next free function number,
 * with the same NVLinks as the original. `copy` receives the new gpu element.
 */
ncclResult_t kl_host_device_share(struct kl_xml *xml, int gpu, int *copy);

/** Is this GPU (the local id of a node) a host device that was placed, rather than one of a file that describes another machine? */
bool kl_host_device_is_own(uint64_t busid);

#endif
