/* SPDX-License-Identifier: Apache-2.0 */
/**
 * op_traffic_sum.c - the bytes of many operations together. Those of a group of some GPUs are planned on a cluster of these alone;
 * its links are found by their names in the whole one, its NICs by their numbers.
 */
#include "plan/op_traffic.h"

#include "base/error.h"
#include "plan/topo_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same in a cluster of some GPUs, where ranks count anew: a GPU is named by its place. */
static void name_end(const struct kl_topo *t, int node, char text[KL_NODE_TEXT])
{
    if (t->node[node].type == KL_NODE_GPU)
        snprintf(text, KL_NODE_TEXT, "GPU %" PRIx64, t->node[node].id);
    else
        kl_topo_name(t, node, text);
}

static void name_link(const struct kl_plan *plan, const struct kl_op_traffic_link *l, char text[KL_OP_TRAFFIC_NAME])
{
    const struct kl_topo *t = plan->domain[l->domain].topo;
    char from[KL_NODE_TEXT], to[KL_NODE_TEXT];

    name_end(t, t->link[l->link].from, from);
    name_end(t, t->link[l->link].to, to);
    snprintf(text, KL_OP_TRAFFIC_NAME, "%s -> %s", from, to);
}

/* All links of a host, without load, and their names. */
static ncclResult_t list_links(const struct kl_plan *p, struct kl_op_traffic_sum *s)
{
    for (int d = 0; d < p->ndomains; d++) s->per_host += p->domain[d].topo->nlinks;
    s->name = calloc((size_t)s->per_host + 1, sizeof *s->name);
    s->all.link = calloc((size_t)s->per_host * (size_t)s->all.nhosts + 1, sizeof *s->all.link);
    if (!s->name || !s->all.link) return KL_NOMEM("links");
    for (int h = 0; h < s->all.nhosts; h++)
        for (int d = 0; d < p->ndomains; d++)
            for (int i = 0; i < p->domain[d].topo->nlinks; i++) {
                const struct kl_op_traffic_link link = {h, d, i, p->domain[d].topo->link[i].bw, 0};

                if (!h) name_link(p, &link, s->name[s->all.nlinks]);
                s->all.link[s->all.nlinks++] = link;
            }
    return ncclSuccess;
}

static ncclResult_t list_nics(const struct kl_plan *p, struct kl_op_traffic_sum *s)
{
    int nets = 0;

    for (int d = 0; d < p->ndomains; d++) nets += p->domain[d].topo->count[KL_NODE_NET];
    s->all.nic = calloc((size_t)nets * (size_t)s->all.nhosts + 1, sizeof *s->all.nic);
    s->all.host = calloc((size_t)s->all.nhosts + 1, sizeof *s->all.host);
    if (!s->all.nic || !s->all.host) return KL_NOMEM("NICs");
    for (int h = 0; h < s->all.nhosts; h++)
        for (int d = 0; d < p->ndomains; d++)
            for (int i = 0; i < p->domain[d].topo->count[KL_NODE_NET]; i++) {
                const struct kl_topo *t = p->domain[d].topo;
                const struct kl_node *net = &t->node[kl_topo_at(t, KL_NODE_NET, i)];

                if (!kl_op_traffic_nic_at(&s->all, h, net->net.dev))
                    s->all.nic[s->all.nnics++] =
                        (struct kl_op_traffic_nic){.host = h, .dev = net->net.dev, .bw = net->net.bw};
            }
    return ncclSuccess;
}

ncclResult_t kl_op_traffic_sum_begin(const struct kl_plan *whole, const int *pod, struct kl_op_traffic_sum *s)
{
    *s = (struct kl_op_traffic_sum){.pod = pod};
    s->all.nhosts = whole->nranks / whole->ranks_per_host;
    s->all.busiest_nic = -1;
    KL_TRY(list_links(whole, s));
    return list_nics(whole, s);
}

/* ---- one more operation ---- */

