/* SPDX-License-Identifier: Apache-2.0 */
/**
 * transport.h - how data gets from one rank to another: the table of transports, and connectors made by them.
 *
 * A connector is one direction between two ranks: the sender holds the sending half, the receiver the receiving half.
 * The first transport of the table that can connect the pair is taken; both ranks ask with the same facts, so they
 * choose the same one, and the record says which, so that a disagreement is an error and not a hang.
 *
 *     sender                                   receiver
 *                                              setup     owns the fifo; describes it in a record
 *                      <--- record ---         (sent through the bootstrap)
 *     connect          maps the fifo
 *                      --- mapped --->         settle    withdraws what was only needed for mapping
 *     kl_fifo_tx of the connector              kl_fifo_rx of the connector
 *     free                                     free
 *
 * Threads: one thread at a time uses a connector. A transport never calls into what owns it.
 * A new transport is a folder and a line in the array of transport.c.
 * Source:  the runtime specification, 3.
 */
#ifndef KL_TRANSPORT_TRANSPORT_H
#define KL_TRANSPORT_TRANSPORT_H

#include "include/nccl.h"
#include "os/segment.h"
#include "event/fdshare.h"
#include "transport/fifo.h"
#include "transport/peer.h"

#include <stdbool.h>
#include <stdint.h>

/** What the topology and the settings say about a pair. */
struct kl_pair_facts {
    const struct kl_peer *a, *b;
    bool mappable;           /* other processes can map the devices' memory: that of GPUs, not of host devices */
    const char *p2p_refusal; /* NULL: the topology and NCCL_P2P_* allow direct access; else why not */
    const char *shm_refusal; /* NULL: shared memory is allowed; else why not */
};

/** What the receiver tells the sender. Raw bytes between processes of one job. */
struct kl_connect_record {
    uint32_t transport; /* index in kl_transports[], filled and checked by the core */
    uint32_t version;   /* of this record */
    uint64_t bytes;     /* of the memory to map */
    union {
        uint64_t number;            /* p2p: of the block, in the common process */
        struct kl_fd_ticket ticket; /* shm */
        unsigned char room[112];
    };
};
_Static_assert(sizeof(struct kl_connect_record) == 128, "wire format");

struct kl_fifo_block; /* p2p: a fifo in ordinary memory, counted by its two users */

/** One half of a connector; zero before setup or connect, and after free. */
struct kl_connector {
    const struct kl_transport *transport; /* NULL: not connected */
    int peer;                             /* rank at the other end */
    bool sends;
    struct kl_fifo_tx tx; /* if it sends */
    struct kl_fifo_rx rx; /* if it receives */

    /* the transport's own */
    struct kl_segment segment;
    struct kl_fd_ticket ticket;
    bool offered; /* ticket is on offer */
    struct kl_fifo_block *block;
};

/** Geometry of the fifos that this rank receives through. */
struct kl_fifo_shape {
    uint32_t nslots;
    uint64_t slot_bytes; /* multiple of KL_LINE */
};

struct kl_transport {
    const char *name; /* as NCCL prints it */

    /** NULL: this pair can use it. Else why not, as a phrase for people. No side effects; symmetric. */
    const char *(*refuses)(const struct kl_pair_facts *facts);

    /** Receiver: make the memory, attach `connector->rx`, describe it in `record`. On failure nothing is held. */
    ncclResult_t (*setup)(struct kl_connector *connector, const struct kl_fifo_shape *shape,
                          struct kl_connect_record *record);

    /** Sender: map it, attach `connector->tx`. Waits at most until `deadline`. On failure nothing is held. */
    ncclResult_t (*connect)(struct kl_connector *connector, const struct kl_connect_record *record, uint64_t deadline);

    /** Receiver: the sender has mapped it. */
    void (*settle)(struct kl_connector *connector);

    /** Either side, in any state. The memory lives until both sides have freed theirs. */
    void (*free)(struct kl_connector *connector);
};

extern const struct kl_transport kl_transport_p2p, kl_transport_shm;

/** In order of preference; ends with NULL. */
extern const struct kl_transport *const kl_transports[];

/** The first that does not refuse a pair; NULL if all do. */
const struct kl_transport *kl_transport_first(const struct kl_pair_facts *facts);

/** The first transport that does not refuse; none: ncclSystemError with every refusal in the text. */
ncclResult_t kl_transport_choose(const struct kl_pair_facts *facts, const struct kl_transport **transport,
                                 uint32_t *index);

/** After a failed operation: the peer reads nothing more that was lent to it. */
void kl_connector_revoke(struct kl_connector *connector);

/** Before it is freed by the process that made it: tell the peer that nothing more will come from here. */
void kl_connector_leave(struct kl_connector *connector);

/** Let go of the memory. */
void kl_connector_free(struct kl_connector *connector);

#endif
