/* SPDX-License-Identifier: Apache-2.0 */
/**
 * relay.h - PXN: a rank sends through the NIC of another rank of its host; the proxy of that rank's process moves the data.
 *
 *      sender                          relay                                    receiver
 *        ask: receiver's info, NIC ->    make memory
 *        map it                   <-     info, wakeup fd
 *        answer                    ->    settle, connect in the sender's name  ~~~>  accept the sender
 *        algorithm -> fifo .................. kl_net_outgoing_progress         ~~~>  fifo -> algorithm
 *
 * The fifo lies in the relay's memory. The sender wakes the proxy if it sleeps (`asleep` in the fifo). To the
 * receiver the connection is one from the sender. The messages before the fifo go through the bootstrap.
 *
 * Life:     a relay works for as long as its sender does, even after the communicator of its own rank is destroyed. A failed
 *           communicator cancels its relays.
 * Trust:    requests come from ranks of this communicator on this host, and are validated all the same.
 * Threads: create and end are the owner's; the rest runs in the proxy, or in threads that help it.
 * Source:   the runtime specification, 3.10.
 */
#ifndef KL_TRANSPORT_NET_RELAY_H
#define KL_TRANSPORT_NET_RELAY_H

#include "bootstrap/bootstrap.h"
#include "proxy/proxy.h"
#include "transport/net/relay_wire.h"

/** The relays of a rank for others. */
struct kl_relays;

struct kl_relays_config {
    struct kl_bootstrap *bootstrap; /* outlives them until kl_relays_end */
    const struct kl_net *net;
    struct kl_key secret;
    int rank, nranks;
    const int32_t *senders; /* ranks of this host that may ask; copied */
    int nsenders;
    uint64_t timeout_ms;                                                     /* until a connection is made */
    void (*fail)(void *ctx, int culprit, ncclResult_t rc, const char *text); /* any thread */
    void *ctx;
};

ncclResult_t kl_relays_create(const struct kl_relays_config *config, struct kl_relays **relays);

/** Accept no more requests. With `cancel` all relays end at once, else when their senders have left. NULL is fine. */
void kl_relays_end(struct kl_relays *relays, bool cancel);

/** Is anything relayed? */
bool kl_relays_busy(struct kl_relays *relays);

/** The proxy, for threads that help it. */
struct kl_proxy *kl_relays_proxy(const struct kl_relays *relays);

#endif
