/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/facts.h"

const char *const kl_fabric_state_name[KL_FABRIC_STATES] = {"none", "not_started", "starting", "ready"};
const char *const kl_far_end_name[KL_FAR_ENDS] = {"", "unreadable", "switch", "gpu", "npu"};
