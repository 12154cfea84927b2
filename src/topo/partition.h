/* SPDX-License-Identifier: Apache-2.0 */
/**
 * partition.h - GPUs that are split in two (`mlopart` 0 and 1): elements of one PCI device, devices of their own in the graph.
 *
 * A partition's device is named by its bus id with the two lowest bits set: 1 for partition 0, 3 for partition 1. NCCL knows
 * partitions since 2.30.7, and keeps these bits free.
 *
 * Threads: pure.
 * Source:  the specification of differences between versions, 4.8.
 */
#ifndef KL_TOPO_PARTITION_H
#define KL_TOPO_PARTITION_H

#include "topo/xml.h"

enum { KL_PARTITIONS = 2 };

/** Which partition of its GPU a gpu element is; -1 for a whole one. */
int kl_partition_of(const struct kl_xml *xml, int gpu);

/** How the graph names the device of a partition, or the whole GPU (-1). */
uint64_t kl_partition_id(uint64_t busid, int partition);

#endif
