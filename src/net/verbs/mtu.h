/* SPDX-License-Identifier: Apache-2.0 */
/**
 * mtu.h - the size of a port's packets: of few bytes, each costs as much as one of many.
 *
 * Threads:  any.
 */
#ifndef KL_NET_VERBS_MTU_H
#define KL_NET_VERBS_MTU_H

#include "net/verbs/abi.h"

/** Bytes of an MTU, 256 to 4096; 0: none. */
int kl_verbs_mtu_bytes(int mtu);

/** Warn of a port whose MTU is below 1024, or less than its network interface could carry. */
void kl_verbs_mtu_warn(const char *device, int port, const char *sysfs, const struct kl_ibv_port_attr *attr);

#endif
