/* SPDX-License-Identifier: Apache-2.0 */
/**
 * devices.h - how many devices this process has, and which of its host's they are.
 *
 * Programs count the devices that they see (CUDA_VISIBLE_DEVICES, read once); ranks tell each other the host's ordinals. Where that variable
 * is not set, they are the same. Where neither a setting nor a file says how many a host has, it has those that the variable names.
 *
 * Threads: any.
 */
#ifndef KL_COMM_DEVICES_H
#define KL_COMM_DEVICES_H

#include "include/nccl.h"

#include <stdbool.h>

struct kl_xml;

/** The number of devices of this host; `file` is its topology file, NULL without one. */
int kl_devices_count(const struct kl_xml *file);

/** The number that this process sees, with the topology file of the moment, which is read once for each name. */
ncclResult_t kl_devices_count_now(int *count);

/** The number that this host has, with the same file. */
ncclResult_t kl_devices_count_of_host(int *count);

/** Are only some of them visible, or in another order? */
bool kl_devices_selected(void);

/** The host's ordinal of the `device` that a program means. One that it does not see: ncclInvalidArgument. */
ncclResult_t kl_devices_ordinal(int device, int *ordinal);

/** The UUID of a device that a program means; refused as above. */
ncclResult_t kl_devices_uuid(int device, unsigned char uuid[16]);

#endif
