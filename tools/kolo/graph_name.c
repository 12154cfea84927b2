/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/graph_name.h"

#include "graph/graph.h"

#include <string.h>

unsigned kl_graphs_named(const char *name)
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
