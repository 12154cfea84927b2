/* SPDX-License-Identifier: Apache-2.0 */
/**
 * spread.h - large messages over all lanes: cut alike at both ends, and moved by helper threads or by who calls.
 *
 * Threads:  the connection's caller.
 */
#ifndef KL_NET_SOCKET_SPREAD_H
#define KL_NET_SOCKET_SPREAD_H

#include "net/socket/connection.h"

/** Does a message of so many bytes go over the lanes? The sender decides. */
bool kl_spread_wanted(const struct kl_socket_connection *c, size_t bytes);

/** Is there room for the parts of a message? */
bool kl_spread_has_room(const struct kl_socket_connection *c);

/** Put a message's parts into the lanes; the request's `left` grows by them. Fails as kl_socket_connection_fail. */
ncclResult_t kl_spread_put(struct kl_socket_connection *c, struct kl_request *r, void *data, size_t bytes);

/** Move what nobody else moves, and look whether a lane has ended: KL_FLOW_DONE, or why, with errno. */
enum kl_flow kl_spread_work(struct kl_socket_connection *c);

#endif
