/* SPDX-License-Identifier: Apache-2.0 */
/** connector.h - one direction between two ranks, held by both, and the interface of a transport. See transport.h. */
#ifndef KL_TRANSPORT_CONNECTOR_H
#define KL_TRANSPORT_CONNECTOR_H

#include "include/nccl.h"
#include "device/host/stream.h"
#include "event/fdshare.h"
#include "topo/reasons.h"
#include "transport/fifo.h"
#include "transport/net/context.h"
#include "transport/net/gpu_memory.h"
#include "transport/peer.h"

#include <stdbool.h>
#include <stdint.h>

/** The rules of topology and settings for two ranks of the topology. */
struct kl_pair_why {
    struct kl_p2p p2p;
    enum kl_shm_why shm;
};

/** Inputs of the choice of a transport for two ranks. */
struct kl_pair_facts {
    const struct kl_peer *a, *b;
    bool network;  /* a net reaches both */
    bool mappable; /* other processes can map the devices' memory: true for GPUs, false for host devices */
    bool ruled;    /* `why` is filled in (pair.h); else every transport is allowed */
    struct kl_pair_why why;
};

/** Why a transport does not join two ranks. */
enum kl_refusal {
    KL_REFUSAL_NONE,
    KL_REFUSAL_OTHER_HOST,
    KL_REFUSAL_P2P,          /* the topology's rule: facts->why.p2p */
    KL_REFUSAL_SHM,          /* the topology's rule: facts->why.shm */
    KL_REFUSAL_NOT_MAPPABLE, /* the memory of a host device, by another process */
    KL_REFUSAL_OTHER_MEMORY, /* the processes can't hand each other descriptors */
    KL_REFUSAL_NO_NETWORK,
    KL_TRANSPORT_REFUSALS
};

/** Connection information, from receiver to sender. Raw bytes between processes of one job. */
struct kl_connect_info {
    uint32_t transport; /* index in kl_transports[], filled and checked by the core */
    uint32_t version;   /* of this record */
    uint64_t bytes;     /* of the memory to map */
    uint64_t offset;    /* of the fifo in it */
    union {
        uint64_t number;                   /* p2p: of the block, in the common process */
        struct kl_fd_export_handle handle; /* shm */
        struct kl_net_handle net;
        unsigned char room[232];
    };
};
_Static_assert(sizeof(struct kl_connect_info) == 256, "wire format");

/** The sender's answer. */
struct kl_connect_reply {
    uint64_t pool_bytes; /* of the pool of message slots; 0: it has none for this receiver */
    struct kl_fd_export_handle pool;
    unsigned char room[32];
};
_Static_assert(sizeof(struct kl_connect_reply) == 64, "wire format");

enum { KL_CONNECT_INFO_VERSION = 4 };

struct kl_fifo_block;   /* p2p: a fifo in ordinary memory, counted by its two users */
struct kl_shm_region;   /* shm: memory of this process that fifos lie in */
struct kl_fd_map;       /* shm: memory of another process, mapped here once for all its users */
struct kl_shm_slab;     /* shm: where the receiving fifos of messages lie together */
struct kl_net_link;     /* net: a fifo of this side, and a connection */
struct kl_relay_sender; /* net: a fifo of the relay */

/** Shared by all connectors of a communicator. */
struct kl_common {
    struct kl_shm_slab *home; /* made by shm when first needed, as the pool; freed by kl_common_fini */
    struct kl_pool *pool;     /* of message slots */
    int cache_ranks;          /* ranks that share the caches of this machine; set by the connectors' owner */
    struct kl_fd_export_handle pool_export_handle;
    bool pool_offered;
    struct kl_net_context net; /* set by the connectors' owner */
};

/** NET: the NIC of a connection, and the rank that sends. Set by the connectors' owner before setup or connect. */
struct kl_nic_route {
    int device;                /* index of the NIC */
    int planned;               /* its index on the emulated machine; -1: none */
    bool relayed;              /* the proxy of another rank of this host sends (PXN): */
    int proxy;                 /* that rank */
    bool proxy_here;           /* which is in this process */
    struct kl_net_reach reach; /* of messages: how the NIC gets at memory of this rank's GPU */
};

