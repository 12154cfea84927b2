/* SPDX-License-Identifier: Apache-2.0 */
/** relay_wire.h - messages between a sender and its relay (relay.h), through the bootstrap. */
#ifndef KL_TRANSPORT_NET_RELAY_WIRE_H
#define KL_TRANSPORT_NET_RELAY_WIRE_H

#include "transport/connector.h"
#include "transport/tags.h"

enum {
    KL_RELAY_VERSION = 3,
    KL_RELAY_CONNECTIONS = 1 << 16 /* of a sender, at most */
};

/** Sender to relay. */
struct kl_relay_request {
    uint32_t version, handover; /* which of the sender's */
    int32_t receiver, device;
    uint32_t number;   /* of the connection from sender to receiver */
    uint32_t messages; /* for sends and receives */
    struct kl_fifo_shape shape;
    struct kl_net_handle handle; /* of the receiver's listener */
};
_Static_assert(sizeof(struct kl_relay_request) == 56 + KL_NET_HANDLE, "wire format");

/** Relay to sender; the answer is struct kl_connect_reply. */
struct kl_relay_connect_info {
    struct kl_connect_info fifo; /* of the fifo */
    struct kl_fd_export_handle wakeup_fd;
};
_Static_assert(sizeof(struct kl_relay_connect_info) == 280, "wire format");

#endif
