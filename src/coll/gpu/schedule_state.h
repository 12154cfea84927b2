/* SPDX-License-Identifier: Apache-2.0 */
/** schedule_state.h - the state of a team's schedules: for schedules.c and wires.c, and the mover that reads it. */
#ifndef KL_COLL_GPU_SCHEDULE_STATE_H
#define KL_COLL_GPU_SCHEDULE_STATE_H

#include "coll/gpu/rows.h"
#include "coll/gpu/team.h"
#include "transport/ll.h"

enum { KL_SLOT_BYTES = 64 << 10, KL_SLOTS = 4 };

struct kl_gpu_offers;
struct kl_gpu_wires; /* wires.h */
struct kl_gpu_piece;

/** The programs of an operation on some channels. */
struct kl_gpu_programs {
    int algorithm, func, root, nchannels; /* root: -1 without */
    uint32_t line_bytes;                  /* kl_gpu_line_bytes */
    uint64_t at[KL_CUDA_DEVICES]; /* by worker of this process: struct kl_gpu_program by channel, then by own rank */
    struct kl_gpu_programs *next;
};

/** A worker's part. */
struct kl_gpu_scheduled {
    const struct kl_cuda_context *context; /* NULL: it is another process's */
    int nranks;                            /* on it */
    int room;                              /* blocks of the fewest threads that are resident at once */
    uint64_t stop;                         /* the stop word as the GPU sees it */
    kl_cu_stream stream;                   /* on which memory is filled */
    kl_cu_event made;                      /* it is filled */
    kl_cu_event end;                       /* of the last kernel */
    bool used;                             /* there was one */
    struct kl_gpu_piece *own;              /* its memory, and memory of other GPUs for its kernels */
};

struct kl_gpu_schedules {
    int nranks, nworkers;
    const struct kl_cuda_driver *driver;
    const struct kl_connect *graph;
    size_t chunk_bytes;
    bool ll128;                   /* is safe between all GPUs */
    unsigned threads;             /* of a block, at most; 0: as many as fit */
    struct kl_gpu_offers *offers; /* how processes exchange memory of their GPUs; NULL: there is one */
    uint32_t turn;                /* of exchanges so far */
    bool launches_block; /* until their kernel has ended: a process cannot launch another one for which it waits */
    int32_t *worker_of, *number; /* by rank: its worker, and its number among that one's */
    struct kl_gpu_wires *wires;
    struct kl_gpu_programs *programs;
    uint64_t made;                  /* number of times that memory was filled */
    uint64_t seen[KL_CUDA_DEVICES]; /* the same, when the worker's stream waited for it last */
    /** kl_gpu_schedule_threads: blocks, and 1, by worker, kernel and threads */
    int32_t fit[KL_CUDA_DEVICES][KL_KERNEL_SCHEDULES_END - KL_KERNEL_schedule_u8_sum][4];
    _Atomic uint32_t *stop;
    struct kl_gpu_scheduled worker[KL_CUDA_DEVICES];
    struct kl_gpu_schedules *next; /* among those that wait for their kernels */
};

/** Bytes of a protocol's lines; 0: it has slots. */
static inline uint32_t kl_gpu_line_bytes(enum kl_proto proto)
{
    return proto == KL_PROTO_SIMPLE ? 0 : proto == KL_PROTO_LL ? KL_LINE_LL : KL_LINE_LL128;
}

/** Bytes of a slot; lines carry as much as on host devices. */
static inline uint32_t kl_gpu_slot_bytes(uint32_t line_bytes)
{
    const uint32_t data = line_bytes == KL_LINE_LL ? KL_LINE_LL_DATA : KL_LINE_LL128_DATA;
    const uint32_t lines = ((uint32_t)KL_LL_BYTES + data - 1) / data;

    return line_bytes ? (lines * line_bytes + KL_LINE - 1) / KL_LINE * KL_LINE : KL_SLOT_BYTES;
}

#endif
