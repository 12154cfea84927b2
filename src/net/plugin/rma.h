/* SPDX-License-Identifier: Apache-2.0 */
/**
 * rma.h - which plugin for one-sided operations the process uses: of NCCL_RMA_PLUGIN, else libnccl-rma.so, else of NCCL_GIN_PLUGIN or
 * libnccl-gin.so, else of the library of the net plugin in use.
 *
 * Threads: the caller has the lock of plugin.h.
 */
#ifndef KL_NET_PLUGIN_RMA_H
#define KL_NET_PLUGIN_RMA_H

#include "net/plugin/rma_library.h"

/** NULL: none can be used. It is looked for once; then the library stays. */
const struct kl_rma_library *kl_rma_plugin_find(void);

/** The same, under the lock; NULL where data have to be encrypted, too (nets.c). */
const struct kl_rma_library *kl_rma_plugin_of_process(void);

#endif
