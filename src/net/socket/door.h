/* SPDX-License-Identifier: Apache-2.0 */
/**
 * door.h - a listening socket, the strangers at it, and the connections that have arrived whole or in part.
 *
 * Who connects is a stranger until it has proved that it holds the secret. Strangers are dropped at once when they say something
 * else, after 5 seconds when they do not finish, and the oldest first when there are more than 256. A connection has arrived when
 * all its sockets have; a newer one of the same peer and id takes the place of one that nobody has taken.
 *
 * Threads:  one at a time.
 */
#ifndef KL_NET_SOCKET_DOOR_H
#define KL_NET_SOCKET_DOOR_H

#include "net/socket/device.h"
#include "net/socket/opening.h"

struct kl_door;

/** A connection that has arrived: `n` sockets, open. */
struct kl_arrival {
    struct kl_arrival *next;
    unsigned peer, id;
    unsigned char group[KL_GROUP];
    bool disagrees; /* it wants encryption, and we do not, or the other way round */
    int n, here;
    struct kl_opening opening[]; /* those not here: fd -1 */
};

ncclResult_t kl_door_create(const struct kl_socket_device *device, const struct kl_net_end *me, bool crypt,
                            union kl_address *address, struct kl_door **door);

/** Let strangers get further. ncclSystemError: the listening socket is broken, or descriptors have run out. */
ncclResult_t kl_door_move(struct kl_door *d);

/** Take the connection of `peer` and `id` out, the caller's to free; NULL: it is not here, not whole, or deserted. */
struct kl_arrival *kl_door_take(struct kl_door *d, unsigned peer, unsigned id);

/** Close what is left of it. NULL is fine. */
void kl_arrival_free(struct kl_arrival *a);

/** The descriptor to sleep on. -1: a connection has arrived since this was asked last; it may be one that was looked for in vain before. */
ncclResult_t kl_door_watch(struct kl_door *d, int *fd);

int kl_door_rank(const struct kl_door *d);
int kl_door_threads(const struct kl_door *d); /* that move a connection over its device */

/** NULL is fine. */
void kl_door_free(struct kl_door *d);

#endif
