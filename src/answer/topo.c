/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/topo.h"

#include "answer/assumed.h"
#include "answer/graph_json.h"
#include "answer/nic_skips.h"
#include "answer/output.h"
#include "answer/schema.h"
#include "base/error.h"
#include "plan/topo_name.h"

ncclResult_t kl_topo_answer_make(struct kl_opened *o, bool trimmed, struct kl_topo_answer *a)
{
    *a = (struct kl_topo_answer){.cluster = &o->cluster};
    kl_opened_about_machine(o);
    KL_TRY(kl_cluster_whole(&o->cluster, &a->topo, &a->document));
    if (!trimmed) return ncclSuccess;
    kl_topo_free(a->topo);
    a->topo = NULL;
    return kl_cluster_topo(&o->cluster, 0, &a->topo);
}

void kl_topo_answer_fini(struct kl_topo_answer *a)
{
    kl_topo_free(a->topo);
    kl_xml_free(a->document);
}

void kl_topo_answer_warn(const struct kl_topo_answer *a, kl_topo_warning *warn, void *ctx)
{
    kl_topo_warn(a->document, a->topo->options.nccl, a->cluster->file ? NULL : &a->cluster->facts.cpu, warn, ctx);
}

static void collect(void *ctx, const char *text)
{
    json_array_append_new(ctx, json_string(text));
}

static json_t *warnings_json(const struct kl_topo_answer *a)
{
    json_t *warnings = json_array();

    if (warnings) kl_topo_answer_warn(a, collect, warnings);
    return warnings;
}

ncclResult_t kl_topo_json(const struct kl_topo_answer *a, FILE *to)
{
    const struct kl_topo *t = a->topo;
    json_t *o = json_object();
    char nccl[KL_NCCL_TEXT];
    int failed = json_object_set_new(o, "topology", json_string(a->cluster->name)) ||
                 json_object_set_new(o, "nccl", json_string(kl_nccl_text(t->options.nccl, nccl))) ||
                 json_object_set_new(o, "assumed", kl_assumed_json(a->cluster)) ||
                 json_object_set_new(o, "uncertain", kl_uncertain_json(a->cluster)) ||
                 json_object_set_new(o, "finding", kl_finding_json(a->cluster)) ||
                 json_object_set_new(o, "system", kl_json_system(t)) ||
                 json_object_set_new(o, "max_bw", kl_json_float(t->max_bw)) ||
                 json_object_set_new(o, "total_bw", kl_json_float(t->total_bw)) ||
                 json_object_set_new(o, "paths", kl_json_paths(t)) ||
                 json_object_set_new(o, "queries", kl_json_queries(t, a->cluster)) ||
                 json_object_set_new(o, "nics_unused", kl_nic_skips_json(a->cluster->skip, a->cluster->nskips)) ||
                 json_object_set_new(o, "warnings", warnings_json(a));

    if (!failed) return kl_output_answer(KL_SCHEMA_TOPO, o, KL_OUTPUT_FORMAT, to);
    json_decref(o);
    return KL_FAIL(ncclSystemError, "out of memory, or no answer, for the JSON of a topology");
}

ncclResult_t kl_topo_end(const struct kl_topo_answer *a, const char *name, int *node)
{
    int found = kl_topo_named(a->topo, name);

    if (found < 0 || a->topo->node[found].type == KL_NODE_PCI || a->topo->node[found].type == KL_NODE_NIC)
        return KL_FAIL(ncclInvalidUsage, "--path %s: %s; paths lead between GPU/<rank>, NET/<dev>, CPU and NVS nodes",
                       name, found < 0 ? "no such node" : "no path is kept for switches and cards");
    *node = found;
    return ncclSuccess;
}
