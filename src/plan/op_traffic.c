/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/op_traffic.h"

#include "base/error.h"
#include "device/host/redop.h"
#include "graph/nic.h"
#include "plan/order_rules.h"
#include "topo/paths.h"

#include <stdlib.h>

struct counter {
    const struct kl_op_traffic_request *request;
    const struct kl_plan *plan;
    struct kl_op_traffic *load;
    int graph;
    int64_t *wire; /* by host and link of all domains of a host */
    int *first;    /* by domain: its first link in the host's list */
    int links_per_host;
};

static const struct kl_plan_domain *domain_of(const struct counter *c, int rank)
{
    return &c->plan->domain[c->plan->domain_of[rank % c->plan->ranks_per_host]];
}

static int host_of(const struct counter *c, int rank)
{
    return rank / c->plan->ranks_per_host;
}

/* ---- links ---- */

static void add_path(struct counter *c, int rank, const struct kl_path *path, int64_t wire)
{
    const struct kl_plan_domain *d = domain_of(c, rank);
    int64_t *links = &c->wire[(size_t)host_of(c, rank) * (size_t)c->links_per_host];

    for (int i = 0; i < path->hops; i++) links[c->first[d - c->plan->domain] + kl_path_hops(d->topo, path)[i]] += wire;
}

static int gpu_of(const struct counter *c, int rank)
{
    return kl_topo_gpu_of_rank(domain_of(c, rank)->topo, rank % c->plan->ranks_per_host);
}

/* ---- NICs ---- */

struct kl_op_traffic_nic *kl_op_traffic_nic_at(const struct kl_op_traffic *l, int host, int dev)
{
    for (int i = 0; i < l->nnics; i++)
        if (l->nic[i].host == host && l->nic[i].dev == dev) return &l->nic[i];
    return NULL;
}

static void add_flow(struct kl_op_traffic_flow *f, int way, const struct kl_order_sent *s, int64_t size)
{
    f->payload[way] += s->elements * size;
    f->wire[way] += s->wire;
    f->messages[way] += s->messages;
}

/* The NIC of one end, with the way to it. NULL where it has none. */
static struct kl_op_traffic_nic *end_nic(struct counter *c, int rank, const struct kl_order_sent *s, int way)
{
    const struct kl_plan_domain *d = domain_of(c, rank);
    int local = rank % c->plan->ranks_per_host, quiet = kl_error_quiet(1);
    struct kl_graph_nic nic;
    ncclResult_t rc = ncclInternalError;

    if (d->graphs.has_nets && d->graphs.graph[c->graph])
        rc = kl_graph_nic(d->topo, d->graphs.graph[c->graph], c->plan->connect->graph[c->graph].nchannels, s->channel,
                          local, &nic);
    kl_error_quiet(quiet);
    if (rc) return NULL;
    struct kl_op_traffic_nic *x = kl_op_traffic_nic_at(
        c->load, host_of(c, rank), d->topo->node[kl_topo_at(d->topo, KL_NODE_NET, nic.net)].net.dev);
    int gpu = gpu_of(c, rank);

    add_path(c, rank,
             way ? kl_path_between(d->topo, KL_NODE_NET, nic.net, KL_NODE_GPU, gpu)
                 : kl_path_between(d->topo, KL_NODE_GPU, gpu, KL_NODE_NET, nic.net),
             s->wire);
    if (x) add_flow(&x->flow, way, s, (int64_t)kl_type_bytes(c->request->type));
    return x;
}

ncclResult_t kl_op_traffic_add_rail(struct kl_op_traffic *l, int from, int to, int64_t wire)
{
    for (int i = 0; i < l->nrails; i++)
        if (l->rail[i].from == from && l->rail[i].to == to) return l->rail[i].wire += wire, ncclSuccess;
    struct kl_op_traffic_rail *grown = realloc(l->rail, (size_t)(l->nrails + 1) * sizeof *grown);

    if (!grown) return KL_NOMEM("rails");
    l->rail = grown;
    grown[l->nrails++] = (struct kl_op_traffic_rail){from, to, wire};
    return ncclSuccess;
}

static ncclResult_t through_network(struct counter *c, const struct kl_order_sent *s)
{
    struct kl_op_traffic *l = c->load;
    int64_t size = (int64_t)kl_type_bytes(c->request->type);
    int from = host_of(c, s->from), to = host_of(c, s->to);
    const struct kl_op_traffic_nic *a = end_nic(c, s->from, s, 0), *b = end_nic(c, s->to, s, 1);

    add_flow(&l->host[from], 0, s, size);
    add_flow(&l->host[to], 1, s, size);
    l->across_hosts += s->wire;
    if (c->request->pod && c->request->pod[from] != c->request->pod[to]) l->across_pods += s->wire;
    if (l->flight) l->flight[l->nflights++] = (struct kl_op_traffic_flight){from, to, s->wire};
    if (!a || !b) return ncclSuccess;
    if (a->dev != b->dev) l->across_rails += s->wire;
    return kl_op_traffic_add_rail(l, a->dev, b->dev, s->wire);
}

