/* SPDX-License-Identifier: Apache-2.0 */
/** establish.h - make connections of sockets: the sender's connect, the receiver's accept, for net.h. */
#ifndef KL_NET_SOCKET_ESTABLISH_H
#define KL_NET_SOCKET_ESTABLISH_H

#include "net/socket/conn.h"
#include "net/socket/net_listener.h"

ncclResult_t kl_establish_send(int device, const struct kl_net_end *me, const struct kl_net_handle *handle,
                               struct kl_conn **connection);
ncclResult_t kl_establish_recv(struct kl_net_listener *listener, const struct kl_net_end *me,
                               struct kl_conn **connection);

#endif
