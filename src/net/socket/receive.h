/* SPDX-License-Identifier: Apache-2.0 */
/** receive.h - the receiver's end: post receives, and move arriving data, for net.h. */
#ifndef KL_NET_SOCKET_RECEIVE_H
#define KL_NET_SOCKET_RECEIVE_H

#include "net/socket/conn.h"

ncclResult_t kl_receive_post(struct kl_conn *c, int n, const struct kl_net_recv *recvs, struct kl_request **request);

/** Receive data for posted requests. A failure is recorded in the connection. */
void kl_receive_work(struct kl_conn *c);

/** For the sender that is its opposite: read the next head, even without a posted receive. */
enum kl_flow kl_receive_look(struct kl_conn *c);

#endif
