/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/diagnosis/profile.h"

#include "comm/comm.h"
#include "device/host/user_stream.h"
#include "net/net.h"

#include <stdlib.h>
#include <string.h>

/* A task in flight: the events of its call and of itself. The runner reads `handle`, which outlives the event's stop. */
struct entry {
    struct kl_profile_call call;
    struct kl_profile_event event;
    void *handle;
};

struct kl_comm_profile {
    struct kl_profiler *profiler;
    struct entry *entry; /* by task, as comm->tasks */
    uint64_t seq[KL_FUNC_ROWS];
    struct kl_profile_event launch, group;
};

/* The thread's outermost group, and its call. */
static _Thread_local struct {
    struct kl_profile_event group;
    struct kl_profile_call call;
} thread;

KL_THREAD_LOCAL bool kl_comm_profile_in_group;

/* ---- life ---- */

static const char *name_of(ncclComm_t comm)
{
    return comm->nccl_config.name;
}

ncclResult_t kl_comm_profile_open(ncclComm_t comm)
{
    const struct kl_profiler_place place = {.comm = kl_load_relaxed(&comm->name),
                                            .name = name_of(comm),
                                            .nnodes = comm->tuning.in.nnodes,
                                            .nranks = comm->nranks,
                                            .rank = comm->rank,
                                            .net_library = kl_net_plugin_library};
    struct kl_profiler *profiler = kl_profiler_open(&place);

    if (!profiler) return ncclSuccess;
    comm->profile = calloc(1, sizeof *comm->profile);
    if (comm->profile) comm->profile->profiler = profiler;
    if (comm->profile) return ncclSuccess;
    kl_profiler_close(profiler);
    return KL_NOMEM("the events of a profiler");
}

/* A group that has not ended may have begun with this communicator. */
void kl_comm_profile_close(ncclComm_t comm)
{
    struct kl_comm_profile *p = comm->profile;

    if (!p) return;
    if (thread.group.profiler == p->profiler) kl_comm_profile_group_ended();
    kl_profiler_close(p->profiler);
    free(p->entry);
    free(p);
    comm->profile = NULL;
}

const struct kl_profiler *kl_comm_profiler(ncclComm_t comm)
{
    return comm->profile ? comm->profile->profiler : NULL;
}

ncclResult_t kl_comm_profile_reserve(ncclComm_t comm, uint64_t room)
{
    struct entry *larger = calloc(room, sizeof *larger);

    if (!larger) return KL_NOMEM("the events of a profiler");
    free(comm->profile->entry);
    comm->profile->entry = larger;
    return ncclSuccess;
}

static struct entry *entry_of(ncclComm_t comm, uint64_t number)
{
    return &comm->profile->entry[number & (comm->task_room - 1)];
}

/* ---- groups and calls ---- */

static void begin_group(ncclComm_t comm, bool captured, int depth)
{
    const struct kl_profile_descr d = {.type = KL_PROFILE_GROUP_API, .captured = captured, .depth = depth ? depth : 1};

    if (thread.group.profiler) return;
    kl_profile_start(comm->profile->profiler, &d, &thread.group);
    kl_comm_profile_in_group = thread.group.profiler != NULL;
    kl_profile_state(&thread.group, KL_PROFILE_GROUP_START_API_STOP, 0);
}

void kl_comm_profile_end_group(void)
{
    kl_profile_state(&thread.group, KL_PROFILE_GROUP_END_API_START, 0);
}

void kl_comm_profile_stop_group(void)
{
    kl_profile_stop(&thread.group);
    kl_comm_profile_in_group = false;
    thread.group = (struct kl_profile_event){.profiler = NULL};
}

static const char *type_of(ncclDataType_t type)
{
    static const char *const names[ncclNumTypes] = {
        [ncclInt8] = "ncclInt8",         [ncclUint8] = "ncclUint8",           [ncclInt32] = "ncclInt32",
        [ncclUint32] = "ncclUint32",     [ncclInt64] = "ncclInt64",           [ncclUint64] = "ncclUint64",
        [ncclFloat16] = "ncclFloat16",   [ncclFloat32] = "ncclFloat32",       [ncclFloat64] = "ncclFloat64",
        [ncclBfloat16] = "ncclBfloat16", [ncclFloat8e4m3] = "ncclFloat8e4m3", [ncclFloat8e5m2] = "ncclFloat8e5m2",
    };

    return (unsigned)type < ncclNumTypes && names[type] ? names[type] : "unknown";
}

