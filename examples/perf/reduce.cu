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

static double bus(int)
{
    return 1;
}

static ncclResult_t run(const call &c)
{
    return ncclReduce(c.send, c.recv, c.count, c.type, c.op, c.root, c.comm, c.stream);
}

const collective benchmark = {"reduce", true,        true,         false, false, false,
                              true,     source_rank, source_chunk, bus,   run,   true};
