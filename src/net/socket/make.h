/* SPDX-License-Identifier: Apache-2.0 */
/** make.h - make connections of sockets: the sender's connect, the receiver's accept, for net.h. */
#ifndef KL_NET_SOCKET_MAKE_H
#define KL_NET_SOCKET_MAKE_H

#include "net/socket/conn.h"
#include "net/socket/door.h"

ncclResult_t kl_make_send(int device, const struct kl_net_end *me, const struct kl_net_handle *handle,
                          struct kl_conn **connection);
ncclResult_t kl_make_recv(struct kl_door *door, const struct kl_net_end *me, struct kl_conn **connection);

#endif
