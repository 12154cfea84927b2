/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/planned.h"

#include "base/error.h"

#include <string.h>

struct kl_plan_request kl_planned_request(const struct kl_cluster *c, const struct kl_planned *p)
{
    return (struct kl_plan_request){.machine = &c->machine,
                                    .options = &c->options,
                                    .config = &p->config,
                                    .constants = c->constants,
                                    .file = p->graph_file,
                                    .hosts = c->machine.hosts > 1 ? 1 : c->hosts};
}

ncclResult_t kl_planned_init(const struct kl_cluster *c, struct kl_planned *p)
{
    memset(p, 0, sizeof *p);
    kl_graph_config_load(&p->config);
    if (c->settings.nover) kl_graph_config_load_from(&p->config, &c->settings);
    if (p->config.graph_file[0]) KL_TRY(kl_xml_load(p->config.graph_file, kl_xml_graph_schema, &p->graph_file));
    struct kl_plan_request request = kl_planned_request(c, p);

    return kl_plan_create(&request, &p->plan);
}

void kl_planned_fini(struct kl_planned *p)
{
    kl_plan_free(p->plan);
    kl_xml_free(p->graph_file);
    p->plan = NULL;
    p->graph_file = NULL;
}