/** One half of a connector; zero before setup or connect, and after free. */
struct kl_connector {
    const struct kl_transport *transport; /* NULL: neither set up nor connected */
    int peer;                             /* rank at the other end */
    bool sends, messages;                 /* for sends and receives: slots come from a pool */
    bool ready;                           /* data may be sent, or received */
    const struct kl_fifo_shape *shape;    /* the requested shape of the fifo */
    uint32_t number;                      /* which of the connections to this peer, or from it; the same at both ends */
    struct kl_nic_route route;            /* of NET */
    struct kl_fifo_tx tx;                 /* if it sends */
    struct kl_fifo_rx rx;                 /* if it receives */
    size_t zcopy_from;                    /* of tx, if the other rank is in this process; 0: default */
    struct kl_common *common;
    struct kl_connector *opposite; /* the other direction of the same pair, with the same number; NULL: there is none */

    /* The transports' own; others see `net.link` at most. A relayed NET has one of SHM as well. */
    struct {
        struct kl_fifo_block *block;
    } p2p;
    struct {
        struct kl_shm_region *region;
        struct kl_fd_map *map, *pool_map;
        struct kl_fd_request *request; /* for a descriptor in transit */
        bool settled;                  /* the sender has mapped the region */
    } shm;
    struct {
        struct kl_net_link *link;
        struct kl_relay_sender *handover; /* relayed: instead of a link */
        uint64_t deadline;                /* until it is connected; 0: not begun */
    } net;
};

struct kl_transport {
    const char *name, *via; /* as NCCL prints them: of itself, and of a connection */

    /** The transport that replaces it between hosts of one NVLink domain; NULL: none. */
    const struct kl_transport *between_hosts;

    /** Can this pair use it, and if not, why? No side effects; symmetric. */
    enum kl_refusal (*refuses)(const struct kl_pair_facts *facts);

    /** Receiver: make the memory, attach `connector->rx`, fill in the connect info. */
    ncclResult_t (*setup)(struct kl_connector *connector, const struct kl_fifo_shape *shape,
                          struct kl_connect_info *info);

    /** Sender: map it, attach `connector->tx`, answer. ncclInProgress: call again until `deadline`. Never blocks. */
    ncclResult_t (*connect)(struct kl_connector *connector, const struct kl_connect_info *info, uint64_t deadline,
                            struct kl_connect_reply *reply);

    /** Receiver: handle the sender's answer, after it has mapped the memory. As connect. A transport with `progress` has no
     * answer to wait for, and the sender may come late: `deadline` is unused then. */
    ncclResult_t (*settle)(struct kl_connector *connector, uint64_t deadline, const struct kl_connect_reply *reply);

    /**
     * Move data out of or into the fifo of this side. *rc is set on failure, with DONE. NULL: both sides share the fifo, and
     * nothing has to be moved.
     */
    enum kl_progress (*progress)(struct kl_connector *connector, ncclResult_t *rc);

    /**
     * The connection's next message is in memory of a GPU, `bytes` at `data`, which only the NIC touches; bytes 0: it has
     * ended. No other one is under way. ncclUnhandledCudaError and the net's errors: the memory cannot be registered. NULL:
     * it takes no such messages; nor does a connection whose route has no reach.
     */
    ncclResult_t (*use_gpu)(struct kl_connector *connector, const void *data, size_t bytes);

    /** Register the descriptor that must wake a thread before it sleeps (device/host/idle.h). False: none now. NULL: never
     * any. */
    bool (*sleep_on)(struct kl_connector *connector);

    /** After a failed operation, in any state: stop using users' memory. NULL: kl_fifo_revoke suffices. */
    void (*revoke)(struct kl_connector *connector);

    /** The reason why the sender has left; NULL if unknown. No function: always unknown. */
    const char *(*loss)(const struct kl_connector *connector);

    /** Either side, in any state, also after a failure of the above. The memory lives until both sides have freed theirs. */
    void (*free)(struct kl_connector *connector);
};

#endif
