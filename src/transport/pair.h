/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pair.h - what a topology tells the transports about two ranks.
 */
#ifndef KL_TRANSPORT_PAIR_H
#define KL_TRANSPORT_PAIR_H

#include "topo/paths.h"
#include "transport/transport.h"

struct kl_pair_why {
    struct kl_p2p p2p;
    enum kl_shm_why shm;
    char p2p_text[KL_WHY_TEXT];
};

/**
 * Fill the refusals of `facts`, whose ranks are of the topology; `why` is where the reasons come from, and must live as
 * long. `network`: there is a network transport as well. Only then can the others be refused for being slower than it.
 */
ncclResult_t kl_pair_ask_topo(const struct kl_topo *topo, bool network, struct kl_pair_facts *facts,
                              struct kl_pair_why *why);

#endif
