/* SPDX-License-Identifier: Apache-2.0 */
/**
 * wires.h - the fifos of an algorithm between a team's ranks, in memory of their GPUs: each process makes those of its GPUs
 * and maps those of the others. All of them make the same ones in the same order.
 *
 * Errors:  ncclUnhandledCudaError, ncclSystemError: there is no memory. Fifos that were made before stay.
 * Threads: one at a time.
 */
#ifndef KL_COLL_GPU_WIRES_H
#define KL_COLL_GPU_WIRES_H

#include "coll/gpu/schedule_state.h"
#include "coll/pipeline/algorithm.h"

/** Of an algorithm, with slots or lines of a protocol, which have steps of their own. */
struct kl_gpu_wires {
    int algorithm, nchannels;
    uint32_t line_bytes;
    uint64_t *ends;                /* by channel, by rank of this process: a struct kl_gpu_ends */
    struct kl_gpu_growth *growing; /* channels for which other processes have not made their memory yet; NULL: none */
    struct kl_gpu_wires *next;
};

/** The fifos of channels 0 to nchannels - 1. `*wires` NULL: other processes have not made theirs, so call again. */
ncclResult_t kl_gpu_wires_get(struct kl_gpu_schedules *schedules, int algorithm, uint32_t line_bytes, int nchannels,
                              const struct kl_gpu_wires **wires);
void kl_gpu_wires_free(struct kl_gpu_wires *wires);

/** The neighbours of a rank, as its program and its fifos need them. `order`: room for nranks. */
ncclResult_t kl_gpu_wires_find(const struct kl_gpu_schedules *schedules, int algorithm, int rank, int channel,
                               int *order, struct kl_neighbours *neighbours);

/** Memory of a worker's GPU: `image`, from malloc, which it takes, then zeros. */
ncclResult_t kl_gpu_piece_alloc(struct kl_gpu_scheduled *worker, size_t bytes, uint64_t *at);
ncclResult_t kl_gpu_piece_fill(struct kl_gpu_scheduled *worker, void *image, size_t image_bytes);
void kl_gpu_pieces_free(struct kl_gpu_scheduled *worker);

/** Have the ranks behind the worker's fifos taken all, and said so? Then no other GPU writes to its memory. Its kernels have
 * ended, and its context is current. */
bool kl_gpu_pieces_are_quiet(const struct kl_gpu_scheduled *worker);

#endif
