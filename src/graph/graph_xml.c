/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graph_xml.h"

#include "base/error.h"
#include "base/log.h"
#include "base/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ---- */

static ncclResult_t set_float(struct kl_xml *xml, int elem, const char *key, float value)
{
    char text[32];

    snprintf(text, sizeof text, "%g", (double)value);
    return kl_xml_set(xml, elem, key, text);
}

static ncclResult_t set_attributes(struct kl_xml *xml, int elem, const struct kl_graph *g)
{
    KL_TRY(kl_xml_set_int(xml, elem, "id", g->id));
    KL_TRY(kl_xml_set_int(xml, elem, "pattern", g->pattern));
    KL_TRY(kl_xml_set_int(xml, elem, "crossnic", g->cross_nic));
    KL_TRY(kl_xml_set_int(xml, elem, "nchannels", g->nchannels));
    KL_TRY(set_float(xml, elem, "speedintra", g->bw_intra));
    KL_TRY(set_float(xml, elem, "speedinter", g->bw_inter));
    KL_TRY(set_float(xml, elem, "latencyinter", g->latency_inter));
    KL_TRY(kl_xml_set(xml, elem, "typeintra", kl_path_type_name[g->type_intra]));
    KL_TRY(kl_xml_set(xml, elem, "typeinter", kl_path_type_name[g->type_inter]));
    return kl_xml_set_int(xml, elem, "samechannels", g->same_channels);
}

static ncclResult_t add_device(struct kl_xml *xml, int channel, const char *tag, uint64_t dev)
{
    int elem;

    KL_TRY(kl_xml_add(xml, channel, tag, &elem));
    return kl_xml_set_hex(xml, elem, "dev", dev);
}

static ncclResult_t add_gpu(struct kl_xml *xml, int channel, const struct kl_topo *t, int rank)
{
    int gpu = kl_topo_gpu_of_rank(t, rank);
    const struct kl_node *n;

    if (gpu < 0) return KL_FAIL(ncclInternalError, "a graph names rank %d, which this machine does not have", rank);
    n = &t->node[kl_topo_at(t, KL_NODE_GPU, gpu)];
    return add_device(xml, channel, "gpu", ((uint64_t)kl_id_host(n->id) << 56) + (uint64_t)n->gpu.dev);
}

static ncclResult_t add_channel(struct kl_xml *xml, int parent, const struct kl_topo *t, const struct kl_graph *g,
                                int c)
{
    int channel, ngpus = g->id == KL_GRAPH_NVLS ? 1 : g->ngpus;
    bool nets = kl_topo_needs_net(t);

    KL_TRY(kl_xml_add(xml, parent, "channel", &channel));
    if (nets) KL_TRY(add_device(xml, channel, "net", (uint64_t)g->inter[2 * c]));
    for (int i = 0; i < ngpus; i++) KL_TRY(add_gpu(xml, channel, t, g->intra[c * g->ngpus + i]));
    if (nets) KL_TRY(add_device(xml, channel, "net", (uint64_t)g->inter[2 * c + 1]));
    return ncclSuccess;
}

static ncclResult_t add_graph(struct kl_xml *xml, const struct kl_topo *t, const struct kl_graph *g)
{
    int elem;

    KL_TRY(kl_xml_add(xml, KL_XML_ROOT, "graph", &elem));
    KL_TRY(set_attributes(xml, elem, g));
    for (int c = 0; c < g->nchannels; c++) KL_TRY(add_channel(xml, elem, t, g, c));
    return ncclSuccess;
}

static ncclResult_t add_graphs(struct kl_xml *xml, const struct kl_graphs *graphs, const struct kl_topo *topo)
{
    static const enum kl_graph_id order[] = {KL_GRAPH_RING, KL_GRAPH_TREE, KL_GRAPH_COLLNET_DIRECT,
                                             KL_GRAPH_COLLNET_CHAIN, KL_GRAPH_NVLS};
    int root;

    KL_TRY(kl_xml_add(xml, KL_XML_NONE, "graphs", &root));
    KL_TRY(kl_xml_set_int(xml, root, "version", 1));
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        const struct kl_graph none = {.id = order[i], .pattern = kl_graph_request_for(order[i]).pattern};
        const struct kl_graph *g = graphs->graph[order[i]];

        KL_TRY(add_graph(xml, topo, g ? g : &none));
    }
    return ncclSuccess;
}

ncclResult_t kl_graphs_to_xml(const struct kl_graphs *graphs, const struct kl_topo *topo, struct kl_xml **xml)
{
    struct kl_xml *x;
    ncclResult_t rc;

    KL_TRY(kl_xml_create("graphs", &x));
    rc = add_graphs(x, graphs, topo);
    if (rc) {
        kl_xml_free(x);
        return rc;
    }
    *xml = x;
    return ncclSuccess;
}

/* ---- reading ---- */

struct reader {
    const struct kl_xml *xml;
    const struct kl_topo *topo;
    const struct kl_graph_request *request;
    char *reason;
};

