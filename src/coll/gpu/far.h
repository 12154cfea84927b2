/* SPDX-License-Identifier: Apache-2.0 */
/**
 * far.h - the ranks of a communicator on GPUs that are in other processes of the host: their calls, memory and streams.
 *
 * Calls:    each process publishes its ranks' calls in common memory, with handles of their buffers. When all processes
 *           have published theirs, each submits its part.
 * Order:    streams write numbers of operations into common memory, and wait for them (stream memory operations). A wait
 *           is for work that another process has submitted before or submits without waiting, so none is for ever.
 * Memory:   a process whose GPUs do the work maps the buffers of others by CUDA IPC, and keeps them mapped.
 * Graphs:   a captured operation has words of its own, which streams set to 1 and back, so that it can be replayed.
 * Failure:  drain.h ends the waits of streams, also those for a process that was killed.
 * Threads:  under the team's lock.
 */
#ifndef KL_COLL_GPU_FAR_H
#define KL_COLL_GPU_FAR_H

#include "base/atomic.h"
#include "coll/gpu/team.h"
#include "coll/schedule/signature.h"
#include "os/process_mark.h"

#include <stdalign.h>

enum {
    KL_GPU_POSTS = 2,
    KL_GPU_IMPORTS = 256,
    KL_GPU_CAPTURED_WORDS = 1 << 17, /* of captured collectives, and */
    KL_GPU_CAPTURED_MESSAGES = 1024, /* captured messages of a rank, for the life of a communicator */
};

/** A buffer for other processes. */
struct kl_gpu_export_handle {
    struct kl_cu_ipc_handle handle;
    uint64_t base, id; /* in its process: the allocation's address, and its number; base 0: there is no buffer */
    uint64_t offset;
};

/** A rank's call of a collective. */
struct kl_gpu_post {
    alignas(KL_LINE) _Atomic uint64_t number; /* of the collective, when the rest is there */
    struct kl_task task;                      /* its addresses mean nothing elsewhere */
    struct kl_redop redop;
    struct kl_call call;
    bool captured;
    struct kl_gpu_export_handle buffer[KL_GPU_BUFFERS]; /* send, receive, factor */
};

/** Messages of one rank to another. The n-th is posted, then taken. */
struct kl_gpu_mail {
    alignas(KL_LINE) _Atomic uint64_t posted, taken;
    uint64_t signature;
    int word; /* that says that the data are ready; the next one: they were taken */
    bool captured;
    struct kl_gpu_export_handle buffer;
};

/** A process, for the others. */
struct kl_gpu_marked {
    alignas(KL_LINE) struct kl_process_mark mark;
    _Atomic uint32_t there;
};

/** Memory of another process that a worker's context has mapped. */
struct kl_gpu_import {
    const struct kl_gpu_worker *worker; /* NULL: unused */
    int process;
    uint64_t base, id, at;
    uint64_t look; /* the last one that found it */
    bool kept;     /* a graph may use it */
};

/** Memory of a rank's GPU for other processes (stage.h). */
struct kl_gpu_stage {
    const struct kl_cuda_context *context;
    uint64_t at;
    size_t bytes;
    bool messages;    /* else collectives use it */
    uint64_t capture; /* the graph that uses it; 0: none */
    struct kl_gpu_stage *next;
};

/** The processes of a communicator, and the memory that they share. */
struct kl_gpu_far {
    int nprocesses, own, nranks;
    int32_t *process;       /* by rank */
    _Atomic uint32_t *word; /* as the CPU sees it */
    uint64_t word_at;       /* as the GPUs do */
    struct kl_gpu_post *post;
    struct kl_gpu_mail *mail;
    struct kl_gpu_marked *marked; /* by process */
    uint64_t number;              /* of collectives that were submitted */
    bool published;               /* the next one's posts */
    int captured;                 /* words of captured collectives in use */
    int sent[KL_JOB_RANKS];       /* by rank: captured messages */
    _Atomic bool captures;        /* streams have captured something */
    bool is_used;                 /* GPUs that other processes submit to use the buffers of this one's collectives */
    struct kl_gpu_stage *stage[KL_JOB_RANKS]; /* by rank, newest first */
    struct kl_gpu_import import[KL_GPU_IMPORTS];
    int next_import;                    /* to be replaced */
    uint64_t looks;                     /* at operations: memory of the last one is in use */
    struct kl_task *task;               /* by rank: of other processes' ranks, for the GPU that is looked at */
    struct kl_redop *redop;             /* by rank */
    struct kl_gpu_op *op;               /* by rank */
    const struct kl_gpu_post **current; /* by rank: the post of the collective that is being submitted */
};

/** Bytes that the processes share for `nranks` ranks; zeroed at first. */
size_t kl_gpu_far_bytes(int nranks);

