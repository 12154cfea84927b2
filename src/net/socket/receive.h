/* SPDX-License-Identifier: Apache-2.0 */
/** receive.h - the receiver's end: post, and move what arrives. As net.h describes them. */
#ifndef KL_NET_SOCKET_RECEIVE_H
#define KL_NET_SOCKET_RECEIVE_H

#include "net/socket/conn.h"

ncclResult_t kl_receive_post(struct kl_conn *c, int n, const struct kl_net_recv *recvs, struct kl_request **request);

/** Receive what has arrived for what is posted. A failure is the connection's. */
void kl_receive_work(struct kl_conn *c);

/** For the sender that is its twin: hear what comes next, whether or not anything is posted for it. */
enum kl_flow kl_receive_look(struct kl_conn *c);

#endif
