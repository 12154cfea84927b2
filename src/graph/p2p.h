/* SPDX-License-Identifier: Apache-2.0 */
/**
 * p2p.h - point-to-point traffic: how many channels, in which round a pair of ranks meets, and on which channels.
 *
 * In round i of n every rank sends to one rank and receives from another, such that no chain of waiting ranks forms: the distance is
 * the same for all. Rounds go over nodes outside and local ranks inside, so that one pair of nodes is not used by all at once.
 *
 * Threads: pure.
 * Source:  the graph specification, 10.1 to 10.3.
 */
#ifndef KL_GRAPH_P2P_H
#define KL_GRAPH_P2P_H

#include "graph/connect.h"

/** The rule that set the number of channels: the last that changed it, before it became a power of two. */
enum kl_p2p_channels_limit {
    KL_P2P_CHANNELS, /* as many as the communicator has */
    KL_P2P_MAX,      /* NCCL_MAX_P2P_NCHANNELS */
    KL_P2P_MIN,      /* NCCL_MIN_P2P_NCHANNELS */
    KL_P2P_PARENT,   /* the parent's resources */
    KL_P2P_ARGS,     /* the limit of kernel arguments: NCCL_WORK_ARGS_BYTES */
    KL_P2P_LIMITS
};

/** The rule that set how many of them serve one peer: from the pair of local GPU and rank that wants fewest. */
enum kl_p2p_share {
    KL_P2P_ALL,       /* no pair wants fewer than there are */
    KL_P2P_NVLINKS,   /* two for each NVLink between two GPUs */
    KL_P2P_TWO,       /* two, between GPUs without NVLink */
    KL_P2P_NICS,      /* as many as the NICs for a GPU's bandwidth, towards other nodes */
    KL_P2P_REMOTE,    /* two, or one where there are many ranks for the channels, towards other nodes */
    KL_P2P_BANDWIDTH, /* as many as its NICs' bandwidth needs, towards other nodes */
    KL_P2P_PEERS,     /* fewer, as several peers are sent to at a time */
    KL_P2P_PER_PEER,  /* NCCL_NCHANNELS_PER_NET_PEER, towards other nodes */
    KL_P2P_SHARES
};

struct kl_p2p_channels_why {
    int limit;    /* enum kl_p2p_channels_limit */
    int limited;  /* channels before they became a power of two */
    int share;    /* enum kl_p2p_share */
    int wanted;   /* channels for a peer, before they became a power of two */
    int gpu, far; /* ranks of the pair that wants fewest; far -1: of another node */
};

struct kl_p2p_channels {
    int n;        /* channels that carry point-to-point traffic, a power of two */
    int per_peer; /* of these, for one peer */
    int nccl;     /* the release that decides which */
    struct kl_p2p_channels_why why;
};

/** "nvlinks" and a sentence without an end. */
const char *kl_p2p_channels_limit_name(enum kl_p2p_channels_limit limit);
const char *kl_p2p_channels_limit_text(enum kl_p2p_channels_limit limit);
const char *kl_p2p_share_name(enum kl_p2p_share share);
const char *kl_p2p_share_text(enum kl_p2p_share share);

/** `parent` limits the channels of a communicator that shares its parent's resources; 0: own resources. */
struct kl_p2p_channels kl_p2p_channels_of(const struct kl_topo *topo, const struct kl_connect *connect,
                                          const struct kl_channel_params *params, int parent);

/**
 * Fill in a rank's facts about its machine, for the agreement of all: the release, the channels it wants for messages, the
 * speed of its NETs. `sm` and the fields of kl_connect_record stay.
 */
ncclResult_t kl_p2p_record(const struct kl_topo *topo, int rank, int nranks, const struct kl_channel_params *params,
                           struct kl_rank_record *record);

struct kl_p2p_round {
    int32_t send, recv; /* ranks */
};

/** Do rounds go over all ranks without regard to nodes, because these have different sizes? */
bool kl_p2p_flat(const struct kl_connect *connect);

/** The nranks rounds of the own rank. */
ncclResult_t kl_p2p_schedule(const struct kl_connect *connect, struct kl_p2p_round *round);

/** First channel of a round, before it is wrapped. */
int kl_p2p_base(const struct kl_connect *connect, int round);

/** The channel that carries a part of a round's traffic, of n channels (a power of two), in a release. */
int kl_p2p_channel(int base, int part, int n, int nccl);

#endif
