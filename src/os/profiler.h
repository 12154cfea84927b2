/* SPDX-License-Identifier: Apache-2.0 */
/**
 * profiler.h - the host of a profiler plugin by NCCL's ABI (ncclProfiler_v7 to v1): one per process, a context per communicator.
 *
 * An event is started, has states, and is stopped exactly once. Its children name it as their parent, also after its stop: a
 * parent's handle stays valid until the communicator's end, by the contract. An event that the plugin does not want has no
 * handle; then its states and its stop do nothing, and its children have no parent.
 *
 * Costs:   without a plugin there is no context, and callers do nothing.
 * Errors:  a plugin that fails to start is not used, which is logged. Results of the other calls are ignored.
 * Threads: any; of one event one at a time. The plugin is called by the threads that do the work.
 * Source:  the specification of plugins, A10.
 */
#ifndef KL_OS_PROFILER_H
#define KL_OS_PROFILER_H

#include "base/atomic.h"
#include "base/param.h"
#include "base/threadlocal.h"
#include "os/profiler_event.h"

#include <stdint.h>

struct kl_profiler;

/** One event; {0} before its start and after its stop. */
struct kl_profile_event {
    const struct kl_profiler *profiler;
    void *handle; /* the plugin's; NULL: it does not want the event */
    uint64_t type;
};

/** The context of a communicator; NULL: there is no plugin. Close it with kl_profiler_close; NULL is fine there. */
struct kl_profiler *kl_profiler_open(const struct kl_profiler_place *place);
void kl_profiler_close(struct kl_profiler *profiler);

/** Start an event. `event` is overwritten; without a handle if it is not wanted. */
void kl_profile_start(const struct kl_profiler *profiler, const struct kl_profile_descr *descr,
                      struct kl_profile_event *event);

/** `value`: bytes of a step, the timer of a kernel's channel, appended operations; 0 otherwise. */
void kl_profile_state(const struct kl_profile_event *event, enum kl_profile_state state, uint64_t value);
void kl_profile_stop(struct kl_profile_event *event);

/** The event whose work this thread hands to a net: the parent of events of net plugins. NULL: none. */
extern KL_THREAD_LOCAL const struct kl_profile_event *kl_profile_parent;

/**
 * The callback of net plugins (v10 and later): `parent` is a struct kl_profile_event; type 0 start, 1 stop, 2 update, 3 update
 * and stop.
 */
int kl_profile_net_event(void **event, int type, void *parent, int64_t plugin, void *data);

extern const struct kl_param_set kl_profiler_param_set;

#endif
