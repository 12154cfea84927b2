/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/nics.h"

#include "base/error.h"
#include "plan/net_name.h"
#include "plan/nics_make.h"
#include "plan/planned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank_at(const struct kl_topo *t, int gpu)
{
    return gpu < 0 ? -1 : t->node[kl_topo_at(t, KL_NODE_GPU, gpu)].gpu.rank;
}

static const struct kl_node *net_at(const struct kl_topo *t, int net)
{
    return &t->node[kl_topo_at(t, KL_NODE_NET, net)];
}

/* ---- GPUs ---- */

/* The topology in which a rank of host 0 chooses its NICs; all of the host when nothing leaves it. */
static const struct kl_topo *topo_of(const struct kl_nics_source *q, const struct kl_nics *n, int rank)
{
    int shift;

    return n->offhost ? kl_plan_domain_of(q->plan, rank, &shift)->topo : q->whole;
}

static ncclResult_t ask_rules(const struct kl_topo *t, int gpu, int net, struct kl_nic_gpu *row)
{
    KL_TRY(kl_topo_gdr(t, row->rank, net, true, &row->gdr_send));
    KL_TRY(kl_topo_gdr(t, row->rank, net, false, &row->gdr_recv));
    row->pxn = kl_topo_pxn(t, gpu, net);
    row->relay = rank_at(t, row->pxn.relay);
    row->proxy = row->pxn.why == KL_PXN_USED ? row->relay : row->rank;
    return ncclSuccess;
}

/* A row for one of a GPU's own NICs. */
static ncclResult_t add_row(const struct kl_nics_source *q, const struct kl_topo *t, int gpu, int net,
                            struct kl_nics *n)
{
    const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, net);
    struct kl_nic_gpu *row = &n->gpu[n->nrows++];
    struct kl_nic *nic = kl_nics_at(n, net_at(t, net)->net.dev);

    row->rank = rank_at(t, gpu);
    row->dev = t->node[kl_topo_at(t, KL_NODE_GPU, gpu)].gpu.dev;
    row->net = net_at(t, net)->net.dev;
    row->type = p->type;
    row->bw = p->bw;
    snprintf(row->label, sizeof row->label, "%s", kl_net_name(q->document, row->net));
    if (nic) nic->owned_by++;
    return ask_rules(t, gpu, net, row);
}

static void add_lone_row(const struct kl_topo *t, int gpu, struct kl_nics *n)
{
    struct kl_nic_gpu *row = &n->gpu[n->nrows++];

    row->rank = row->proxy = rank_at(t, gpu);
    row->dev = t->node[kl_topo_at(t, KL_NODE_GPU, gpu)].gpu.dev;
    row->net = -1;
    row->type = KL_PATH_DIS;
}

/* Room for one more GPU and all NICs, so that existing rows do not move. */
static ncclResult_t reserve_rows(const struct kl_topo *t, struct kl_nics *n)
{
    size_t rows = (size_t)n->nrows + (size_t)t->count[KL_NODE_NET] + 1;
    struct kl_nic_gpu *grown = realloc(n->gpu, rows * sizeof *grown);

    if (!grown) return KL_NOMEM("rows of GPUs");
    memset(grown + n->nrows, 0, (rows - (size_t)n->nrows) * sizeof *grown);
    n->gpu = grown;
    return ncclSuccess;
}

static ncclResult_t add_gpu(const struct kl_nics_source *q, int rank, int *list, struct kl_nics *n)
{
    const struct kl_topo *t = topo_of(q, n, rank);
    int gpu = kl_topo_gpu_of_rank(t, rank), nets = 0;

    KL_TRY(reserve_rows(t, n));
    if (!kl_topo_nearest(t, KL_NODE_GPU, gpu, KL_NODE_NET, list)) {
        add_lone_row(t, gpu, n);
        return ncclSuccess;
    }
    KL_TRY(kl_topo_net_list(t, -1, gpu, list, &nets)); /* only its own, in the order of channels */
    for (int i = 0; i < nets; i++) KL_TRY(add_row(q, t, gpu, list[i], n));
    return ncclSuccess;
}

static ncclResult_t add_gpus(const struct kl_nics_source *q, struct kl_nics *n)
{
    int *list = malloc(((size_t)q->whole->count[KL_NODE_NET] + 1) * sizeof *list);
    ncclResult_t rc = list ? ncclSuccess : KL_NOMEM("a list of NETs");

    for (int r = 0; !rc && r < n->ngpus; r++) rc = add_gpu(q, r, list, n);
    free(list);
    return rc;
}

