/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/output.h"
#include "answer/schema.h"
#include "answer/traffic.h"
#include "base/text.h"

static json_t *ways_json(const int64_t way[2])
{
    return json_pack("{s:I,s:I}", "out", (json_int_t)way[0], "in", (json_int_t)way[1]);
}

static json_t *flow_json(const struct kl_op_traffic_flow *f)
{
    return json_pack("{s:o,s:o,s:o}", "payload_bytes", ways_json(f->payload), "wire_bytes", ways_json(f->wire),
                     "messages", ways_json(f->messages));
}

static json_t *nics_json(const struct kl_op_traffic *l)
{
    json_t *a = json_array();

    for (int i = 0; i < l->nnics; i++) {
        const struct kl_op_traffic_nic *n = &l->nic[i];
        json_t *o = json_pack("{s:i,s:i,s:f,s:f,s:b}", "host", n->host, "net", n->dev, "gbs", (double)n->bw, "us",
                              kl_op_traffic_nic_us(n), "idle", !n->flow.wire[0] && !n->flow.wire[1]);

        json_object_update_new(o, flow_json(&n->flow));
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *links_json(const struct kl_traffic_answer *x)
{
    json_t *a = json_array();
    char text[KL_LINK_TEXT];

    for (int i = 0; i < x->traffic.nlinks; i++) {
        const struct kl_op_traffic_link *l = &x->traffic.link[i];

        json_array_append_new(a, json_pack("{s:i,s:s,s:f,s:I,s:f}", "host", l->host, "link",
                                           kl_traffic_link_text(x, l, text), "gbs", (double)l->bw, "wire_bytes",
                                           (json_int_t)l->wire, "us", kl_op_traffic_us(l->wire, l->bw)));
    }
    return a;
}

static json_t *hosts_json(const struct kl_op_traffic *l)
{
    json_t *a = json_array();

    for (int i = 0; i < l->nhosts; i++) {
        json_t *o = json_pack("{s:i}", "host", i);

        json_object_update_new(o, flow_json(&l->host[i]));
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *rails_json(const struct kl_op_traffic *l)
{
    json_t *a = json_array();

    for (int i = 0; i < l->nrails; i++)
        json_array_append_new(a,
                              json_pack("{s:i,s:i,s:b,s:I}", "from", l->rail[i].from, "to", l->rail[i].to, "crosses",
                                        l->rail[i].from != l->rail[i].to, "wire_bytes", (json_int_t)l->rail[i].wire));
    return a;
}

/* Place by place the host that takes it. */
static json_t *best_json(const struct kl_traffic_answer *x)
{
    const struct kl_op_traffic *l = &x->traffic;
    const char *const *name = x->question.host_name;
    json_t *hosts = json_array(), *names = name ? json_array() : json_null();

    for (int h = 0; h < l->nhosts; h++) {
        json_array_append_new(hosts, json_integer(l->best_order[h]));
        if (name) json_array_append_new(names, kl_output_text(name[l->best_order[h]]));
    }
    return json_pack("{s:o,s:o,s:I}", "hosts", hosts, "names", names, "across_pods", (json_int_t)l->best_across_pods);
}

static json_t *operation_json(const struct kl_traffic_answer *x)
{
    const struct kl_tuning_choice *c = &x->traffic.group.ops[0].choice;

    return json_pack("{s:i,s:I,s:s,s:s}", "root", x->question.root, "bytes", (json_int_t)x->asked.last, "algorithm",
                     kl_algo_name[c->algo], "protocol", kl_proto_name[c->proto]);
}

static json_t *trace_json(const struct kl_traffic_answer *x)
{
    const struct kl_traffic_trace *t = &x->trace;
    json_t *o = json_pack("{s:s,s:i,s:i,s:i}", "topology", x->asked.cluster->name, "hosts", x->asked.cluster->hosts,
                          "nodes", x->asked.nodes, "ranks", x->asked.ranks);

    json_t *trace =
        json_pack("{s:s,s:i,s:i,s:i,s:I,s:I,s:o}", "kind", t->kind, "files", t->files, "groups", t->groups, "kinds",
                  t->kinds, "operations", (json_int_t)t->operations, "skipped", (json_int_t)t->skipped, "first_skipped",
                  *t->first_skipped ? kl_output_text(t->first_skipped) : json_null());

    json_object_update_new(trace, json_pack("{s:I,s:I,s:I,s:I}", "messages", (json_int_t)t->messages, "sends_alone",
                                            (json_int_t)t->sends_alone, "receives_alone", (json_int_t)t->receives_alone,
                                            "all_to_alls", (json_int_t)t->all_to_alls));
    json_object_set_new(o, "trace", trace);
    return o;
}

ncclResult_t kl_traffic_json(const struct kl_traffic_answer *x, FILE *to)
{
    const struct kl_op_traffic *l = &x->traffic;
    char line[512];
    struct kl_text text = kl_text_in(line, sizeof line);
    json_t *o = x->is_trace ? trace_json(x) : kl_coll_question_json(&x->asked);

    kl_traffic_summary(x, &text);
    json_object_update_new(
        o, json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:o,s:i,s:o}", "summary", line, "payload_bytes", (json_int_t)l->payload,
                     "wire_bytes", (json_int_t)l->wire, "messages", (json_int_t)l->messages, "across_hosts",
                     (json_int_t)l->across_hosts, "across_rails", (json_int_t)l->across_rails, "across_pods",
                     x->pod ? json_integer(l->across_pods) : json_null(), "idle_nics", l->nidle, "busiest_nic",
                     l->busiest_nic < 0 ? json_null() : json_integer(l->busiest_nic)));
    if (!x->is_trace) json_object_update_new(o, operation_json(x));
    json_object_set_new(o, "best_order", x->pod ? best_json(x) : json_null());
    json_object_set_new(o, "nics", nics_json(l));
    json_object_set_new(o, "links", links_json(x));
    json_object_set_new(o, "by_host", hosts_json(l));
    json_object_set_new(o, "rails", rails_json(l));
    return kl_output_answer(KL_SCHEMA_TRAFFIC, o, KL_OUTPUT_FORMAT, to);
}
