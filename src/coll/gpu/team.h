/* SPDX-License-Identifier: Apache-2.0 */
/**
 * team.h - the ranks of a communicator on GPUs in one process, and how their calls become work of the GPUs.
 *
 * A call leaves an event on the program's stream. The last rank of an operation submits it for all: the streams of the
 * GPUs wait for the events of all ranks, a kernel or copies do the work, and the programs' streams wait for its end. No
 * kernel waits for another (unless flags.h is in use), so ranks may share a GPU and a stream. Ranks of other processes: far.h; each GPU's work is
 * submitted by the process of its lowest rank.
 *
 * Order:    a rank's calls run in order; of one call, first the collectives, then the messages.
 * Blocking: kl_gpu_wait waits for the calls of other ranks, not for GPUs.
 * Errors:   a failure of CUDA, or calls that differ, fail the team: all calls that wait, and later ones.
 * Threads:  one for each rank at a time.
 */
#ifndef KL_COLL_GPU_TEAM_H
#define KL_COLL_GPU_TEAM_H

#include "base/atomic.h"
#include "coll/gpu/buffers.h"
#include "coll/gpu/drain.h"
#include "coll/gpu/job.h"
#include "coll/gpu/kernels.h"
#include "device/cuda/context.h"
#include "device/config.h"

#include <pthread.h>

enum { KL_GPU_ENDS = 64, KL_GPU_UUID = 16 };

struct kl_gpu_far;
struct kl_gpu_flags;
struct kl_gpu_graphs;
struct kl_gpu_nvls;
struct kl_gpu_relay;
struct kl_gpu_schedules;

/** A GPU, the stream on which it works for the team, and events of the ends of its last operations, used in turn. */
struct kl_gpu_worker {
    const struct kl_cuda_context *context; /* NULL: no rank of this process is on it */
    unsigned char uuid[KL_GPU_UUID];
    bool submits; /* this process submits its work */
    kl_cu_stream stream;
    kl_cu_stream second; /* of relay.h; NULL: none */
    kl_cu_event end[KL_GPU_ENDS];
    uint64_t ends;                  /* recorded so far */
    uint64_t collective;            /* of them, the last collective's */
    uint64_t seen[KL_CUDA_DEVICES]; /* the last end of each other worker that this one's stream waits for */
};

/** Memory of a stage in place of a buffer (stage.h); bytes 0: there is none. */
struct kl_gpu_staged {
    uint64_t at;
    size_t bytes;
};

/** An operation of a rank; until it is submitted it is linked into the team. */
struct kl_gpu_op {
    const struct kl_task *task;
    kl_cu_stream stream;      /* the program's */
    struct kl_gpu_call *call; /* NULL: another process's */
    struct kl_gpu_op *next;
    struct kl_gpu_staged stage[KL_GPU_BUFFERS];
    uint64_t posted; /* a message to another process: its number among the pair's messages, once posted */
    int word;        /* the same: its first word */
    bool apart;      /* its part of a graph is on the call's first stream (graphs.h) */
    bool by_nic;     /* a message between hosts that NICs read or write in the program's memory */
};

/** The operations of a rank that are issued together. */
struct kl_gpu_call {
    int rank;
    struct kl_gpu_op *op; /* collectives first */
    size_t nops, ncollectives;
    uint64_t capture;              /* the graph that its streams capture; 0: none */
    bool apart;                    /* its operations are on its first stream (graphs.h) */
    size_t left;                   /* linked, not submitted yet; under the team's lock */
    kl_cu_event ready;             /* the program's streams have come to the call */
    uint64_t waited;               /* bit w: worker w waits for `ready` already */
    uint64_t used;                 /* bit w: worker w works for it */
    uint64_t end[KL_CUDA_DEVICES]; /* of each used worker: its last end for this call */
};

struct kl_gpu_team {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int nranks, refs;
    int members;                /* ranks of this process */
    struct kl_gpu_far *far;     /* the others; NULL: there are none */
    struct kl_gpu_relay *relay; /* NULL: the GPUs reach each other's memory, or there is one */
    struct kl_gpu_graphs *graphs;
    bool apart;                         /* the operation being submitted is in several graphs: graphs.h has its order */
    struct kl_gpu_flags *flags;         /* NULL: kernels of the GPUs do not meet */
    struct kl_gpu_nvls *nvls;           /* NULL: it is not wanted, or kernels do not meet */
    struct kl_gpu_schedules *schedules; /* NULL: they are not wanted, or cannot be used */
    int leader;                         /* the worker whose stream signals other processes */
    uint64_t capture;                   /* of the last operation */
    uint64_t works;                     /* bit w: worker w takes part in the operation being submitted */
    bool meets;                         /* at flags, for that operation */
    int nworkers;
    enum kl_cuda_mover mover;
    unsigned blocks; /* the most of a kernel; 0: by the GPU's size */
    struct kl_gpu_worker worker[KL_CUDA_DEVICES];
    int32_t *worker_of;               /* by rank */
    kl_cu_event *ready;               /* by rank */
    struct kl_gpu_op **first, **last; /* by rank: collectives that wait for other ranks */
    struct kl_gpu_op **messages;      /* by rank: messages that wait for their other side, in order */
    const void **caller;              /* by rank: the thread that called for it last (kl_thread_self) */
    int arrived;                      /* ranks with a waiting collective */
    ncclResult_t failed;
    char text[KL_ERROR_TEXT];
    struct kl_gpu_drain drain;   /* after a failure */
    char failure[KL_ERROR_TEXT]; /* its sentence, for `text`; constant once the drain looks */
    struct kl_gpu_job job;       /* being filled */
};

