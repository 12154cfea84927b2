/* SPDX-License-Identifier: Apache-2.0 */
/** exchange.h - the steps that collective exchanges are made of. */
#ifndef KL_BOOTSTRAP_EXCHANGE_H
#define KL_BOOTSTRAP_EXCHANGE_H

#include "bootstrap/state.h"

struct kl_step {
    int to, from;
    const unsigned char *out;
    unsigned char *in;
    size_t out_bytes, in_bytes; /* the other end of each knows as much */
};

/**
 * Send and receive, of the exchange that b->exchanges counts. In pieces, each received before the next is sent: no rank has more than
 * one piece per peer in its inbox, as long as both ways are as long.
 */
ncclResult_t kl_exchange_step(struct kl_bootstrap *b, const struct kl_step *step, uint64_t deadline);

#endif
