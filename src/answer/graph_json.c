/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/graph_json.h"

#include "base/error.h"
#include "topo/facts.h"
#include "topo/paths.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS_SHOWN = 8, P2P_CHANNELS_SHOWN = 2 };

json_t *kl_json_float(float value)
{
    char text[32];
    int digits = 1;

    if (value == (float)(int64_t)value && value > -1e15f && value < 1e15f) return json_integer((json_int_t)value);
    do snprintf(text, sizeof text, "%.*g", digits, (double)value);
    while (strtof(text, NULL) != value && digits++ < 9);
    return json_real(strtod(text, NULL));
}

/* ---- system ---- */

static json_t *hex(uint64_t value)
{
    return json_sprintf("0x%" PRIx64, value);
}

/* Only as far as NVML told it: files seldom do. */
static int set_nvml(json_t *o, const struct kl_node *n)
{
    return (n->gpu.no_p2p && json_object_set_new(o, "no_p2p", hex(n->gpu.no_p2p))) ||
           (n->gpu.fabric && json_object_set_new(o, "fabric", json_string(kl_fabric_state_name[n->gpu.fabric]))) ||
           (n->gpu.clique >= 0 && json_object_set_new(o, "clique", json_integer(n->gpu.clique)));
}

static int set_gpu(json_t *o, const struct kl_node *n)
{
    return set_nvml(o, n) || json_object_set_new(o, "dev", json_integer(n->gpu.dev)) ||
           json_object_set_new(o, "rank", json_integer(n->gpu.rank)) ||
           json_object_set_new(o, "sm", json_integer(n->gpu.sm)) ||
           json_object_set_new(o, "gdr", json_integer(n->gpu.gdr));
}

static int set_net(json_t *o, const struct kl_node *n)
{
    return json_object_set_new(o, "dev", json_integer(n->net.dev)) ||
           json_object_set_new(o, "asic", hex(n->net.asic)) ||
           json_object_set_new(o, "port", json_integer(n->net.port)) ||
           json_object_set_new(o, "bw", kl_json_float(n->net.bw)) ||
           json_object_set_new(o, "latency", kl_json_float(n->net.latency)) ||
           json_object_set_new(o, "gdr", json_integer(n->net.gdr)) ||
           json_object_set_new(o, "coll", json_integer(n->net.coll)) ||
           json_object_set_new(o, "maxconn", json_integer(n->net.max_channels));
}

static int set_cpu(json_t *o, const struct kl_node *n)
{
    return json_object_set_new(o, "arch", json_integer(n->cpu.arch)) ||
           json_object_set_new(o, "vendor", json_integer(n->cpu.vendor)) ||
           json_object_set_new(o, "model", json_integer(n->cpu.model));
}

static int set_facts(json_t *o, const struct kl_node *n)
{
    switch ((enum kl_node_type)n->type) {
    case KL_NODE_GPU:
        return set_gpu(o, n);
    case KL_NODE_PCI:
        return json_object_set_new(o, "device", hex(n->pci.device));
    case KL_NODE_CPU:
        return set_cpu(o, n);
    case KL_NODE_NET:
        return set_net(o, n);
    default:
        return 0;
    }
}

static json_t *id_text(const struct kl_node *n)
{
    return json_sprintf("%x-%" PRIx64, (unsigned)kl_id_host(n->id), kl_id_local(n->id));
}

static json_t *link_json(int type, float bw, const char *to)
{
    return json_pack("{s:s, s:o, s:s}", "type", kl_link_type_name[type], "bw", kl_json_float(bw), "to", to);
}

static bool has_devices(const struct kl_topo *t)
{
    return kl_nccl_has(t->options.nccl, KL_CHANGE_DEVICE_NODES);
}

/* "DEV/0-17000" for the GPU's node. */
static const char *device_text(const struct kl_node *gpu, char text[KL_NODE_TEXT])
{
    kl_node_text(gpu, text);
    for (int i = 0; i < 3; i++) text[i] = "DEV"[i];
    return text;
}

static json_t *links_of(const struct kl_topo *t, const struct kl_node *n)
{
    json_t *list = json_array();
    char to[KL_NODE_TEXT];

    for (int k = n->first_link; k < n->first_link + n->nlinks; k++) {
        const struct kl_link *l = &t->link[k];

        const struct kl_node *far = &t->node[l->to];
        bool device = far->type == KL_NODE_GPU && has_devices(t);

        json_array_append_new(list, link_json(l->type, l->bw, device ? device_text(far, to) : kl_node_text(far, to)));
    }
    return list;
}

/* ---- devices: if ranks are nodes of their own, the device has the links ---- */

static json_t *gpu_links(const struct kl_node *n)
{
    char to[KL_NODE_TEXT];

    return json_pack("[o]", link_json(KL_PATH_LOC, KL_BW_LOCAL, device_text(n, to)));
}

