/* SPDX-License-Identifier: Apache-2.0 */
/**
 * devices.h - how many host devices this process has: settings, topology file, launcher and CPUs taken together.
 */
#ifndef KL_COMM_DEVICES_H
#define KL_COMM_DEVICES_H

#include "include/nccl.h"

/** The number of host devices. Any thread. */
ncclResult_t kl_devices_count(int *count);

#endif
