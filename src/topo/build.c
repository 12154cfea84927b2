/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/log.h"
#include "base/parse.h"
#include "topo/build_make.h"
#include "topo/facts.h"
#include "topo/pcie.h"

#include <stdlib.h>
#include <string.h>

/* ---- words of the format ---- */

static const struct kl_xml_word archs[] = {
    {"x86_64", KL_ARCH_X86}, {"arm64", KL_ARCH_ARM}, {"ppc64", KL_ARCH_POWER}, {NULL, 0}};

static const struct kl_xml_word vendors[] = {{"GenuineIntel", KL_VENDOR_INTEL},
                                             {"AuthenticAMD", KL_VENDOR_AMD},
                                             {"CentaurHauls", KL_VENDOR_ZHAOXIN},
                                             {"  Shanghai  ", KL_VENDOR_ZHAOXIN},
                                             {NULL, 0}};

/* 100 Mb/s per lane. */
static int lane_speed(const char *text)
{
    const struct kl_pcie *pcie = kl_pcie_of_speed(text);

    if (pcie) return pcie->lane;
    KL_INFO(KL_GRAPH, "PCI link speed \"%s\" is not known, taken as 8 GT/s", text);
    return kl_pcie_generation(KL_PCIE_ASSUMED)->lane;
}

static const float partition_bw = 2618.0f; /* between the partitions of a GPU, GB/s */

/* ---- the walk ---- */

bool kl_net_guid_counts(const char *guid, int nccl)
{
    return !strncmp(guid, "0x", 2) || kl_nccl_has(nccl, KL_CHANGE_ASIC_BY_NODE);
}

uint64_t kl_net_asic(const struct kl_xml *xml, int elem, uint64_t node, int nccl)
{
    const char *guid = kl_xml_attr(xml, elem, "guid");

    if (!guid && kl_nccl_has(nccl, KL_CHANGE_ASIC_BY_NODE)) return node;
    if (!guid) return (uint64_t)(int64_t)kl_xml_int(xml, elem, "dev", -1);
    return kl_net_guid_counts(guid, nccl) ? kl_parse_hex(guid) : 0;
}

static float net_bw(const struct kl_xml *xml, int elem)
{
    int mbps = kl_xml_int(xml, elem, "speed", 0);

    return (float)((mbps > 0 ? mbps : 10000) / 8000.0);
}

static uint64_t net_id(const struct kl_place *p, int elem)
{
    return kl_build_id(p->host, (uint64_t)(int64_t)kl_xml_int(p->xml, elem, "dev", -1));
}

/* eth0, enp3s0, bond0: networks over TCP have names of interfaces, others names of RDMA devices. */
static bool is_interface(const char *name)
{
    return name && (!strncmp(name, "eth", 3) || !strncmp(name, "en", 2) || !strncmp(name, "bond", 4));
}

static ncclResult_t add_net(const struct kl_place *p, int elem, int nic)
{
    int dev = kl_xml_int(p->xml, elem, "dev", -1), node;

    KL_TRY(kl_builder_add(p->b, KL_NODE_NET, net_id(p, elem), &node));
    struct kl_node *n = &p->b->node[node].node;
    n->net.dev = dev;
    n->net.asic = kl_net_asic(p->xml, elem, n->id, p->nccl);
    n->net.pci = kl_id_local(p->b->node[nic].node.id) ? kl_id_local(p->b->node[nic].node.id) : n->net.asic;
    n->net.rail = kl_xml_int(p->xml, elem, "rail", -1);
    n->net.plane = kl_xml_int(p->xml, elem, "plane", -1);
    n->net.bw = net_bw(p->xml, elem);
    n->net.latency = kl_latency(kl_xml_float(p->xml, elem, "latency", 0));
    n->net.port = kl_xml_int(p->xml, elem, "port", 0);
    n->net.gdr = kl_xml_int(p->xml, elem, "gdr", 0);
    n->net.coll = kl_xml_int(p->xml, elem, "coll", 0);
    n->net.max_channels = kl_xml_int(p->xml, elem, "maxconn", 64);
    n->net.tcp = is_interface(kl_xml_attr(p->xml, elem, "name"));
    return kl_build_link(p->b, nic, node, KL_PATH_NET, n->net.bw);
}

