/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/pair.h"

#include "base/error.h"
#include "device/device.h"
#include "plan/net_name.h"
#include "plan/pair_make.h"
#include "plan/planned.h"

#include <stdio.h>
#include <stdlib.h>

struct question {
    struct kl_cluster *cluster;
    struct kl_topo *whole; /* host 0 untrimmed */
    struct kl_xml *document;
    const struct kl_plan *plan;
};

static int gpu_node(const struct kl_topo *t, const struct kl_pair_end *end)
{
    return kl_topo_at(t, KL_NODE_GPU, kl_topo_gpu_of_rank(t, end->local));
}

/* ---- transports ---- */

/* A rank as the transports see it. Ranks that the plan shifts together are on one host, or in one NVLink domain of
 * several. */
static struct kl_peer peer_of(const struct kl_pair_end *end, uint64_t process)
{
    return (struct kl_peer){
        .rank = end->local, .host = (uint64_t)end->shift, .memory = (uint64_t)end->shift, .process = process};
}

static void add_transport(struct kl_pair_route *r, const struct kl_transport *transport, enum kl_refusal refusal,
                          bool no_nic)
{
    bool chosen = !refusal && !no_nic && r->answer == KL_PAIR_NOTHING;

    r->transport[r->ntransports++] = (struct kl_pair_transport){transport, refusal, no_nic, chosen};
    if (chosen) r->answer = transport ? KL_PAIR_TRANSPORT : KL_PAIR_NETWORK;
}

/* The network joins two GPUs that no other transport joins, if both have a NIC. */
static void ask_network(const struct kl_plan *plan, struct kl_pair_route *r)
{
    bool nics = kl_pair_topo(plan, &r->a)->count[KL_NODE_NET] && kl_pair_topo(plan, &r->b)->count[KL_NODE_NET];

    if (r->answer == KL_PAIR_NOTHING) add_transport(r, NULL, KL_REFUSAL_NONE, !nics);
}

/* The choice of Kolo's own devices, which are CPUs, between two ranks of a host. */
static ncclResult_t ask_live(const struct kl_topo *t, struct kl_pair_route *r)
{
    struct kl_peer a = peer_of(&r->a, 1), b = peer_of(&r->b, 2);
    struct kl_pair_facts facts = {.a = &a, .b = &b, .network = true, .mappable = kl_host_devices.mappable};

    KL_TRY(kl_pair_apply_topo(t, false, &facts));
    r->processes = kl_transport_first(&facts);
    b.process = a.process;
    r->threads = kl_transport_first(&facts);
    return ncclSuccess;
}

/* Ask the library's transports in their order. Offline each rank is a process; GPUs can map memory of others. */
static ncclResult_t ask_transports(const struct kl_topo *common, struct kl_pair_route *r)
{
    struct kl_peer a = peer_of(&r->a, 1), b = peer_of(&r->b, 2);
    struct kl_pair_facts facts = {.a = &a, .b = &b, .mappable = r->gpus};

    facts.why.p2p.via = -1;
    if (common) KL_TRY(kl_pair_apply_topo(common, r->gpus, &facts));
    r->why = facts.why;
    r->via = r->why.p2p.via < 0 ? -1 : r->why.p2p.via + r->a.shift;
    for (int i = 0; kl_transports[i] && i < KL_PAIR_TRANSPORTS - 1; i++)
        if (kl_transports[i] != &kl_transport_net) /* it needs NICs, and is asked last */
            add_transport(r, kl_transports[i], kl_transports[i]->refuses(&facts), false);
    return ncclSuccess;
}

/* ---- between GPUs ---- */

/* A topology with both GPUs: the GPUs that both work with, else all of their host. NULL: they are in different
 * hosts. */
static const struct kl_topo *common_topo(const struct question *q, const struct kl_pair_route *r)
{
    const struct kl_topo *t = kl_pair_topo(q->plan, &r->a);

    if (r->a.shift != r->b.shift) return NULL;
    return t == kl_pair_topo(q->plan, &r->b) ? t : q->whole;
}

static ncclResult_t join_gpus(const struct question *q, struct kl_pair_route *r)
{
    const struct kl_topo *common = common_topo(q, r);

    r->answer = KL_PAIR_NOTHING;
    KL_TRY(ask_transports(common, r));
    if (common && r->a.host == r->b.host) KL_TRY(ask_live(common, r));
    ask_network(q->plan, r);
    if (r->answer == KL_PAIR_NETWORK) return kl_pair_nics_find(q->plan, q->document, r);
    if (!common) return ncclSuccess;
    KL_TRY(kl_pair_path_add(r, common, gpu_node(common, &r->a), gpu_node(common, &r->b), r->a.shift));
    r->bw = r->segment[0].narrowest;
    return ncclSuccess;
}

/* ---- between a GPU and a NIC ---- */

/* The NIC that the GPU uses, if this is none of its own. */
static ncclResult_t find_own(const struct question *q, const struct kl_topo *t, int gpu, int net,
                             struct kl_pair_route *r)
{
    int *list = malloc(((size_t)t->count[KL_NODE_NET] + 1) * sizeof *list), n = 0;
    ncclResult_t rc = list ? kl_topo_net_list(t, -1, gpu, list, &n) : KL_NOMEM("a list of NETs");

