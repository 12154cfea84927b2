/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nics.h - the network devices that sysfs shows, for looking at a machine without opening any.
 *
 * As NCCL chooses: InfiniBand and RoCE ports that are active, else the network interfaces that are up, without lo and
 * docker*. Communicators use what net/ finds instead, which can also tell addresses and capabilities.
 */
#ifndef KL_TOPO_NICS_H
#define KL_TOPO_NICS_H

#include "include/nccl.h"
#include "topo/facts.h"

/** Fresh memory in `net` (free() it), numbered from 0 in the order of names. No devices are no failure. */
ncclResult_t kl_nics_read(const char *sysfs, struct kl_net_facts **net, int *n);

#endif
