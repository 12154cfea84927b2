/* SPDX-License-Identifier: Apache-2.0 */
/** exchange.h - the steps of collective exchanges. */
#ifndef KL_BOOTSTRAP_EXCHANGE_H
#define KL_BOOTSTRAP_EXCHANGE_H

#include "bootstrap/state.h"

struct kl_step {
    int to, from;
    const unsigned char *out;
    unsigned char *in;
    size_t out_bytes, in_bytes; /* equal to the other end's in_bytes and out_bytes */
};

/**
 * Send and receive, in the exchange that b->exchanges counts. Done in pieces, each received before the next is sent: if
 * both directions are of equal size, no inbox has more than one piece per peer.
 */
ncclResult_t kl_exchange_step(struct kl_bootstrap *b, const struct kl_step *step, uint64_t deadline);

#endif
