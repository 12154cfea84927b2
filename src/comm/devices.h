/* SPDX-License-Identifier: Apache-2.0 */
/**
 * devices.h - how many devices this process has.
 */
#ifndef KL_COMM_DEVICES_H
#define KL_COMM_DEVICES_H

#include "include/nccl.h"

struct kl_xml;

/** The number of devices of this process; `file` is its topology file, NULL without one. Any thread. */
int kl_devices_count(const struct kl_xml *file);

/** The same with the topology file of the moment. Any thread. */
ncclResult_t kl_devices_count_now(int *count);

#endif
