/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pair.h - what a topology tells the transports about two ranks.
 */
#ifndef KL_TRANSPORT_PAIR_H
#define KL_TRANSPORT_PAIR_H

#include "topo/paths.h"
#include "transport/transport.h"

/**
 * Ask a topology that holds both ranks of `facts` for its rules. `network`: there is a network transport as well. Only then
 * can the others be refused for being slower than it.
 */
ncclResult_t kl_pair_ask_topo(const struct kl_topo *topo, bool network, struct kl_pair_facts *facts);

#endif
