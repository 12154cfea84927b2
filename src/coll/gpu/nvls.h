/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nvls.h - a multicast object of a team's GPUs, with memory of each that is bound to it: kernels write to all copies at
 * once, and NVLink's switches reduce their contents (NVLS; nvls_job.h).
 *
 * Legal:   each GPU has one rank, and kernels of the GPUs meet (flags.h), whose stop word ends these, too.
 * Make:    with the communicator. A process makes the object, and the others import it by a descriptor. All processes add
 *          their GPUs before any binds memory, which would block; all bind before any kernel begins. If one of them fails
 *          or does not come, there is no NVLS on all ranks alike, and the communicator goes on without it.
 * Graphs:  have a set of their own, which the graphs of a communicator share: replay them one after the other.
 * Threads: under the team's lock, or before it is used.
 */
#ifndef KL_COLL_GPU_NVLS_H
#define KL_COLL_GPU_NVLS_H

#include "coll/gpu/nvls_job.h"
#include "coll/gpu/team.h"
#include "event/fdshare.h"

enum { KL_NVLS_WHY = 256 };

/** In memory that the processes share; zeroed at first. */
struct kl_gpu_nvls_board {
    _Atomic uint32_t outcome; /* is there NVLS? Decided once for all */
    _Atomic uint32_t bound;   /* GPUs */
    _Atomic uint32_t there;   /* the object can be imported */
    struct kl_fd_export_handle object;
    struct {
        _Atomic uint32_t step;
        int32_t blocks; /* of a kernel, at most */
    } gpu[KL_CUDA_DEVICES];
    char why[KL_NVLS_WHY]; /* there is none */
};

struct kl_gpu_nvls {
    bool works;
    char why[KL_NVLS_WHY]; /* not */
    unsigned blocks;       /* of a kernel, at most: alike in all processes */
    unsigned threads;
    size_t bytes; /* of a GPU's memory: two sets, the second one for graphs */
    unsigned long long object;
    uint64_t all; /* all copies, as this process's GPUs see them */
    struct {
        unsigned long long memory;
        uint64_t at; /* its copy */
        bool bound;
    } own[KL_CUDA_DEVICES];
};

/** Is it wanted (KOLO_CUDA_MOVER), in a team whose GPUs meet? The same answer in all processes. */
bool kl_gpu_nvls_is_wanted(const struct kl_gpu_team *team);

/**
 * Make it. `board`: NULL if there is one process. Blocking: until all processes have come here, KL_GPU_PEERS_MS for each GPU
 * at most. An error: no memory of the host.
 */
ncclResult_t kl_gpu_nvls_create(struct kl_gpu_team *team, struct kl_gpu_nvls_board *board,
                                const struct kl_device_config *config);

/** Unless the team has `failed`, this process's kernels have ended, and it waits, with a limit, for the others'. Memory that
 * kernels may still use stays until the process ends. */
void kl_gpu_nvls_free(struct kl_gpu_team *team, bool failed);

/** Why a collective cannot use it; NULL: it can. The same answer in all processes. */
const char *kl_gpu_nvls_refusal(const struct kl_gpu_team *team, const struct kl_task *task, bool captured);

/** The addresses of the operation's set, as the worker sees it. */
void kl_gpu_nvls_set(const struct kl_gpu_team *team, int worker, struct kl_nvls_job *job);

#endif
