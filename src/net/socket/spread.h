/* SPDX-License-Identifier: Apache-2.0 */
/**
 * spread.h - large messages over all lanes: divided alike at both ends, and moved by helper threads or the caller.
 *
 * Threads:  the connection's caller.
 */
#ifndef KL_NET_SOCKET_SPREAD_H
#define KL_NET_SOCKET_SPREAD_H

#include "net/socket/conn.h"

/** Does a message of this size use the lanes? The sender decides. */
bool kl_spread_wanted(const struct kl_conn *c, size_t bytes);

/** Is there room for the parts of a message? */
bool kl_spread_has_room(const struct kl_conn *c);

/** Have all parts been moved? */
bool kl_spread_is_idle(const struct kl_conn *c);

/** Put a message's parts into the lanes; the request's `left` grows by them. Fails as kl_conn_fail. */
ncclResult_t kl_spread_put(struct kl_conn *c, struct kl_request *r, void *data, size_t bytes);

/** Move data without helper threads, and check whether a lane has ended: KL_FLOW_DONE, or the result, with errno. */
enum kl_flow kl_spread_work(struct kl_conn *c);

#endif
