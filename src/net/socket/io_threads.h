/* SPDX-License-Identifier: Apache-2.0 */
/**
 * io_threads.h - the helper threads of a connection: each moves data of its share of the lanes, and sleeps while there is
 * none.
 *
 * A thread whose lane has ended records that there (lane.h) and leaves it alone.
 *
 * Threads:  called by the connection's caller.
 */
#ifndef KL_NET_SOCKET_IO_THREADS_H
#define KL_NET_SOCKET_IO_THREADS_H

#include "net/socket/config.h"
#include "net/socket/lane.h"

/** A caller that sleeps until a thread has moved data. */
struct kl_sleeper {
    int wakeup_fd;       /* eventfd that wakes it; -1: it has not slept yet */
    _Atomic bool asleep; /* or about to; the thread that clears it writes the eventfd */
};

struct kl_io_threads;

/** Start `shape->threads` threads that move `shape->lanes` lanes. */
ncclResult_t kl_io_threads_start(struct kl_socket_lane *lanes, const struct kl_socket_shape *shape, bool sends,
                                 struct kl_sleeper *sleeper, struct kl_io_threads **io_threads);

/** Parts were put into lanes: wake the threads. */
void kl_io_threads_wake(const struct kl_io_threads *io_threads);

/** Stop and free them; no data moves afterwards. NULL is fine. */
void kl_io_threads_stop(struct kl_io_threads *io_threads);

#endif