/* ---- NICs ---- */

static int members_of(const char *label)
{
    int n = 1;

    for (; *label; label++) n += *label == '+';
    return n;
}

static ncclResult_t add_nic(const struct kl_nics_source *q, int net, struct kl_nics *n)
{
    const struct kl_node *x = net_at(q->whole, net);
    struct kl_nic *nic = &n->nic[n->nnics];
    struct kl_net_usage usage;

    KL_TRY(kl_topo_net_usage(q->whole, net, &usage));
    if (usage.use == KL_NET_DUPLICATE) {
        n->repeated++;
        return ncclSuccess;
    }
    n->nnics++;
    *nic = (struct kl_nic){.net = net,
                           .dev = x->net.dev,
                           .port = x->net.port,
                           .bw = x->net.bw,
                           .asic = x->net.asic,
                           .gdr = x->net.gdr,
                           .same_as = x->net.dev,
                           .owner = rank_at(q->whole, kl_topo_local_gpu(q->whole, net)),
                           .state = KL_NIC_UNUSED};
    snprintf(nic->label, sizeof nic->label, "%s", kl_net_name(q->document, nic->dev));
    nic->members = members_of(nic->label);
    return ncclSuccess;
}

static ncclResult_t add_nics(const struct kl_nics_source *q, struct kl_nics *n)
{
    n->nic = calloc((size_t)q->whole->count[KL_NODE_NET] + 1, sizeof *n->nic);
    if (!n->nic) return KL_NOMEM("NICs");
    for (int i = 0; i < q->whole->count[KL_NODE_NET]; i++)
        if (kl_id_host(net_at(q->whole, i)->id) == q->whole->own_host) KL_TRY(add_nic(q, i, n));
    return ncclSuccess;
}

/* ---- all of it ---- */

static void set_searches(const struct kl_graphs *g, struct kl_nics *n)
{
    const struct kl_graph_why *ring = g->why[KL_GRAPH_RING], *tree = g->why[KL_GRAPH_TREE];

    n->ring_found = g->graph[KL_GRAPH_RING]->nchannels;
    n->tree_found = g->graph[KL_GRAPH_TREE]->nchannels;
    n->ring_fell_back = ring && ring->end == KL_END_FALLBACK;
    n->tree_fell_back = tree && tree->end == KL_END_FALLBACK;
}

static void set_scene(const struct kl_nics_source *q, struct kl_nics *n)
{
    n->hosts = q->cluster->hosts;
    n->ngpus = q->cluster->gpus;
    n->nnodes = q->plan->connect->nodes.nnodes;
    n->nchannels = q->plan->connect->nchannels;
    n->offhost = n->nnodes > 1;
    set_searches(&q->plan->domain[q->plan->domain_of[0]].graphs, n);
    n->cross_nic = q->cluster->options.cross_nic != 0;
    n->merge_level = q->cluster->options.merge_level;
}

static ncclResult_t find(const struct kl_nics_source *q, struct kl_nics *n)
{
    set_scene(q, n);
    KL_TRY(add_nics(q, n));
    KL_TRY(add_gpus(q, n));
    KL_TRY(kl_nics_find_use(q, n));
    return kl_nics_find_why(q, n);
}

ncclResult_t kl_nics_find(const struct kl_cluster *cluster, bool hosts_given, struct kl_nics *n)
{
    struct kl_cluster planned_for = *cluster; /* it owns nothing */
    struct kl_planned planned = {0};
    struct kl_topo *whole = NULL;
    struct kl_xml *document = NULL;
    ncclResult_t rc;

    *n = (struct kl_nics){.assumed = !hosts_given && !cluster->options.mnnvl};
    if (n->assumed) planned_for.hosts = 2;
    KL_TRY(kl_cluster_whole(&planned_for, &whole, &document));
    KL_TRY_OR(rc, out, kl_planned_init(&planned_for, &planned));
    const struct kl_nics_source source = {&planned_for, planned.plan, whole, document};

    rc = find(&source, n);
out:
    kl_planned_fini(&planned);
    kl_topo_free(whole);
    kl_xml_free(document);
    return rc;
}

void kl_nics_fini(struct kl_nics *n)
{
    free(n->gpu);
    free(n->nic);
    free(n->rail);
    free(n->near);
    *n = (struct kl_nics){0};
}
