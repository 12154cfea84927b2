/* SPDX-License-Identifier: Apache-2.0 */
#include "perf.h"

static int source_rank(int, int me, int, int ranks)
{
    return (me + ranks - 1) % ranks;
}

static int source_chunk(int, int)
{
    return 0;
}

static double bus(int)
{
    return 1;
}

static ncclResult_t run(const call &c)
{
    NCCLCHECK(ncclGroupStart());
    NCCLCHECK(ncclSend(c.send, c.count, c.type, (c.rank + 1) % c.ranks, c.comm, c.stream));
    NCCLCHECK(ncclRecv(c.recv, c.count, c.type, (c.rank + c.ranks - 1) % c.ranks, c.comm, c.stream));
    return ncclGroupEnd();
}

const collective benchmark = {"sendrecv", false,       false,        false, false, false,
                              false,      source_rank, source_chunk, bus,   run};
