/* SPDX-License-Identifier: Apache-2.0 */
/**
 * connections.h - all connectors of a communicator, by edge, and the memory that ranks share; made at first use, never
 * blocking.
 *
 * A caller that needs an edge asks for its connector. The two ends then connect in the background: a caller that waits
 * for the connector calls kl_connections_progress. Cards and replies (transport.h) travel through the bootstrap, which
 * keeps them until the other end needs the edge as well.
 *
 *     receiver:  begin: set up, post the connect info -> wait for the reply -> settle, ready
 *     sender:    begin: watch the peer        -> wait for the connect info  -> connect, post the reply, ready
 *
 * Edges of collectives are connected with at most `round_peers` peers at a time, in an order that all ranks share.
 *
 * Errors:  the transport's and the bootstrap's; then the communicator has failed.
 * Threads: one at a time.
 * Source:  the runtime specification, 3.3 to 3.5.
 */
#ifndef KL_CHANNEL_CONNECTIONS_H
#define KL_CHANNEL_CONNECTIONS_H

#include "channel/arena.h"
#include "channel/edge.h"
#include "channel/reducer.h"
#include "device/host/stream.h"
#include "transport/transport.h"

struct kl_bootstrap;
struct kl_connections;

struct kl_connections_config {
    struct kl_bootstrap *bootstrap; /* outlives the connections */
    int rank, nranks;
    int cache_ranks;                          /* ranks that share the caches of this machine */
    struct kl_fifo_shape shape[KL_EDGE_USES]; /* by enum kl_edge_use */
    int round_peers;                          /* NCCL_CONNECT_ROUND_MAX_PEERS */
    uint64_t timeout_ms;                      /* limit for connecting to a peer that has answered */
    const struct kl_net *net;                 /* between hosts; NULL: none */
    struct kl_key net_key;                    /* of the communicator, for the net */
    const struct kl_collnet *collnet;         /* reduces between nodes; NULL: none */
    const int32_t *senders;                   /* ranks of this host for which this one may have to send (PXN) */
    int nsenders;                             /* 0: none */

    /**
     * Fill in the transport of an edge's connector, for the net the device too; `*index` of the transport in the table.
     * For a link into a network that reduces only the device.
     */
    ncclResult_t (*choose)(void *ctx, const struct kl_edge *edge, struct kl_connector *connector, uint32_t *index);

    /** A connector is ready; for the log. NULL: no callback. */
    void (*tell)(void *ctx, const struct kl_edge *edge, const struct kl_connector *connector);

    /** Relaying for other ranks has failed. Any thread. */
    void (*fail)(void *ctx, int culprit, ncclResult_t rc, const char *text);
    void *ctx;
};

ncclResult_t kl_connections_create(const struct kl_connections_config *config, struct kl_connections **connections);

/** Free all connectors, in any state. Not `failed`: relaying for others goes on while they need it. NULL is fine. */
void kl_connections_free(struct kl_connections *cs, bool failed);

/**
 * The connector of an edge, which lives as long as `cs`; it is made if it is not there, and may be used once it is `ready`.
 * An edge of collectives waits for kl_connections_start.
 */
ncclResult_t kl_connections_get(struct kl_connections *cs, const struct kl_edge *edge, struct kl_connector **connector);

/**
 * Memory of `bytes` that `n` ranks map, this one the `own`-th of them; it lives as long as `cs`, as does `ranks`, and may be used
 * once it is `ready`. All of them ask, in the same order if they ask for several.
 */
ncclResult_t kl_connections_get_arena(struct kl_connections *cs, const int32_t *ranks, int n, int own, size_t bytes,
                                      struct kl_arena **arena);

/**
 * A link into a network that reduces, of this use and channel; made if it is not there, with the `n` heads of all
 * nodes, this rank the `own`-th of them. It lives as long as `cs`; its connectors may be used once they are `ready`.
 */
ncclResult_t kl_connections_get_reducer(struct kl_connections *cs, enum kl_edge_use use, int channel,
                                        const int32_t *ranks, int n, int own, struct kl_collnet_link **link);

/** Begin the requested edges of collectives in their order. All ranks have asked for the ends of the same ones. */
void kl_connections_start(struct kl_connections *cs);

/** Continue with edges that are not connected, or shared. DONE: all are ready. *rc is set on failure, with DONE. */
enum kl_progress kl_connections_progress(struct kl_connections *cs, ncclResult_t *rc);

/** A rank with an outstanding connect info or reply; -1 if there is none. */
int kl_connections_blocked_on(const struct kl_connections *cs);

/** The reason why a departed peer sends nothing more; NULL: unknown. Lives as long as `cs`. */
const char *kl_connections_loss_reason(const struct kl_connections *cs, int peer);

/** For a waiting thread: move the data that are relayed for other ranks. MOVED: some moved. */
enum kl_progress kl_connections_relay(struct kl_connections *cs);

/** After a failed operation: no rank reads zero-copy memory any more. Any state. */
void kl_connections_revoke(struct kl_connections *cs);

/** Before the end: notify the peers that this rank sends nothing more. */
void kl_connections_leave(struct kl_connections *cs);

/** Steps that every edge of collectives holds; the same at all ranks. */
int kl_connections_steps(const struct kl_connections *cs);

/** Bytes of one step, in a slot, likewise. */
uint64_t kl_connections_step_bytes(const struct kl_connections *cs);

/**
 * Bytes of the memory held by its own ends of connectors, and its parts of shared memory. Pools of message slots come
 * and go with the messages, and are not counted.
 */
uint64_t kl_connections_bytes(const struct kl_connections *cs);

/** How many connectors there are. */
size_t kl_connections_count(const struct kl_connections *cs);

#endif
