/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/planning.h"

#include "base/clock.h"
#include "base/error.h"

#include <string.h>

static ncclResult_t make_plan(struct kl_planning *p)
{
    struct kl_plan_request request = {
        .machine = &p->cluster.machine,
        .options = &p->cluster.options,
        .config = &p->graph,
        .algo = p->comm.algo,
        .proto = p->comm.proto,
        .hosts = p->cluster.machine.hosts > 1 ? 1 : p->cluster.hosts,
    };
    uint64_t start = kl_now_ns();

    kl_comm_config_load(&p->comm);
    kl_graph_config_load(&p->graph);
    if (*p->comm.graph_file) KL_TRY(kl_xml_load(p->comm.graph_file, kl_xml_graph_schema, &p->graph_file));
    request.file = p->graph_file;
    KL_TRY(kl_plan_create(&request, &p->plan));
    p->ms = (double)(kl_now_ns() - start) / 1e6;
    return ncclSuccess;
}

ncclResult_t kl_planning_make(const struct kl_offline_args *args, struct kl_planning *planning)
{
    memset(planning, 0, sizeof *planning);
    KL_TRY(kl_offline_open(args, &planning->cluster));
    return make_plan(planning);
}

void kl_planning_free(struct kl_planning *planning)
{
    kl_plan_free(planning->plan);
    kl_xml_free(planning->graph_file);
    kl_offline_close(&planning->cluster);
}
