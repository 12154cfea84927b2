/* SPDX-License-Identifier: Apache-2.0 */
/**
 * raw_net.h - a net plugin's functions behind struct kl_net, without the connection of sockets and the proofs that Kolo adds.
 *
 * One library per process. A listener serves one connection. Requests are the plugin's own, so the size of a received message comes from
 * test, and a message to isend or irecv needs a registered buffer as the plugin wants it.
 */
#ifndef KOLO_TOOL_PLUGIN_RAW_NET_H
#define KOLO_TOOL_PLUGIN_RAW_NET_H

#include "net/plugin/library.h"

/** Open and initialise the plugin of `file`. False: it is not usable. */
bool kl_raw_net_open(const char *file);
void kl_raw_net_close(void);
const struct kl_net_library *kl_raw_net_library(void);

extern const struct kl_net kl_net_raw;

#endif
