/* SPDX-License-Identifier: Apache-2.0 */
#include "perf.h"

static int source_rank(int, int, int root, int)
{
    return root;
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
    return ncclScatter(c.send, c.recv, c.count, c.type, c.root, c.comm, c.stream);
}

const collective benchmark = {"scatter", false, true, true, true, false, true, source_rank, source_chunk, bus, run};
