/* SPDX-License-Identifier: Apache-2.0 */
/**
 * listener.h - the process's listening sockets: one for each address, shared by all acceptors on it.
 *
 * An address with a given port gets a socket of its own. For others the system chooses a port, which the process
 * remembers: when the last holder is gone, the socket is closed, and the next holder gets the same port again if it is
 * free. Otherwise a program that makes thousands of communicators would run out of ports, as those of ended connections
 * stay taken for a minute.
 *
 * Fork:     a child has its parent's sockets closed by the event loop, and opens its own.
 * Threads:  on the event loop only.
 */
#ifndef KL_BOOTSTRAP_LISTENER_H
#define KL_BOOTSTRAP_LISTENER_H

#include "event/loop.h"
#include "os/address.h"

struct kl_listener;

/**
 * A connection was accepted; `fd` is the callee's. `owner`: see kl_listener_hold. `spare`: it was accepted with the
 * reserve descriptor: kl_loop_return_spare to keep it, or answer, close it, and kl_loop_forgo_spare.
 */
typedef void kl_listener_fn(struct kl_listener *listener, void *owner, int fd, bool spare);

/**
 * Listen on `address`, whose port becomes known. Connections go to `fn`, which is the same for all sharers. `owner` is
 * passed to `fn` if the socket is not shared because its port was given, otherwise NULL.
 * Errors: ncclSystemError, errno says why.
 */
ncclResult_t kl_listener_hold(struct kl_loop *loop, union kl_address *address, kl_listener_fn *fn, void *owner,
                              struct kl_listener **listener);

/** Drop a reference. True: it was the last, and the socket is closed. */
bool kl_listener_drop(struct kl_listener *listener);

#endif
