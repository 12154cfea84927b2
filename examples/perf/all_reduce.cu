/* SPDX-License-Identifier: Apache-2.0 */
#include "perf.h"

static int source_rank(int, int, int, int)
{
    return FROM_ALL;
}

static int source_chunk(int, int)
{
    return 0;
}

static double bus(int ranks)
{
    return 2.0 * (ranks - 1) / ranks;
}

static ncclResult_t run(const call &c)
{
    return ncclAllReduce(c.send, c.recv, c.count, c.type, c.op, c.comm, c.stream);
}

const collective benchmark = {"all_reduce", true,        false,        false, false, false,
                              true,         source_rank, source_chunk, bus,   run};