/* A further role of a NIC (GIN, RMA) gets a node of its own. */
static ncclResult_t add_role(const struct kl_place *p, int elem, int nic, const char *attr, enum kl_node_type type)
{
    int node;

    if (kl_xml_int(p->xml, elem, attr, 0) != 1) return ncclSuccess;
    KL_TRY(kl_builder_add(p->b, type, net_id(p, elem), &node));
    return kl_build_link(p->b, nic, node, KL_PATH_NET, net_bw(p->xml, elem));
}

static ncclResult_t add_roles(const struct kl_place *p, int elem, int nic)
{
    bool roles = kl_nccl_has(p->nccl, KL_CHANGE_GIN_NODES);

    if (!roles || kl_xml_int(p->xml, elem, "net", 1)) KL_TRY(add_net(p, elem, nic));
    if (roles) KL_TRY(add_role(p, elem, nic, "gin", KL_NODE_GIN));
    return kl_nccl_has(p->nccl, KL_CHANGE_RMA_NODES) ? add_role(p, elem, nic, "rma", KL_NODE_RMA) : ncclSuccess;
}

static ncclResult_t add_nets(const struct kl_place *p, int nic_elem, int nic)
{
    for (int e = kl_xml_child(p->xml, nic_elem, "net"); e != KL_XML_NONE; e = kl_xml_next_same(p->xml, e))
        if (kl_xml_attr(p->xml, e, "dev")) KL_TRY(add_roles(p, e, nic));
    return ncclSuccess;
}

/* The card with this id, created if it is missing; `made`: it still needs a link to its parent. */
static ncclResult_t find_nic(const struct kl_place *p, uint64_t local, int *nic, bool *made)
{
    *nic = kl_builder_find(p->b, KL_NODE_NIC, kl_build_id(p->host, local));
    *made = *nic < 0;
    return *made ? kl_builder_add(p->b, KL_NODE_NIC, kl_build_id(p->host, local), nic) : ncclSuccess;
}

/* Virtual NICs directly below a cpu share one card per host, linked to the cpu that comes first. */
static ncclResult_t add_cpu_nic(const struct kl_place *p, int elem)
{
    int nic;
    bool made;

    KL_TRY(find_nic(p, 0, &nic, &made));
    if (made) KL_TRY(kl_build_link(p->b, p->cpu, nic, KL_PATH_PCI, KL_BW_LOCAL));
    return add_nets(p, elem, nic);
}

static int fabric_state(const char *name)
{
    int i = KL_FABRIC_STATES - 1;

    while (i > 0 && (!name || strcmp(name, kl_fabric_state_name[i]) != 0)) i--;
    return i;
}

static ncclResult_t add_gpu(const struct kl_place *p, int elem, uint64_t busid, int *node)
{
    int sm, rank, dev, gdr, partition = kl_build_partition(p, elem);

    KL_TRY(kl_xml_need_int(p->xml, elem, "sm", &sm));
    KL_TRY(kl_xml_need_int(p->xml, elem, "rank", &rank));
    KL_TRY(kl_xml_need_int(p->xml, elem, "dev", &dev));
    KL_TRY(kl_xml_need_int(p->xml, elem, "gdr", &gdr));
    KL_TRY(kl_builder_add(p->b, KL_NODE_GPU, kl_build_gpu_id(p, busid, partition), node));
    struct kl_node *n = &p->b->node[*node].node;
    n->gpu.made = *node;
    n->gpu.sm = sm;
    n->gpu.rank = rank;
    n->gpu.dev = dev;
    n->gpu.gdr = gdr;
    n->gpu.no_p2p = kl_xml_hex(p->xml, elem, "no_p2p");
    n->gpu.fabric = fabric_state(kl_xml_attr(p->xml, elem, "fabric"));
    n->gpu.clique = kl_xml_int(p->xml, elem, "clique", -1);
    n->gpu.partition = kl_nccl_has(p->nccl, KL_CHANGE_MLOPART) ? kl_partition_of(p->xml, elem) : -1;
    return ncclSuccess;
}

static uint64_t device_word(const struct kl_xml *xml, int elem)
{
    static const char *const part[] = {"vendor", "device", "subsystem_vendor", "subsystem_device"};
    uint64_t word = 0;

    for (int i = 0; i < 4; i++) word = (word << 16) + (uint64_t)(int64_t)kl_xml_int(xml, elem, part[i], 0);
    return word;
}

ncclResult_t kl_pci_bw(const struct kl_xml *xml, int elem, float *bw)
{
    const char *speed;
    int width;

    KL_TRY(kl_xml_need_int(xml, elem, "link_width", &width));
    KL_TRY(kl_xml_need(xml, elem, "link_speed", &speed));
    *bw = (float)((double)(width > 0 ? width : 16) * lane_speed(speed) / 80.0);
    return ncclSuccess;
}

