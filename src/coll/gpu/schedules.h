/* SPDX-License-Identifier: Apache-2.0 */
/**
 * schedules.h - schedules for the kernels that follow them, in memory of a team's GPUs: programs of rows, and fifos between
 * ranks. Both are made when an operation first needs them, and kept as long as the team.
 *
 * Failure: the stop word ends all kernels. After one, memory stays until they have ended.
 * Threads: kl_gpu_schedules_stop: any; the others one at a time.
 */
#ifndef KL_COLL_GPU_SCHEDULES_H
#define KL_COLL_GPU_SCHEDULES_H

#include "coll/gpu/rows.h"
#include "coll/gpu/team.h"
#include "transport/ll.h"

enum { KL_SLOT_BYTES = 64 << 10, KL_SLOTS = 4 };

struct kl_gpu_wires; /* wires.h */
struct kl_gpu_piece;

/** The programs of an operation on some channels. */
struct kl_gpu_programs {
    int algorithm, func, root, nchannels; /* root: -1 without */
    bool lines;
    uint64_t at[KL_CUDA_DEVICES]; /* by worker: struct kl_gpu_program by channel, then by own rank */
    struct kl_gpu_programs *next;
};

/** A worker's part. */
struct kl_gpu_scheduled {
    const struct kl_cuda_context *context;
    int nranks;               /* on it */
    uint64_t stop;            /* the stop word as the GPU sees it */
    kl_cu_stream stream;      /* on which memory is filled */
    kl_cu_event made;         /* it is filled */
    kl_cu_event end;          /* of the last kernel */
    bool used;                /* there was one */
    struct kl_gpu_piece *own; /* its memory */
};

struct kl_gpu_schedules {
    int nranks, nworkers;
    const struct kl_connect *graph;
    size_t chunk_bytes;
    unsigned threads;            /* of a block, at most; 0: as many as fit */
    bool launches_block;         /* until their kernel has ended: no other one can be launched for which it waits */
    int32_t *worker_of, *number; /* by rank: its worker, and its number among that one's */
    struct kl_gpu_wires *wires;
    struct kl_gpu_programs *programs;
    uint64_t made;                                    /* number of times that memory was filled */
    uint64_t seen[KL_CUDA_DEVICES];                   /* the same, when the worker's stream waited for it last */
    int16_t fit[KL_CUDA_DEVICES][KL_KERNEL_COUNT][4]; /* kl_gpu_schedules_fit: blocks for each processor, and 1 */
    _Atomic uint32_t *stop;
    struct kl_gpu_scheduled worker[KL_CUDA_DEVICES];
    struct kl_gpu_schedules *next; /* among those that wait for their kernels */
};

/** NULL, with success, where the team's mover is another one, or schedules cannot be used. */
ncclResult_t kl_gpu_schedules_create(const struct kl_gpu_team *team, const struct kl_gpu_setup *setup,
                                     struct kl_gpu_schedules **schedules);

/** Kernels end. */
void kl_gpu_schedules_stop(struct kl_gpu_schedules *schedules);

/** NULL is fine. `failed`: kernels may still run. */
void kl_gpu_schedules_free(struct kl_gpu_schedules *schedules, bool failed);

/** Bytes of a slot; lines carry as much as on host devices, in twice the room. */
static inline uint32_t kl_gpu_slot_bytes(bool lines)
{
    return lines ? (uint32_t)(2 * KL_LL_BYTES + KL_LINE - 1) / KL_LINE * KL_LINE : KL_SLOT_BYTES;
}

/** The programs of a task with a plan that has rows. */
ncclResult_t kl_gpu_schedules_get(struct kl_gpu_schedules *schedules, const struct kl_task *task,
                                  const struct kl_gpu_programs **programs);

/** The worker's stream waits until all workers' memory is filled. Its context is current. */
ncclResult_t kl_gpu_schedules_await_memory(struct kl_gpu_schedules *schedules, int worker, kl_cu_stream stream);

/** Kernels of schedules on a GPU come one after the other, of all teams alike, so that those that wait for each other meet. */
void kl_gpu_schedules_lock(void);
void kl_gpu_schedules_unlock(void);

/** Under that lock: before and after a worker's kernel. Its context is current. */
ncclResult_t kl_gpu_schedules_begin(struct kl_gpu_schedules *schedules, int worker, kl_cu_stream stream);
ncclResult_t kl_gpu_schedules_end(struct kl_gpu_schedules *schedules, int worker, kl_cu_stream stream);

#endif