/* The link to the rank's node, if it is here, comes after wider ones. */
static json_t *device_json(const struct kl_topo *t, const struct kl_node *n)
{
    char to[KL_NODE_TEXT];
    json_t *links = links_of(t, n);
    int at = 0;

    while (at < n->nlinks && t->link[n->first_link + at].bw > KL_BW_LOCAL) at++;
    if (n->type == KL_NODE_GPU)
        json_array_insert_new(links, (size_t)at, link_json(KL_PATH_LOC, KL_BW_LOCAL, kl_node_text(n, to)));
    return json_pack("{s:s, s:o, s:i, s:i, s:o}", "type", "DEV", "id", id_text(n), "dev", n->gpu.dev, "sm", n->gpu.sm,
                     "links", links);
}

/* The devices of ranks here and of others, in document order. */
static void add_devices(const struct kl_topo *t, json_t *list)
{
    int own = 0, other = 0;

    while (own < t->count[KL_NODE_GPU] || other < t->count[KL_NODE_DEV]) {
        const struct kl_node *a = &t->node[kl_topo_at(t, KL_NODE_GPU, own)];
        const struct kl_node *b = &t->node[kl_topo_at(t, KL_NODE_DEV, other)];
        bool is_own = other == t->count[KL_NODE_DEV] || (own < t->count[KL_NODE_GPU] && a->gpu.made < b->gpu.made);

        json_array_append_new(list, device_json(t, is_own ? a : b));
        own += is_own;
        other += !is_own;
    }
}

static int add_nodes(const struct kl_topo *t, int first, int last, json_t *list)
{
    int rc = 0;

    for (int i = first; i < last && !rc; i++) {
        const struct kl_node *n = &t->node[i];
        bool device = n->type == KL_NODE_GPU && has_devices(t);
        json_t *o = json_pack("{s:s, s:o}", "type", kl_node_type_name[n->type], "id", id_text(n));

        rc = set_facts(o, n) || json_object_set_new(o, "links", device ? gpu_links(n) : links_of(t, n)) ||
             json_array_append_new(list, o);
    }
    return rc;
}

json_t *kl_json_system(const struct kl_topo *t)
{
    json_t *list = json_array();
    int rc = add_nodes(t, 0, t->first[KL_NODE_DEV], list);

    if (!rc && has_devices(t)) add_devices(t, list);
    if (!rc) rc = add_nodes(t, t->first[KL_NODE_CXB], t->nnodes, list);
    if (!rc) return list;
    json_decref(list);
    return NULL;
}

/* ---- paths ---- */

static json_t *path_value(const struct kl_path *p, int length)
{
    return json_pack("{s:s, s:o, s:i}", "type", kl_path_type_name[p->type], "bw", kl_json_float(p->bw), "hops", length);
}

