/* SPDX-License-Identifier: Apache-2.0 */
#include "perf.h"

static int source_rank(int chunk, int, int, int)
{
    return chunk;
}

static int source_chunk(int, int me)
{
    return me;
}

static double bus(int ranks)
{
    return (double)(ranks - 1) / ranks;
}

static ncclResult_t run(const call &c)
{
    size_t bytes = c.count * c.element;

    NCCLCHECK(ncclGroupStart());
    for (int r = 0; r < c.ranks; r++) {
        NCCLCHECK(ncclSend((const char *)c.send + r * bytes, c.count, c.type, r, c.comm, c.stream));
        NCCLCHECK(ncclRecv((char *)c.recv + r * bytes, c.count, c.type, r, c.comm, c.stream));
    }
    return ncclGroupEnd();
}

const collective benchmark = {"alltoall", false, false, true, true, true, false, source_rank, source_chunk, bus, run};