static void add_flow(struct kl_op_traffic_flow *to, const struct kl_op_traffic_flow *f, int64_t times)
{
    for (int way = 0; way < 2; way++) {
        to->payload[way] += times * f->payload[way];
        to->wire[way] += times * f->wire[way];
        to->messages[way] += times * f->messages[way];
    }
}

/* A link's place among the links of a host; -1: not there. */
static int find_link(const struct kl_op_traffic_sum *s, const char *name)
{
    for (int k = 0; k < s->per_host; k++)
        if (!strcmp(s->name[k], name)) return k;
    return -1;
}

static ncclResult_t add_links(struct kl_op_traffic_sum *s, const struct kl_plan *plan, const struct kl_op_traffic *one,
                              const int *host, int64_t times)
{
    char text[KL_OP_TRAFFIC_NAME];

    for (int i = 0; i < one->nlinks; i++) {
        name_link(plan, &one->link[i], text);
        const int at = find_link(s, text);

        if (at < 0)
            return KL_FAIL(ncclInvalidUsage, "the link %s of a group is not among the links of the whole cluster",
                           text);
        s->all.link[host[one->link[i].host] * s->per_host + at].wire += times * one->link[i].wire;
    }
    return ncclSuccess;
}

ncclResult_t kl_op_traffic_add_flight(struct kl_op_traffic *l, int from, int to, int64_t wire)
{
    struct kl_op_traffic_flight *grown = realloc(l->flight, (size_t)(l->nflights + 1) * sizeof *grown);

    if (!grown) return KL_NOMEM("traffic between hosts");
    l->flight = grown;
    grown[l->nflights++] = (struct kl_op_traffic_flight){from, to, wire};
    return ncclSuccess;
}

ncclResult_t kl_op_traffic_sum_add(struct kl_op_traffic_sum *s, const struct kl_plan *plan,
                                   const struct kl_op_traffic *one, const int *host, int64_t times)
{
    KL_TRY(add_links(s, plan, one, host, times));
    for (int i = 0; i < one->nnics; i++) {
        struct kl_op_traffic_nic *n = kl_op_traffic_nic_at(&s->all, host[one->nic[i].host], one->nic[i].dev);

        if (n) add_flow(&n->flow, &one->nic[i].flow, times);
    }
    for (int h = 0; h < one->nhosts; h++) add_flow(&s->all.host[host[h]], &one->host[h], times);
    for (int i = 0; i < one->nrails; i++)
        KL_TRY(kl_op_traffic_add_rail(&s->all, one->rail[i].from, one->rail[i].to, times * one->rail[i].wire));
    for (int i = 0; i < one->nflights; i++) {
        const int from = host[one->flight[i].from], to = host[one->flight[i].to];

        if (s->pod && s->pod[from] != s->pod[to]) s->all.across_pods += times * one->flight[i].wire;
        KL_TRY(kl_op_traffic_add_flight(&s->all, from, to, times * one->flight[i].wire));
    }
    s->all.payload += times * one->payload;
    s->all.wire += times * one->wire;
    s->all.messages += times * one->messages;
    s->all.across_hosts += times * one->across_hosts;
    s->all.across_rails += times * one->across_rails;
    return ncclSuccess;
}

ncclResult_t kl_op_traffic_sum_end(const struct kl_plan *whole, struct kl_op_traffic_sum *s)
{
    int n = 0;

    for (int i = 0; i < s->all.nlinks; i++) {
        const struct kl_op_traffic_link *l = &s->all.link[i];

        if (l->wire && whole->domain[l->domain].topo->link[l->link].type != KL_PATH_LOC) s->all.link[n++] = *l;
    }
    s->all.nlinks = n;
    kl_op_traffic_rank(&s->all);
    return s->pod ? kl_op_traffic_order(&s->all, s->pod) : ncclSuccess;
}

void kl_op_traffic_sum_fini(struct kl_op_traffic_sum *s)
{
    kl_op_traffic_fini(&s->all);
    free(s->name);
    s->name = NULL;
}