static json_t *matrix(const struct kl_topo *t, enum kl_node_type from, enum kl_node_type to)
{
    json_t *rows = json_array();

    for (int i = 0; i < t->count[from]; i++) {
        json_t *row = json_array();
        bool table = kl_path_has_table(t, kl_topo_at(t, from, i), to);

        for (int k = 0; k < t->count[to]; k++) {
            const struct kl_path *p = table ? kl_path_between(t, from, i, to, k) : NULL;

            json_array_append_new(row, p ? path_value(p, kl_path_length(t, p)) : json_null());
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

json_t *kl_json_paths(const struct kl_topo *t)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "gpu_gpu", matrix(t, KL_NODE_GPU, KL_NODE_GPU), "gpu_net",
                     matrix(t, KL_NODE_GPU, KL_NODE_NET), "net_gpu", matrix(t, KL_NODE_NET, KL_NODE_GPU), "gpu_cpu",
                     matrix(t, KL_NODE_GPU, KL_NODE_CPU), "gpu_nvs", matrix(t, KL_NODE_GPU, KL_NODE_NVS));
}

/* ---- queries ---- */

static int rank_of(const struct kl_topo *t, int gpu)
{
    return t->node[kl_topo_at(t, KL_NODE_GPU, gpu)].gpu.rank;
}

static json_t *p2p_of(const struct kl_topo *t, int a, int b)
{
    struct kl_p2p p = {.via = -1};

    if (kl_topo_p2p(t, rank_of(t, a), rank_of(t, b), &p)) return NULL;
    return json_pack("[i, i, i]", (int)p.p2p, (int)p.read, p.via);
}

static json_t *net_faster(const struct kl_topo *t, int a, int b)
{
    return json_integer(kl_topo_net_faster(t, rank_of(t, a), rank_of(t, b)));
}

/* Questions about NETs name them by id: of several with one id, the first is meant. */
static int named_net(const struct kl_topo *t, int net)
{
    uint64_t id = t->node[kl_topo_at(t, KL_NODE_NET, net)].id;

    return kl_topo_index(t, kl_topo_find(t, KL_NODE_NET, id));
}

static json_t *gdr_of(const struct kl_topo *t, int gpu, int net)
{
    struct kl_gdr write, read;
    enum kl_flush flush;
    int rank = rank_of(t, gpu);

    net = named_net(t, net);
    if (kl_topo_gdr(t, rank, net, false, &write) || kl_topo_gdr(t, rank, net, true, &read) ||
        kl_topo_need_flush(t, rank, net, &flush))
        return NULL;
    return json_pack("[i, i, i]", (int)write.mode, (int)read.mode, (int)flush);
}

static json_t *relay_of(const struct kl_topo *t, int gpu, int net)
{
    int relay;

    return kl_topo_pxn_rank(t, rank_of(t, gpu), named_net(t, net), &relay) ? NULL : json_integer(relay);
}

/* GPUs by nodes of a type; NULL if any answer is missing. */
static json_t *table(const struct kl_topo *t, enum kl_node_type to, json_t *(*answer)(const struct kl_topo *, int, int))
{
    json_t *rows = json_array();
    int failed = 0;

    for (int g = 0; g < t->count[KL_NODE_GPU]; g++) {
        json_t *row = json_array();

        for (int i = 0; i < t->count[to]; i++) failed |= json_array_append_new(row, answer(t, g, i));
        json_array_append_new(rows, row);
    }
    if (!failed) return rows;
    json_decref(rows);
    return NULL;
}

static json_t *gpu_ranks(const struct kl_topo *t)
{
    json_t *list = json_array();

    for (int g = 0; g < t->count[KL_NODE_GPU]; g++) json_array_append_new(list, json_integer(rank_of(t, g)));
    return list;
}

static json_t *local_nets(const struct kl_topo *t)
{
    json_t *rows = json_array();

    for (int g = 0; t->count[KL_NODE_NET] && g < t->count[KL_NODE_GPU]; g++) {
        json_t *row = json_array();

        for (int c = 0; c < CHANNELS_SHOWN; c++) {
            int net;
            if (kl_topo_local_net(t, g, c, &net)) break;
            json_array_append_new(row, json_integer(t->node[kl_topo_at(t, KL_NODE_NET, net)].net.dev));
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *local_gpus(const struct kl_topo *t)
{
    json_t *list = json_array();

    for (int n = 0; n < t->count[KL_NODE_NET]; n++) {
        int gpu = kl_topo_local_gpu(t, named_net(t, n));
        json_array_append_new(list, json_integer(gpu < 0 ? -1 : rank_of(t, gpu)));
    }
    return list;
}

static json_t *p2p_net_of(const struct kl_topo *t, int gpu, int peer_dev)
{
    json_t *channels = json_array();

    for (int c = 0; c < P2P_CHANNELS_SHOWN; c++) {
        struct kl_p2p_net p;
        if (kl_topo_p2p_net(t, rank_of(t, gpu), peer_dev, c, &p)) break;
        json_array_append_new(channels,
                              json_pack("[i, i]", t->node[kl_topo_at(t, KL_NODE_NET, p.net)].net.dev, p.proxy));
    }
    return channels;
}

/* Device numbers of another host's GPUs in rank order: equal to this host's, before trimming. */
static int *peer_devs(const struct kl_cluster *cluster)
{
    struct kl_topo *t;
    int *dev = calloc((size_t)cluster->gpus + 1, sizeof *dev);

    if (!dev || kl_cluster_whole(cluster, &t, NULL)) {
        free(dev);
        return NULL;
    }
    for (int r = 0; r < cluster->gpus; r++)
        dev[r] = t->node[kl_topo_at(t, KL_NODE_GPU, kl_topo_gpu_of_rank(t, r))].gpu.dev;
    kl_topo_free(t);
    return dev;
}

static json_t *p2p_nets(const struct kl_topo *t, const struct kl_cluster *cluster)
{
    json_t *rows = json_array();
    int *dev;

    if (!kl_topo_needs_net(t) || cluster->hosts < 2) return rows;
    dev = peer_devs(cluster);
    if (!dev) {
        json_decref(rows);
        return NULL;
    }
    for (int g = 0; g < t->count[KL_NODE_GPU]; g++) {
        json_t *row = json_array();

        for (int r = 0; r < cluster->gpus; r++) json_array_append_new(row, p2p_net_of(t, g, dev[r]));
        json_array_append_new(rows, row);
    }
    free(dev);
    return rows;
}

json_t *kl_json_queries(const struct kl_topo *t, const struct kl_cluster *cluster)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "gpu_ranks", gpu_ranks(t), "p2p",
                     table(t, KL_NODE_GPU, p2p_of), "use_net", table(t, KL_NODE_GPU, net_faster), "gdr",
                     table(t, KL_NODE_NET, gdr_of), "local_net", local_nets(t), "local_gpu", local_gpus(t),
                     "intermediate_rank", table(t, KL_NODE_NET, relay_of), "p2p_net", p2p_nets(t, cluster));
}
