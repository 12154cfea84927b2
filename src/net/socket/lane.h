/* SPDX-License-Identifier: Apache-2.0 */
/**
 * lane.h - one socket of a connection, and the parts of large messages queued for it.
 *
 * Lane 0 carries heads and small messages, and is the connection's; it has no parts. The others carry parts, in the
 * order in which they were put, which both ends know: each part is a frame of the expected length.
 *
 * Ownership of a part:  [taken, put)              the lane's I/O thread: a helper thread, or the caller
 *                       [put, taken + KL_PARTS)   the caller
 * Memory order:     put is a release store of `put`, the I/O thread reads it with acquire, and likewise in reverse with
 *                   `taken`. A request's `left` is decremented with release, and read with acquire by the caller.
 * Threads:          one caller and one I/O thread, which may be the same.
 */
#ifndef KL_NET_SOCKET_LANE_H
#define KL_NET_SOCKET_LANE_H

#include "base/atomic.h"
#include "net/socket/stream.h"
#include "net/socket/watch.h"

enum { KL_PARTS = 64 };

struct kl_lane_part {
    void *data; /* only read if it is to be sent */
    size_t bytes;
    _Atomic int *left; /* decremented when the part has been moved */
};

struct kl_socket_lane {
    int fd;
    struct kl_out out;
    struct kl_in in;
    struct kl_watched watched;

    /* lanes other than the first: */
    struct kl_lane_part part[KL_PARTS];
    bool headed; /* the head of the current part has been read */
    _Atomic uint64_t put, taken;
    _Atomic int flow; /* result that ended it: KL_FLOW_LOST with `err`, or KL_FLOW_FORGED; written by its I/O thread */
    int err;
    uint64_t silent_since; /* keepalive.h */
};

/** Is there room for a part? */
bool kl_lane_has_room(const struct kl_socket_lane *lane);
void kl_lane_put(struct kl_socket_lane *lane, const struct kl_lane_part *part);
bool kl_lane_is_idle(const struct kl_socket_lane *lane);

/** Move data, as the I/O thread. True: the rest waits for the socket; false: no parts are left, or the lane has ended. */
bool kl_lane_move(struct kl_socket_lane *lane, bool sends);

#endif
