/* SPDX-License-Identifier: Apache-2.0 */
/**
 * processes.h - group ranks by process: those whose address records are equal but for the rank. The lowest is the
 * leader. Pure.
 */
#ifndef KL_BOOTSTRAP_PROCESSES_H
#define KL_BOOTSTRAP_PROCESSES_H

#include "bootstrap/record.h"

/** Processes are numbered by their lowest ranks, ascending. */
struct kl_processes {
    int n;
    int32_t *of_rank;
    int32_t *first; /* by process, with one more at the end: index of its first rank in `rank` */
    int32_t *rank;  /* all ranks, grouped by process, ascending */
};

/**
 * On entry `of_rank` holds the lowest rank of each rank's process, on return that process's number. Returns the number
 * of processes.
 */
int kl_processes_number(int32_t *of_rank, int nranks);

/**
 * `rank` gets all ranks, grouped by process and ascending; `first` (one element more than processes) the index of each
 * process's first rank.
 */
void kl_processes_list(const int32_t *of_rank, int nranks, int nprocesses, int32_t *first, int32_t *rank);

/** From the address records of all ranks. */
ncclResult_t kl_processes_find(const struct kl_address_record *address_records, int nranks,
                               struct kl_processes *processes);

/** Harmless on a zeroed one. */
void kl_processes_fini(struct kl_processes *processes);

static inline int kl_processes_leader(const struct kl_processes *p, int process)
{
    return p->rank[p->first[process]];
}

static inline int kl_processes_members(const struct kl_processes *p, int process)
{
    return p->first[process + 1] - p->first[process];
}

/** The process of a rank, and its place among the ranks of that process. */
struct kl_placement kl_processes_placement(const struct kl_processes *p, int rank);

#endif
