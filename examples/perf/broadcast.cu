/* SPDX-License-Identifier: Apache-2.0 */
#include "perf.h"

static int source_rank(int, int, int root, int)
{
    return root;
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
    return ncclBroadcast(c.send, c.recv, c.count, c.type, c.root, c.comm, c.stream);
}

const collective benchmark = {"broadcast", false, true, false, false, false, true, source_rank, source_chunk, bus, run};