static ncclResult_t add_pci(const struct kl_place *p, int elem, int parent);

static ncclResult_t add_switch(const struct kl_place *p, int elem, uint64_t busid, int *node)
{
    KL_TRY(kl_builder_add(p->b, KL_NODE_PCI, kl_build_id(p->host, busid), node));
    p->b->node[*node].node.pci.device = device_word(p->xml, elem);
    for (int e = kl_xml_child(p->xml, elem, "pci"); e != KL_XML_NONE; e = kl_xml_next_same(p->xml, e))
        KL_TRY(add_pci(p, e, *node));
    return ncclSuccess;
}

static ncclResult_t refuse_function(const struct kl_place *p, int elem, const char *busid)
{
    char nccl[KL_NCCL_TEXT];

    return kl_xml_fail(p->xml, elem, ncclInternalError,
                       "GPU %s: NCCL %s accepts GPUs only on PCI functions 0 and 4; give it function 0", busid,
                       kl_nccl_text(p->nccl, nccl));
}

static ncclResult_t refuse_several(const struct kl_place *p, int elem, const char *busid)
{
    char nccl[KL_NCCL_TEXT];

    return kl_xml_fail(
        p->xml, elem, ncclInvalidUsage,
        "GPU %s: several ranks share it, which is planned for its two partitions only (mlopart=\"0\" and "
        "\"1\", from NCCL 2.30.7 on, unless NCCL_TOPO_SPLIT_MLOPART=0; this is %s); use one of them (--gpus)",
        busid, kl_nccl_text(p->nccl, nccl));
}

/* The nodes of the elements below one PCI device. */
struct on_device {
    int node[KL_PARTITIONS], n;
    bool made; /* the first still needs a link to the parent */
};

/* Partitions reach each other inside the chip. */
static ncclResult_t add_gpus(const struct kl_place *p, int elem, const char *busid, struct on_device *d)
{
    uint64_t id = kl_busid_parse(busid);
    int gpu = kl_xml_child(p->xml, elem, "gpu");

    if (gpu != KL_XML_NONE && id & 3 && !kl_xml_attr(p->xml, gpu, "replica") &&
        kl_nccl_has(p->nccl, KL_CHANGE_GPU_FUNCTIONS))
        return refuse_function(p, elem, busid);
    for (; gpu != KL_XML_NONE; gpu = kl_xml_next_same(p->xml, gpu)) {
        if (!kl_xml_attr(p->xml, gpu, "rank")) continue;
        uint64_t own = kl_build_gpu_id(p, id, kl_build_partition(p, gpu));
        if (d->n && (kl_build_partition(p, gpu) < 0 || d->n == KL_PARTITIONS || p->b->node[d->node[0]].node.id == own))
            return refuse_several(p, gpu, busid);
        KL_TRY(add_gpu(p, gpu, id, &d->node[d->n++]));
    }
    return d->n < 2 ? ncclSuccess : kl_build_link(p->b, d->node[0], d->node[1], KL_PATH_LOC, partition_bw);
}

static ncclResult_t link_device(const struct kl_place *p, int elem, int parent, const struct on_device *d)
{
    float bw;

    if (!d->n || !d->made) return ncclSuccess;
    KL_TRY(kl_pci_bw(p->xml, elem, &bw));
    for (int i = 0; i < d->n; i++) {
        p->b->node[d->node[i]].up = parent;
        KL_TRY(kl_build_link(p->b, d->node[i], parent, KL_PATH_PCI, bw));
    }
    return ncclSuccess;
}

static bool has_rank(const struct kl_xml *xml, int gpu)
{
    while (gpu != KL_XML_NONE && !kl_xml_attr(xml, gpu, "rank")) gpu = kl_xml_next_same(xml, gpu);
    return gpu != KL_XML_NONE;
}

