/* SPDX-License-Identifier: Apache-2.0 */
/**
 * plugin.h - which net plugin the process uses: at most one, behind kl_net_plugin (net.h).
 *
 * Threads: the caller has a lock.
 */
#ifndef KL_NET_PLUGIN_PLUGIN_H
#define KL_NET_PLUGIN_PLUGIN_H

#include <stdbool.h>

/**
 * Take the first plugin of NCCL_NET_PLUGIN that can be used and is called `wanted` ("": any name), or the one that was
 * taken before. True: it is initialised, and counts one user more.
 */
bool kl_net_plugin_ref(const char *wanted);

/** The last user finalizes it; the library stays. */
void kl_net_plugin_unref(void);

/** As kl_net_plugin_library of net.h. */
void *kl_net_plugin_open_again(char *file);

#endif
