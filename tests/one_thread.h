/* SPDX-License-Identifier: Apache-2.0 */
/** one_thread.h - for tests with all ranks in one thread, each with a communicator, a stream and an element of data.
 * Include it after `enum { RANKS = n }`. */
#ifndef KOLO_ONE_THREAD_H
#define KOLO_ONE_THREAD_H

#include "include/kolo.h"
#include "tests/kolo_test.h"

static struct {
    ncclComm_t comm;
    koloStream_t stream;
    float send, recv;
} ranks[RANKS];

static inline void must(ncclResult_t rc)
{
    if (rc) fail_msg("%s: %s", ncclGetErrorString(rc), ncclGetLastError(NULL));
}

static inline void create_ranks(void)
{
    ncclUniqueId id;

    must(ncclGetUniqueId(&id));
    must(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        must(koloSetDevice(r));
        must(ncclCommInitRank(&ranks[r].comm, RANKS, id, r));
        must(koloStreamCreate(&ranks[r].stream, KOLO_STREAM_DEFAULT));
        ranks[r].send = (float)(r + 1);
    }
    must(ncclGroupEnd());
}

static inline void destroy_ranks(void)
{
    for (int r = 0; r < RANKS; r++) must(ncclCommDestroy(ranks[r].comm));
    for (int r = 0; r < RANKS; r++) must(koloStreamDestroy(ranks[r].stream));
}

static inline void all_reduce(int r)
{
    must(ncclAllReduce(&ranks[r].send, &ranks[r].recv, 1, ncclFloat, ncclSum, ranks[r].comm, ranks[r].stream));
}

static inline void wait_for_all(void)
{
    for (int r = 0; r < RANKS; r++) must(koloStreamSynchronize(ranks[r].stream));
}

#endif