    for (int i = 0; !rc && i < n; i++) r->own |= list[i] == net;
    if (!rc && !r->own && n) {
        r->instead = t->node[kl_topo_at(t, KL_NODE_NET, list[0])].net.dev;
        snprintf(r->instead_label, sizeof r->instead_label, "%.60s", kl_net_name(q->document, r->instead));
    }
    free(list);
    return rc;
}

/* The topology of the GPU's rank, if a plan left it the NIC; else its whole host. */
static const struct kl_topo *topo_with_nic(const struct question *q, const struct kl_pair_end *gpu,
                                           const struct kl_pair_end *nic, int *net)
{
    const struct kl_topo *own = kl_pair_topo(q->plan, gpu);
    int node = kl_topo_find(own, KL_NODE_NET, q->whole->node[kl_topo_at(q->whole, KL_NODE_NET, nic->local)].id);

    *net = node < 0 ? nic->local : kl_topo_index(own, node);
    return node < 0 ? q->whole : own;
}

static ncclResult_t join_nic(const struct question *q, struct kl_pair_route *r)
{
    bool sends = r->a.type == KL_NODE_GPU;
    const struct kl_pair_end *g = sends ? &r->a : &r->b, *n = sends ? &r->b : &r->a;
    int net;
    const struct kl_topo *t = topo_with_nic(q, g, n, &net);
    int gpu = kl_topo_gpu_of_rank(t, g->local), gpu_at = kl_topo_at(t, KL_NODE_GPU, gpu);
    int net_at = kl_topo_at(t, KL_NODE_NET, net);

    r->answer = KL_PAIR_NIC;
    KL_TRY(kl_topo_gdr(t, g->local, net, true, &r->gdr_send));
    KL_TRY(kl_topo_gdr(t, g->local, net, false, &r->gdr_recv));
    r->gdr_send.rank += g->shift;
    r->gdr_recv.rank += g->shift;
    r->pxn = kl_topo_pxn(t, gpu, net);
    if (r->pxn.relay >= 0) r->relay = t->node[kl_topo_at(t, KL_NODE_GPU, r->pxn.relay)].gpu.rank + g->shift;
    if (kl_path(t, gpu_at, net_at)->type < KL_PATH_NET) KL_TRY(find_own(q, t, gpu, net, r));
    KL_TRY(kl_pair_path_add(r, t, sends ? gpu_at : net_at, sends ? net_at : gpu_at, g->shift));
    r->bw = r->segment[0].narrowest;
    return ncclSuccess;
}

/* ---- between any two ---- */

static ncclResult_t join_planned(struct question *q,
                                 ncclResult_t (*join)(const struct question *, struct kl_pair_route *),
                                 struct kl_pair_route *r)
{
    struct kl_planned planned;
    ncclResult_t rc = kl_planned_init(q->cluster, &planned);

    q->plan = planned.plan;
    if (!rc) rc = join(q, r);
    kl_planned_fini(&planned);
    return rc;
}

static int node_of(const struct kl_topo *t, const struct kl_pair_end *end)
{
    return end->type == KL_NODE_GPU ? gpu_node(t, end) : kl_topo_at(t, end->type, end->local);
}

static ncclResult_t join(struct question *q, struct kl_pair_route *r)
{
    bool gpu_a = r->a.type == KL_NODE_GPU, gpu_b = r->b.type == KL_NODE_GPU;
    bool net_a = r->a.type == KL_NODE_NET, net_b = r->b.type == KL_NODE_NET;

    if (gpu_a && gpu_b && r->a.rank == r->b.rank)
        return KL_FAIL(ncclInvalidUsage, "%s twice: a GPU does not talk to itself", r->a.name);
    if (gpu_a && gpu_b) return join_planned(q, join_gpus, r);
    if ((gpu_a && net_b) || (net_a && gpu_b)) return join_planned(q, join_nic, r);
    r->answer = KL_PAIR_PATH;
    KL_TRY(kl_pair_path_add(r, q->whole, node_of(q->whole, &r->a), node_of(q->whole, &r->b), r->a.shift + r->b.shift));
    r->bw = r->segment[0].narrowest;
    return ncclSuccess;
}

ncclResult_t kl_pair_route_find(struct kl_cluster *cluster, const char *a, const char *b, struct kl_pair_route *r)
{
    struct question q = {.cluster = cluster};
    ncclResult_t rc;

    *r = (struct kl_pair_route){.gpus = !cluster->cpus, .why.p2p.via = -1, .via = -1, .relay = -1, .instead = -1};
    KL_TRY(kl_cluster_whole(cluster, &q.whole, &q.document));
    KL_TRY_OR(rc, out, kl_pair_end_find(cluster, q.whole, q.document, a, &r->a));
    KL_TRY_OR(rc, out, kl_pair_end_find(cluster, q.whole, q.document, b, &r->b));
    rc = join(&q, r);
out:
    kl_topo_free(q.whole);
    kl_xml_free(q.document);
    return rc;
}

void kl_pair_route_fini(struct kl_pair_route *r)
{
    for (int i = 0; i < r->nsegments; i++) free(r->segment[i].link);
    free(r->nics);
    r->nsegments = r->nnics = 0;
    r->nics = NULL;
}

const struct kl_pair_transport *kl_pair_chosen(const struct kl_pair_route *r)
{
    for (int i = 0; i < r->ntransports; i++)
        if (r->transport[i].chosen) return &r->transport[i];
    return NULL;
}

const struct kl_pair_end *kl_pair_gpu(const struct kl_pair_route *r)
{
    return r->a.type == KL_NODE_GPU ? &r->a : &r->b;
}
