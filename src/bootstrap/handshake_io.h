/* SPDX-License-Identifier: Apache-2.0 */
/**
 * handshake_io.h - messages of a handshake (handshake.h) over a socket that does not block, and the limits of listeners.
 *
 * The event loop (dialer.c, acceptor.c) and the socket net (net/socket/socket_handshake.c), which calls when it likes, move connections through the same
 * four messages with these. No byte behind a message is read: it is the next owner's.
 *
 * Threads:  one at a time per socket.
 */
#ifndef KL_BOOTSTRAP_HANDSHAKE_IO_H
#define KL_BOOTSTRAP_HANDSHAKE_IO_H

#include "os/socket.h"

#include <stddef.h>

/** Of a listener: the time for a handshake, and how many callers may be in one before the oldest is dropped. */
enum { KL_HANDSHAKE_MS = 5000, KL_HANDSHAKES_MAX = 256 };

/** Send a message: a new connection has room for it, or is dead. */
enum kl_io kl_handshake_say(int fd, const void *bytes, size_t n);

/**
 * Receive the rest of a message of `whole` bytes, of which *have are in `to`. KL_IO_TIMEOUT: it is incomplete as yet. KL_IO_CLOSED: by the other end
 * (errno 0) or reset.
 */
enum kl_io kl_handshake_receive(int fd, unsigned char *to, size_t *have, size_t whole);

#endif