/* Say why a graph is refused; always false. */
static bool refuse(const struct reader *r, int elem, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static bool refuse(const struct reader *r, int elem, const char *fmt, ...)
{
    int line = kl_xml_empty(r->xml) ? 1 : kl_xml_line(r->xml, elem);
    int used = snprintf(r->reason, KL_GRAPH_REASON, "%s:%d: ", kl_xml_name(r->xml), line);
    va_list ap;

    va_start(ap, fmt);
    if (used >= 0 && used < KL_GRAPH_REASON) vsnprintf(r->reason + used, (size_t)(KL_GRAPH_REASON - used), fmt, ap);
    va_end(ap);
    return false;
}

static bool need(const struct reader *r, int elem, const char *key, const char **value)
{
    *value = kl_xml_attr(r->xml, elem, key);
    return *value || refuse(r, elem, "a graph needs an attribute %s", key);
}

static bool need_int(const struct reader *r, int elem, const char *key, int *value)
{
    const char *text;

    if (!need(r, elem, key, &text)) return false;
    *value = (int)strtol(text, NULL, 0);
    return true;
}

static bool need_speed(const struct reader *r, int elem, const char *key, float *value)
{
    const char *text;

    if (!need(r, elem, key, &text)) return false;
    *value = strtof(text, NULL);
    if (*value >= 0 && *value < 1e9f) return true;
    return refuse(r, elem, "%s=\"%s\" is no bandwidth in GB/s", key, text);
}

static bool read_latency(const struct reader *r, int elem, float *value)
{
    *value = kl_xml_float(r->xml, elem, "latencyinter", 0);
    if (*value >= 0 && *value < KL_LATENCY_MAX) return true;
    return refuse(r, elem, "latencyinter=\"%s\" is no time in microseconds", kl_xml_attr(r->xml, elem, "latencyinter"));
}

/* A path type by its name; longer texts that begin with a name count, others are LOC. */
static bool need_type(const struct reader *r, int elem, const char *key, int *value)
{
    const char *text;

    if (!need(r, elem, key, &text)) return false;
    *value = KL_PATH_LOC;
    for (int t = KL_PATH_TYPES - 1; t >= 0; t--)
        if (!strncmp(text, kl_path_type_name[t], strlen(kl_path_type_name[t]))) *value = t;
    return true;
}

/* On a machine of one GPU the search makes trees of graphs that have heads elsewhere. */
static bool pattern_fits(int id, int pattern, int ngpus)
{
    switch (id) {
    case KL_GRAPH_RING:
        return pattern == KL_PATTERN_RING;
    case KL_GRAPH_NVLS:
        return pattern == KL_PATTERN_NVLS;
    case KL_GRAPH_COLLNET_DIRECT:
        return pattern == KL_PATTERN_COLLNET_DIRECT || (pattern == KL_PATTERN_TREE && ngpus == 1);
    default:
        return pattern >= KL_PATTERN_BALANCED_TREE && pattern <= KL_PATTERN_TREE;
    }
}

static int count_channels(const struct reader *r, int elem)
{
    int n = 0;

    for (int c = kl_xml_child(r->xml, elem, "channel"); c != KL_XML_NONE; c = kl_xml_next_same(r->xml, c)) n++;
    return n;
}

static bool read_attributes(const struct reader *r, int elem, struct kl_graph *g)
{
    if (!need_int(r, elem, "pattern", &g->pattern) || !need_int(r, elem, "nchannels", &g->nchannels) ||
        !need_speed(r, elem, "speedintra", &g->bw_intra) || !need_speed(r, elem, "speedinter", &g->bw_inter) ||
        !need_type(r, elem, "typeintra", &g->type_intra) || !need_type(r, elem, "typeinter", &g->type_inter) ||
        !need_int(r, elem, "samechannels", &g->same_channels) || !read_latency(r, elem, &g->latency_inter))
        return false;
    if (g->nchannels < 0 || g->nchannels > KL_GRAPH_CHANNELS)
        return refuse(r, elem, "nchannels=\"%d\"; a graph has up to %d channels", g->nchannels, KL_GRAPH_CHANNELS);
    if (g->nchannels && !(g->bw_intra > 0 && g->bw_inter > 0))
        return refuse(r, elem, "channels need bandwidth: speedintra and speedinter above 0");
    if (!pattern_fits(g->id, g->pattern, g->ngpus))
        return refuse(r, elem, "pattern %d is none for graph id %d", g->pattern, g->id);
    if (count_channels(r, elem) < g->nchannels)
        return refuse(r, elem, "nchannels=\"%d\", but there are only %d channel elements", g->nchannels,
                      count_channels(r, elem));
    return true;
}

/* The GPU that `dev` names: the last that matches; -1 if none does. */
static int find_gpu(const struct kl_topo *t, uint64_t dev)
{
    for (int g = t->count[KL_NODE_GPU] - 1; g >= 0; g--) {
        const struct kl_node *n = &t->node[kl_topo_at(t, KL_NODE_GPU, g)];

        if (((uint64_t)kl_id_host(n->id) << 56) + (uint64_t)n->gpu.dev == dev) return g;
    }
    return -1;
}

static bool read_gpu(const struct reader *r, int elem, int32_t *order, int n)
{
    const char *text = kl_xml_attr(r->xml, elem, "dev");
    int gpu = text ? find_gpu(r->topo, kl_parse_hex(text)) : -1, rank;

    if (n >= r->topo->count[KL_NODE_GPU])
        return refuse(r, elem, "this channel has more gpu elements than the %d GPUs of this machine",
                      r->topo->count[KL_NODE_GPU]);
    if (gpu < 0) return refuse(r, elem, "gpu dev=\"%s\" is not on this machine", text ? text : "");
    rank = r->topo->node[kl_topo_at(r->topo, KL_NODE_GPU, gpu)].gpu.rank;
    for (int i = 0; i < n; i++)
        if (order[i] == rank) return refuse(r, elem, "gpu dev=\"%s\" is already in this channel", text);
    order[n] = rank;
    return true;
}

/* Taken nevertheless, as NCCL does: only a connection that needs the NET fails. */
static void warn_of_unknown_nets(const struct reader *r, int elem, const int64_t *net)
{
    for (int i = 0; i < 2 && kl_topo_needs_net(r->topo); i++)
        if (kl_topo_find(r->topo, KL_NODE_NET, (uint64_t)net[i]) < 0)
            KL_WARN("%s:%d: net dev=\"%#llx\" is not on this machine; device numbers in graph files are hexadecimal",
                    kl_xml_name(r->xml), kl_xml_line(r->xml, elem), (unsigned long long)net[i]);
}

static bool read_channel(const struct reader *r, int elem, struct kl_graph *g, int c)
{
    int ngpus = 0, nnets = 0;

    for (int e = kl_xml_first(r->xml, elem); e != KL_XML_NONE; e = kl_xml_next(r->xml, e)) {
        if (!strcmp(kl_xml_tag(r->xml, e), "gpu")) {
            if (!read_gpu(r, e, g->intra + (size_t)c * (size_t)g->ngpus, ngpus++)) return false;
        } else if (nnets < 2)
            g->inter[2 * c + nnets++] = (int64_t)kl_xml_hex(r->xml, e, "dev");
    }
    if (g->id == KL_GRAPH_NVLS ? ngpus < 1 : ngpus < g->ngpus)
        return refuse(r, elem, "this channel has %d of the %d GPUs of this machine", ngpus, g->ngpus);
    if (nnets) warn_of_unknown_nets(r, elem, &g->inter[2 * c]);
    return true;
}

static bool read_graph(const struct reader *r, int elem, struct kl_graph *g)
{
    int channel = kl_xml_child(r->xml, elem, "channel");

    if (!read_attributes(r, elem, g)) return false;
    for (int c = 0; c < g->nchannels; c++, channel = kl_xml_next_same(r->xml, channel))
        if (!read_channel(r, channel, g, c)) return false;
    return true;
}

/* Crossing NICs is not taken from a file where the user forbids it. */
static bool is_wanted(const struct reader *r, int elem, int *cross_nic)
{
    *cross_nic = kl_xml_int(r->xml, elem, "crossnic", 0);
    return kl_xml_int(r->xml, elem, "id", -1) == r->request->id &&
           !(r->topo->options.cross_nic == 0 && *cross_nic == 1);
}

/* The last graph with the wanted id counts. */
static bool read_graphs(const struct reader *r, struct kl_graph *g)
{
    int last = KL_XML_NONE, cross_nic;

    if (kl_xml_empty(r->xml) || kl_xml_int(r->xml, KL_XML_ROOT, "version", 0) != 1)
        return refuse(r, KL_XML_ROOT, "a graph file begins with <graphs version=\"1\">");
    for (int e = kl_xml_child(r->xml, KL_XML_ROOT, "graph"); e != KL_XML_NONE; e = kl_xml_next_same(r->xml, e)) {
        if (!is_wanted(r, e, &cross_nic)) continue;
        last = e;
        g->cross_nic = cross_nic;
    }
    if (last == KL_XML_NONE) return true;
    return read_graph(r, last, g);
}

ncclResult_t kl_graph_from_xml(const struct kl_xml *xml, const struct kl_topo *topo,
                               const struct kl_graph_request *request, struct kl_graph **graph,
                               char reason[KL_GRAPH_REASON])
{
    struct reader r = {xml, topo, request, reason};
    struct kl_graph *g;

    reason[0] = '\0';
    *graph = NULL;
    KL_TRY(kl_graph_create(KL_GRAPH_CHANNELS, topo->count[KL_NODE_GPU], &g));
    g->id = request->id;
    g->collnet = request->collnet;
    g->min_channels = request->min_channels;
    g->max_channels = request->max_channels;
    if (read_graphs(&r, g) && g->nchannels)
        *graph = g;
    else
        kl_graph_free(g);
    return ncclSuccess;
}
