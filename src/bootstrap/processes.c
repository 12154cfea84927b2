/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/processes.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* Any order that brings those of one process together. */
static int compare(const struct kl_card *a, const struct kl_card *b)
{
    if (a->pid != b->pid) return a->pid < b->pid ? -1 : 1;
    if (a->naddresses != b->naddresses) return a->naddresses < b->naddresses ? -1 : 1;
    int addresses = memcmp(a->address, b->address, (size_t)a->naddresses * sizeof a->address[0]);
    return addresses ? addresses : strncmp(a->host, b->host, sizeof a->host);
}

static int by_process(const void *a, const void *b)
{
    const struct kl_card *const *x = a, *const *y = b;
    int order = compare(*x, *y);

    return order ? order : ((*x)->rank > (*y)->rank) - ((*x)->rank < (*y)->rank);
}

/* of_rank: the lowest rank of the same process, for a start. */
static void find_speakers(const struct kl_card **sorted, int n, int32_t *speaker)
{
    for (int i = 0, begin = 0; i < n; i++) {
        if (compare(sorted[i], sorted[begin])) begin = i;
        speaker[sorted[i]->rank] = sorted[begin]->rank;
    }
}

/* A speaker comes before its other ranks: its number is there when they come. */
static void number(struct kl_processes *p, int nranks)
{
    for (int r = 0; r < nranks; r++) p->of_rank[r] = p->of_rank[r] == r ? p->n++ : p->of_rank[p->of_rank[r]];
}

static void list(struct kl_processes *p, int nranks)
{
    for (int r = 0; r < nranks; r++) p->first[p->of_rank[r] + 1]++;
    for (int i = 0; i < p->n; i++) p->first[i + 1] += p->first[i];
    for (int r = 0; r < nranks; r++) p->rank[p->first[p->of_rank[r]]++] = r; /* first[i] moves to where i + 1 begins */
    memmove(p->first + 1, p->first, (size_t)p->n * sizeof *p->first);
    p->first[0] = 0;
}

ncclResult_t kl_processes_find(const struct kl_card *cards, int nranks, struct kl_processes *p)
{
    size_t n = (size_t)nranks;
    const struct kl_card **sorted = malloc(n * sizeof(const struct kl_card *));

    *p = (struct kl_processes){.of_rank = malloc(n * sizeof *p->of_rank),
                               .first = calloc(n + 1, sizeof *p->first),
                               .rank = malloc(n * sizeof *p->rank)};
    if (!sorted || !p->of_rank || !p->first || !p->rank) {
        free(sorted);
        kl_processes_fini(p);
        return KL_NOMEM("which ranks share a process");
    }
    for (size_t r = 0; r < n; r++) sorted[r] = &cards[r];
    qsort(sorted, n, sizeof(const struct kl_card *), by_process);
    find_speakers(sorted, nranks, p->of_rank);
    free(sorted);
    number(p, nranks);
    list(p, nranks);
    return ncclSuccess;
}

void kl_processes_fini(struct kl_processes *p)
{
    free(p->of_rank);
    free(p->first);
    free(p->rank);
    *p = (struct kl_processes){0};
}

static int place_of(const struct kl_processes *p, int rank)
{
    int process = p->of_rank[rank], low = p->first[process], high = p->first[process + 1];

    while (low < high) {
        int middle = (low + high) / 2;
        if (p->rank[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low - p->first[process];
}

struct kl_placement kl_processes_placement(const struct kl_processes *p, int rank)
{
    int process = p->of_rank[rank];

    return (struct kl_placement){.process = process,
                                 .nprocesses = p->n,
                                 .place = place_of(p, rank),
                                 .nmembers = kl_processes_members(p, process)};
}
