/* SPDX-License-Identifier: Apache-2.0 */
/**
 * link.h - one half of a connection through a network: a fifo in own memory, and the code that moves its steps over the net.
 *
 *      sender                                                                   receiver
 *      algorithm -> fifo -> kl_net_outgoing_progress  ~~~>  kl_net_incoming_progress -> fifo -> algorithm
 *
 * Sender: a published step is sent from its place (its line, its slot, or zero-copy memory) and released when the net has taken
 * it. Receiver: a step is received in its line and slot, or at the address that the receiver wants, and then published. So
 * only the kernel copies data, and a step of up to 104 bytes is one message. Flagged lines travel without their flags, as
 * one piece.
 *
 * Threads: one at a time: the thread that waits for the algorithm.
 */
#ifndef KL_TRANSPORT_NET_LINK_H
#define KL_TRANSPORT_NET_LINK_H

#include "device/host/stream.h"
#include "net/net.h"
#include "transport/fifo.h"
#include "transport/net/wire.h"

enum { KL_NET_IN_FLIGHT = 8 }; /* steps; the net takes two requests for each */

/** How far a step has come. Sender: IDLE, WHOLE. Receiver: IDLE, ASKED, ARRIVED, ASKED_DATA, FLUSHED, COMPLETE. */
enum kl_net_state {
    KL_NET_IDLE,
    KL_NET_WHOLE,      /* it was published, and its data are all there */
    KL_NET_ASKED,      /* the first message is being received */
    KL_NET_ARRIVED,    /* it came; it is not known yet where the data go */
    KL_NET_ASKED_DATA, /* they are being received */
    KL_NET_FLUSHED,    /* they are being made visible to a GPU */
    KL_NET_COMPLETE
};

struct kl_net_step {
    enum kl_net_state state;
    struct kl_wire wire;  /* sender: the first message of two */
    void *first, *second; /* requests; NULL: not taken yet, or done */
    void *data;           /* of the second message; NULL: there is none */
    size_t bytes;         /* of it */
    bool in_place;        /* received where the receiver wants it, not in the slot */
};

struct kl_net_gpu_memory; /* gpu_memory.h */
struct kl_net_profile;    /* profile.h */

struct kl_net_link {
    const struct kl_net *net;
    void *connection; /* NULL: not there yet, or (not `connected`) an attempt */
    bool connected, cancelled;
    uint32_t number;               /* kl_connector.number, for texts: the channel is its last byte */
    struct kl_fifo *fifo;          /* in own memory, or in memory of others */
    void *memory;                  /* own */
    size_t mapped;                 /* bytes of the fifo and its copy of flagged lines */
    void *mr;                      /* the net's registration of it; NULL: not open yet, or the net needs none */
    struct kl_net_gpu_memory *gpu; /* NULL: it takes no memory of GPUs */
    unsigned char *whole;          /* the data of steps in flagged lines, on their way: a slot may be smaller */
    struct kl_net_step step[KL_NET_IN_FLIGHT];

    /* sender: steps [released, out.step) are with the net */
    struct kl_fifo_rx out; /* the net's view of the fifo */
    uint64_t released;
    struct kl_wire goodbye; /* while it is sent */

    /* receiver: steps [in.step, expected) are on their way */
    struct kl_fifo_tx in; /* the net's view of the fifo */
    uint64_t expected;    /* the step that starts with the next message */
    struct {              /* destination of a message that was begun in place */
        uint64_t step;    /* next, if `left` */
        char *to;
        size_t left;
    } place;
    bool long_steps; /* a step may be larger than a slot: it waits for a wanted address then */
    bool refused;    /* a step that does not fit was published: its data and later ones are not received */
    bool left;       /* the sender has said goodbye */
    char *loss;      /* the reason why no more data come; NULL: still open, or `left` */

    struct kl_net_profile *profile; /* NULL: no profiler is told of its steps */
};

/** With memory for a fifo of this shape. */
ncclResult_t kl_net_link_create(const struct kl_net *net, const struct kl_fifo_shape *shape, bool sends,
                                struct kl_net_link **link);

/** For a sender with an existing fifo; `rx` is the relay's view. The fifo must outlive the link. */
ncclResult_t kl_net_link_over(const struct kl_net *net, const struct kl_fifo_rx *rx, struct kl_net_link **link);

/** Add the place to the thread's last error, which is `rc`: "...; channel 3, step 17". Returns `rc`. */
ncclResult_t kl_net_link_describe(const struct kl_net_link *link, ncclResult_t rc, uint64_t step);

/** The connection is open: register the link's own memory with the net. */
ncclResult_t kl_net_link_opened(struct kl_net_link *link);

/** The registration that `data` belongs to; NULL: none, as for host memory of the program. */
void *kl_net_link_mr(const struct kl_net_link *link, const void *data);

/** The buffer for a step in flagged lines, in one piece: KL_LL_BYTES. */
void *kl_net_link_whole(const struct kl_net_link *link, uint64_t step);

/** After a failure: stop all transfers, and never touch zero-copy memory again. NULL and half-made links are fine. */
void kl_net_link_cancel(struct kl_net_link *link);

void kl_net_link_free(struct kl_net_link *link, bool sends);

/**
 * Tell the receiver that no more steps come, if all were sent: a receive that it has posted then ends without a failure.
 * Only for nets that want it (net.h). Blocks for KL_NET_GOODBYE_MS at most. NULL is fine.
 */
void kl_net_outgoing_leave(struct kl_net_link *link);

/** Make progress. *rc is set on failure, with DONE. */
enum kl_progress kl_net_outgoing_progress(struct kl_net_link *link, ncclResult_t *rc);

/**
 * The same; `rx` is the algorithm's view of the fifo, which says where it wants data. A connection that ends between two steps
 * is no failure yet: the sender has left.
 */
enum kl_progress kl_net_incoming_progress(struct kl_net_link *link, const struct kl_fifo_rx *rx, ncclResult_t *rc);

#endif
