/* SPDX-License-Identifier: Apache-2.0 */
/**
 * mover.h - ways to move the data of an operation on a GPU; a new one is a file and a line in mover.c.
 *
 * A mover puts a worker's share on a stream, and waits for nothing: all buffers may be used when the stream comes to it.
 *
 * Threads: under the team's lock.
 */
#ifndef KL_COLL_GPU_MOVER_H
#define KL_COLL_GPU_MOVER_H

#include "coll/gpu/team.h"

/** A worker's share of an operation. */
struct kl_gpu_share {
    struct kl_gpu_team *team;
    struct kl_gpu_op *const *op; /* by rank; of a message: the send and the receive */
    const struct kl_task *task;  /* the first of them, for the arguments that all have alike */
    int ranks;                   /* 2 for a message */
    size_t bytes;                /* of an element */
    const struct kl_gpu_worker *worker;
    kl_cu_stream stream;
    int number, of; /* of the workers that take part; a slice is this one's */
};

struct kl_gpu_mover {
    const char *name;
    bool (*serves)(const struct kl_gpu_share *share); /* its worker and stream are not set yet */
    ncclResult_t (*move)(const struct kl_gpu_share *share);
    const char *way; /* for the log, of a mover that meets: where its data go */
    bool meets; /* its kernels wait for those of other GPUs, and use the buffers of own ranks only: each GPU runs one */
    /** In place of `move`, where kernels have to be launched together: all shares of this process, once their streams wait
     * for all that the operation needs. The share's worker is not set. */
    ncclResult_t (*move_all)(const struct kl_gpu_share *share);
    /** Before: get memory ready. Not `*there`: other processes have not come to that, so call again. NULL: needs none. */
    ncclResult_t (*prepare)(const struct kl_gpu_share *share, bool *there);
};

extern const struct kl_gpu_mover kl_gpu_mover_direct;   /* kernels that read and write the buffers of all ranks */
extern const struct kl_gpu_mover kl_gpu_mover_copy;     /* copy engines */
extern const struct kl_gpu_mover kl_gpu_mover_lines;    /* small collectives between GPUs that meet (flags.h) */
extern const struct kl_gpu_mover kl_gpu_mover_schedule; /* kernels that follow the schedules of host devices */
extern const struct kl_gpu_mover kl_gpu_mover_nvls;     /* switches reduce, and write to all GPUs (nvls.h) */

/** Where schedules, or NVLS, are wanted: say why the operation has none. */
void kl_gpu_schedule_log_refusal(const struct kl_gpu_share *share);
void kl_gpu_nvls_log_refusal(const struct kl_gpu_share *share);

/** The team's job, cleared, for kernels of the share; the kernel with that job, in a grid of parts and destinations. */
struct kl_gpu_job *kl_gpu_job_clear(const struct kl_gpu_share *share);
ncclResult_t kl_gpu_job_launch(const struct kl_gpu_share *share, enum kl_kernel kernel, size_t elem_bytes,
                               unsigned parts, unsigned destinations);

/** The factor of a rank's contribution, as kernels read it: bits, or the address of an element that is `*there`. */
ncclResult_t kl_gpu_factor_of(const struct kl_gpu_share *share, int rank, uint64_t *factor, bool *there);
/** The factors of all ranks' contributions to a reduction. */
ncclResult_t kl_gpu_job_set_factors(const struct kl_gpu_share *share, struct kl_gpu_job *job);

/** The wanted mover, if it serves the operation; else the direct one. */
const struct kl_gpu_mover *kl_gpu_mover_of(enum kl_cuda_mover wanted, const struct kl_gpu_share *share);

/** Does the share's worker belong to `rank`? */
static inline bool kl_gpu_is_own(const struct kl_gpu_share *s, int rank)
{
    return s->worker == &s->team->worker[s->team->worker_of[rank]];
}

#endif