/**
 * Be ready: `process` says whose rank each is, `own` is this one's number. `memory` is common, and stays until
 * kl_gpu_far_free. One of the process's contexts is current.
 */
ncclResult_t kl_gpu_far_create(const struct kl_cuda_driver *driver, const int32_t *process, int nranks, int nprocesses,
                               int own, void *memory, struct kl_gpu_far **far);

/** Unless the team has `failed`, no stream uses it any more. */
void kl_gpu_far_free(struct kl_gpu_team *team, bool failed);

static inline bool kl_gpu_is_far(const struct kl_gpu_team *team, int rank)
{
    return team->far && team->far->process[rank] != team->far->own;
}

/** A rank on a GPU that has ranks of another process as well; -1: there is none, so kernels of the GPUs may wait for each other. */
int kl_gpu_far_sharer(const struct kl_gpu_team *team);

/** Has the rank, of another process, come to the next collective? */
bool kl_gpu_far_has_come(const struct kl_gpu_team *team, int rank);

/** Publish the next collective's calls of this process's ranks, once; true: all other ranks have published theirs. */
ncclResult_t kl_gpu_far_meet(struct kl_gpu_team *team, bool *there);

/** The collective that all have come to: fill in op[] for ranks of other processes, their buffers as `worker` sees them. */
ncclResult_t kl_gpu_far_look(struct kl_gpu_team *team, const struct kl_gpu_worker *worker, struct kl_gpu_op **op);

/** A buffer of this process for others; false: they cannot map this memory. */
bool kl_gpu_far_export(const struct kl_cuda_context *c, const void *ptr, struct kl_gpu_export_handle *exported);

/** The same of an operation's buffer, or of its stage; base 0: it is not used. */
ncclResult_t kl_gpu_far_export_of(const struct kl_cuda_context *c, const struct kl_gpu_op *op,
                                  const struct kl_gpu_buffer *buffer, enum kl_gpu_buffer_kind kind,
                                  struct kl_gpu_export_handle *exported);

/** The worker's address of a buffer of a rank's process. */
ncclResult_t kl_gpu_far_import(struct kl_gpu_team *team, const struct kl_gpu_worker *worker, int rank,
                               const struct kl_gpu_export_handle *exported, void **ptr);

struct kl_gpu_mail *kl_gpu_mail_of(const struct kl_gpu_far *far, int from, int to);

/** The word of a message, and the next one: of the pair, or, captured, of its own (ncclInvalidUsage: there is none left). */
ncclResult_t kl_gpu_far_message_word(const struct kl_gpu_team *team, int from, int to, int *word);

/** May the next collective be captured, if it is? The words that captures have are counted for the life of the team. */
ncclResult_t kl_gpu_far_reserve(const struct kl_gpu_team *team);

/** It was submitted. */
void kl_gpu_far_next(struct kl_gpu_team *team);

/** The worker's stream says that this process has arrived at the collective, for all workers. Its context is current. */
ncclResult_t kl_gpu_far_say_arrived(const struct kl_gpu_team *team, const struct kl_gpu_worker *w);

/** The worker's stream waits for another process, for itself; and says to all of them that it is done. */
ncclResult_t kl_gpu_far_await_arrived(const struct kl_gpu_team *team, const struct kl_gpu_worker *w, int process);
ncclResult_t kl_gpu_far_say_done(const struct kl_gpu_team *team, const struct kl_gpu_worker *w);

/** The worker's stream waits for a worker of another process. */
ncclResult_t kl_gpu_far_await_done(const struct kl_gpu_team *team, const struct kl_gpu_worker *w, int worker);

/** The same with a word of a message, of which this is the `number`-th of the pair. */
ncclResult_t kl_gpu_far_say(const struct kl_gpu_team *team, const struct kl_gpu_worker *w, int word, uint64_t number);
ncclResult_t kl_gpu_far_await(const struct kl_gpu_team *team, const struct kl_gpu_worker *w, int word, uint64_t number);

/** The communicator has failed: kernels that use memory of other processes, and begin from now on, do nothing. Any thread. */
void kl_gpu_far_stop(struct kl_gpu_far *far);

/** Where kernels see that. */
uint64_t kl_gpu_far_over_at(const struct kl_gpu_far *far);

/** The same: graphs wait no longer. Any thread. */
void kl_gpu_far_release_graphs(struct kl_gpu_far *far);

/** Nothing waits any longer for words that streams of this process write. */
void kl_gpu_far_raise(const struct kl_gpu_team *team, int process);

/** Has the process ended? False where that cannot be seen. */
bool kl_gpu_far_is_over(const struct kl_gpu_far *far, int process);

#endif
