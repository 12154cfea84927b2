/* SPDX-License-Identifier: Apache-2.0 */
/** send.h - the sender's end: post messages, and move their data, for net.h. */
#ifndef KL_NET_SOCKET_SEND_H
#define KL_NET_SOCKET_SEND_H

#include "net/socket/conn.h"

ncclResult_t kl_send_post(struct kl_conn *c, const void *data, size_t bytes, int tag, struct kl_request **request);

/** Send as much as the sockets take. A failure is recorded in the connection. */
void kl_send_work(struct kl_conn *c);

/** Read messages from the receiver; returns the failure, if it has ended the connection. */
ncclResult_t kl_send_listen(struct kl_conn *c);

#endif
