/* SPDX-License-Identifier: Apache-2.0 */
/** nic_skips.h - the network devices of a machine that its plan does not use, and why (topo/nics.h). */
#ifndef KOLO_TOOL_NIC_SKIPS_H
#define KOLO_TOOL_NIC_SKIPS_H

#include "topo/nics.h"

#include <stdio.h>

/** A line for each reason, below a heading; nothing where there are none. */
void kl_nic_skips_text(const struct kl_net_skip *skip, int n, FILE *to);

#endif
