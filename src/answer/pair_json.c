/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/pair.h"

#include "answer/channels.h"
#include "answer/assumed.h"
#include "answer/graph_json.h"
#include "answer/output.h"
#include "answer/reason_json.h"
#include "answer/schema.h"
#include "topo/paths.h"

static json_t *end_json(const struct kl_pair_end *e)
{
    json_t *o = json_pack("{s:s}", "name", e->name);

    if (e->rank >= 0) {
        json_object_set_new(o, "rank", json_integer(e->rank));
        json_object_set_new(o, "host", json_integer(e->host));
        json_object_set_new(o, "dev", json_integer(e->dev));
    }
    if (*e->label) json_object_set_new(o, "label", json_string(e->label));
    return o;
}

/* ---- the way ---- */

static json_t *links_json(const struct kl_pair_segment *l)
{
    json_t *a = json_array();

    for (int k = 0; k < l->nlinks; k++)
        json_array_append_new(a, json_pack("{s:s, s:s, s:s, s:o, s:b}", "from", l->link[k].from, "to", l->link[k].to,
                                           "type", kl_link_type_name[l->link[k].type], "bw",
                                           kl_json_float(l->link[k].bw), "bottleneck", l->link[k].bottleneck));
    return a;
}

static json_t *legs_json(const struct kl_pair_route *r)
{
    json_t *a = json_array();

    for (int i = 0; i < r->nsegments; i++) {
        const struct kl_pair_segment *l = &r->segment[i];

        json_array_append_new(a, json_pack("{s:s, s:s, s:s, s:s, s:o, s:{s:s, s:s}, s:o}", "from", l->from, "to", l->to,
                                           "type", kl_path_type_name[l->type], "meaning", kl_path_type_text(l->type),
                                           "bw", kl_json_float(l->bw), "rule", "code", kl_path_rule_name(l->rule),
                                           "text", kl_path_rule_text(l->rule), "links", links_json(l)));
    }
    return a;
}

/* ---- transports ---- */

static json_t *transports_json(const struct kl_pair_route *r)
{
    json_t *a = json_array();
    char why[KL_PAIR_TEXT];

    for (int i = 0; i < r->ntransports; i++) {
        const struct kl_pair_transport *x = &r->transport[i];

        json_array_append_new(
            a, json_pack("{s:s, s:b, s:b, s:o}", "name", kl_pair_transport_name(x), "chosen", x->chosen, "refuses",
                         x->refusal || x->no_nic, "reason",
                         kl_json_reason(kl_pair_transport_code(r, x), kl_pair_transport_text(r, x, why))));
    }
    return a;
}

static const char *name_of(const struct kl_transport *transport)
{
    return transport ? transport->name : NULL;
}

static json_t *live_json(const struct kl_pair_route *r)
{
    if (!r->threads && !r->processes) return json_null();
    return json_pack("{s:s?, s:s?}", "processes", name_of(r->processes), "threads", name_of(r->threads));
}

static json_t *chosen_json(const struct kl_pair_route *r)
{
    const struct kl_pair_transport *x = kl_pair_chosen(r);

    return x ? json_string(kl_pair_transport_name(x)) : json_null();
}

/* ---- NICs ---- */

static json_t *side_json(const struct kl_pair_side *s)
{
    char text[KL_PAIR_TEXT];
    json_t *why = kl_json_reason(kl_pair_nic_code(&s->why), kl_pair_nic_text(&s->why, text));

    if (s->dev < 0) return json_pack("{s:i, s:n, s:o}", "rank", s->rank, "net", "reason", why);
    return json_pack("{s:i, s:i, s:s, s:s, s:o, s:i, s:o, s:o}", "rank", s->rank, "net", s->dev, "label", s->label,
                     "type", kl_path_type_name[s->type], "bw", kl_json_float(s->bw), "proxy", s->proxy, "gdr",
                     kl_json_gdr(&s->gdr), "reason", why);
}

static json_t *nics_json(const struct kl_pair_route *r)
{
    json_t *a = json_array();

    for (int i = 0; i < r->nnics; i++) {
        const struct kl_pair_nics *n = &r->nics[i];

        json_array_append_new(a, json_pack("{s:s, s:o, s:o, s:o}", "for", kl_traffic_name(n->traffic), "channels",
                                           kl_channels_json(n->channels), "send", side_json(&n->send), "recv",
                                           side_json(&n->recv)));
    }
    return a;
}

static json_t *nic_json(const struct kl_pair_route *r)
{
    return json_pack("{s:b, s:o, s:o, s:o}", "own", r->own, "gdr_send", kl_json_gdr(&r->gdr_send), "gdr_recv",
                     kl_json_gdr(&r->gdr_recv), "pxn", kl_json_pxn(&r->pxn, r->relay, kl_pair_gpu(r)->rank));
}

ncclResult_t kl_pair_json(const struct kl_pair_route *r, const struct kl_cluster *cluster, FILE *to)
{
    char sentence[1024];
    struct kl_text text = kl_text_in(sentence, sizeof sentence);
    json_t *o;

    kl_pair_summary(r, &text);
    o = json_pack("{s:s, s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:o}", "question", "pair", "topology", cluster->name,
                  "hosts", cluster->hosts, "summary", sentence, "a", end_json(&r->a), "b", end_json(&r->b), "transport",
                  chosen_json(r), "bw", kl_json_float(r->bw), "path", legs_json(r));
    json_object_set_new(o, "topology_origin", kl_origin_json(cluster));
    kl_assumed_add(cluster, o);
    if (r->ntransports) {
        json_object_set_new(o, "transports", transports_json(r));
        json_object_set_new(o, "via", r->via < 0 ? json_null() : json_integer(r->via));
        json_object_set_new(o, "live", live_json(r));
        json_object_set_new(o, "routes", nics_json(r));
    }
    if (r->answer == KL_PAIR_NIC) json_object_set_new(o, "nic", nic_json(r));
    return kl_output_answer(KL_SCHEMA_PAIR, o, KL_OUTPUT_FORMAT, to);
}
