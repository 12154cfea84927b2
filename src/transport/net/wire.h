/* SPDX-License-Identifier: Apache-2.0 */
/**
 * wire.h - the wire format of a fifo's step: one message, or two.
 *
 *      message 1     signature, bytes, kind, and the data if they fit into the line of a step
 *      message 2     the data otherwise
 *
 * A sender that leaves in order sends a header of kind GOODBYE last, if the net wants that.
 *
 * The first message is the line of the step without its flag, so it is sent from the sender's line and received in the
 * receiver's. Both ends of a job run the same library on the same kind of machine.
 */
#ifndef KL_TRANSPORT_NET_WIRE_H
#define KL_TRANSPORT_NET_WIRE_H

#include "transport/fifo.h"

enum kl_wire_kind {
    KL_WIRE_SLOT,  /* the data are for a slot, or for the receiver's wanted address */
    KL_WIRE_LINES, /* for flagged lines */
    KL_WIRE_GOODBYE,
    KL_WIRE_KINDS
};

struct kl_wire {
    uint64_t signature;
    uint32_t bytes; /* of data, and KL_FIFO_MORE */
    uint32_t kind;  /* enum kl_wire_kind; 0 where the data follow at once */
};
_Static_assert(sizeof(struct kl_wire) == 16, "wire format");
_Static_assert(offsetof(struct kl_fifo_line, signature) == 8 && offsetof(struct kl_fifo_line, bytes) == 16 &&
                   offsetof(struct kl_fifo_line, claim) == 20 && offsetof(struct kl_fifo_line, payload) == 24,
               "a line from its signature on is a message");

enum { KL_WIRE_MOST = sizeof(struct kl_wire) + KL_FIFO_INLINE };

#endif
