/* SPDX-License-Identifier: Apache-2.0 */
#include "perf.h"

static int source_rank(int, int, int, int)
{
    return FROM_ALL;
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
    return ncclReduceScatter(c.send, c.recv, c.count, c.type, c.op, c.comm, c.stream);
}

const collective benchmark = {"reduce_scatter", true,         false, true, true, false, true,
                              source_rank,      source_chunk, bus,   run};
