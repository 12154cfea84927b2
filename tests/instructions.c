/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instructions BYTES OPERATIONS alone|group: all-reduces of two ranks in one thread, for instructions_test.py to count: after some that
 * connect and warm up come WINDOWS calls of `window`, each of so many operations. In a group they are run when it ends, without one by
 * whoever waits; so that a slow run is no chance for the background thread, the streams are inline in the first case.
 */
#include "include/kolo.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, WARM = 20, WINDOWS = 5 };

struct rank {
    ncclComm_t comm;
    koloStream_t stream;
    bool group;
    float *send, *recv;
};

static void must(ncclResult_t rc)
{
    if (rc == ncclSuccess) return;
    fprintf(stderr, "%s: %s\n", ncclGetErrorString(rc), ncclGetLastError(NULL));
    exit(1);
}

static void all_reduce(const struct rank *ranks, size_t count)
{
    if (ranks->group) must(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        must(ncclAllReduce(ranks[r].send, ranks[r].recv, count, ncclFloat, ncclSum, ranks[r].comm, ranks[r].stream));
    if (ranks->group) must(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) must(koloStreamSynchronize(ranks[r].stream));
}

__attribute__((noinline)) void window(const struct rank *ranks, size_t count, int operations);

void window(const struct rank *ranks, size_t count, int operations)
{
    for (int i = 0; i < operations; i++) all_reduce(ranks, count);
}

static void create(struct rank *ranks, size_t count, bool group)
{
    unsigned flags = group ? KOLO_STREAM_INLINE : KOLO_STREAM_DEFAULT;
    ncclUniqueId id;

    must(ncclGetUniqueId(&id));
    must(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        ranks[r].group = group;
        must(koloSetDevice(r));
        must(ncclCommInitRank(&ranks[r].comm, RANKS, id, r));
        must(koloStreamCreate(&ranks[r].stream, flags));
        must(koloMalloc((void **)&ranks[r].send, count * sizeof(float)));
        must(koloMalloc((void **)&ranks[r].recv, count * sizeof(float)));
        for (size_t i = 0; i < count; i++) ranks[r].send[i] = (float)(i % 64);
    }
    must(ncclGroupEnd());
}

int main(int argc, char **argv)
{
    struct rank ranks[RANKS];

    if (argc != 4) return 2;
    size_t count = strtoull(argv[1], NULL, 10) / sizeof(float);
    create(ranks, count, !strcmp(argv[3], "group"));
    window(ranks, count, WARM);
    for (int i = 0; i < WINDOWS; i++) window(ranks, count, (int)strtol(argv[2], NULL, 10));
    for (size_t i = 0; i < count; i++)
        if (ranks[0].recv[i] != 2 * (float)(i % 64)) return 1;
    for (int r = 0; r < RANKS; r++) must(ncclCommDestroy(ranks[r].comm));
    return 0;
}
