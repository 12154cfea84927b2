/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "topo/build_make.h"
#include "topo/product.h"

#include <string.h>

static const struct kl_xml_word classes[] = {{"0x060400", KL_NODE_PCI}, {"0x068000", KL_NODE_NVS},
                                             {"0x068001", KL_NODE_CPU}, {"0x03", KL_NODE_GPU},
                                             {"0x02", KL_NODE_NIC},     {NULL, KL_NODE_PCI}};

ncclResult_t kl_build_kind(const struct kl_xml *xml, int elem, const char *attr, int *kind)
{
    return kl_xml_need_word(xml, elem, attr, classes, kind);
}

float kl_nvlink_bw(int sm, int nccl)
{
    if (sm >= 107 && kl_nccl_has(nccl, KL_CHANGE_NVLINK_RUBIN)) return 31.2f;
    if (sm >= 100) return kl_nccl_has(nccl, KL_CHANGE_NVLINK_40_1) ? 40.1f : 40.0f;
    if (sm >= 90) return 20.6f;
    if (sm == 86) return 12.0f;
    if (sm >= 70) return 20.0f;
    return sm >= 60 ? 18.0f : 20.0f;
}

ncclResult_t kl_nvlink_end(const struct kl_xml *xml, int elem, enum kl_node_type *end)
{
    int kind;

    KL_TRY(kl_build_kind(xml, elem, "tclass", &kind));
    *end = kind == KL_NODE_GPU || kind == KL_NODE_CPU ? (enum kl_node_type)kind : KL_NODE_NVS;
    return ncclSuccess;
}

/* First CPU below or above a node, along PCI links through switches. PCI links form trees, so this ends. */
static int cpu_by_pci(const struct kl_builder *b, int node, int from)
{
    if (b->node[node].node.type == KL_NODE_CPU) return node;
    for (int k = 0; k < b->node[node].nlinks; k++) {
        const struct kl_builder_link *l = &b->node[node].link[k];
        enum kl_node_type far = b->node[l->to].node.type;

        if (l->type != KL_PATH_PCI || l->to == from || (far != KL_NODE_PCI && far != KL_NODE_CPU)) continue;
        int found = cpu_by_pci(b, l->to, node);
        if (found >= 0) return found;
    }
    return -1;
}

/* The switch that an element describes a link of; -1 when it was left out. */
static int owner_switch(const struct kl_place *p, int elem)
{
    const char *busid = kl_xml_attr(p->xml, kl_xml_parent(p->xml, elem), "busid");

    return busid ? kl_builder_find(p->b, KL_NODE_PCI, kl_build_id(p->host, kl_busid_parse(busid))) : -1;
}

/* The node of the GPU, or of its partition, that contains a link's element; -1 when it was left out. */
static int owner_gpu(const struct kl_place *p, int elem)
{
    int gpu = kl_xml_parent(p->xml, elem), device = kl_xml_parent(p->xml, gpu);
    const char *busid = kl_xml_attr(p->xml, device, "busid");

    if (!busid || !kl_xml_attr(p->xml, gpu, "rank")) return -1;
    return kl_builder_find(p->b, KL_NODE_GPU, kl_build_gpu_id(p, kl_busid_parse(busid), kl_build_partition(p, gpu)));
}

/* The nodes of a GPU: one, or one per partition. */
static int nodes_of_gpu(const struct kl_place *p, uint64_t busid, int node[KL_PARTITIONS])
{
    int n = 0, whole = kl_builder_find(p->b, KL_NODE_GPU, kl_build_id(p->host, busid));

    if (whole >= 0) return node[0] = whole, 1;
    for (int partition = 0; p->split && partition < KL_PARTITIONS; partition++) {
        int found = kl_builder_find(p->b, KL_NODE_GPU, kl_build_gpu_id(p, busid, partition));
        if (found >= 0 && p->b->node[found].node.gpu.partition == partition) node[n++] = found;
    }
    return n;
}

/* How many devices share the links of a GPU's node. */
static int sharers(const struct kl_place *p, int gpu)
{
    uint64_t own = kl_id_local(p->b->node[gpu].node.id);
    int node[KL_PARTITIONS];

    return p->b->node[gpu].node.gpu.partition < 0 || !p->split ? 1 : nodes_of_gpu(p, own & ~(uint64_t)3, node);
}

static ncclResult_t nvswitch(struct kl_builder *b, int *nvs)
{
    *nvs = kl_builder_find(b, KL_NODE_NVS, 0);
    return *nvs < 0 ? kl_builder_add(b, KL_NODE_NVS, 0, nvs) : ncclSuccess;
}

/* Each device of the far GPU gets its share. */
static ncclResult_t link_far_gpu(const struct kl_place *p, int elem, int gpu, float bw)
{
    int far[KL_PARTITIONS];
    const char *target;

    KL_TRY(kl_xml_need(p->xml, elem, "target", &target));
    int n = nodes_of_gpu(p, kl_busid_parse(target), far);
    for (int i = 0; i < n; i++) KL_TRY(kl_builder_link(p->b, gpu, far[i], KL_PATH_NVL, bw / (float)n));
    return ncclSuccess;
}

