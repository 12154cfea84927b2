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

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Events, as bits of a plugin's mask. */
enum kl_profile_type {
    KL_PROFILE_GROUP = 1,
    KL_PROFILE_COLL = 2,
    KL_PROFILE_P2P = 4,
    KL_PROFILE_PROXY_OP = 8,
    KL_PROFILE_PROXY_STEP = 0x10,
    KL_PROFILE_KERNEL_CH = 0x40,
    KL_PROFILE_NET_PLUGIN = 0x80,
    KL_PROFILE_GROUP_API = 0x100,
    KL_PROFILE_COLL_API = 0x200,
    KL_PROFILE_P2P_API = 0x400,
    KL_PROFILE_KERNEL_LAUNCH = 0x800
};

enum kl_profile_state {
    KL_PROFILE_SEND_GPU_WAIT = 8,
    KL_PROFILE_SEND_WAIT = 9,
    KL_PROFILE_RECV_WAIT = 10,
    KL_PROFILE_RECV_FLUSH_WAIT = 11,
    KL_PROFILE_RECV_GPU_WAIT = 12,
    KL_PROFILE_PROXY_OP_IN_PROGRESS = 19,
    KL_PROFILE_SEND_PEER_WAIT = 20,
    KL_PROFILE_NET_PLUGIN_UPDATE = 21,
    KL_PROFILE_KERNEL_CH_STOP = 22,
    KL_PROFILE_GROUP_START_API_STOP = 23,
    KL_PROFILE_GROUP_END_API_START = 24
};

struct kl_profiler;

/** One event; {0} before its start and after its stop. */
struct kl_profile_event {
    const struct kl_profiler *profiler;
    void *handle; /* the plugin's; NULL: it does not want the event */
    uint64_t type;
};

/** The fields of an event, by its type; the others are 0. Strings are constant. */
struct kl_profile_descr {
    enum kl_profile_type type;
    void *parent;       /* handle; NULL: none. Of collectives and messages: the API call, */
    void *parent_group; /* and the group, which is the parent up to v4 */
    const char *func, *datatype, *algo, *proto;
    const void *send, *recv; /* of a message: `send` is its buffer */
    uint64_t seq, count;
    int root, peer; /* peer: also of a proxy operation */
    int channels, channel;
    int depth;     /* of the group */
    bool captured; /* by a graph */
    void *stream;
    bool is_send; /* of a proxy operation, as: */
    int steps, chunk_bytes;
    int step;       /* of a step: its number in the operation */
    uint64_t timer; /* of a kernel's channel: nanoseconds */
    int64_t plugin; /* of a net plugin's event: its number, and its data */
    void *data;
    uint64_t tag; /* of the program (userProfilerTag) */
};

/** The communicator that a context is for; strings outlive it. */
struct kl_profiler_place {
    uint64_t comm;    /* its number */
    const char *name; /* NULL: none */
    int nnodes, nranks, rank;
    void *(*net_library)(char *file); /* of the net plugin in use, to be searched too, or NULL; NULL itself: none */
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
extern _Thread_local const struct kl_profile_event *kl_profile_parent;

/**
 * The callback of net plugins (v10 and later): `parent` is a struct kl_profile_event; type 0 start, 1 stop, 2 update, 3 update
 * and stop.
 */
int kl_profile_net_event(void **event, int type, void *parent, int64_t plugin, void *data);

extern const struct kl_param_set kl_profiler_param_set;

#endif
