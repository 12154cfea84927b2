/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/pair.h"

#include "tools/kolo/channels.h"
#include "tools/kolo/graph_json.h"

static json_t *reason(const struct kl_reason *why)
{
    return json_pack("{s:s, s:s}", "code", why->code ? why->code : "", "text", why->text);
}

static json_t *end_json(const struct kl_talk_end *e)
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

static json_t *links_json(const struct kl_talk_leg *l)
{
    json_t *a = json_array();

    for (int k = 0; k < l->nlinks; k++)
        json_array_append_new(a, json_pack("{s:s, s:s, s:s, s:o, s:b}", "from", l->link[k].from, "to", l->link[k].to,
                                           "type", l->link[k].type, "bw", kl_json_float(l->link[k].bw), "bottleneck",
                                           l->link[k].bottleneck));
    return a;
}

static json_t *legs_json(const struct kl_talk *k)
{
    json_t *a = json_array();

    for (int i = 0; i < k->nlegs; i++) {
        const struct kl_talk_leg *l = &k->leg[i];

        json_array_append_new(a, json_pack("{s:s, s:s, s:s, s:s, s:o, s:{s:s, s:s}, s:o}", "from", l->from, "to", l->to,
                                           "type", kl_path_type_name[l->type], "meaning", kl_path_type_text(l->type),
                                           "bw", kl_json_float(l->bw), "rule", "code", kl_path_rule_name(l->rule),
                                           "text", kl_path_rule_text(l->rule), "links", links_json(l)));
    }
    return a;
}

/* ---- transports ---- */

static json_t *transports_json(const struct kl_talk *k)
{
    json_t *a = json_array();

    for (int i = 0; i < k->ntransports; i++) {
        const struct kl_talk_transport *x = &k->transport[i];

        json_array_append_new(a, json_pack("{s:s, s:b, s:b, s:o}", "name", x->name, "chosen", x->chosen, "refuses",
                                           x->refuses, "reason", reason(&x->why)));
    }
    return a;
}

static json_t *live_json(const struct kl_talk *k)
{
    if (!k->threads && !k->processes) return json_null();
    return json_pack("{s:s?, s:s?}", "processes", k->processes, "threads", k->threads);
}

/* ---- NICs ---- */

static json_t *side_json(const struct kl_talk_side *s)
{
    if (s->dev < 0) return json_pack("{s:i, s:n, s:o}", "rank", s->rank, "net", "reason", reason(&s->why));
    return json_pack("{s:i, s:i, s:s, s:s, s:o, s:i, s:{s:b, s:o}, s:o}", "rank", s->rank, "net", s->dev, "label",
                     s->label, "type", kl_path_type_name[s->type], "bw", kl_json_float(s->bw), "proxy", s->proxy, "gdr",
                     "used", s->gdr, "reason", reason(&s->gdr_why), "reason", reason(&s->why));
}

static json_t *routes_json(const struct kl_talk *k)
{
    json_t *a = json_array();

    for (int i = 0; i < k->nroutes; i++) {
        const struct kl_talk_route *r = &k->route[i];

        json_array_append_new(a, json_pack("{s:s, s:o, s:o, s:o}", "for", kl_talk_use_name(r->use), "channels",
                                           kl_channels_json(r->channels), "send", side_json(&r->send), "recv",
                                           side_json(&r->recv)));
    }
    return a;
}

static json_t *nic_json(const struct kl_talk *k)
{
    return json_pack("{s:b, s:{s:b, s:o}, s:{s:b, s:o}, s:{s:i, s:o}}", "own", k->own, "gdr_send", "used",
                     k->gdr_send.mode != KL_GDR_OFF, "reason", reason(&k->gdr_send_why), "gdr_recv", "used",
                     k->gdr_recv.mode != KL_GDR_OFF, "reason", reason(&k->gdr_recv_why), "pxn", "relay", k->relay,
                     "reason", reason(&k->pxn_why));
}

static json_t *answer_json(const struct kl_talk *k)
{
    for (int i = 0; i < k->ntransports; i++)
        if (k->transport[i].chosen) return json_string(k->transport[i].name);
    return json_null();
}

json_t *kl_talk_json(const struct kl_talk *k)
{
    char sentence[1024];
    struct kl_text text = kl_text_over(sentence, sizeof sentence);
    json_t *o;

    kl_talk_summary(k, &text);
    o = json_pack("{s:s, s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:o}", "question", "pair", "topology", k->topology, "hosts",
                  k->hosts, "summary", sentence, "a", end_json(&k->a), "b", end_json(&k->b), "transport",
                  answer_json(k), "bw", kl_json_float(k->bw), "path", legs_json(k));
    if (k->ntransports) {
        json_object_set_new(o, "transports", transports_json(k));
        json_object_set_new(o, "via", k->via < 0 ? json_null() : json_integer(k->via));
        json_object_set_new(o, "live", live_json(k));
        json_object_set_new(o, "routes", routes_json(k));
    }
    if (k->answer == KL_TALK_NIC) json_object_set_new(o, "nic", nic_json(k));
    return o;
}
