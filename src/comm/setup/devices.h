/* SPDX-License-Identifier: Apache-2.0 */
/**
 * devices.h - the devices of this process among the host's.
 *
 * Programs number the devices that they see (CUDA_VISIBLE_DEVICES, read once); ranks exchange the host's ordinals.
 * Where that variable is not set, they are the same. Where neither a setting nor a file gives a host's number of
 * devices, it is the number that the variable names.
 *
 * Threads: any.
 */
#ifndef KL_COMM_SETUP_DEVICES_H
#define KL_COMM_SETUP_DEVICES_H

#include "include/nccl.h"

#include <stdbool.h>

struct kl_device_kind;
struct kl_xml;

/** The number of devices of this host; `file` is its topology file, NULL without one. */
int kl_devices_count(const struct kl_xml *file);

/** The number that this process sees, with the current topology file, which is read once for each name. */
ncclResult_t kl_devices_count_now(int *count);

/** The number of devices of a kind that this process sees. */
ncclResult_t kl_devices_count_of_kind(const struct kl_device_kind *devices, int *count);

/** The number of this host's devices, with the same file. */
ncclResult_t kl_devices_count_of_host(int *count);

/** Are only some of them visible, or in another order? */
bool kl_devices_selected(void);

/** The host's ordinal of the program's `device`. An invisible one: ncclInvalidArgument. */
ncclResult_t kl_devices_ordinal(int device, int *ordinal);

/** The UUID of the program's device; refused as above. */
ncclResult_t kl_devices_uuid(int device, unsigned char uuid[16]);

#endif
