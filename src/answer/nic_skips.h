/* SPDX-License-Identifier: Apache-2.0 */
/** nic_skips.h - network devices of a machine that its plan does not use, with the reasons (topo/nics.h), as JSON. */
#ifndef KL_ANSWER_NIC_SKIPS_H
#define KL_ANSWER_NIC_SKIPS_H

#include "topo/nics.h"

#include <jansson.h>

/** [{"name", "kind": "interface" or "rdma", "reason": {"code", "text"}, "operand": the device that the reason names, or null}] */
json_t *kl_nic_skips_json(const struct kl_net_skip *skip, int n);

#endif
