/* SPDX-License-Identifier: Apache-2.0 */
/** profiler_event.h - events of a profiler plugin: their types, states and fields. */
#ifndef KL_OS_PROFILER_EVENT_H
#define KL_OS_PROFILER_EVENT_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
