/* SPDX-License-Identifier: Apache-2.0 */
/**
 * context.h - shared by the network connectors of a communicator: the net, its keys, a listener per device.
 *
 * Threads: as connectors: one at a time.
 */
#ifndef KL_TRANSPORT_NET_CONTEXT_H
#define KL_TRANSPORT_NET_CONTEXT_H

#include "net/net.h"

enum { KL_NET_DEVICES = 32 };

struct kl_bootstrap;
struct kl_proxy;

/** The descriptor that wakes the proxy of another rank of this host. */
struct kl_net_wakeup {
    int rank, fd;
};

struct kl_net_context {
    const struct kl_net *net; /* NULL: there is none */
    struct kl_key secret;     /* of the communicator */
    int rank;
    struct kl_bootstrap *bootstrap; /* this and all below: for sending through relays */
    struct kl_proxy *proxy;         /* of this process; NULL: it is no relay */
    uint32_t relay_connections;     /* number of relayed connections so far */
    struct kl_net_wakeup *wakeup;
    int nwakeups;
    struct {
        void *listener; /* NULL until the first connection */
        struct kl_net_handle handle;
    } device[KL_NET_DEVICES];
};

/** The listener of a device, made at first use. */
ncclResult_t kl_net_context_listen(struct kl_net_context *home, int device, const struct kl_net_handle **handle);

/** Close the listeners, and forget the keys. */
void kl_net_context_fini(struct kl_net_context *home);

#endif
