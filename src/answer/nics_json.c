/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/nics.h"

#include "answer/channels.h"
#include "answer/assumed.h"
#include "answer/graph_json.h"
#include "answer/output.h"
#include "answer/reason_json.h"
#include "answer/schema.h"
#include "answer/nic_skips.h"

#include <inttypes.h>

static json_t *gpu_json(const struct kl_nic_gpu *g)
{
    if (g->net < 0) return json_pack("{s:i, s:i, s:n}", "rank", g->rank, "dev", g->dev, "net");
    return json_pack("{s:i, s:i, s:i, s:s, s:s, s:o, s:o, s:o, s:o}", "rank", g->rank, "dev", g->dev, "net", g->net,
                     "label", g->label, "type", kl_path_type_name[g->type], "bw", kl_json_float(g->bw), "gdr_send",
                     kl_json_gdr(&g->gdr_send), "gdr_recv", kl_json_gdr(&g->gdr_recv), "pxn",
                     kl_json_pxn(&g->pxn, g->relay, g->rank));
}

static json_t *idle_json(const struct kl_nics *n, const struct kl_nic *x)
{
    char why[KL_NIC_TEXT];

    if (x->state == KL_NIC_USED) return json_null();
    return kl_json_reason(kl_nic_idle_code(&x->idle), kl_nic_idle_text(n, &x->idle, why));
}

static json_t *nic_json(const struct kl_nics *n, const struct kl_nic *x)
{
    static const char *const states[] = {"used", "sends_and_receives", "unused"};
    json_t *o =
        json_pack("{s:i, s:s, s:o, s:o, s:i, s:b, s:i, s:i, s:i, s:s}", "net", x->dev, "label", x->label, "bw",
                  kl_json_float(x->bw), "guid", json_sprintf("0x%" PRIx64, x->asic), "port", x->port, "gdr", x->gdr,
                  "owner", x->owner, "owned_by", x->owned_by, "members", x->members, "state", states[x->state]);

    json_object_set_new(o, "ring_channels", kl_channels_json(x->channels.ring));
    json_object_set_new(o, "tree_channels", kl_channels_json(x->channels.tree));
    json_object_set_new(o, "nvls_channels", kl_channels_json(x->channels.nvls));
    json_object_set_new(o, "same_port_as", x->same_as == x->dev ? json_null() : json_integer(x->same_as));
    json_object_set_new(o, "reason", idle_json(n, x));
    return o;
}

static json_t *rail_json(const struct kl_rail *r)
{
    return json_pack("{s:s, s:i, s:i, s:b, s:o}", "for", kl_traffic_name(r->traffic), "from", r->from, "to", r->to,
                     "crosses", r->from != r->to, "channels", kl_channels_json(r->channels));
}

static json_t *near_json(const struct kl_nics *n, int i)
{
    const struct kl_nic_near *x = &n->near[i];

    return json_pack("{s:[i, i], s:s}", "nets", x->a, x->b, "distance",
                     x->distance == KL_PATH_PORT ? "PORT" : kl_path_type_name[x->distance]);
}

ncclResult_t kl_nics_json(const struct kl_nics *n, const struct kl_cluster *cluster, FILE *to)
{
    json_t *gpus = json_array(), *nics = json_array(), *rails = json_array(), *near = json_array();
    char sentence[1024];
    struct kl_text text = kl_text_in(sentence, sizeof sentence);

    kl_nics_summary(n, &text);
    for (int i = 0; i < n->nrows; i++) json_array_append_new(gpus, gpu_json(&n->gpu[i]));
    for (int i = 0; i < n->nnics; i++) json_array_append_new(nics, nic_json(n, &n->nic[i]));
    for (int i = 0; i < n->nrails; i++) json_array_append_new(rails, rail_json(&n->rail[i]));
    for (int i = 0; i < n->nnear; i++) json_array_append_new(near, near_json(n, i));
    json_t *o =
        json_pack("{s:s, s:s, s:o, s:i, s:b, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:o, s:o, s:o, s:{s:o, s:o}}",
                  "question", "nics", "topology", cluster->name, "topology_origin", kl_origin_json(cluster), "hosts",
                  n->hosts, "hosts_assumed", n->assumed, "summary", sentence, "channels", n->nchannels, "used",
                  kl_nics_used(n), "total", n->nnics, "repeated", n->repeated, "crossing", kl_nics_crossing(n),
                  "bad_guids", n->bad_guids, "gpus", gpus, "nics", nics, "rails", rails, "mergeable", "pairs", near,
                  "reason", kl_json_reason(kl_merge_why_name(n->merge), kl_merge_why_text(n->merge)));

    kl_assumed_add(cluster, o);
    json_object_set_new(o, "nics_unused", kl_nic_skips_json(cluster->skip, cluster->nskips));
    return kl_output_answer(KL_SCHEMA_NICS, o, KL_OUTPUT_FORMAT, to);
}
