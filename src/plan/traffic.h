/* SPDX-License-Identifier: Apache-2.0 */
/** traffic.h - data from rank to rank, each on connections of its own. */
#ifndef KL_PLAN_TRAFFIC_H
#define KL_PLAN_TRAFFIC_H

enum kl_traffic { KL_TRAFFIC_SENDRECV, KL_TRAFFIC_RING, KL_TRAFFIC_TREE };

/** "send/recv", "ring", "tree". */
const char *kl_traffic_name(enum kl_traffic traffic);

#endif
