/* SPDX-License-Identifier: Apache-2.0 */
/**
 * process_shared.h - the data shared by the ranks of a communicator in one process: made once, kept once.
 *
 * The rank map, the machine and its paths, the graphs, the records of all ranks: these are the same for every rank of a
 * process, and large. The first rank that joins makes the shared state, the last that leaves frees it. Exchanges with other
 * processes are done in stages by the leader (rank_map.h), and the others wait for it; so with P processes of T ranks
 * each, P of them communicate and search, not P * T.
 *
 * Errors:   a stage that fails fails with one code and one sentence for all. A wait also ends with the communicator's
 *           failure, and after a multiple of KOLO_BOOTSTRAP_TIMEOUT.
 * Threads:  each rank's own thread. The results of stages are const from then on, and read without a lock.
 */
#ifndef KL_COMM_SETUP_PROCESS_SHARED_H
#define KL_COMM_SETUP_PROCESS_SHARED_H

#include "base/error.h"
#include "comm/setup/subgroup.h"
#include "comm/setup/rank_map.h"
#include "graph/connect.h"
#include "graph/p2p.h"
#include "topo/topo.h"

#include <pthread.h>
#include <stdbool.h>

struct ncclComm;
struct kl_gpu_hosts;
struct kl_gpu_team;

/** Ranks of a host that reach each other without the network; usually all of them. It is searched once, by its first rank. */
struct kl_domain {
    int first;                           /* its lowest rank, which may live in another process */
    struct kl_topo *topo;                /* as `first` sees it */
    enum kl_offload no_collnet, no_nvls; /* why their graphs were not searched */
    struct kl_graphs graphs;
    struct kl_p2p_channels
        p2p; /* under the shared state's lock, for the number of channels they were counted with; 0: not
                                 * yet */
    int counted;
};

/** Done in this order. */
enum kl_process_shared_stage {
    KL_PROCESS_SHARED_MACHINE,
    KL_PROCESS_SHARED_GRAPHS,
    KL_PROCESS_SHARED_RECORDS,
    KL_PROCESS_SHARED_GPUS, /* on GPUs only */
    KL_PROCESS_SHARED_STAGES
};

struct kl_process_shared {
    uint64_t job, host; /* its key */
    struct kl_rank_map rank_map;
    int process;                 /* this process's number in the rank map */
    int local_ranks;             /* of this host, all processes */
    int fabric_ranks;            /* of the hosts of its NVLink domain, which form one machine */
    bool one_memory;             /* all ranks share memory: the same for all of them */
    unsigned ranks_per_cpu;      /* of this machine, rounded up */
    unsigned most_ranks_per_cpu; /* of any machine: all ranks have the same */

    struct kl_domain *domain; /* the domains of this process's ranks */
    int ndomains;
    int32_t *domain_of;            /* by rank; -1: none of these */
    struct kl_rank_record *record; /* by rank; each writes its own before all are there */
    int min_sm, max_sm;            /* of them */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under lock: */
    int members, joined, left;
    int arrived;                       /* ranks that have written their records */
    struct kl_gpu_team *team;          /* held by each rank that joined it; NULL: none has, or all have left */
    struct kl_gpu_hosts *gpu_hosts;    /* the same, where ranks are on several hosts */
    struct kl_arena *gpus_arena;       /* the team's common memory with other processes; NULL: none */
    struct kl_arena *gpus_relay_arena; /* and more of it, for GPUs without P2P; NULL: none */
    int32_t *gpus_leaders;             /* of the arena */
    int done;                          /* stages */
    ncclResult_t failed;
    char text[KL_ERROR_TEXT];
    uint64_t forgotten;             /* until when it waits for ranks that have not joined; 0: a rank is here */
    struct kl_process_shared *next; /* in the list of shared states that some have not joined */
};

/** Are there more ranks than CPUs on this machine, so that they take turns? */
static inline bool kl_process_shared_is_oversubscribed(const struct kl_process_shared *shared)
{
    return shared->ranks_per_cpu > 1;
}

/** Is any machine? All ranks answer alike, also the ranks of a host that is several machines, as containers are: for
 * decisions that must be the same. */
static inline bool kl_process_shared_is_any_oversubscribed(const struct kl_process_shared *shared)
{
    return shared->most_ranks_per_cpu > 1;
}

/**
 * The shared state of `rank`; the records `peers` are copied if the shared state is new. Every member that joined leaves by
 * kl_process_shared_leave.
 */
ncclResult_t kl_process_shared_join(const struct kl_peer *peers, int nranks, int rank,
                                    struct kl_process_shared **shared);
void kl_process_shared_leave(struct kl_process_shared *shared);

/**
 * The leaders of the processes that `with` marks, this one among them, written to `list` (room for all): for exchanges
 * among them. `with` NULL: all.
 */
struct kl_subgroup kl_process_shared_leaders(const struct ncclComm *comm, const bool *with, int32_t *list);

/** Does a rank live in this process? Any number is allowed. */
bool kl_process_shared_has_rank(const struct kl_process_shared *shared, int64_t rank);

/** The leader runs `run`; the others wait until it has, and fail as it fails. */
ncclResult_t kl_process_shared_stage(struct ncclComm *comm, enum kl_process_shared_stage stage,
                                     ncclResult_t (*run)(struct ncclComm *comm));

/** This rank's record is written. */
void kl_process_shared_record_ready(struct kl_process_shared *shared);

/** For the leader: wait until all members' records are. */
ncclResult_t kl_process_shared_await_records(struct ncclComm *comm);

#endif
