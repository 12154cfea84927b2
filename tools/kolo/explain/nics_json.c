/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/nics.h"

#include "tools/kolo/channels.h"
#include "tools/kolo/graph_json.h"

#include <inttypes.h>

static json_t *reason(const struct kl_nic_reason *why)
{
    return json_pack("{s:s, s:s}", "code", why->code ? why->code : "", "text", why->text);
}

static json_t *gpu_json(const struct kl_nic_gpu *g)
{
    if (g->net < 0) return json_pack("{s:i, s:i, s:n}", "rank", g->rank, "dev", g->dev, "net");
    return json_pack("{s:i, s:i, s:i, s:s, s:s, s:o, s:{s:b, s:o}, s:{s:b, s:o}, s:{s:i, s:o}}", "rank", g->rank, "dev",
                     g->dev, "net", g->net, "label", g->label, "type", kl_path_type_name[g->type], "bw",
                     kl_json_float(g->bw), "gdr_send", "used", g->gdr_send, "reason", reason(&g->gdr_send_why),
                     "gdr_recv", "used", g->gdr_recv, "reason", reason(&g->gdr_recv_why), "pxn", "relay", g->proxy,
                     "reason", reason(&g->pxn_why));
}

static json_t *nic_json(const struct kl_nic *x)
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
    json_object_set_new(o, "reason", x->state == KL_NIC_USED ? json_null() : reason(&x->why));
    return o;
}

static json_t *rail_json(const struct kl_rail *r)
{
    return json_pack("{s:s, s:i, s:i, s:b, s:o}", "for", r->use == KL_RAIL_RING ? "ring" : "tree", "from", r->from,
                     "to", r->to, "crosses", r->from != r->to, "channels", kl_channels_json(r->channels));
}

static json_t *near_json(const struct kl_nics *n, int i)
{
    const struct kl_nic_near *x = &n->near[i];

    return json_pack("{s:[i, i], s:s}", "nets", x->a, x->b, "distance",
                     x->distance == KL_PATH_PORT ? "PORT" : kl_path_type_name[x->distance]);
}

json_t *kl_nics_json(const struct kl_nics *n)
{
    json_t *gpus = json_array(), *nics = json_array(), *rails = json_array(), *near = json_array();
    char sentence[1024];
    struct kl_text text = kl_text_over(sentence, sizeof sentence);

    kl_nics_summary(n, &text);
    for (int i = 0; i < n->nrows; i++) json_array_append_new(gpus, gpu_json(&n->gpu[i]));
    for (int i = 0; i < n->nnics; i++) json_array_append_new(nics, nic_json(&n->nic[i]));
    for (int i = 0; i < n->nrails; i++) json_array_append_new(rails, rail_json(&n->rail[i]));
    for (int i = 0; i < n->nnear; i++) json_array_append_new(near, near_json(n, i));
    return json_pack("{s:s, s:s, s:i, s:b, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:o, s:o, s:o, s:{s:o, s:o}}", "question",
                     "nics", "topology", n->topology, "hosts", n->hosts, "hosts_assumed", n->assumed, "summary",
                     sentence, "channels", n->nchannels, "used", kl_nics_used(n), "total", n->nnics, "repeated",
                     n->repeated, "crossing", kl_nics_crossing(n), "bad_guids", n->bad_guids, "gpus", gpus, "nics",
                     nics, "rails", rails, "mergeable", "pairs", near, "reason", reason(&n->merge_why));
}
