/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/processes.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* An order that groups ranks of one process. */
static int compare(const struct kl_address_record *a, const struct kl_address_record *b)
{
    if (a->pid != b->pid) return a->pid < b->pid ? -1 : 1;
    if (a->naddresses != b->naddresses) return a->naddresses < b->naddresses ? -1 : 1;
    int addresses = memcmp(a->address, b->address, (size_t)a->naddresses * sizeof a->address[0]);
    return addresses ? addresses : strncmp(a->host, b->host, sizeof a->host);
}

static int by_process(const void *a, const void *b)
{
    const struct kl_address_record *const *x = a, *const *y = b;
    int order = compare(*x, *y);

    return order ? order : ((*x)->rank > (*y)->rank) - ((*x)->rank < (*y)->rank);
}

/* of_rank: at first the lowest rank of the same process. */
static void find_leaders(const struct kl_address_record **sorted, int n, int32_t *leader)
{
    for (int i = 0, begin = 0; i < n; i++) {
        if (compare(sorted[i], sorted[begin])) begin = i;
        leader[sorted[i]->rank] = sorted[begin]->rank;
    }
}

/* A leader comes before its other ranks: its number is known when they are reached. */
int kl_processes_number(int32_t *of_rank, int nranks)
{
    int n = 0;

    for (int r = 0; r < nranks; r++) of_rank[r] = of_rank[r] == r ? n++ : of_rank[of_rank[r]];
    return n;
}

void kl_processes_list(const int32_t *of_rank, int nranks, int n, int32_t *first, int32_t *rank)
{
    memset(first, 0, ((size_t)n + 1) * sizeof *first);
    for (int r = 0; r < nranks; r++) first[of_rank[r] + 1]++;
    for (int i = 0; i < n; i++) first[i + 1] += first[i];
    for (int r = 0; r < nranks; r++) rank[first[of_rank[r]]++] = r; /* first[i] moves to where i + 1 begins */
    memmove(first + 1, first, (size_t)n * sizeof *first);
    first[0] = 0;
}

ncclResult_t kl_processes_find(const struct kl_address_record *address_records, int nranks, struct kl_processes *p)
{
    size_t n = (size_t)nranks;
    const struct kl_address_record **sorted = malloc(n * sizeof(const struct kl_address_record *));

    *p = (struct kl_processes){.of_rank = malloc(n * sizeof *p->of_rank),
                               .first = malloc((n + 1) * sizeof *p->first),
                               .rank = malloc(n * sizeof *p->rank)};
    if (!sorted || !p->of_rank || !p->first || !p->rank) {
        free(sorted);
        kl_processes_fini(p);
        return KL_NOMEM("which ranks share a process");
    }
    for (size_t r = 0; r < n; r++) sorted[r] = &address_records[r];
    qsort(sorted, n, sizeof(const struct kl_address_record *), by_process);
    find_leaders(sorted, nranks, p->of_rank);
    free(sorted);
    p->n = kl_processes_number(p->of_rank, nranks);
    kl_processes_list(p->of_rank, nranks, p->n, p->first, p->rank);
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
