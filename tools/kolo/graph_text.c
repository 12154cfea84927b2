/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/graph_json.h"

#include "base/error.h"
#include "graph/graph_xml.h"
#include "topo/paths.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 64, MOST_CHANNELS = 8 }; /* beyond these a ring is abridged, for people */

static const int graph_order[] = {KL_GRAPH_RING, KL_GRAPH_TREE, KL_GRAPH_COLLNET_CHAIN, KL_GRAPH_COLLNET_DIRECT,
                                  KL_GRAPH_NVLS};
enum { NGRAPHS = sizeof graph_order / sizeof graph_order[0] };

static bool wanted(int id, const char *only)
{
    return !only || !strncmp(kl_graph_name(id), only, strlen(only));
}

/* ---- one graph of one host ---- */

static void print_net(const struct kl_topo *t, int64_t id, FILE *to)
{
    int node = kl_topo_find(t, KL_NODE_NET, (uint64_t)id);

    fprintf(to, "NET/%d", node < 0 ? -1 : t->node[node].net.dev);
}

static void print_channel(const struct kl_topo *t, const struct kl_graph *g, int c, bool nets, FILE *to)
{
    fprintf(to, "  %2d:  ", c);
    if (nets) print_net(t, g->inter[2 * c], to), fputs(" -> ", to);
    fputs("GPU", to);
    for (int i = 0; i < (g->pattern == KL_PATTERN_NVLS ? 1 : g->ngpus); i++)
        fprintf(to, " %d", g->intra[c * g->ngpus + i]);
    if (nets) fputs(" -> ", to), print_net(t, g->inter[2 * c + 1], to);
    fputc('\n', to);
}

static void print_graph(const struct kl_topo *t, const struct kl_graph *g, bool nets, FILE *to)
{
    fprintf(to, "\n%s: %d channel%s of %g GB/s over %s paths", kl_graph_name(g->id), g->nchannels,
            g->nchannels == 1 ? "" : "s", (double)g->bw_intra, kl_path_type_name[g->type_intra]);
    if (nets) fprintf(to, ", %g GB/s to the network over %s", (double)g->bw_inter, kl_path_type_name[g->type_inter]);
    fprintf(to, " (%s%s%s)\n", kl_graph_pattern_name(g->pattern), g->same_channels ? ", all in one order" : "",
            g->cross_nic ? ", in and out by different NICs" : "");
    for (int c = 0; c < g->nchannels; c++) print_channel(t, g, c, nets, to);
}

/* ---- why ---- */

static void print_limit(const struct kl_topo *t, const struct kl_graph_why *why, FILE *to)
{
    char from[KL_NODE_TEXT], end[KL_NODE_TEXT];

    for (int i = why->nattempts - 1; i >= 0; i--) {
        const struct kl_attempt *a = &why->attempt[i];
        if (a->limiting_link < 0) continue;
        const struct kl_link *l = &t->link[a->limiting_link];
        fprintf(to, "; most often refused by %s -> %s (%s, %g GB/s)", kl_node_text(&t->node[l->from], from),
                kl_node_text(&t->node[l->to], end), kl_link_type_name[l->type], (double)l->bw);
        return;
    }
}

static void print_why(const struct kl_topo *t, int id, const struct kl_graph_why *why, FILE *to)
{
    fprintf(to, "  %s: %s, after %d attempt%s", kl_graph_name(id), kl_search_end_name(why->end), why->nattempts,
            why->nattempts == 1 ? "" : "s");
    print_limit(t, why, to);
    if (why->refused) fprintf(to, "; the graph file was not taken: %s", why->refused);
    fputc('\n', to);
}

/* ---- all hosts ---- */

static ncclResult_t print_rings(const struct kl_plan *p, FILE *to)
{
    const struct kl_connect *c = p->connect;
    int32_t *order = malloc((size_t)p->nranks * sizeof *order);
    ncclResult_t rc = order ? ncclSuccess : KL_NOMEM("a ring");

    if (order) fprintf(to, "\nrings over %d ranks, %d channels\n", p->nranks, c->nchannels);
    for (int i = 0; !rc && i < c->nchannels && i < MOST_CHANNELS; i++) {
        rc = kl_connect_ring_order(c, i, 0, order);
        fprintf(to, "  %2d: ", i);
        for (int r = 0; !rc && r < p->nranks && r < MOST_RANKS; r++) fprintf(to, " %d", order[r]);
        fprintf(to, "%s\n", p->nranks > MOST_RANKS ? " ..." : "");
    }
    if (c->nchannels > MOST_CHANNELS) fprintf(to, "  ... %d more (--json has all)\n", c->nchannels - MOST_CHANNELS);
    free(order);
    return rc;
}

static void print_tree(const struct kl_plan *p, int channel, FILE *to)
{
    fprintf(to, "  %2d: ", channel);
    for (int r = 0; r < p->nranks && r < MOST_RANKS; r++) {
        struct kl_tree_neighbours t = kl_connect_tree(p->connect, channel, r);
        if (t.up >= 0) fprintf(to, " %d<-%d", t.up, r);
    }
    fprintf(to, "%s\n", p->nranks > MOST_RANKS ? " ..." : "");
}

static void print_trees(const struct kl_plan *p, FILE *to)
{
    fprintf(to, "\ntrees, parent<-child, %d hops deep\n", kl_connect_tree_depth(p->connect));
    for (int i = 0; i < p->connect->nchannels && i < MOST_CHANNELS; i++) print_tree(p, i, to);
}

ncclResult_t graph_text_print(const struct kl_offline *cluster, const struct kl_plan *p, const char *only, FILE *to)
{
    const struct kl_plan_domain *d = &p->domain[p->domain_of[0]];
    const struct kl_graphs *graphs = &d->graphs;

    fprintf(to, "%s: %d host%s of %d GPUs, %d ranks on %d node%s; widest path %g GB/s, widest GPU %g GB/s\n",
            cluster->name, cluster->hosts, cluster->hosts == 1 ? "" : "s", cluster->gpus, p->nranks,
            p->connect->nodes.nnodes, p->connect->nodes.nnodes == 1 ? "" : "s", (double)d->topo->max_bw,
            (double)d->topo->total_bw);
    for (int i = 0; i < NGRAPHS; i++) {
        const struct kl_graph *g = graphs->graph[graph_order[i]];
        if (g && g->nchannels && wanted(graph_order[i], only)) print_graph(d->topo, g, graphs->has_nets, to);
    }
    if (wanted(KL_GRAPH_RING, only)) KL_TRY(print_rings(p, to));
    if (wanted(KL_GRAPH_TREE, only)) print_trees(p, to);
    fprintf(to, "\nwhy the search stopped there\n");
    for (int i = 0; i < NGRAPHS; i++)
        if (graphs->why[graph_order[i]] && wanted(graph_order[i], only))
            print_why(d->topo, graph_order[i], graphs->why[graph_order[i]], to);
    return ferror(to) ? KL_FAIL(ncclSystemError, "cannot write the plan") : ncclSuccess;
}

ncclResult_t graph_xml_print(const struct kl_plan *p, const char *only, FILE *to)
{
    const struct kl_plan_domain *d = &p->domain[p->domain_of[0]];
    struct kl_graphs some = d->graphs; /* a view: nothing of it is freed */
    struct kl_xml *xml;

    for (int id = 0; id < KL_GRAPHS; id++)
        if (!wanted(id, only)) some.graph[id] = NULL;
    KL_TRY(kl_graphs_to_xml(&some, d->topo, &xml));
    ncclResult_t rc = kl_xml_write(xml, to);
    kl_xml_free(xml);
    return rc;
}