/* A device becomes the node of its contents. A switch links its children before itself: this fixes the order of links. */
static ncclResult_t add_pci(const struct kl_place *p, int elem, int parent)
{
    int gpu = kl_xml_child(p->xml, elem, "gpu"), nic = kl_xml_child(p->xml, elem, "nic"), kind;
    struct on_device d = {.made = true};
    const char *busid;

    KL_TRY(kl_build_kind(p->xml, elem, "class", &kind));
    KL_TRY(kl_xml_need(p->xml, elem, "busid", &busid));
    if (gpu != KL_XML_NONE && !has_rank(p->xml, gpu)) return ncclSuccess;
    KL_TRY(add_gpus(p, elem, busid, &d));
    if (nic != KL_XML_NONE) {
        d.n = 1; /* if a device is both, the NIC is linked */
        KL_TRY(find_nic(p, kl_busid_parse(busid), &d.node[0], &d.made));
        KL_TRY(add_nets(p, nic, d.node[0]));
    } else if (gpu == KL_XML_NONE && kind == KL_NODE_PCI) {
        d.n = 1;
        KL_TRY(add_switch(p, elem, kl_busid_parse(busid), &d.node[0]));
    }
    return link_device(p, elem, parent, &d);
}

static int intel_model(int family, int model, int nccl)
{
    bool granite = model >= 0xad && model <= 0xaf; /* Granite Rapids, and Sierra Forest */

    if (family != 6 || model < 0x55) return KL_MODEL_BDW;
    if (model >= 0xcf || (granite && kl_nccl_has(nccl, KL_CHANGE_INTEL_GRANITE))) return KL_MODEL_ERP;
    return model >= 0x8f ? KL_MODEL_SRP : KL_MODEL_SKL;
}

/* Files hold the family as processors' manuals count it, or shifted, as older releases wrote it. */
static int amd_model(int family)
{
    if (family == 26 || family == 0xbf) return KL_MODEL_ZEN_5;
    return family == 25 || family == 0xaf ? KL_MODEL_ZEN_3_4 : KL_MODEL_ZEN_1_2;
}

static bool has_model(int vendor, int nccl)
{
    if (vendor == KL_VENDOR_AMD) return kl_nccl_has(nccl, KL_CHANGE_AMD_MODELS);
    return vendor == KL_VENDOR_INTEL || vendor == KL_VENDOR_ZHAOXIN;
}

static ncclResult_t read_processor(const struct kl_xml *xml, int elem, int nccl, struct kl_node *n)
{
    int family, model = 0;

    n->cpu.vendor = n->cpu.model = -1;
    KL_TRY(kl_xml_need_word(xml, elem, "arch", archs, &n->cpu.arch));
    if (n->cpu.arch != KL_ARCH_X86) return ncclSuccess;
    KL_TRY(kl_xml_need_word(xml, elem, "vendor", vendors, &n->cpu.vendor));
    if (!has_model(n->cpu.vendor, nccl)) return ncclSuccess;
    KL_TRY(kl_xml_need_int(xml, elem, "familyid", &family));
    if (n->cpu.vendor != KL_VENDOR_AMD) KL_TRY(kl_xml_need_int(xml, elem, "modelid", &model));
    if (n->cpu.vendor == KL_VENDOR_AMD)
        n->cpu.model = amd_model(family);
    else if (n->cpu.vendor == KL_VENDOR_INTEL)
        n->cpu.model = intel_model(family, model, nccl);
    else if (family == 7 && model == 0x5b)
        n->cpu.model = KL_MODEL_YONGFENG;
    return ncclSuccess;
}

static ncclResult_t add_cpu(struct kl_place *p, int elem)
{
    const char *affinity = kl_xml_attr(p->xml, elem, "affinity");
    struct kl_cpuset cpus = {{0}};
    int numa;

    KL_TRY(kl_xml_need_int(p->xml, elem, "numaid", &numa));
    KL_TRY(kl_builder_host(p->b, kl_xml_host_hash(p->xml, elem), &p->host));
    KL_TRY(kl_builder_add(p->b, KL_NODE_CPU, kl_build_id(p->host, (uint64_t)(int64_t)numa), &p->cpu));
    struct kl_node *n = &p->b->node[p->cpu].node;
    if (affinity && !kl_cpuset_parse_map(affinity, &cpus))
        KL_INFO(KL_GRAPH, "CPU %d: affinity \"%s\" is not a set of CPUs and is ignored", numa, affinity);
    KL_TRY(kl_builder_cpus(p->b, &cpus, &n->cpu.cpus));
    KL_TRY(read_processor(p->xml, elem, p->nccl, n));
    for (int e = kl_xml_first(p->xml, elem); e != KL_XML_NONE; e = kl_xml_next(p->xml, e)) {
        if (!strcmp(kl_xml_tag(p->xml, e), "pci")) KL_TRY(add_pci(p, e, p->cpu));
        if (!strcmp(kl_xml_tag(p->xml, e), "nic")) KL_TRY(add_cpu_nic(p, e));
    }
    return ncclSuccess;
}

