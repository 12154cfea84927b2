/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instructions FUNCTION BYTES OPERATIONS alone|group: operations of two ranks in one thread, for instructions_test.py
 * to count: after some that connect and warm up come WINDOWS calls of `window`, each of so many operations. In a group
 * they run when it ends, without one in the thread that waits; so that a slow run gives the background thread no
 * chance, the streams are inline in the first case.
 */
#include "include/kolo.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, WARM = 20, WINDOWS = 5 };

struct rank {
    int number;
    ncclComm_t comm;
    koloStream_t stream;
    float *send, *recv;
};

struct work {
    void (*call)(const struct rank *rank, size_t count);
    float sum; /* of the data that the ranks send, in this operation */
    size_t count;
    int operations; /* in a window */
    bool group;
};

static void must(ncclResult_t rc)
{
    if (rc == ncclSuccess) return;
    fprintf(stderr, "%s: %s\n", ncclGetErrorString(rc), ncclGetLastError(NULL));
    exit(1);
}

static void all_reduce(const struct rank *r, size_t count)
{
    must(ncclAllReduce(r->send, r->recv, count, ncclFloat, ncclSum, r->comm, r->stream));
}

static void broadcast(const struct rank *r, size_t count)
{
    must(ncclBroadcast(r->send, r->recv, count, ncclFloat, 0, r->comm, r->stream));
}

static void send_and_receive(const struct rank *r, size_t count)
{
    must(ncclSend(r->send, count, ncclFloat, !r->number, r->comm, r->stream));
    must(ncclRecv(r->recv, count, ncclFloat, !r->number, r->comm, r->stream));
}

static const struct {
    const char *name;
    struct work work;
} functions[] = {
    {"all_reduce", {.call = all_reduce, .sum = 2}},
    {"broadcast", {.call = broadcast, .sum = 1}},
    {"send_and_receive", {.call = send_and_receive, .sum = 1}},
};

static void operate(const struct rank *ranks, const struct work *w)
{
    if (w->group) must(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) w->call(&ranks[r], w->count);
    if (w->group) must(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) must(koloStreamSynchronize(ranks[r].stream));
}

__attribute__((noinline)) void window(const struct rank *ranks, const struct work *w, int operations);

void window(const struct rank *ranks, const struct work *w, int operations)
{
    for (int i = 0; i < operations; i++) operate(ranks, w);
}

static void create(struct rank *ranks, size_t count, bool group)
{
    unsigned flags = group ? KOLO_STREAM_INLINE : KOLO_STREAM_DEFAULT;
    ncclUniqueId id;

    must(ncclGetUniqueId(&id));
    must(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        ranks[r].number = r;
        must(koloSetDevice(r));
        must(ncclCommInitRank(&ranks[r].comm, RANKS, id, r));
        must(koloStreamCreate(&ranks[r].stream, flags));
        must(koloMalloc((void **)&ranks[r].send, count * sizeof(float)));
        must(koloMalloc((void **)&ranks[r].recv, count * sizeof(float)));
        for (size_t i = 0; i < count; i++) ranks[r].send[i] = (float)(i % 64);
    }
    must(ncclGroupEnd());
}

static bool understand(char **argv, struct work *w)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (!strcmp(argv[1], functions[i].name)) *w = functions[i].work;
    w->count = strtoull(argv[2], NULL, 10) / sizeof(float);
    w->operations = (int)strtol(argv[3], NULL, 10);
    w->group = !strcmp(argv[4], "group");
    return w->call;
}

int main(int argc, char **argv)
{
    struct rank ranks[RANKS];
    struct work w = {0};

    if (argc != 5 || !understand(argv, &w)) return 2;
    create(ranks, w.count, w.group);
    window(ranks, &w, WARM);
    for (int i = 0; i < WINDOWS; i++) window(ranks, &w, w.operations);
    for (size_t i = 0; i < w.count; i++)
        if (ranks[0].recv[i] != w.sum * (float)(i % 64)) return 1;
    for (int r = 0; r < RANKS; r++) must(ncclCommDestroy(ranks[r].comm));
    return 0;
}
