/* SPDX-License-Identifier: Apache-2.0 */
/**
 * door.h - listening sockets behind which only authenticated connections arrive.
 *
 * The event loop accepts, plays the host's part of the handshake, and hands over the connections whose proof was right.
 * Others are dropped: at once when they speak something else, after 5 seconds when they say nothing, and the oldest
 * first when more than KL_DOOR_GUESTS are in the middle of it. Whoever was dropped for lack of room tries again.
 *
 * Threads:  create and close from any thread, one at a time; the callback comes from the event loop.
 */
#ifndef KL_BOOTSTRAP_DOOR_H
#define KL_BOOTSTRAP_DOOR_H

#include "bootstrap/handshake.h"
#include "bootstrap/record.h"
#include "event/loop.h"

#define KL_DOOR_GUESTS 256

struct kl_door;
struct kl_guest;

/**
 * Someone with a right proof is here, of the kind and for the rank that the door is for. The callback calls exactly one of
 * kl_guest_admit and kl_guest_decline, and does not close the door.
 */
typedef void kl_door_fn(void *ctx, struct kl_guest *guest);

/**
 * Listen on `*n` addresses, whose ports become known. One that this host cannot use at the moment (an IPv6 address that is still
 * being checked, say) is taken off the list, as long as another is left. Nothing is accepted before kl_door_open.
 */
ncclResult_t kl_door_create(struct kl_loop *loop, union kl_address *addresses, int *n, struct kl_door **door);

/** Begin to accept. `me` is our hello: version, type, rank (its `from`). */
ncclResult_t kl_door_open(struct kl_door *door, const struct kl_key *key, const struct kl_hello *me, kl_door_fn *fn,
                          void *ctx);

/** Stop listening, drop who is in the middle of a handshake, free. No callbacks afterwards. NULL is fine. */
void kl_door_close(struct kl_door *door);

/** The guest's rank, as it says. */
uint32_t kl_guest_rank(const struct kl_guest *guest);

/** Say welcome; the socket is the caller's from now on. False when the guest has gone meanwhile: there is no socket. */
bool kl_guest_admit(struct kl_guest *guest, int *fd);

void kl_guest_decline(struct kl_guest *guest, enum kl_handshake_outcome outcome);

#endif