static ncclResult_t add_sent(struct counter *c, const struct kl_order_sent *s)
{
    const struct kl_plan_domain *d = domain_of(c, s->from);

    c->load->payload += s->elements * (int64_t)kl_type_bytes(c->request->type);
    c->load->wire += s->wire;
    c->load->messages += s->messages;
    if (host_of(c, s->from) != host_of(c, s->to) || d != domain_of(c, s->to)) return through_network(c, s);
    add_path(c, s->from, kl_path_between(d->topo, KL_NODE_GPU, gpu_of(c, s->from), KL_NODE_GPU, gpu_of(c, s->to)),
             s->wire);
    return ncclSuccess;
}

/* NVLS: to the switch and back. Heads also read sums, and send them to all. */
static void through_switch(struct counter *c, const struct kl_order_part *p)
{
    int64_t size = (int64_t)kl_type_bytes(c->request->type), bytes = p->count * size, n = c->load->rules.nranks;
    int heads = c->load->rules.nvls_heads > 0 ? c->load->rules.nvls_heads : 1;
    int64_t out = bytes + bytes / heads, in = out;

    if (c->request->func == KL_FUNC_REDUCE_SCATTER) out = n * bytes, in = bytes;
    if (c->request->func == KL_FUNC_ALL_GATHER) out = bytes, in = n * bytes;
    for (int r = 0; r < (int)n; r++) {
        const struct kl_topo *t = domain_of(c, r)->topo;

        if (!t->count[KL_NODE_NVS]) continue;
        add_path(c, r, kl_path_between(t, KL_NODE_GPU, gpu_of(c, r), KL_NODE_NVS, 0), out);
        add_path(c, r, kl_path_between(t, KL_NODE_NVS, 0, KL_NODE_GPU, gpu_of(c, r)), in);
        c->load->payload += out + in;
        c->load->wire += out + in;
    }
}

/* ---- the whole ---- */

static ncclResult_t prepare(struct counter *c)
{
    const struct kl_plan *p = c->plan;
    struct kl_op_traffic *l = c->load;
    int nets = 0;

    l->nhosts = p->nranks / p->ranks_per_host;
    c->first = calloc((size_t)p->ndomains + 1, sizeof *c->first);
    if (!c->first) return KL_NOMEM("links");
    for (int d = 0; d < p->ndomains; d++) {
        c->first[d] = c->links_per_host;
        c->links_per_host += p->domain[d].topo->nlinks;
        nets += p->domain[d].topo->count[KL_NODE_NET];
    }
    c->wire = calloc((size_t)l->nhosts * (size_t)c->links_per_host + 1, sizeof *c->wire);
    l->host = calloc((size_t)l->nhosts + 1, sizeof *l->host);
    l->nic = calloc((size_t)l->nhosts * (size_t)nets + 1, sizeof *l->nic);
    if (!c->wire || !l->host || !l->nic) return KL_NOMEM("links");
    for (int h = 0; h < l->nhosts; h++)
        for (int d = 0; d < p->ndomains; d++) {
            const struct kl_topo *t = p->domain[d].topo;

            for (int i = 0; i < t->count[KL_NODE_NET]; i++) {
                const struct kl_node *net = &t->node[kl_topo_at(t, KL_NODE_NET, i)];

                if (!kl_op_traffic_nic_at(l, h, net->net.dev))
                    l->nic[l->nnics++] = (struct kl_op_traffic_nic){.host = h, .dev = net->net.dev, .bw = net->net.bw};
            }
        }
    return ncclSuccess;
}

static int busier(const void *x, const void *y)
{
    const struct kl_op_traffic_link *a = x, *b = y;
    double ta = kl_op_traffic_us(a->wire, a->bw), tb = kl_op_traffic_us(b->wire, b->bw);

    if (ta != tb) return ta > tb ? -1 : 1;
    if (a->host != b->host) return a->host - b->host;
    return a->domain != b->domain ? a->domain - b->domain : a->link - b->link;
}

double kl_op_traffic_nic_us(const struct kl_op_traffic_nic *x)
{
    return kl_op_traffic_us(x->flow.wire[0] > x->flow.wire[1] ? x->flow.wire[0] : x->flow.wire[1], x->bw);
}

void kl_op_traffic_rank(struct kl_op_traffic *l)
{
    if (l->nlinks) qsort(l->link, (size_t)l->nlinks, sizeof *l->link, busier);
    l->busiest_nic = -1;
    for (int i = 0; i < l->nnics; i++) {
        if (!l->nic[i].flow.wire[0] && !l->nic[i].flow.wire[1])
            l->nidle++;
        else if (l->busiest_nic < 0 || kl_op_traffic_nic_us(&l->nic[i]) > kl_op_traffic_nic_us(&l->nic[l->busiest_nic]))
            l->busiest_nic = i;
    }
}

