/* SPDX-License-Identifier: Apache-2.0 */
/**
 * device.h - host devices: which one a thread uses, and where it is.
 *
 * A host device is a CPU that plays a GPU: an ordinal with a NUMA node. Its memory is host memory, its compute is whoever
 * runs its streams.
 *
 * Threads: any; the current device is the calling thread's own.
 * Source:  the architecture page, 4.
 */
#ifndef KL_DEVICE_HOST_DEVICE_H
#define KL_DEVICE_HOST_DEVICE_H

#include "include/nccl.h"

#include <stdbool.h>

/** Make `device` the thread's current one. The caller has checked it against the count. */
void kl_device_set(int device);

/** The device that the thread has set; -1 if it never set one. */
int kl_device_asked(void);

/** The same, or the one that its first communicator was given; -1 if there is none either. */
int kl_device_chosen(void);

/** A communicator of this thread got `device` without the thread having chosen: it is the current one from now on. */
void kl_device_adopt(int device);

/** The current device, or the one that the process's first communicator was given, or 0. */
int kl_device_current(void);

/** NUMA node of a device: devices are spread over the nodes in blocks, as `count` devices over `nnodes` nodes. */
int kl_device_node(int device, int count, const int *nodes, int nnodes);

#endif