/** The place of a rank: its GPU, by number (-1: it is in another process) and by identity. */
struct kl_gpu_place {
    int device, process;
    unsigned char uuid[KL_GPU_UUID];
};

/** This process's device as all processes know it. */
ncclResult_t kl_gpu_identify(int device, unsigned char uuid[KL_GPU_UUID]);

/** Bytes of memory that the processes of a team share; zeroed at first, and allocated when touched. */
size_t kl_gpu_team_bytes(int nranks);

/** A team's settings and memory, beside the ranks' places. */
struct kl_gpu_setup {
    int nprocesses, own; /* this process's number */
    void *common;        /* kl_gpu_team_bytes of memory; NULL: there is one process */
    ncclResult_t (*share)(void *ctx, size_t bytes, void **memory); /* more of it, for which all processes call */
    void *ctx;
    bool no_p2p;                           /* settings forbid P2P between some of the GPUs: all processes know that */
    const struct kl_device_config *config; /* alike in all processes */
    const struct kl_connect *graph;        /* for schedules; outlives the last operation */
    size_t chunk_bytes;                    /* of a chunk of a schedule, as on host devices */
};

/** The team of ranks at these places, held once; more than KL_JOB_RANKS ranks: ncclInvalidUsage. It tests P2P (peers.h). */
ncclResult_t kl_gpu_team_create(const struct kl_gpu_place *place, int nranks, const struct kl_gpu_setup *setup,
                                struct kl_gpu_team **team);

/** The communicator has failed, as `text` says: streams do not wait for other processes for ever. Any thread. */
void kl_gpu_team_release(struct kl_gpu_team *team, const char *text);

/** Do kernels follow schedules? Then collectives come with a plan (kl_exec_choose). Constant. */
static inline bool kl_gpu_team_has_schedules(const struct kl_gpu_team *team)
{
    return team->schedules;
}

/** Is LL128 safe between its GPUs? Constant, and the same in all processes. */
bool kl_gpu_team_has_ll128(const struct kl_gpu_team *team);

void kl_gpu_team_ref(struct kl_gpu_team *team);

/** A thread speaks for a rank, until another one calls for it. */
void kl_gpu_team_note_caller(struct kl_gpu_team *team, int rank, const void *thread);

/**
 * Give it up; the last one frees it: then true. It waits for its GPUs first; after a failure it leaves them to drain.h. Ranks that still
 * call get the failure's `text`, which names its rank. `*failed`: has this rank failed? Set to: has any?
 */
bool kl_gpu_team_leave(struct kl_gpu_team *team, bool *failed, const char *text);

/** Wait for the rank's GPUs. */
ncclResult_t kl_gpu_team_synchronize(struct kl_gpu_team *team);

/**
 * Check the streams and buffers of a call, whose rank and operations are set. ncclInvalidUsage if its streams do not all
 * capture the same graph, or none; those of other ranks may capture others. Nothing has changed yet.
 */
ncclResult_t kl_gpu_check(struct kl_gpu_team *team, struct kl_gpu_call *call);

/** Mark the call's place on the program's streams. */
ncclResult_t kl_gpu_begin(struct kl_gpu_team *team, struct kl_gpu_call *call);

/** Match its collectives, or its messages, with the other ranks'; complete ones are submitted, here or in kl_gpu_wait; collectives of
 * several processes there. */
void kl_gpu_arrive(struct kl_gpu_team *team, struct kl_gpu_call *call, bool messages);

/** When a wait ends at the latest; KL_NO_DEADLINE: never. */
struct kl_gpu_limits {
    uint64_t deadline;
    uint64_t alone; /* if only ranks are missing for which this thread called last */
};

/**
 * Wait until they are submitted. Ends also with `*stop`, which other threads set: ncclInternalError; at the deadline:
 * ncclSystemError; when the thread waits for itself: ncclInvalidUsage. Then they are withdrawn.
 */
ncclResult_t kl_gpu_wait(struct kl_gpu_team *team, struct kl_gpu_call *call, _Atomic uint32_t *stop,
                         const struct kl_gpu_limits *limits);

/** The program's streams go on when the call's operations have ended. */
ncclResult_t kl_gpu_end(struct kl_gpu_team *team, struct kl_gpu_call *call);

#endif
