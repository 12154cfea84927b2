/* SPDX-License-Identifier: Apache-2.0 */
/**
 * collnet.h - the network that reduces of the net plugin in use, behind kl_collnet_plugin (net/collnet.h).
 *
 * Differences: connect of a plugin may block until all members have called it, so a thread of its own calls it. Each buffer is
 *              registered for its request. A plugin that cannot gather or scatter does both by reductions of all parts.
 * Threads:     opening and closing: the caller has the lock of plugin.h.
 */
#ifndef KL_NET_PLUGIN_COLLNET_H
#define KL_NET_PLUGIN_COLLNET_H

#include "net/plugin/collnet_library.h"

/** Take the CollNet table of this library, if it has one that can be used. Ended with kl_collnet_plugin_close, which needs no success. */
void kl_collnet_plugin_open(const struct kl_net_library *net);
void kl_collnet_plugin_close(void);

/** The name of the one in use; NULL: there is none. */
const char *kl_collnet_plugin_name(void);

#endif
