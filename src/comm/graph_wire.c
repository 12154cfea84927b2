/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/graph_wire.h"

#include "base/error.h"
#include "graph/graphs.h"

#include <stdlib.h>
#include <string.h>

enum { MAGIC = 0x6b6c6772, VERSION = 1 };

struct header {
    uint32_t magic, version, graphs;
};

/* The numbers of struct kl_graph. */
struct numbers {
    int32_t id, pattern, cross_nic, collnet, min_channels, max_channels, nchannels;
    int32_t type_intra, type_inter, same_channels, nhops, ngpus;
    float bw_intra, bw_inter, latency_inter;
};

static size_t order_bytes(const struct numbers *n)
{
    return (size_t)n->nchannels * (size_t)n->ngpus * sizeof(int32_t);
}

static size_t nets_bytes(const struct numbers *n)
{
    return (size_t)n->nchannels * 2 * sizeof(int64_t);
}

/* ---- out ---- */

static struct numbers numbers_of(const struct kl_graph *g)
{
    return (struct numbers){.id = g->id,
                            .pattern = g->pattern,
                            .cross_nic = g->cross_nic,
                            .collnet = g->collnet,
                            .min_channels = g->min_channels,
                            .max_channels = g->max_channels,
                            .nchannels = g->nchannels,
                            .type_intra = g->type_intra,
                            .type_inter = g->type_inter,
                            .same_channels = g->same_channels,
                            .nhops = g->nhops,
                            .ngpus = g->ngpus,
                            .bw_intra = g->bw_intra,
                            .bw_inter = g->bw_inter,
                            .latency_inter = g->latency_inter};
}

static char *put(char *to, const void *from, size_t bytes)
{
    if (bytes) memcpy(to, from, bytes);
    return to + bytes;
}

ncclResult_t kl_graphs_pack(const struct kl_graphs *graphs, void **bytes, size_t *size)
{
    struct header head = {.magic = MAGIC, .version = VERSION};
    size_t room = sizeof head;

    for (int i = 0; i < KL_GRAPHS; i++) {
        if (!graphs->graph[i]) continue;
        struct numbers n = numbers_of(graphs->graph[i]);
        room += sizeof n + order_bytes(&n) + nets_bytes(&n);
        head.graphs++;
    }
    char *start = malloc(room), *at = start;
    if (!start) return KL_NOMEM("graphs for other processes");
    at = put(at, &head, sizeof head);
    for (int i = 0; i < KL_GRAPHS; i++) {
        if (!graphs->graph[i]) continue;
        struct numbers n = numbers_of(graphs->graph[i]);
        at = put(at, &n, sizeof n);
        at = put(at, graphs->graph[i]->intra, order_bytes(&n));
        at = put(at, graphs->graph[i]->inter, nets_bytes(&n));
    }
    *bytes = start;
    *size = room;
    return ncclSuccess;
}

/* ---- in ---- */

struct reader {
    const char *at, *end;
    const struct kl_topo *topo;
};

static bool take(struct reader *r, void *to, size_t bytes)
{
    if (bytes > (size_t)(r->end - r->at)) return false;
    if (bytes) memcpy(to, r->at, bytes);
    r->at += bytes;
    return true;
}

static bool between(int32_t x, int32_t low, int32_t high)
{
    return x >= low && x <= high;
}

static bool numbers_fit(const struct numbers *n, const struct kl_topo *t)
{
    return between(n->id, 0, KL_GRAPHS - 1) &&
           between(n->pattern, KL_PATTERN_BALANCED_TREE, KL_PATTERN_COLLNET_DIRECT) &&
           between(n->nchannels, 0, KL_MAX_CHANNELS) && n->ngpus == t->count[KL_NODE_GPU] &&
           between(n->type_intra, 0, KL_PATH_TYPES - 1) && between(n->type_inter, 0, KL_PATH_TYPES - 1);
}

/* Of NVLS channels only the first entry counts; the others need not be ranks. */
static bool order_fits(const struct kl_graph *g, const struct kl_topo *t)
{
    int counts = g->pattern == KL_PATTERN_NVLS ? 1 : g->ngpus;

    for (int c = 0; c < g->nchannels; c++)
        for (int i = 0; i < counts; i++)
            if (kl_topo_gpu_of_rank(t, g->intra[(size_t)c * (size_t)g->ngpus + (size_t)i]) < 0) return false;
    return true;
}

static void set_numbers(struct kl_graph *g, const struct numbers *n)
{
    g->id = n->id;
    g->pattern = n->pattern;
    g->cross_nic = n->cross_nic;
    g->collnet = n->collnet;
    g->min_channels = n->min_channels;
    g->max_channels = n->max_channels;
    g->nchannels = n->nchannels;
    g->type_intra = n->type_intra;
    g->type_inter = n->type_inter;
    g->same_channels = n->same_channels;
    g->nhops = n->nhops;
    g->ngpus = n->ngpus;
    g->bw_intra = n->bw_intra;
    g->bw_inter = n->bw_inter;
    g->latency_inter = n->latency_inter;
}

static ncclResult_t broken(const char *what)
{
    return KL_FAIL(ncclInternalError, "graphs from another process %s: do all ranks run the same version?", what);
}

static ncclResult_t read_graph(struct reader *r, struct kl_graphs *graphs)
{
    struct numbers n;
    struct kl_graph *g;

    if (!take(r, &n, sizeof n)) return broken("end early");
    if (!numbers_fit(&n, r->topo) || graphs->graph[n.id]) return broken("hold numbers that do not fit this machine");
    KL_TRY(kl_graph_create(n.nchannels > 0 ? n.nchannels : 1, n.ngpus, &g));
    graphs->graph[n.id] = g;
    set_numbers(g, &n);
    if (!take(r, g->intra, order_bytes(&n)) || !take(r, g->inter, nets_bytes(&n))) return broken("end early");
    return order_fits(g, r->topo) ? ncclSuccess : broken("name ranks that are not of this machine");
}

static ncclResult_t read_all(struct reader *r, struct kl_graphs *graphs)
{
    struct header head;

    if (!take(r, &head, sizeof head) || head.magic != MAGIC || head.version != VERSION || head.graphs > KL_GRAPHS)
        return broken("do not begin as graphs do");
    for (uint32_t i = 0; i < head.graphs; i++) KL_TRY(read_graph(r, graphs));
    if (r->at != r->end) return broken("go on after their end");
    return graphs->graph[KL_GRAPH_RING] && graphs->graph[KL_GRAPH_TREE] ? ncclSuccess : broken("lack rings or trees");
}

ncclResult_t kl_graphs_unpack(const void *bytes, size_t size, const struct kl_topo *topo, struct kl_graphs *graphs)
{
    struct kl_graphs read = {.has_nets = kl_topo_needs_net(topo)};
    struct reader r = {.at = bytes, .end = (const char *)bytes + size, .topo = topo};
    ncclResult_t rc = read_all(&r, &read);

    if (rc)
        kl_graphs_fini(&read);
    else
        *graphs = read;
    return rc;
}