void kl_comm_profile_call_begin(ncclComm_t comm, const struct kl_task *t, const struct kl_stream *stream, uint64_t tag,
                                int depth, struct kl_profile_event *call)
{
    const bool captured = kl_load_relaxed(&stream->flags) & KL_STREAM_CAPTURING;

    begin_group(comm, captured, depth);
    const struct kl_profile_descr d = {
        .type = kl_func_is_message(t->func) ? KL_PROFILE_P2P_API : KL_PROFILE_COLL_API,
        .parent = thread.group.handle,
        .func = kl_func_info[t->func].name,
        .datatype = type_of(t->type),
        .count = t->count,
        .root = t->peer,
        .stream = kl_user_stream_handle(stream),
        .captured = captured,
        .tag = tag,
    };
    kl_profile_start(comm->profile->profiler, &d, call);
    thread.call = (struct kl_profile_call){.event = call->handle, .tag = tag};
}

void kl_comm_profile_call_end(struct kl_profile_event *call, int depth)
{
    kl_profile_stop(call);
    thread.call = (struct kl_profile_call){.event = NULL};
    if (depth) return;
    kl_comm_profile_group_ends();
    kl_comm_profile_group_ended();
}

struct kl_profile_call kl_comm_profile_call(void)
{
    return thread.call;
}

void kl_comm_profile_note(ncclComm_t comm, uint64_t number, struct kl_profile_call call)
{
    entry_of(comm, number)->call = call;
}

/* ---- launches ---- */

static void start_task(ncclComm_t comm, uint64_t number)
{
    struct kl_comm_profile *p = comm->profile;
    const struct kl_task *t = kl_comm_task(comm, number);
    const bool message = kl_func_is_message(t->func);
    struct entry *e = entry_of(comm, number);
    const struct kl_profile_descr d = {
        .type = message ? KL_PROFILE_P2P : KL_PROFILE_COLL,
        .parent = e->call.event,
        .parent_group = p->group.handle,
        .func = kl_func_info[t->func].name,
        .datatype = type_of(t->type),
        .algo = message || comm->nranks == 1 ? "" : kl_exec_algo_name(t),
        .proto = message || comm->nranks == 1 ? "" : kl_exec_proto_name(t),
        .send = message && t->func == KL_FUNC_RECV ? t->recv : t->send,
        .recv = t->recv,
        .seq = p->seq[t->func]++,
        .count = t->count,
        .root = t->peer,
        .peer = t->peer,
        .channels = message ? 1 : t->choice.partition.nchannels,
        .tag = e->call.tag,
    };

    kl_profile_start(p->profiler, &d, &e->event);
    e->handle = e->event.handle;
}

void kl_comm_profile_launch_begin(ncclComm_t comm, const struct kl_stream *stream, uint32_t ntasks)
{
    struct kl_comm_profile *p = comm->profile;
    const uint64_t end = kl_load_relaxed(&comm->tasks_taken);
    const struct kl_profile_descr launch = {.type = KL_PROFILE_KERNEL_LAUNCH,
                                            .parent = thread.group.handle,
                                            .stream = kl_user_stream_handle(stream)},
                                  group = {.type = KL_PROFILE_GROUP, .parent = thread.group.handle};

    kl_profile_start(p->profiler, &launch, &p->launch);
    kl_profile_start(p->profiler, &group, &p->group);
    for (uint64_t i = end - ntasks; i < end; i++) start_task(comm, i);
}

void kl_comm_profile_launch_end(ncclComm_t comm, uint32_t ntasks)
{
    struct kl_comm_profile *p = comm->profile;
    const uint64_t end = kl_load_relaxed(&comm->tasks_taken);

    for (uint64_t i = end - ntasks; i < end; i++) kl_profile_stop(&entry_of(comm, i)->event);
    kl_profile_stop(&p->group);
    kl_profile_stop(&p->launch);
}

void *kl_comm_profile_event(void *ctx, const struct kl_task *task)
{
    ncclComm_t comm = ctx;

    return comm->profile->entry[task - comm->tasks].handle;
}
