/* SPDX-License-Identifier: Apache-2.0 */
/**
 * join.h - how two ends of a plugin's connection come together.
 *
 *      sender                                                    receiver
 *        connection of the socket net  --------------------->      accepts it: this is the peer that it is asked for
 *                                      <--- the net's name, a nonce, a handle of a new listener of the plugin
 *        connects over the plugin      --------------------->      accepts, and closes the listener
 *        proof                         ~~~~~~~~~~~~~~~~~~~~~>      the connection is of this peer
 *
 * So each plugin's listener serves one connection, and a handle of a plugin goes only to a peer that knows the communicator's secret.
 * Nothing blocks; deadlines: see struct kl_net_end.
 */
#ifndef KL_NET_PLUGIN_JOIN_H
#define KL_NET_PLUGIN_JOIN_H

#include "net/plugin/conn.h"

struct kl_plugin_listener;

ncclResult_t kl_plugin_listen(const struct kl_net_library *l, int device, const struct kl_net_end *me,
                              struct kl_net_handle *handle, struct kl_plugin_listener **listener);
ncclResult_t kl_plugin_listener_sleep_on(struct kl_plugin_listener *listener, int *fd);
void kl_plugin_listener_free(struct kl_plugin_listener *listener);

/** As connect and accept of struct kl_net. */
ncclResult_t kl_plugin_connect(const struct kl_net_library *l, int device, const struct kl_net_end *me,
                               const struct kl_net_handle *handle, struct kl_plugin_conn **conn);
ncclResult_t kl_plugin_accept(struct kl_plugin_listener *listener, const struct kl_net_end *me,
                              struct kl_plugin_conn **conn);

/** Frees a connection or a request. */
void kl_plugin_conn_close(struct kl_plugin_conn *conn);

#endif