/* Links with load, and NICs without. */
static ncclResult_t finish(struct counter *c)
{
    struct kl_op_traffic *l = c->load;
    size_t all = (size_t)l->nhosts * (size_t)c->links_per_host;

    l->link = calloc(all + 1, sizeof *l->link);
    if (!l->link) return KL_NOMEM("links");
    for (int h = 0; h < l->nhosts; h++)
        for (int d = 0; d < c->plan->ndomains; d++)
            for (int i = 0; i < c->plan->domain[d].topo->nlinks; i++) {
                int64_t wire = c->wire[(size_t)h * (size_t)c->links_per_host + (size_t)(c->first[d] + i)];
                const struct kl_link *link = &c->plan->domain[d].topo->link[i];

                if (wire && link->type != KL_PATH_LOC)
                    l->link[l->nlinks++] = (struct kl_op_traffic_link){h, d, i, link->bw, wire};
            }
    kl_op_traffic_rank(l);
    return ncclSuccess;
}

static ncclResult_t count_op(struct counter *c)
{
    struct kl_op_traffic *l = c->load;
    const struct kl_order_op *op = &l->group.ops[0];
    struct kl_order_wires wires;
    struct kl_order_sents sents = {.n = 0};
    ncclResult_t rc = kl_order_wires_of(c->plan->connect, &wires);

    if (!rc) rc = kl_order_sent_of(&l->rules, &wires, &l->group, op, c->request->root, &sents);
    if (!rc && c->request->pod) {
        l->flight = calloc((size_t)sents.n + 1, sizeof *l->flight);
        if (!l->flight) rc = KL_NOMEM("traffic between hosts");
    }
    for (int i = 0; !rc && i < sents.n; i++) rc = add_sent(c, &sents.sent[i]);
    if (op->choice.algo == KL_ALGO_NVLS || op->choice.algo == KL_ALGO_NVLS_TREE)
        for (int i = 0; i < op->nparts; i++) through_switch(c, &op->part[i]);
    free(sents.sent);
    kl_order_wires_fini(&wires);
    return rc;
}

static ncclResult_t choose(struct counter *c)
{
    const struct kl_op_traffic_request *q = c->request;
    struct kl_op_traffic *l = c->load;
    bool blocks = q->func == KL_FUNC_ALL_GATHER || q->func == KL_FUNC_REDUCE_SCATTER;
    int64_t count = q->bytes / (int64_t)kl_type_bytes(q->type) / (blocks ? l->rules.nranks : 1);

    if (count < 1) count = 1;
    l->group = (struct kl_order_group){.func = q->func, .type = q->type, .op = q->op};
    KL_TRY(kl_order_group_choose(&l->rules, &c->plan->tuning, NULL, &count, 1, &l->group));
    const struct kl_tuning_choice *choice = &l->group.ops[0].choice;

    if (kl_order_whole(choice->algo, l->rules.nnodes) || choice->algo >= KL_NCCL_ALGOS)
        return KL_FAIL(ncclInvalidUsage, "%s: the bytes of %s are not modelled", kl_func_name[q->func],
                       kl_algo_name[choice->algo]);
    c->graph = choice->algo == KL_ALGO_NVLS_TREE || choice->algo == KL_ALGO_NVLS ? KL_GRAPH_NVLS
               : choice->algo == KL_ALGO_TREE                                    ? KL_GRAPH_TREE
                                                                                 : KL_GRAPH_RING;
    kl_order_group_cut(&l->rules, &l->group);
    return ncclSuccess;
}

ncclResult_t kl_op_traffic_find(const struct kl_op_traffic_request *q, const struct kl_cluster *cluster,
                                const struct kl_planned *planned, struct kl_op_traffic *l)
{
    struct counter c = {.request = q, .plan = planned->plan, .load = l};
    ncclResult_t rc;

    *l = (struct kl_op_traffic){.busiest_nic = -1};
    if (q->root < 0 || q->root >= planned->plan->nranks)
        return KL_FAIL(ncclInvalidUsage, "root %d: there are ranks 0 to %d", q->root, planned->plan->nranks - 1);
    KL_TRY(kl_order_rules_of(cluster, planned, &l->rules));
    rc = choose(&c);
    if (!rc) rc = prepare(&c);
    if (!rc) rc = count_op(&c);
    if (!rc) rc = finish(&c);
    if (!rc && q->pod) rc = kl_op_traffic_order(l, q->pod);
    free(c.first);
    free(c.wire);
    return rc;
}

void kl_op_traffic_fini(struct kl_op_traffic *l)
{
    kl_order_group_fini(&l->group);
    free(l->nic);
    free(l->link);
    free(l->host);
    free(l->rail);
    free(l->flight);
    free(l->best_order);
    l->nic = NULL, l->link = NULL, l->host = NULL, l->rail = NULL;
    l->flight = NULL, l->best_order = NULL;
}
