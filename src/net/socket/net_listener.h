/* SPDX-License-Identifier: Apache-2.0 */
/**
 * net_listener.h - a listening socket, the sockets in a handshake, and the connections that have arrived completely or in part.
 *
 * A socket has to prove that its sender holds the secret. It is closed at once if it speaks another protocol, after 5
 * seconds if it does not finish, and the oldest first if there are more than 256. A connection has arrived when all its
 * sockets have; a newer one of the same peer and id replaces one that was not taken.
 *
 * Threads:  one at a time.
 */
#ifndef KL_NET_SOCKET_NET_LISTENER_H
#define KL_NET_SOCKET_NET_LISTENER_H

#include "net/socket/device.h"
#include "net/socket/socket_handshake.h"

struct kl_net_listener;

/** A connection that has arrived: `n` sockets, open. */
struct kl_accepted {
    struct kl_accepted *next;
    unsigned peer, id;
    unsigned char group[KL_GROUP];
    bool disagrees; /* exactly one of sender and listener requires encryption */
    int n, here;
    struct kl_socket_handshake handshake[]; /* missing ones: fd -1 */
};

ncclResult_t kl_net_listener_create(const struct kl_socket_device *device, const struct kl_net_end *me, bool crypt,
                                    union kl_address *address, struct kl_net_listener **listener);

/** Make progress on handshakes. ncclSystemError: the listening socket is broken, or descriptors have run out. */
ncclResult_t kl_net_listener_progress(struct kl_net_listener *d);

/**
 * Take the connection of `peer` and `id` out, the caller's to free; NULL: not here, incomplete, or closed by the
 * sender.
 */
struct kl_accepted *kl_net_listener_take(struct kl_net_listener *d, unsigned peer, unsigned id);

/** Close its remaining sockets. NULL is fine. */
void kl_accepted_free(struct kl_accepted *a);

/**
 * The descriptor to sleep on. -1: a connection has arrived since the last call; it may be one that was looked for
 * before.
 */
ncclResult_t kl_net_listener_watch(struct kl_net_listener *d, int *fd);

int kl_net_listener_rank(const struct kl_net_listener *d);
int kl_net_listener_threads(const struct kl_net_listener *d); /* threads of a connection over its device */

/** NULL is fine. */
void kl_net_listener_free(struct kl_net_listener *d);

#endif
