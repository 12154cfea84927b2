/* SPDX-License-Identifier: Apache-2.0 */
/**
 * offers.h - memory of a team's GPUs for kernels of GPUs of other processes: each process offers memory of its GPUs (CUDA
 * IPC), in a board that all share, and maps the memory of the others.
 *
 * Turns:   from 1 on; all processes make the same exchanges in the same order. A process comes to a turn when it has mapped
 *          all that it needs of the one before, so two places for each GPU do.
 * Errors:  after one, kl_gpu_offers_break ends the waits of the others.
 * Threads: one of each process at a time.
 */
#ifndef KL_COLL_GPU_OFFERS_H
#define KL_COLL_GPU_OFFERS_H

#include "coll/gpu/far.h"

enum { KL_OFFERS_TURNS = 2 };

/** Facts of a GPU for other processes. */
struct kl_gpu_facts {
    int32_t processors;
    int32_t room;       /* kl_gpu_schedule_room */
    int32_t capability; /* 90: 9.0; of compute */
    bool nvlink;        /* to all other GPUs of the team */
    bool blocks;        /* launches of its process do: CUDA_LAUNCH_BLOCKING */
};

/** In memory that the processes share; zeroed at first. */
struct kl_gpu_offers {
    struct {
        _Atomic uint32_t turn;
        struct kl_gpu_facts facts;
        struct kl_gpu_export_handle memory;
    } gpu[KL_CUDA_DEVICES][KL_OFFERS_TURNS];
    _Atomic uint32_t broken; /* a process has failed */
};

/** Memory of an own worker's GPU, and facts; NULL: none. `at` 0: there is no memory. Its context is current. */
ncclResult_t kl_gpu_offer(struct kl_gpu_offers *offers, uint32_t turn, int worker,
                          const struct kl_cuda_context *context, uint64_t at, const struct kl_gpu_facts *facts);

/** Have all workers come to the turn? ncclRemoteError: a process has failed. */
ncclResult_t kl_gpu_offers_test(struct kl_gpu_offers *offers, uint32_t turn, int nworkers, bool *there);

/** Has a worker's process not come to the turn? */
bool kl_gpu_offers_lack(const struct kl_gpu_offers *offers, uint32_t turn, int worker);

/** Wait for that, KL_GPU_PEERS_MS for each worker at most. */
ncclResult_t kl_gpu_offers_await(struct kl_gpu_offers *offers, uint32_t turn, int nworkers);

/** The worker's facts, and its memory for a context, which is current: until cuIpcCloseMemHandle. */
const struct kl_gpu_facts *kl_gpu_offers_facts(const struct kl_gpu_offers *offers, uint32_t turn, int worker);
ncclResult_t kl_gpu_offers_map(const struct kl_gpu_offers *offers, uint32_t turn, int worker,
                               const struct kl_cuda_context *context, uint64_t *at);

void kl_gpu_offers_break(struct kl_gpu_offers *offers);

#endif
