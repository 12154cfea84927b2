/* SPDX-License-Identifier: Apache-2.0 */
/**
 * current.h - host devices: how many there are, where they are, and which one a thread uses.
 *
 * A host device is a CPU that plays a GPU: an ordinal with a NUMA node. Its memory is host memory, its compute is whoever
 * runs its streams. Its bus id, and the CPUs near it, are the topology's (topo/host.c).
 *
 * What the functions do, device/device.h says.
 *
 * Threads: any; the current device is the calling thread's own.
 * Source:  the architecture page, 4.
 */
#ifndef KL_DEVICE_HOST_CURRENT_H
#define KL_DEVICE_HOST_CURRENT_H

#include <stdbool.h>

/**
 * The setting, else the GPUs of the file, else the ranks that the job's launcher has here, else the CPUs of the affinity
 * mask, but at least 8.
 */
int kl_host_count(int setting, int file_gpus);

/** Devices are spread over the nodes in blocks, as `count` devices over `nnodes` nodes. */
int kl_host_node(int device, int count, const int *nodes, int nnodes);

void kl_host_select(int device);
int kl_host_current(void);
int kl_host_chosen(bool selected_only);
void kl_host_adopt(int device);

#endif
