/* SPDX-License-Identifier: Apache-2.0 */
/**
 * edge.h - an algorithm's request: a connection to, or from, another rank.
 *
 * Algorithms of one channel share their common edges: operations follow one another, and both ends count the steps of
 * an edge alike.
 */
#ifndef KL_CHANNEL_EDGE_H
#define KL_CHANNEL_EDGE_H

#include <stdbool.h>
#include <stdint.h>

enum kl_edge_use {
    KL_EDGE_COLL,           /* collectives */
    KL_EDGE_MESSAGES,       /* sends and receives */
    KL_EDGE_SCATTER,        /* collectives: on the way to a head, beside the edge from it */
    KL_EDGE_COLLNET_CHAIN,  /* a link into a network that reduces, for chains */
    KL_EDGE_COLLNET_DIRECT, /* the same for heads: no peer, but all heads at once */
    KL_EDGE_COLLNET_NVLS,
    KL_EDGE_USES
};

struct kl_edge {
    int32_t peer;
    uint8_t channel;
    uint8_t use; /* enum kl_edge_use */
    bool sends;  /* to the peer; else data come from it */
};

#endif
