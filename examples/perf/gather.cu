/* SPDX-License-Identifier: Apache-2.0 */
#include "perf.h"

static int source_rank(int chunk, int, int, int)
{
    return chunk;
}

static int source_chunk(int, int)
{
    return 0;
}

static double bus(int ranks)
{
    return (double)(ranks - 1) / ranks;
}

static ncclResult_t run(const call &c)
{
    return ncclGather(c.send, c.recv, c.count, c.type, c.root, c.comm, c.stream);
}

const collective benchmark = {"gather", false,       true,         true, false, true,
                              true,     source_rank, source_chunk, bus,  run,   true};
