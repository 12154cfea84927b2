/* SPDX-License-Identifier: Apache-2.0 */
/** graph_ranks.h - for tests of graphs of collectives: ranks of one thread, with a stream, buffers and a graph each. */
#ifndef KOLO_GRAPH_RANKS_H
#define KOLO_GRAPH_RANKS_H

#include "tests/stream_check.h"

#include <string.h>

enum { MOST = 8, COUNT = 500 };

struct ranks {
    int n;
    ncclComm_t comm[MOST];
    koloStream_t stream[MOST];
    int32_t send[MOST][COUNT];
    int32_t recv[2][MOST][COUNT], got[2][MOST][COUNT]; /* two sets: of a graph, and of its update */
    koloGraphExec_t exec[MOST];
};

static inline void make_ranks(struct ranks *all, int n)
{
    memset(all, 0, sizeof *all);
    all->n = n;
    ok(ncclCommInitAll(all->comm, n, NULL));
    for (int r = 0; r < n; r++) {
        ok(koloSetDevice(r));
        all->stream[r] = make_stream(KOLO_STREAM_DEFAULT);
    }
    ok(koloSetDevice(0));
}

static inline void free_ranks(struct ranks *all)
{
    for (int r = 0; r < all->n; r++) {
        if (all->exec[r]) ok(koloGraphExecDestroy(all->exec[r]));
        ok(koloStreamDestroy(all->stream[r]));
        if (all->comm[r]) ok(ncclCommDestroy(all->comm[r]));
    }
}

static inline void fill(struct ranks *all, int seed)
{
    for (int r = 0; r < all->n; r++)
        for (int i = 0; i < COUNT; i++) all->send[r][i] = (seed + r) * (i + 1);
}

/** Of element i over all ranks. */
static inline int32_t sum(const struct ranks *all, int seed, int i)
{
    return (all->n * seed + all->n * (all->n - 1) / 2) * (i + 1);
}

static inline void all_reduce(struct ranks *all, int r, int set)
{
    ok(ncclAllReduce(all->send[r], all->recv[set][r], COUNT, ncclInt32, ncclSum, all->comm[r], all->stream[r]));
}

static inline void wait_for_all(struct ranks *all)
{
    for (int r = 0; r < all->n; r++) ok(koloStreamSynchronize(all->stream[r]));
}

#endif
