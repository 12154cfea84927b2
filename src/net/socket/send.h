/* SPDX-License-Identifier: Apache-2.0 */
/** send.h - the sender's end: post, and move what was posted. As net.h describes them. */
#ifndef KL_NET_SOCKET_SEND_H
#define KL_NET_SOCKET_SEND_H

#include "net/socket/conn.h"

ncclResult_t kl_send_post(struct kl_conn *c, const void *data, size_t bytes, int tag, struct kl_request **request);

/** Send what the sockets take. A failure is the connection's. */
void kl_send_work(struct kl_conn *c);

/** Hear what the receiver has to say; the failure, if it has ended the connection. */
ncclResult_t kl_send_listen(struct kl_conn *c);

#endif
