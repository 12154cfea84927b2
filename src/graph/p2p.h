/* SPDX-License-Identifier: Apache-2.0 */
/**
 * p2p.h - point-to-point traffic: how many channels, in which round a pair of ranks meets, and on which channels.
 *
 * In round i of n every rank sends to one rank and receives from another, such that nobody waits in a chain: the distance is
 * the same for all. Rounds go over nodes outside and local ranks inside, so that one pair of nodes is not used by all at once.
 *
 * Threads: pure.
 * Source:  the graph specification, 10.1 to 10.3.
 */
#ifndef KL_GRAPH_P2P_H
#define KL_GRAPH_P2P_H

#include "graph/connect.h"

struct kl_p2p_channels {
    int n;        /* channels that carry point-to-point traffic, a power of two */
    int per_peer; /* of these, for one peer */
};

/** `parent` limits the channels of a communicator that shares its parent's resources; 0: own resources. */
struct kl_p2p_channels kl_p2p_channels_of(const struct kl_topo *topo, const struct kl_connect *connect,
                                          const struct kl_channel_params *params, int parent);

struct kl_p2p_round {
    int32_t send, recv; /* ranks */
};

/** The nranks rounds of the own rank. */
ncclResult_t kl_p2p_schedule(const struct kl_connect *connect, struct kl_p2p_round *round);

/** First channel of a round, before it is wrapped. */
int kl_p2p_base(const struct kl_connect *connect, int round);

/** The channel that carries part k of a round's traffic, and which part a channel carries, of n channels (a power of two). */
int kl_p2p_channel(int base, int part, int n);
int kl_p2p_part(int base, int channel, int n);

#endif
