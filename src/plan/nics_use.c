/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/nics_make.h"

#include "base/error.h"
#include "graph/nic.h"

#include <stdlib.h>

struct use {
    const struct kl_plan *plan;
    struct kl_nics *nics;
};

/* Device number of the NIC that a rank uses on a channel of a graph; -1 if it has none. */
static int nic_of(const struct use *u, int rank, int graph, int channel)
{
    int shift, nchannels = u->plan->connect->graph[graph].nchannels, quiet;
    const struct kl_plan_domain *d = kl_plan_domain_of(u->plan, rank, &shift);
    struct kl_graph_nic nic;
    ncclResult_t rc;

    if (!d->graphs.has_nets || !d->graphs.graph[graph]) return -1;
    quiet = kl_error_quiet(1);
    rc = kl_graph_nic(d->topo, d->graphs.graph[graph], nchannels, channel, rank - shift, &nic);
    kl_error_quiet(quiet);
    return rc ? -1 : d->topo->node[kl_topo_at(d->topo, KL_NODE_NET, nic.net)].net.dev;
}

static bool apart(const struct use *u, int a, int b)
{
    return a >= 0 && b >= 0 && u->plan->connect->nodes.of_rank[a] != u->plan->connect->nodes.of_rank[b];
}

static void mark(const struct use *u, int dev, enum kl_traffic traffic, int channel)
{
    struct kl_nic *nic = kl_nics_at(u->nics, dev);
    uint64_t bit = (uint64_t)1 << channel;

    if (!nic) return;
    nic->state = KL_NIC_USED;
    if (traffic == KL_TRAFFIC_RING)
        nic->channels.ring |= bit;
    else
        nic->channels.tree |= bit;
}

static struct kl_rail *rail_of(const struct use *u, enum kl_traffic traffic, int from, int to)
{
    struct kl_nics *n = u->nics;
    struct kl_rail *grown;

    for (int i = 0; i < n->nrails; i++)
        if (n->rail[i].traffic == traffic && n->rail[i].from == from && n->rail[i].to == to) return &n->rail[i];
    grown = realloc(n->rail, (size_t)(n->nrails + 1) * sizeof *grown);
    if (!grown) return NULL;
    n->rail = grown;
    grown[n->nrails] = (struct kl_rail){.traffic = traffic, .from = from, .to = to};
    return &grown[n->nrails++];
}

/* A connection of a channel between two ranks, if the network carries it. */
static ncclResult_t add_connection(const struct use *u, enum kl_traffic traffic, int channel, int from, int to)
{
    int graph = traffic == KL_TRAFFIC_RING ? KL_GRAPH_RING : KL_GRAPH_TREE, a, b;
    struct kl_rail *rail;

    if (!apart(u, from, to)) return ncclSuccess;
    a = nic_of(u, from, graph, channel);
    b = nic_of(u, to, graph, channel);
    if (a < 0 || b < 0) return ncclSuccess;
    mark(u, a, traffic, channel);
    mark(u, b, traffic, channel);
    rail = rail_of(u, traffic, a, b);
    if (!rail) return KL_NOMEM("rails");
    rail->channels |= (uint64_t)1 << channel;
    return ncclSuccess;
}

/* Each connection of a tree once, from below; its data go both ways. */
static ncclResult_t add_channel(const struct use *u, int channel, int rank)
{
    const struct kl_connect *c = u->plan->connect;

    KL_TRY(add_connection(u, KL_TRAFFIC_RING, channel, rank, kl_connect_ring(c, channel, rank).next));
    return add_connection(u, KL_TRAFFIC_TREE, channel, rank, kl_connect_tree(c, channel, rank).up);
}

/* Heads of NVLS exchange data with the heads of other nodes; hosts are alike, so the first host's heads suffice. */
static void mark_heads(const struct use *u)
{
    const struct kl_connect *c = u->plan->connect;

    for (int i = 0; c->nvls && i < c->nvls_channels; i++)
        for (int r = 0; r < u->nics->ngpus; r++) {
            struct kl_nic *nic;

            if (kl_connect_nvls(c, i, r).head < 0) continue;
            nic = kl_nics_at(u->nics, nic_of(u, r, KL_GRAPH_NVLS, i));
            if (!nic) continue;
            nic->channels.nvls |= (uint64_t)1 << i;
            nic->state = KL_NIC_USED;
        }
}

/* Sends and receives use the GPUs' own NICs of these channels. */
static ncclResult_t mark_own(const struct use *u)
{
    for (int r = 0; r < u->nics->ngpus; r++) {
        int shift, gpu;
        const struct kl_topo *t = kl_plan_domain_of(u->plan, r, &shift)->topo;

        gpu = kl_topo_gpu_of_rank(t, r);
        for (int c = 0; t->count[KL_NODE_NET] && c < u->plan->p2p.n; c++) {
            struct kl_nic *nic;
            int net, quiet = kl_error_quiet(1);
            ncclResult_t rc = kl_topo_local_net(t, gpu, c, &net);

            kl_error_quiet(quiet);
            if (rc) break;
            nic = kl_nics_at(u->nics, t->node[kl_topo_at(t, KL_NODE_NET, net)].net.dev);
            if (nic && nic->state == KL_NIC_UNUSED) nic->state = KL_NIC_SENDRECV;
        }
    }
    return ncclSuccess;
}

ncclResult_t kl_nics_find_use(const struct kl_nics_source *q, struct kl_nics *nics)
{
    struct use u = {q->plan, nics};

    if (!nics->offhost) return ncclSuccess;
    for (int r = 0; r < q->plan->nranks; r++)
        for (int c = 0; c < q->plan->connect->nchannels; c++) KL_TRY(add_channel(&u, c, r));
    mark_heads(&u);
    return mark_own(&u);
}
