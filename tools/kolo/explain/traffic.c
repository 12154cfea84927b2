/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/parse.h"
#include "device/host/redop.h"
#include "plan/load.h"
#include "plan/topo_name.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/explain/coll_print.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/output.h"

#include <inttypes.h>
#include <string.h>

enum { ROWS = 16 };

struct traffic {
    struct kl_coll_asked asked;
    struct kl_load load;
    const struct kl_plan *plan;
    int pod;
};

/* ---- words ---- */

enum { LINK_TEXT = 2 * KL_NODE_TEXT + 16 };

static const char *link_text(const struct traffic *x, const struct kl_load_link *l, char text[LINK_TEXT])
{
    const struct kl_topo *t = x->plan->domain[l->domain].topo;
    char from[KL_NODE_TEXT], to[KL_NODE_TEXT];

    snprintf(text, LINK_TEXT, "%s -> %s", kl_topo_name(t, t->link[l->link].from, from),
             kl_topo_name(t, t->link[l->link].to, to));
    return text;
}

static double megabytes(int64_t bytes)
{
    return (double)bytes / 1e6;
}

/* ---- for people ---- */

static void print_headline(const struct traffic *x, FILE *to)
{
    const struct kl_load *l = &x->load;
    const struct kl_tuning_choice *c = &l->group.ops[0].choice;
    char text[LINK_TEXT];

    kl_coll_headline(&x->asked, to);
    fprintf(to, ": %s %s", kl_algo_name[c->algo], kl_proto_name[c->proto]);
    if (l->busiest_nic >= 0) {
        const struct kl_load_nic *n = &l->nic[l->busiest_nic];

        fprintf(to, "; busiest NIC NET/%d of host %d: %.1f MB out, %.1f in, %.0f us at %g GB/s", n->dev, n->host,
                megabytes(n->flow.wire[0]), megabytes(n->flow.wire[1]), kl_load_nic_us(n), (double)n->bw);
    }
    if (l->nlinks)
        fprintf(to, "; busiest link %s of host %d: %.1f MB, %.0f us at %g GB/s", link_text(x, &l->link[0], text),
                l->link[0].host, megabytes(l->link[0].wire), kl_load_us(l->link[0].wire, l->link[0].bw),
                (double)l->link[0].bw);
    if (l->nhosts > 1 && l->nidle) fprintf(to, "; %d of %d NICs idle", l->nidle, l->nnics);
    fprintf(to, "\n");
}

static void print_network(const struct traffic *x, FILE *to)
{
    const struct kl_load *l = &x->load;

    if (l->nhosts < 2) return;
    fprintf(to, "  %.1f MB cross hosts, %.1f of them rails", megabytes(l->across_hosts), megabytes(l->across_rails));
    if (x->pod) fprintf(to, ", %.1f pods of %d hosts", megabytes(l->across_pods), x->pod);
    fprintf(to, "\n\n  %-6s %-8s %9s %9s %9s %9s\n", "host", "NIC", "GB/s", "MB out", "MB in", "us");
    for (int i = 0; i < l->nnics && i < ROWS; i++) {
        const struct kl_load_nic *n = &l->nic[i];

        fprintf(to, "  %-6d NET/%-4d %9g %9.1f %9.1f %9.1f%s\n", n->host, n->dev, (double)n->bw,
                megabytes(n->flow.wire[0]), megabytes(n->flow.wire[1]), kl_load_nic_us(n),
                n->flow.wire[0] || n->flow.wire[1] ? "" : "  idle");
    }
    if (l->nnics > ROWS) fprintf(to, "  ... %d more; --json has all\n", l->nnics - ROWS);
}

static void print_links(const struct traffic *x, FILE *to)
{
    const struct kl_load *l = &x->load;
    char text[LINK_TEXT];

    fprintf(to, "\n  %-6s %-28s %9s %9s %9s\n", "host", "link", "GB/s", "MB", "us");
    for (int i = 0; i < l->nlinks && i < ROWS; i++)
        fprintf(to, "  %-6d %-28s %9g %9.1f %9.1f\n", l->link[i].host, link_text(x, &l->link[i], text),
                (double)l->link[i].bw, megabytes(l->link[i].wire), kl_load_us(l->link[i].wire, l->link[i].bw));
    if (l->nlinks > ROWS) fprintf(to, "  ... %d more; --json has all\n", l->nlinks - ROWS);
}

static void print_text(const struct traffic *x, FILE *to)
{
    print_headline(x, to);
    kl_explain_place(x->asked.cluster, "", to);
    fprintf(to, "  %.1f MB in all, on the wire (%.1f MB of data); times: bytes by bandwidth, nothing else counted\n",
            megabytes(x->load.wire), megabytes(x->load.payload));
    print_network(x, to);
    print_links(x, to);
}

/* ---- for programs ---- */

static json_t *ways_json(const int64_t way[2])
{
    return json_pack("{s:I,s:I}", "out", (json_int_t)way[0], "in", (json_int_t)way[1]);
}

static json_t *flow_json(const struct kl_load_flow *f)
{
    return json_pack("{s:o,s:o,s:o}", "payload_bytes", ways_json(f->payload), "wire_bytes", ways_json(f->wire),
                     "messages", ways_json(f->messages));
}

