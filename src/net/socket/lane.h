/* SPDX-License-Identifier: Apache-2.0 */
/**
 * lane.h - one socket of a connection, and the parts of large messages that are to go over it.
 *
 * Lane 0 carries heads and small messages, and is the connection's; it has no parts. The others carry parts, in the order in
 * which they were put, which both ends know: each part is a frame that must be as long as expected.
 *
 * Who owns a part:  [taken, put)              the lane's mover: a helper thread, or who calls
 *                   [put, taken + KL_PARTS)   who calls
 * Memory order:     put is a release store of `put`, the mover's look at it an acquire load, and so the other way with `taken`.
 *                   A request's `left` is counted down with release, and read with acquire by who calls.
 * Threads:          one caller and one mover, which may be the same.
 */
#ifndef KL_NET_SOCKET_LANE_H
#define KL_NET_SOCKET_LANE_H

#include "base/atomic.h"
#include "net/socket/stream.h"
#include "net/socket/watch.h"

enum { KL_PARTS = 64 };

struct kl_lane_part {
    void *data; /* only read when it is sent */
    size_t bytes;
    _Atomic int *left; /* counted down when it has moved */
};

struct kl_socket_lane {
    int fd;
    struct kl_out out;
    struct kl_in in;
    struct kl_watched watched;

    /* lanes but the first: */
    struct kl_lane_part part[KL_PARTS];
    bool headed; /* the head of the part that comes is here */
    _Atomic uint64_t put, taken;
    _Atomic int flow; /* what ended it: KL_FLOW_LOST with `err`, or KL_FLOW_FORGED; its mover's */
    int err;
    uint64_t silent_since; /* alive.h */
};

/** Is there room for a part? */
bool kl_lane_has_room(const struct kl_socket_lane *lane);
void kl_lane_put(struct kl_socket_lane *lane, const struct kl_lane_part *part);
bool kl_lane_is_idle(const struct kl_socket_lane *lane);

/** Move what can be moved, as the mover. True: what is left waits for the socket; false: nothing is left, or the lane has ended. */
bool kl_lane_move(struct kl_socket_lane *lane, bool sends);

#endif
