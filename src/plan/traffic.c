/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/traffic.h"

const char *kl_traffic_name(enum kl_traffic traffic)
{
    static const char *const names[] = {
        [KL_TRAFFIC_SENDRECV] = "send/recv", [KL_TRAFFIC_RING] = "ring", [KL_TRAFFIC_TREE] = "tree"};

    return names[traffic];
}
