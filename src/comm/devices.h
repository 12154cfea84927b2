/* SPDX-License-Identifier: Apache-2.0 */
/**
 * devices.h - what host devices there are: the topology file, and how many this process has.
 */
#ifndef KL_COMM_DEVICES_H
#define KL_COMM_DEVICES_H

#include "comm/config.h"
#include "include/nccl.h"

struct kl_xml;

/**
 * Load NCCL_TOPO_FILE; *file is NULL where none is set, or it cannot be read, or names no GPU: a warning says so, and what
 * is there is detected. Malformed: ncclInternalError. Another version: ncclInvalidUsage. The caller frees it.
 */
ncclResult_t kl_devices_file(const struct kl_comm_config *config, struct kl_xml **file);

/**
 * The number of devices of this process, with what KOLO_HOST_DEVICES and the GPUs of `file` (may be NULL) have to say about
 * it. Whoever needs it asks here.
 */
int kl_devices_count(const struct kl_comm_config *config, const struct kl_xml *file);

/** The same with settings and file of the moment. Any thread. */
ncclResult_t kl_devices_count_now(int *count);

#endif
