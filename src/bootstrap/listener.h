/* SPDX-License-Identifier: Apache-2.0 */
/**
 * listener.h - the process's listening sockets: one for each address, shared by all who want to listen there.
 *
 * An address whose port is given gets a socket of its own. For others the system chooses a port, which the process keeps in
 * mind: when nobody listens any more, the socket is closed, and who comes next gets the same port again if it is free. A
 * program that makes communicators by the thousand would otherwise run out of ports, as those of connections that have
 * ended stay taken for a minute.
 *
 * Fork:     a child has its parent's sockets closed by the event loop, and opens its own.
 * Threads:  the event loop's only.
 */
#ifndef KL_BOOTSTRAP_LISTENER_H
#define KL_BOOTSTRAP_LISTENER_H

#include "event/loop.h"
#include "os/address.h"

struct kl_listener;

/**
 * A connection has come; `fd` is the callee's. `owner`: see kl_listener_hold. `spare`: the process has no descriptor left but this one,
 * which was in reserve: kl_loop_return_spare to keep it, or answer, close it, and kl_loop_forgo_spare.
 */
typedef void kl_listener_fn(struct kl_listener *listener, void *owner, int fd, bool spare);

/**
 * Listen on `address`, whose port becomes known. Connections go to `fn`, which is the same for all who share. `owner` is that
 * of a socket that is not shared, as its port was given; else NULL is handed to `fn`. Errors: ncclSystemError, errno says why.
 */
ncclResult_t kl_listener_hold(struct kl_loop *loop, union kl_address *address, kl_listener_fn *fn, void *owner,
                              struct kl_listener **listener);

/** Give it back. True: nobody holds it any more, and it is gone. */
bool kl_listener_drop(struct kl_listener *listener);

#endif