static json_t *nics_json(const struct kl_load *l)
{
    json_t *a = json_array();

    for (int i = 0; i < l->nnics; i++) {
        const struct kl_load_nic *n = &l->nic[i];
        json_t *o = json_pack("{s:i,s:i,s:f,s:f,s:b}", "host", n->host, "net", n->dev, "gbs", (double)n->bw, "us",
                              kl_load_nic_us(n), "idle", !n->flow.wire[0] && !n->flow.wire[1]);

        json_object_update_new(o, flow_json(&n->flow));
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *links_json(const struct traffic *x)
{
    json_t *a = json_array();
    char text[LINK_TEXT];

    for (int i = 0; i < x->load.nlinks; i++) {
        const struct kl_load_link *l = &x->load.link[i];

        json_array_append_new(a, json_pack("{s:i,s:s,s:f,s:I,s:f}", "host", l->host, "link", link_text(x, l, text),
                                           "gbs", (double)l->bw, "wire_bytes", (json_int_t)l->wire, "us",
                                           kl_load_us(l->wire, l->bw)));
    }
    return a;
}

static json_t *hosts_json(const struct kl_load *l)
{
    json_t *a = json_array();

    for (int i = 0; i < l->nhosts; i++) {
        json_t *o = json_pack("{s:i}", "host", i);

        json_object_update_new(o, flow_json(&l->host[i]));
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *rails_json(const struct kl_load *l)
{
    json_t *a = json_array();

    for (int i = 0; i < l->nrails; i++)
        json_array_append_new(a,
                              json_pack("{s:i,s:i,s:b,s:I}", "from", l->rail[i].from, "to", l->rail[i].to, "crosses",
                                        l->rail[i].from != l->rail[i].to, "wire_bytes", (json_int_t)l->rail[i].wire));
    return a;
}

static ncclResult_t print_json(const struct traffic *x, FILE *to)
{
    const struct kl_load *l = &x->load;
    const struct kl_tuning_choice *c = &l->group.ops[0].choice;
    json_t *o =
        json_pack("{s:s,s:s,s:s,s:i,s:i,s:I,s:s,s:s,s:I,s:I,s:I,s:I,s:I}", "schema", "kolo.traffic/1", "collective",
                  x->asked.coll->name, "topology", x->asked.cluster->name, "hosts", x->asked.cluster->hosts, "ranks",
                  x->asked.ranks, "bytes", (json_int_t)x->asked.first, "algorithm", kl_algo_name[c->algo], "protocol",
                  kl_proto_name[c->proto], "payload_bytes", (json_int_t)l->payload, "wire_bytes", (json_int_t)l->wire,
                  "messages", (json_int_t)l->messages, "across_hosts", (json_int_t)l->across_hosts, "across_rails",
                  (json_int_t)l->across_rails);

    json_object_set_new(o, "across_pods", x->pod ? json_integer(l->across_pods) : json_null());
    json_object_set_new(o, "idle_nics", json_integer(l->nidle));
    json_object_set_new(o, "busiest_nic", l->busiest_nic < 0 ? json_null() : json_integer(l->busiest_nic));
    json_object_set_new(o, "nics", nics_json(l));
    json_object_set_new(o, "links", links_json(x));
    json_object_set_new(o, "by_host", hosts_json(l));
    json_object_set_new(o, "rails", rails_json(l));
    kl_explain_assumed(x->asked.cluster, o);
    return kl_output_json(o, to);
}

/* ---- the question ---- */

static ncclResult_t read_number(const char *option, const char *text, int *value)
{
    uint64_t n;

    *value = 0;
    if (!text) return ncclSuccess;
    if (!kl_parse_size(text, &n) || n > 1 << 20)
        return KL_FAIL(ncclInvalidArgument, "%s %s: expected a number", option, text);
    *value = (int)n;
    return ncclSuccess;
}

static ncclResult_t read_question(const struct kl_explain_request *q, struct traffic *x, struct kl_load_request *asked)
{
    struct kl_explain_request inner = *q;
    int root;

    inner.question = q->word[0];
    inner.word = q->word + 1;
    inner.nwords = q->nwords - 1;
    KL_TRY(kl_coll_read(&inner, &x->asked));
    KL_TRY(read_number("--root", q->root, &root));
    KL_TRY(read_number("--pod", q->pod, &x->pod));
    if (x->asked.first != x->asked.last)
        return KL_FAIL(ncclInvalidArgument, "traffic is that of one size: kolo explain traffic %s SIZE", q->word[0]);
    if (x->asked.func < 0)
        return KL_FAIL(ncclInvalidArgument, "%s: expected all_reduce, all_gather, reduce_scatter, broadcast or reduce",
                       q->word[0]);
    *asked = (struct kl_load_request){.func = x->asked.func,
                                      .type = x->asked.type,
                                      .op = x->asked.op,
                                      .bytes = x->asked.first,
                                      .root = root,
                                      .hosts_per_pod = x->pod};
    return ncclSuccess;
}

ncclResult_t kl_explain_traffic(const struct kl_explain_request *q, FILE *to)
{
    struct traffic x;
    struct kl_load_request asked;
    struct kl_cluster cluster;
    struct kl_planned planned;
    ncclResult_t rc;

    memset(&x, 0, sizeof x);
    KL_TRY(read_question(q, &x, &asked));
    KL_TRY(kl_cluster_options_open(&q->cluster, &cluster));
    KL_TRY_OR(rc, out, kl_planned_init(&cluster, &planned));
    KL_TRY_OR(rc, out, kl_load_find(&asked, &cluster, &planned, &x.load));
    x.plan = planned.plan;
    x.asked.cluster = &cluster;
    x.asked.ranks = planned.plan->nranks;
    x.asked.nodes = planned.plan->connect->nodes.nnodes;
    if (q->json) {
        rc = print_json(&x, to);
    } else {
        kl_print_preamble(&cluster, to);
        print_text(&x, to);
        kl_assumed_print(&cluster, "", to);
        kl_uncertain_print(&cluster, "", to);
    }
out:
    kl_load_fini(&x.load);
    kl_planned_fini(&planned);
    kl_cluster_close(&cluster);
    return rc;
}
