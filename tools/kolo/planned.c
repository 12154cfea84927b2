/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/planned.h"

#include "base/error.h"

#include <string.h>

ncclResult_t kl_planned_init(const struct kl_offline *cluster, struct kl_planned *p)
{
    struct kl_plan_request request = {.machine = &cluster->machine, .options = &cluster->options, .config = &p->config};

    memset(p, 0, sizeof *p);
    kl_comm_config_load(&p->comm);
    kl_graph_config_load(&p->config);
    if (cluster->settings.nover) {
        kl_comm_config_load_from(&p->comm, &cluster->settings);
        kl_graph_config_load_from(&p->config, &cluster->settings);
    }
    if (p->comm.graph_file[0]) KL_TRY(kl_xml_load(p->comm.graph_file, kl_xml_graph_schema, &p->graph_file));
    request.hosts = cluster->machine.hosts > 1 ? 1 : cluster->hosts;
    request.algo = p->comm.algo;
    request.proto = p->comm.proto;
    request.file = p->graph_file;
    return kl_plan_create(&request, &p->plan);
}

void kl_planned_fini(struct kl_planned *p)
{
    kl_plan_free(p->plan);
    kl_xml_free(p->graph_file);
    p->plan = NULL;
    p->graph_file = NULL;
}

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
