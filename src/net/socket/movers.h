/* SPDX-License-Identifier: Apache-2.0 */
/**
 * movers.h - the helper threads of a connection: each moves its share of the lanes, and sleeps while there is nothing to move.
 *
 * A thread that finds its lane ended notes it there (lane.h) and leaves it alone.
 *
 * Threads:  called by the connection's caller.
 */
#ifndef KL_NET_SOCKET_MOVERS_H
#define KL_NET_SOCKET_MOVERS_H

#include "net/socket/config.h"
#include "net/socket/lane.h"

/** Who may sleep until a thread has moved something. */
struct kl_sleeper {
    int bell;            /* eventfd that wakes it; -1: nobody has slept yet */
    _Atomic bool asleep; /* or about to; who clears it rings */
};

struct kl_movers;

/** Let `shape->threads` threads move `shape->lanes` lanes. */
ncclResult_t kl_movers_start(struct kl_socket_lane *lanes, const struct kl_socket_shape *shape, bool sends,
                             struct kl_sleeper *sleeper, struct kl_movers **movers);

/** Parts were put into lanes: let them look. */
void kl_movers_wake(const struct kl_movers *movers);

/** End and free them; nothing is moved afterwards. NULL is fine. */
void kl_movers_stop(struct kl_movers *movers);

#endif
