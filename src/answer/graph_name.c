/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/graph_name.h"

#include "base/error.h"
#include "graph/graph.h"

#include <string.h>

static unsigned graphs_named(const char *name)
{
    static const struct {
        const char *name;
        unsigned graphs;
    } kinds[] = {
        {"ring", 1u << KL_GRAPH_RING},
        {"tree", 1u << KL_GRAPH_TREE},
        {"collnet", 1u << KL_GRAPH_COLLNET_CHAIN | 1u << KL_GRAPH_COLLNET_DIRECT},
        {"nvls", 1u << KL_GRAPH_NVLS},
    };

    if (!name) return (1u << KL_GRAPHS) - 1;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strcmp(kinds[i].name, name)) return kinds[i].graphs;
    return 0;
}

ncclResult_t kl_graphs_read(const char *name, unsigned *graphs)
{
    *graphs = graphs_named(name);
    if (*graphs) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument, "no graph \"%s\": ring, tree, collnet or nvls", name);
}
