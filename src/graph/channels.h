/* SPDX-License-Identifier: Apache-2.0 */
/** channels.h - how many channels a communicator has, which graph's channel each one is like, and why: for connect.c. */
#ifndef KL_GRAPH_CHANNELS_H
#define KL_GRAPH_CHANNELS_H

#include "graph/connect.h"

/** Fill in the counts, `source` and the steps. Needs nodes, graphs as aligned, and what is supported. */
void kl_channels_set(struct kl_connect *c, const struct kl_connect_request *request);

#endif
