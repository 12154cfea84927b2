/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/topology.h"

#include "compat/cuda/core/device.h"
#include "topo/config.h"
#include "topo/machine.h"
#include "topo/paths.h"
#include "topo/pcie.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 256 };

/* ---- the machine with a rank on every device ---- */

struct source {
    struct kl_topo_config config;
    struct kl_topo_options options;
    struct kl_xml *file;
    struct kl_host_device *device;
    struct kl_machine machine;
};

static void close_source(struct source *s)
{
    kl_xml_free(s->file);
    free(s->device);
}

static ncclResult_t open_source(struct source *s, int count)
{
    int node[MAX_NODES], nodes = kl_machine_numa_nodes(NULL, node, MAX_NODES);

    *s = (struct source){.device = calloc((size_t)count + 1, sizeof *s->device)};
    if (!s->device) return ncclSystemError;
    kl_topo_config_load_from(&s->config, kl_settings_process(), &s->options);
    ncclResult_t rc = kl_machine_read_file(s->config.topo_file, s->config.machine, NULL, &s->file);
    if (rc) {
        close_source(s);
        return rc;
    }
    for (int i = 0; i < count; i++)
        s->device[i] =
            (struct kl_host_device){.rank = i, .ordinal = i, .numa = node[(int64_t)i * nodes / (count ? count : 1)]};
    s->machine = (struct kl_machine){.file = s->file, .device = s->device, .ndevices = count};
    return ncclSuccess;
}

/* ---- contents of a document ---- */

static struct kl_cuda_place place(const char *busid)
{
    struct kl_cuda_place at = {0};

    if (busid) kl_cuda_place_read(busid, &at);
    return at;
}

static unsigned id_of(const struct kl_xml *xml, int elem, const char *key)
{
    return (unsigned)kl_xml_hex(xml, elem, key);
}

static unsigned generation(const char *speed)
{
    const struct kl_pcie *pcie = speed ? kl_pcie_of_speed(speed) : NULL;

    return pcie ? (unsigned)pcie->generation : KL_PCIE_ASSUMED;
}

static void read_pci(const struct kl_xml *xml, int pci, struct kl_cuda_device *d)
{
    d->at = place(kl_xml_attr(xml, pci, "busid"));
    d->pci_device = id_of(xml, pci, "device");
    d->pci_subsystem = id_of(xml, pci, "subsystem_device") << 16 | id_of(xml, pci, "subsystem_vendor");
    d->pcie_generation = generation(kl_xml_attr(xml, pci, "link_speed"));
    int width = kl_xml_int(xml, pci, "link_width", 16);
    d->pcie_width = width > 0 ? (unsigned)width : 16;
}

static void add_links(const struct kl_xml *xml, int elem, struct kl_cuda_device *d)
{
    enum kl_node_type type;

    if (kl_nvlink_end(xml, elem, &type)) return;
    struct kl_cuda_place end = place(kl_xml_attr(xml, elem, "target"));
    for (int n = kl_xml_int(xml, elem, "count", 0); n > 0 && d->nlinks < KL_CUDA_NVLINKS; n--)
        d->link[d->nlinks++] = (struct kl_cuda_link){.end = type == KL_NODE_GPU   ? KL_CUDA_LINK_GPU
                                                            : type == KL_NODE_CPU ? KL_CUDA_LINK_CPU
                                                                                  : KL_CUDA_LINK_SWITCH,
                                                     .at = end};
}

static void read_switches(const struct kl_xml *xml, int elem, struct kl_cuda_device *d)
{
    for (int n = 0; n < KL_CUDA_SWITCHES && elem != KL_XML_NONE && !strcmp(kl_xml_tag(xml, elem), "pci"); n++) {
        const char *busid = kl_xml_attr(xml, elem, "busid");

        d->above[n] = busid ? kl_busid_parse(busid) + 1 : 1;
        elem = kl_xml_parent(xml, elem);
    }
}

static void read_gpu(const struct kl_xml *xml, int gpu, struct kl_cuda_device *d)
{
    int up = kl_xml_parent(xml, gpu);

    d->sm = kl_xml_int(xml, gpu, "sm", 80);
    if (up != KL_XML_NONE && !strcmp(kl_xml_tag(xml, up), "pci")) read_pci(xml, up, d);
    if (up != KL_XML_NONE) read_switches(xml, kl_xml_parent(xml, up), d);
    while (up != KL_XML_NONE && strcmp(kl_xml_tag(xml, up), "cpu") != 0) up = kl_xml_parent(xml, up);
    d->numa = up == KL_XML_NONE ? 0 : kl_xml_int(xml, up, "numaid", 0);
    for (int c = kl_xml_child(xml, gpu, "c2c"); c != KL_XML_NONE; c = kl_xml_next_same(xml, c))
        d->nc2c += kl_xml_int(xml, c, "count", 0);
    for (int c = kl_xml_child(xml, gpu, "nvlink"); c != KL_XML_NONE; c = kl_xml_next_same(xml, c)) add_links(xml, c, d);
}

static int described; /* devices */

ncclResult_t kl_cuda_topology_describe(struct kl_cuda_device *list, int count)
{
    struct source s;
    struct kl_xml *document = NULL;
    ncclResult_t rc;

    if (!count) return ncclSuccess;
    if ((rc = open_source(&s, count))) return rc;
    rc = kl_machine_document(&s.machine, &s.options, &document);
    for (int e = KL_XML_ROOT; !rc && e != KL_XML_NONE; e = kl_xml_walk(document, KL_XML_ROOT, e)) {
        int rank = strcmp(kl_xml_tag(document, e), "gpu") ? -1 : kl_xml_int(document, e, "rank", -1);

        if (rank >= 0 && rank < count) read_gpu(document, e, &list[rank]);
    }
    kl_xml_free(document);
    close_source(&s);
    if (!rc) described = count;
    return rc;
}

/* ---- paths: computed at the first query ---- */

static struct kl_topo *graph;

static void find_paths(void)
{
    struct kl_xml *document = NULL;
    struct source s;

    if (!described || open_source(&s, described)) return;
    if (kl_machine_whole(&s.machine, &s.options, &graph, &document)) graph = NULL;
    kl_xml_free(document);
    close_source(&s);
    if (graph) graph->options.force_merge = NULL; /* it was the source's */
}

struct kl_cuda_path kl_cuda_path(int from, int to)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct kl_cuda_path path = {.type = KL_PATH_DIS};
    struct kl_p2p p2p;

    pthread_once(&once, find_paths);
    if (!graph) return path;
    int a = kl_topo_gpu_of_rank(graph, from), b = kl_topo_gpu_of_rank(graph, to);
    if (a < 0 || b < 0) return path;
    const struct kl_path *p = kl_path_between(graph, KL_NODE_GPU, a, KL_NODE_GPU, b);
    path.type = p->type;
    path.bw = p->bw;
    path.p2p = from != to && !kl_topo_p2p(graph, from, to, &p2p) && p2p.p2p;
    return path;
}
