/* SPDX-License-Identifier: Apache-2.0 */
/**
 * current.h - host devices: their number, NUMA nodes, and each thread's current one.
 *
 * A host device is a CPU that emulates a GPU: an ordinal with a NUMA node. Its memory is host memory, and its streams
 * are run by CPU threads. Its bus id, and the CPUs near it, come from the topology (topo/host.c).
 *
 * For the functions' contracts see device/device.h.
 *
 * Threads: any; the current device is the calling thread's own.
 * Source:  the architecture page, 4.
 */
#ifndef KL_DEVICE_HOST_CURRENT_H
#define KL_DEVICE_HOST_CURRENT_H

#include <stdbool.h>

/**
 * The setting, else the GPUs of the file, else the number of the job's ranks on this host, else the CPUs of the
 * affinity mask, but at least 8.
 */
int kl_host_count(int setting, int file_gpus);

/** Devices are spread over the nodes in blocks: `count` devices over `nnodes` nodes. */
int kl_host_node(int device, int count, const int *nodes, int nnodes);

void kl_host_select(int device);
int kl_host_current(void);
int kl_host_chosen(bool selected_only);
void kl_host_adopt(int device);

#endif
