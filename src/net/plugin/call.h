/* SPDX-License-Identifier: Apache-2.0 */
/**
 * call.h - a call of a plugin that may not return, in a thread of its own: the caller looks whether it has, and may leave it behind.
 *
 * Use:       struct kl_plugin_call is the first member of a structure with the arguments and results, in memory of malloc.
 * Ownership: of the structure: of the caller and the thread. The last of both to leave it has it freed.
 * Threads:   the caller's, and the one that makes the call. Results are read once the call is done.
 */
#ifndef KL_NET_PLUGIN_CALL_H
#define KL_NET_PLUGIN_CALL_H

#include "base/atomic.h"
#include "net/net.h"

struct kl_plugin_call {
    _Atomic int users, done;
    void (*run)(struct kl_plugin_call *call);
    void (*ended)(struct kl_plugin_call *call); /* before it is freed; NULL: nothing to do */
    void **handles;                             /* of all members, for a connect; NULL: none. Freed with the call */
};

/** Before the first use; the caller has it. */
void kl_plugin_call_init(struct kl_plugin_call *call, void (*run)(struct kl_plugin_call *call),
                         void (*ended)(struct kl_plugin_call *call));

/** Copy `n` handles, `stride` bytes apart. False: no memory. */
bool kl_plugin_call_add_handles(struct kl_plugin_call *call, const struct kl_net_handle *handles, size_t stride, int n);

/** False: there is no thread for it. */
bool kl_plugin_call_start(struct kl_plugin_call *call);

bool kl_plugin_call_is_done(const struct kl_plugin_call *call);

/** The caller leaves it. NULL is fine. */
void kl_plugin_call_drop(struct kl_plugin_call *call);

#endif
