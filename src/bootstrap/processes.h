/* SPDX-License-Identifier: Apache-2.0 */
/**
 * processes.h - which ranks live in one process: those whose cards are the same but for the rank. The lowest speaks for it. Pure.
 */
#ifndef KL_BOOTSTRAP_PROCESSES_H
#define KL_BOOTSTRAP_PROCESSES_H

#include "bootstrap/record.h"

/** Processes are numbered by their lowest ranks, ascending. */
struct kl_processes {
    int n;
    int32_t *of_rank;
    int32_t *first; /* by process, one more at the end: where its ranks begin in `rank` */
    int32_t *rank;  /* all ranks, by process and ascending */
};

/** `of_rank` holds the lowest rank of each rank's process, and becomes that process's number. Returns how many there are. */
int kl_processes_number(int32_t *of_rank, int nranks);

/** `rank` gets all ranks by process and ascending, `first` (room for one more than processes) where those of each begin. */
void kl_processes_list(const int32_t *of_rank, int nranks, int nprocesses, int32_t *first, int32_t *rank);

/** From the cards of all ranks. */
ncclResult_t kl_processes_find(const struct kl_card *cards, int nranks, struct kl_processes *processes);

/** Harmless on a zeroed one. */
void kl_processes_fini(struct kl_processes *processes);

static inline int kl_processes_speaker(const struct kl_processes *p, int process)
{
    return p->rank[p->first[process]];
}

static inline int kl_processes_members(const struct kl_processes *p, int process)
{
    return p->first[process + 1] - p->first[process];
}

/** Where a rank lives, and its place among those of its process. */
struct kl_placement kl_processes_placement(const struct kl_processes *p, int rank);

#endif
