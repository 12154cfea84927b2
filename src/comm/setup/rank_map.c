/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/setup/rank_map.h"

#include "base/error.h"
#include "bootstrap/processes.h"

#include <stdlib.h>
#include <string.h>

/* ---- orders of ranks ---- */

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_host(const void *x, const void *y, void *peers)
{
    const struct kl_peer *peer = peers;
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    int order = compare(peer[a].host, peer[b].host);

    return order ? order : a - b;
}

static int by_process(const void *x, const void *y, void *peers)
{
    const struct kl_peer *peer = peers;
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    int order = compare(peer[a].host, peer[b].host);

    if (!order) order = compare(peer[a].process, peer[b].process);
    return order ? order : a - b;
}

static int by_device(const void *x, const void *y, void *peers)
{
    const struct kl_peer *peer = peers;
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    int order = compare(peer[a].host, peer[b].host);

    if (!order) order = peer[a].device - peer[b].device;
    return order ? order : a - b;
}

static int by_cpus(const void *x, const void *y, void *peers)
{
    const struct kl_peer *peer = peers;
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    int order = compare(peer[a].machine, peer[b].machine);

    if (!order) order = memcmp(peer[a].cpus, peer[b].cpus, sizeof peer[a].cpus);
    return order ? order : a - b;
}

static void sort(const struct kl_rank_map *r, int32_t *order, int (*by)(const void *, const void *, void *))
{
    for (int i = 0; i < r->nranks; i++) order[i] = i;
    qsort_r(order, (size_t)r->nranks, sizeof *order, by, r->peer);
}

static bool same_host(const struct kl_rank_map *r, int a, int b)
{
    return r->peer[a].host == r->peer[b].host;
}

/* ---- devices ---- */

/* The ranks of one host, ascending. Of n ranks none gets an ordinal of n or more, so only n are checked. */
static void give_on_host(const struct kl_rank_map *r, const int32_t *rank, int n, bool *taken)
{
    int next = 0;

    memset(taken, 0, (size_t)n * sizeof *taken);
    for (int i = 0; i < n; i++) {
        int device = r->peer[rank[i]].device;
        if (device >= 0 && device < n) taken[device] = true;
    }
    for (int i = 0; i < n; i++) {
        if (r->peer[rank[i]].device >= 0) continue;
        while (taken[next]) next++;
        r->peer[rank[i]].device = next++;
    }
}

static void give_devices(const struct kl_rank_map *r, int32_t *order, bool *taken)
{
    sort(r, order, by_host);
    for (int i = 0, n; i < r->nranks; i += n) {
        for (n = 1; i + n < r->nranks && same_host(r, order[i], order[i + n]);) n++;
        give_on_host(r, order + i, n, taken);
    }
}

static void number_replicas(const struct kl_rank_map *r, int32_t *order)
{
    sort(r, order, by_device);
    for (int i = 0; i < r->nranks; i++) {
        struct kl_peer *p = &r->peer[order[i]], *before = i ? &r->peer[order[i - 1]] : NULL;
        bool shared = before && before->host == p->host && before->device == p->device;

        p->replica = shared ? before->replica + 1 : 0;
    }
}

/* ---- processes ---- */

/* Set every rank's leader, number the leaders, and list their ranks. */
static void number_processes(struct kl_rank_map *r, int32_t *order)
{
    int leader = 0;

    sort(r, order, by_process);
    for (int i = 0; i < r->nranks; i++) {
        const struct kl_peer *p = &r->peer[order[i]], *before = i ? &r->peer[order[i - 1]] : NULL;

        if (!before || before->host != p->host || before->process != p->process) leader = order[i];
        r->process[order[i]] = leader;
    }
    r->nprocesses = kl_processes_number(r->process, r->nranks);
    kl_processes_list(r->process, r->nranks, r->nprocesses, r->first, r->rank);
}

/* ---- life ---- */

ncclResult_t kl_rank_map_init(struct kl_rank_map *rank_map, struct kl_peer *peer, int nranks)
{
    size_t n = (size_t)nranks;
    int32_t *block = calloc(3 * n + 1, sizeof *block), *scratch = malloc(n * sizeof *scratch);
    bool *taken = malloc(n * sizeof *taken);
    struct kl_rank_map r = {
        .nranks = nranks, .peer = peer, .process = block, .rank = block + n, .first = block + 2 * n};
    bool room = block && scratch && taken;

    if (room) {
        give_devices(&r, scratch, taken);
        number_replicas(&r, scratch);
        number_processes(&r, scratch);
        *rank_map = r;
    }
    free(scratch);
    free(taken);
    if (room) return ncclSuccess;
    free(block);
    free(peer);
    return KL_NOMEM("the ranks of a communicator");
}

void kl_rank_map_fini(struct kl_rank_map *r)
{
    free(r->peer);
    free(r->process); /* one block */
    *r = (struct kl_rank_map){0};
}

/* ---- questions ---- */

int kl_rank_map_local_ranks(const struct kl_rank_map *r, int rank)
{
    int n = 0;

    for (int i = 0; i < r->nranks; i++) n += same_host(r, i, rank);
    return n;
}

int kl_rank_map_fabric_ranks(const struct kl_rank_map *r, int rank)
{
    int n = 0;

    for (int i = 0; i < r->nranks; i++) n += r->peer[i].fabric == r->peer[rank].fabric;
    return n;
}

unsigned kl_rank_map_ranks_per_cpu(const struct kl_rank_map *r, int rank)
{
    uint64_t words[KL_PEER_CPU_WORDS] = {0};
    unsigned ranks = 0, cpus = 0;

    for (int i = 0; i < r->nranks; i++) {
        if (r->peer[i].machine != r->peer[rank].machine) continue;
        ranks++;
        for (int w = 0; w < KL_PEER_CPU_WORDS; w++) words[w] |= r->peer[i].cpus[w];
    }
    for (int w = 0; w < KL_PEER_CPU_WORDS; w++) cpus += (unsigned)__builtin_popcountll(words[w]);
    return cpus ? (ranks + cpus - 1) / cpus : ranks;
}

unsigned kl_rank_map_most_ranks_per_cpu(const struct kl_rank_map *r)
{
    unsigned most = 0;

    for (int i = 0; i < r->nranks; i++) {
        if (i && r->peer[i].machine == r->peer[i - 1].machine) continue;
        const unsigned ranks = kl_rank_map_ranks_per_cpu(r, i);
        if (ranks > most) most = ranks;
    }
    return most;
}

ncclResult_t kl_rank_map_cores(const struct kl_rank_map *r, int32_t *core)
{
    int32_t *order = malloc((size_t)r->nranks * sizeof *order);

    if (!order) return KL_NOMEM("the ranks of each core");
    sort(r, order, by_cpus);
    for (int i = 0; i < r->nranks; i++) {
        const struct kl_peer *p = &r->peer[order[i]], *before = i ? &r->peer[order[i - 1]] : NULL;
        const bool shared = before && before->machine == p->machine && !memcmp(before->cpus, p->cpus, sizeof p->cpus);

        core[order[i]] = shared ? core[order[i - 1]] : order[i];
    }
    free(order);
    return ncclSuccess;
}