static ncclResult_t add_nvlink(const struct kl_place *p, int elem)
{
    int gpu = owner_gpu(p, elem), count, peer;
    enum kl_node_type end;

    if (gpu < 0) return ncclSuccess;
    KL_TRY(kl_xml_need_int(p->xml, elem, "count", &count));
    KL_TRY(kl_nvlink_end(p->xml, elem, &end));
    if (count <= 0) return ncclSuccess;
    float bw = (float)count * kl_nvlink_bw(p->b->node[gpu].node.gpu.sm, p->nccl) / (float)sharers(p, gpu);
    if (end == KL_NODE_GPU) return link_far_gpu(p, elem, gpu, bw);
    if (end == KL_NODE_CPU) {
        peer = cpu_by_pci(p->b, gpu, -1);
        return peer < 0 ? ncclSuccess : kl_build_link(p->b, gpu, peer, KL_PATH_NVL, bw);
    }
    KL_TRY(nvswitch(p->b, &peer));
    return kl_build_link(p->b, gpu, peer, KL_PATH_NVL, bw);
}

/* AMD's link between GPUs. */
static ncclResult_t add_xgmi(const struct kl_place *p, int elem)
{
    int gpu = owner_gpu(p, elem), count, peer;
    const char *target, *gcn = kl_xml_attr(p->xml, kl_xml_parent(p->xml, elem), "gcn");

    if (gpu < 0) return ncclSuccess;
    KL_TRY(kl_xml_need_int(p->xml, elem, "count", &count));
    KL_TRY(kl_xml_need(p->xml, elem, "target", &target));
    peer = kl_builder_find(p->b, KL_NODE_GPU, kl_build_id(p->host, kl_busid_parse(target)));
    float bw = gcn ? kl_xgmi_bw(gcn) : 0;
    if (peer < 0 || count <= 0) return ncclSuccess;
    if (bw <= 0)
        return kl_xml_fail(
            p->xml, elem, ncclInvalidUsage,
            "the GPU's gcn \"%s\" is not known, so neither is the speed of its XGMI links; known are 906, 908, "
            "90a, 910, 94x and 95x",
            gcn ? gcn : "");
    return kl_builder_link(p->b, gpu, peer, KL_PATH_NVL, (float)count * bw);
}

/* The node that the partitions of a GPU share on the way to their CPU. */
static ncclResult_t join_c2c(const struct kl_place *p, int gpu, int cpu, float bw)
{
    uint64_t id = p->b->node[gpu].node.id & ~(uint64_t)3;
    int shared = kl_builder_find(p->b, KL_NODE_CXB, id);

    if (shared < 0) {
        KL_TRY(kl_builder_add(p->b, KL_NODE_CXB, id, &shared));
        KL_TRY(kl_build_link(p->b, shared, cpu, KL_PATH_C2C, bw));
    }
    return kl_build_link(p->b, gpu, shared, KL_PATH_C2C, bw);
}

static ncclResult_t add_c2c(const struct kl_place *p, int elem)
{
    int gpu = owner_gpu(p, elem), mbps, count;

    if (gpu < 0) return ncclSuccess;
    KL_TRY(kl_xml_need_int(p->xml, elem, "bw", &mbps));
    KL_TRY(kl_xml_need_int(p->xml, elem, "count", &count));
    int cpu = cpu_by_pci(p->b, gpu, -1);
    if (cpu < 0 || count <= 0 || mbps <= 0) return ncclSuccess;
    float bw = (float)((double)mbps * count / 1000.0);
    if (sharers(p, gpu) > 1) return join_c2c(p, gpu, cpu, bw);
    return kl_build_link(p->b, gpu, cpu, KL_PATH_C2C, bw);
}

static ncclResult_t add_pcilink(const struct kl_place *p, int elem)
{
    int from = owner_switch(p, elem);
    const char *target;

    if (from < 0)
        return kl_xml_fail(p->xml, elem, ncclInternalError, "<pcilink> in a device that is not a switch; remove it");
    KL_TRY(kl_xml_need(p->xml, elem, "target", &target));
    int to = kl_builder_find(p->b, KL_NODE_PCI, kl_build_id(p->host, kl_busid_parse(target)));
    return to < 0 ? ncclSuccess : kl_builder_link(p->b, from, to, KL_PATH_LOC, KL_BW_LOCAL);
}

/* Visit every element with a tag, knowing the host it belongs to. */
static ncclResult_t for_each(struct kl_place *p, const char *tag, ncclResult_t (*add)(const struct kl_place *, int))
{
    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(p->xml, KL_XML_ROOT, e)) {
        if (!strcmp(kl_xml_tag(p->xml, e), "cpu")) KL_TRY(kl_builder_host(p->b, kl_xml_host_hash(p->xml, e), &p->host));
        if (!strcmp(kl_xml_tag(p->xml, e), tag)) KL_TRY(add(p, e));
    }
    return ncclSuccess;
}

ncclResult_t kl_build_links(struct kl_place *p)
{
    KL_TRY(for_each(p, "nvlink", add_nvlink));
    KL_TRY(for_each(p, "xgmi", add_xgmi));
    KL_TRY(for_each(p, "c2c", add_c2c));
    return for_each(p, "pcilink", add_pcilink);
}
