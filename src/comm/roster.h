/* SPDX-License-Identifier: Apache-2.0 */
/**
 * roster.h - all ranks of a communicator by host and process, and derived facts.
 *
 * One of the ranks of a process, the *leader* (its lowest), exchanges their common data with other processes. A process
 * that plays several hosts (NCCL_HOSTID) counts as one process for each.
 *
 * Threads: const once made.
 */
#ifndef KL_COMM_ROSTER_H
#define KL_COMM_ROSTER_H

#include "base/cpuset.h"
#include "include/nccl.h"
#include "transport/peer.h"

struct kl_roster {
    int nranks;
    struct kl_peer *peer; /* by rank */
    int nprocesses;       /* numbered by their leaders' ranks, ascending */
    int32_t *process;     /* by rank */
    int32_t *first;       /* by process, one more at the end: where its ranks begin in `rank` */
    int32_t *rank;        /* all ranks, by process and ascending */
};

/**
 * From the records of all ranks, which it takes over, also when it fails. Ranks that chose no device get, in rank
 * order, the lowest unused one of their host; ranks on the same device are distinguished by `replica`. Every rank
 * computes the same.
 */
ncclResult_t kl_roster_init(struct kl_roster *roster, struct kl_peer *peer, int nranks);

/** Free it; harmless on a zeroed one. */
void kl_roster_fini(struct kl_roster *roster);

static inline int kl_roster_speaker(const struct kl_roster *r, int process)
{
    return r->rank[r->first[process]];
}

static inline int kl_roster_members(const struct kl_roster *r, int process)
{
    return r->first[process + 1] - r->first[process];
}

/** Number of ranks on the host of a rank. */
int kl_roster_local_ranks(const struct kl_roster *roster, int rank);

/** Number of ranks on the hosts of its NVLink domain. */
int kl_roster_fabric_ranks(const struct kl_roster *roster, int rank);

/** Number of ranks per CPU on a rank's machine, over all hosts that it emulates: rounded up; 1: each may have one of
 * its own. */
unsigned kl_roster_ranks_per_cpu(const struct kl_roster *roster, int rank);

/** The same for the machine with the most. */
unsigned kl_roster_most_ranks_per_cpu(const struct kl_roster *roster);

/** By rank: ranks on one machine that may run on the same CPUs have the same number, the lowest of these ranks. */
ncclResult_t kl_roster_cores(const struct kl_roster *roster, int32_t *core);

#endif
