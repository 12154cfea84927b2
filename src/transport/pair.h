/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pair.h - the topology's rules on transports between two ranks.
 */
#ifndef KL_TRANSPORT_PAIR_H
#define KL_TRANSPORT_PAIR_H

#include "topo/paths.h"
#include "transport/transport.h"

/**
 * Ask the topology of rank `facts->a` for its rules. It need not hold the other rank any more: then there is no P2P between them.
 * `network`: the network is preferred to transports that are slower than it; else these are not refused for that.
 */
ncclResult_t kl_pair_ask_topo(const struct kl_topo *topo, bool network, struct kl_pair_facts *facts);

#endif
