/* SPDX-License-Identifier: Apache-2.0 */
/**
 * flags.h - GPUs that meet in kernels, at flags in each other's memory, in place of events and of words for which streams
 * wait; and the memory of lines, in which small operations travel (flags_job.h).
 *
 * Legal:    all GPUs reach each other's memory (peers.h), and each has ranks of one process only: kernels of one stream
 *           run on it in the order of operations, of one block or of few, so that they are resident together.
 * Submit:   between the first and the last launch for an operation a process waits for nothing. So where it has several GPUs
 *           and maps memory of other processes on the way, only lines are used.
 * Graphs:   have flags and lines of their own, and epochs in the GPU's memory, so that they can be replayed, one after the
 *           other. They are for processes with one GPU each: a graph may run the branches for several GPUs in turn.
 * Failure:  kl_gpu_flags_release ends all kernels that wait.
 * Threads:  under the team's lock.
 */
#ifndef KL_COLL_GPU_FLAGS_H
#define KL_COLL_GPU_FLAGS_H

#include "coll/gpu/flags_job.h"
#include "coll/gpu/team.h"

struct kl_gpu_offers;
struct kl_gpu_stop;

struct kl_gpu_flags {
    bool one_each;  /* each process has one GPU */
    size_t limit;   /* bytes of a message in lines, at most */
    uint32_t units; /* of a slot of lines; 0: there are no lines, as a GPU has several ranks */
    size_t set;     /* bytes of a set of flags and lines; a GPU's memory has two, the second one for graphs */
    uint64_t own[KL_CUDA_DEVICES];                 /* memory of this process's GPUs */
    uint64_t at[KL_CUDA_DEVICES][KL_CUDA_DEVICES]; /* of each of them: the memory of all */
    struct kl_gpu_stop *stop;                      /* the word that ends waits, as the CPU sees it, and as GPUs do */
    uint64_t stop_at;
};

/** Is it wanted (KOLO_CUDA_SPIN), and legal? The same answer in all processes; P2P works. The log says why it is not. */
bool kl_gpu_flags_are_wanted(const struct kl_gpu_team *team, int nprocesses, const struct kl_device_config *config);

/** Be ready. `offers`: NULL if there is one process. Blocking: until all processes have come here (kl_gpu_offers_await). */
ncclResult_t kl_gpu_flags_create(struct kl_gpu_team *team, int nprocesses, struct kl_gpu_offers *offers,
                                 const struct kl_device_config *config);

/** Unless the team has `failed`, no kernel uses it any more. */
void kl_gpu_flags_free(struct kl_gpu_team *team, bool failed);

/** The communicator has failed: no kernel waits any longer. Any thread. */
void kl_gpu_flags_release(struct kl_gpu_flags *flags);

/** The worker's stream waits until the streams of all GPUs have come there. Its context is current. */
ncclResult_t kl_gpu_flags_meet(const struct kl_gpu_team *team, const struct kl_gpu_worker *w);

/** The GPU's memory for the operation, as the worker sees it: epochs of blocks, and lines. */
uint64_t kl_gpu_flags_epochs(const struct kl_gpu_team *team, const struct kl_gpu_worker *w);
uint64_t kl_gpu_flags_lines(const struct kl_gpu_team *team, const struct kl_gpu_worker *w, int worker);

/**
 * Do the GPUs meet at flags for a collective that does not go in lines? The same answer in all processes. Ranks that share
 * a GPU may capture several graphs, which the other processes do not know.
 */
static inline bool kl_gpu_meets(const struct kl_gpu_team *team, bool captured)
{
    const struct kl_gpu_flags *f = team->flags;

    return f && (captured ? f->one_each && f->units : f->one_each || !team->far);
}

/** Does a collective go in lines? The same answer in all processes. */
static inline bool kl_gpu_lines_fit(const struct kl_gpu_team *team, const struct kl_task *t, bool captured)
{
    return team->flags && team->flags->units && (team->flags->one_each || !captured) &&
           (team->mover == KL_CUDA_MOVER_AUTO || team->mover == KL_CUDA_MOVER_LINES) && !kl_func_is_message(t->func) &&
           t->count <= team->flags->limit / kl_type_bytes(t->type);
}

#endif