/* ---- sockets, and the order of links ---- */

static float socket_bw(const struct kl_node *cpu, int nccl)
{
    static const float intel[] = {[KL_MODEL_BDW] = 6, [KL_MODEL_SKL] = 10, [KL_MODEL_SRP] = 22, [KL_MODEL_ERP] = 40};
    static const float amd[] = {[KL_MODEL_ZEN_1_2] = 16, [KL_MODEL_ZEN_3_4] = 24, [KL_MODEL_ZEN_5] = 32};

    if (cpu->cpu.arch == KL_ARCH_POWER) return 32;
    if (cpu->cpu.arch == KL_ARCH_ARM) return 6;
    if (cpu->cpu.arch != KL_ARCH_X86) return KL_BW_LOCAL;
    if (cpu->cpu.vendor == KL_VENDOR_INTEL) return intel[cpu->cpu.model];
    if (cpu->cpu.vendor == KL_VENDOR_AMD)
        return cpu->cpu.model > 0 && kl_nccl_has(nccl, KL_CHANGE_AMD_SOCKETS) ? amd[cpu->cpu.model] : 16;
    if (cpu->cpu.vendor == KL_VENDOR_ZHAOXIN) return cpu->cpu.model == KL_MODEL_YONGFENG ? 9 : 6;
    return KL_BW_LOCAL;
}

static ncclResult_t link_sockets(struct kl_builder *b, int nccl)
{
    for (int i = 0; i < b->nnodes; i++)
        for (int k = 0; b->node[i].node.type == KL_NODE_CPU && k < b->nnodes; k++) {
            const struct kl_node *x = &b->node[i].node, *y = &b->node[k].node;

            if (y->type != KL_NODE_CPU || i == k || kl_id_host(x->id) != kl_id_host(y->id)) continue;
            KL_TRY(kl_builder_link(b, i, k, KL_PATH_SYS, socket_bw(x, nccl)));
        }
    return ncclSuccess;
}

/* Searches try links in order: in every node below a CPU the link up the PCI tree comes last. */
static void uplinks_last(struct kl_builder *b, int node, int up)
{
    struct kl_builder_node *n = &b->node[node];

    for (int k = 0; up >= 0 && k < n->nlinks; k++) {
        if (n->link[k].to != up) continue;
        struct kl_builder_link uplink = n->link[k];
        memmove(&n->link[k], &n->link[k + 1], (size_t)(n->nlinks - k - 1) * sizeof *n->link);
        n->link[n->nlinks - 1] = uplink;
        break;
    }
    for (int k = 0; k < n->nlinks; k++)
        if (n->link[k].type == KL_PATH_PCI && n->link[k].to != up) uplinks_last(b, n->link[k].to, node);
}

/* ---- the whole ---- */

static ncclResult_t build(struct kl_builder *b, const struct kl_xml *xml, const struct kl_topo_options *o)
{
    bool split = o->split_mlopart && kl_nccl_has(o->nccl, KL_CHANGE_MLOPART);
    struct kl_place p = {.xml = xml, .b = b, .nccl = o->nccl, .split = split};

    for (int e = kl_xml_child(xml, KL_XML_ROOT, "cpu"); e != KL_XML_NONE; e = kl_xml_next_same(xml, e))
        KL_TRY(add_cpu(&p, e));
    KL_TRY(kl_build_links(&p));
    KL_TRY(kl_builder_flatten_switches(b));
    KL_TRY(link_sockets(b, o->nccl));
    for (int i = 0; i < b->nnodes; i++)
        if (b->node[i].node.type == KL_NODE_CPU) uplinks_last(b, i, -1);
    return ncclSuccess;
}

ncclResult_t kl_topo_build(const struct kl_xml *xml, const struct kl_topo_options *options, struct kl_topo **out)
{
    struct kl_builder b = {0};
    struct kl_topo *t;
    ncclResult_t rc;

    KL_TRY(kl_xml_check_system(xml));
    KL_TRY_OR(rc, out, build(&b, xml, options));
    KL_TRY_OR(rc, out, kl_builder_finish(&b, &t));
    t->options = *options;
    t->options.force_merge = NULL; /* the text need not outlive the call */
    *out = t;
out:
    kl_builder_fini(&b);
    return rc;
}
