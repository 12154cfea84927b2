/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/machine.h"

#include "base/error.h"
#include "base/parse.h"
#include "logs/log_make.h"
#include "topo/pcie.h"
#include "topo/product.h"
#include "topo/topo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the generation ---- */

/* GB/s of one NVLink by generation; a whole number of them makes up what is printed. */
static int links_of(double bw, double each)
{
    double n = bw / each;
    int whole = (int)(n + 0.5);

    return whole >= 1 && whole <= 72 && fabs(n - whole) < 0.02 * whole / (whole + 1.0) + 0.002 ? whole : 0;
}

/* The generation that the printed bandwidth to the NVSwitch, or between GPUs, is a multiple of. */
static int sm_of_nvlinks(const struct kl_log *log, int system, int nccl)
{
    enum { FULL = 18, V100 = 6 }; /* links of one GPU */
    static const int generations[] = {70, 90, 86};
    double widest = 0;

    for (int i = log->system[system].first; i >= 0; i = log->node[i].next)
        if (log->node[i].link == KL_PATH_NVL && log->node[i].bw > widest) widest = log->node[i].bw;
    if (widest <= 0) return 0;
    if (fabs(widest - FULL * kl_nvlink_bw(100, nccl)) < 0.3) return 100;
    if (fabs(widest - FULL * kl_nvlink_bw(90, nccl)) < 0.3 || fabs(widest - FULL * kl_nvlink_bw(80, nccl)) < 0.3)
        return 90;
    for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++) {
        int sm = generations[i], links = links_of(widest, kl_nvlink_bw(sm, nccl));

        if (links) return sm == 70 && links > V100 ? 80 : sm;
    }
    return 0;
}

static int find_sm(const struct kl_log *log, int system, int nccl, struct kl_log_assumed *assumed)
{
    for (int i = 0; i < log->ndevice; i++) {
        int sm = kl_gpu_sm_like(log->device[i].name);

        if (!sm) continue;
        *assumed = (struct kl_log_assumed){sm, "by its name"};
        return sm;
    }
    int sm = sm_of_nvlinks(log, system, nccl);

    *assumed = (struct kl_log_assumed){sm ? sm : 80, sm ? "by its NVLinks" : "as the log does not tell"};
    return assumed->sm;
}

/* ---- elements ---- */

struct making {
    const struct kl_log *log;
    int system;
    struct kl_xml *xml;
    int *elem; /* by node: the element that its children hang on */
    int nets, gpus, sm, nccl, lowest;
};

/* "0-17000": the host's number, and what is behind it. */
static const char *local_id(const char *id, int *host)
{
    const char *dash = strchr(id, '-');

    *host = dash ? (int)strtol(id, NULL, 16) : 0;
    return dash ? dash + 1 : id;
}

static uint64_t busid_of(const char *id)
{
    int host;

    return kl_busid_parse(local_id(id, &host));
}

/* The link whose bandwidth is nearest to what was printed. */
static ncclResult_t set_link(const struct making *k, int e, double bw)
{
    double best = INFINITY;
    int generation = 4, width = 16;

    for (int w = 16; w >= 1; w /= 2)
        for (int g = 1; g <= KL_PCIE_GENERATIONS; g++) {
            double off = fabs(w * kl_pcie_generation(g)->lane / 80.0 - bw);

            if (off >= best) continue;
            best = off;
            generation = g;
            width = w;
        }
    KL_TRY(kl_xml_set(k->xml, e, "link_speed", kl_pcie_generation(generation)->speed));
    return kl_xml_set_int(k->xml, e, "link_width", width);
}

/* "1/2/-1": arch, vendor, model. */
static void read_triple(const char *at, int *arch, int *vendor, int *model)
{
    if (!kl_log_int(&at, arch) || *at++ != '/') return;
    if (!kl_log_int(&at, vendor) || *at++ != '/') return;
    kl_log_int(&at, model);
}

/* Of the processors that a log's release does not tell apart, the oldest. */
static int family_of(int vendor, int model)
{
    if (vendor == KL_VENDOR_AMD) return model == KL_MODEL_ZEN_5 ? 26 : model == KL_MODEL_ZEN_3_4 ? 25 : 23;
    return vendor == KL_VENDOR_ZHAOXIN ? 7 : 6;
}

static ncclResult_t add_cpu(struct making *k, int node)
{
    const struct kl_log_node *n = &k->log->node[node];
    int host, arch = 1, vendor = -1, model = -1, e;
    const char *id = local_id(n->id, &host);

    read_triple(n->more, &arch, &vendor, &model);
    KL_TRY(kl_xml_add(k->xml, KL_XML_ROOT, "cpu", &e));
    k->elem[node] = e;
    if (host || strchr(n->id, '-')) KL_TRY(kl_xml_set_hex(k->xml, e, "host_hash", (uint64_t)host + 1));
    KL_TRY(kl_xml_set_int(k->xml, e, "numaid", strlen(id) > 8 ? -1 : (int)strtol(id, NULL, 16)));
    KL_TRY(kl_xml_set(k->xml, e, "arch", arch == KL_ARCH_ARM ? "arm64" : arch == KL_ARCH_POWER ? "ppc64" : "x86_64"));
    KL_TRY(kl_xml_set(k->xml, e, "vendor",
                      vendor == KL_VENDOR_AMD       ? "AuthenticAMD"
                      : vendor == KL_VENDOR_ZHAOXIN ? "CentaurHauls"
                                                    : "GenuineIntel"));
    KL_TRY(kl_xml_set_int(k->xml, e, "familyid", family_of(vendor, model)));
    return kl_xml_set_int(k->xml, e, "modelid",
                          vendor == KL_VENDOR_ZHAOXIN ? 0x5b
                          : model == KL_MODEL_ERP     ? 0xcf
                          : model == KL_MODEL_SRP     ? 0x8f
                          : model == KL_MODEL_SKL     ? 0x55
                                                      : 0x4f);
}

static ncclResult_t add_pci(struct making *k, int node, const char *class, int *e)
{
    const struct kl_log_node *n = &k->log->node[node];
    uint64_t ids = kl_parse_hex(n->more);
    char busid[KL_BUSID_TEXT];

    kl_busid_text(busid_of(n->id), busid);
    KL_TRY(kl_xml_add(k->xml, k->elem[n->parent], "pci", e));
    KL_TRY(kl_xml_set(k->xml, *e, "busid", busid));
    KL_TRY(kl_xml_set(k->xml, *e, "class", class));
    if (!strcmp(class, "0x060400")) {
        KL_TRY(kl_xml_set_hex(k->xml, *e, "vendor", ids >> 48));
        KL_TRY(kl_xml_set_hex(k->xml, *e, "device", ids >> 32 & 0xffff));
        KL_TRY(kl_xml_set_hex(k->xml, *e, "subsystem_vendor", ids >> 16 & 0xffff));
        KL_TRY(kl_xml_set_hex(k->xml, *e, "subsystem_device", ids & 0xffff));
    }
    return set_link(k, *e, n->bw);
}

static ncclResult_t add_gpu_element(struct making *k, int pci, int rank, int *gpu)
{
    KL_TRY(kl_xml_add(k->xml, pci, "gpu", gpu));
    KL_TRY(kl_xml_set_int(k->xml, *gpu, "dev", rank >= 0 ? rank : k->gpus));
    KL_TRY(kl_xml_set_int(k->xml, *gpu, "sm", k->sm));
    KL_TRY(kl_xml_set_int(k->xml, *gpu, "rank", rank >= 0 ? rank : k->gpus));
    KL_TRY(kl_xml_set_int(k->xml, *gpu, "gdr", 1));
    k->gpus++;
    return ncclSuccess;
}

/* Ranks of the host, from 0: those of other hosts are shifted by the plan. */
static int rank_of(const struct making *k, const struct kl_log_node *n)
{
    int rank;
    const char *at = n->more;

    return kl_log_int(&at, &rank) ? rank - k->lowest : -1;
}

static ncclResult_t add_gpu(struct making *k, int node)
{
    const struct kl_log_node *n = &k->log->node[node];
    int pci, gpu;

    if (n->link == KL_PATH_LOC) /* below its DEV */
        return k->elem[node] = k->elem[n->parent], ncclSuccess;
    KL_TRY(add_pci(k, node, "0x030200", &pci));
    KL_TRY(add_gpu_element(k, pci, rank_of(k, n), &gpu));
    k->elem[node] = gpu;
    return ncclSuccess;
}

static ncclResult_t add_dev(struct making *k, int node)
{
    int pci, gpu;

    KL_TRY(add_pci(k, node, "0x030200", &pci));
    KL_TRY(add_gpu_element(k, pci, -1, &gpu));
    k->elem[node] = gpu;
    return ncclSuccess;
}

static ncclResult_t add_nic(struct making *k, int node)
{
    const struct kl_log_node *n = &k->log->node[node];
    int e = k->elem[n->parent];

    if (n->bw < 1000) KL_TRY(add_pci(k, node, "0x020000", &e));
    KL_TRY(kl_xml_add(k->xml, e, "nic", &e));
    k->elem[node] = e;
    return ncclSuccess;
}

static const char *nic_name(const struct kl_log *log, int dev)
{
    for (int i = 0; i < log->nnic; i++)
        if (log->nic[i].dev == dev) return log->nic[i].name;
    return NULL;
}

static bool has_gdr(const struct kl_log *log, int dev)
{
    for (int i = 0; i < log->ngdr; i++)
        if (!log->gdr[i].by_gpu && !log->gdr[i].enabled && log->gdr[i].nic == dev) return false;
    return true;
}

/* "(7a852d0003f6ceb8/1/25.000000)", later "(0/7a85.../1/25.000000)": the speed stands last, the port before it. */
static ncclResult_t add_net(struct making *k, int node)
{
    const struct kl_log_node *n = &k->log->node[node];
    int host, e, dev = (int)strtol(local_id(n->id, &host), NULL, 16);
    const char *last = strrchr(n->more, '/'), *port = last, *guid;
    char name[32];

    if (k->elem[n->parent] < 0 || strcmp(kl_xml_tag(k->xml, k->elem[n->parent]), "nic")) return ncclSuccess;
    while (port && port > n->more && port[-1] != '/') port--;
    guid = port && port > n->more ? port - 1 : n->more;
    while (guid > n->more && guid[-1] != '/') guid--;
    snprintf(name, sizeof name, "net%d", dev);
    KL_TRY(kl_xml_add(k->xml, k->elem[n->parent], "net", &e));
    KL_TRY(kl_xml_set(k->xml, e, "name", nic_name(k->log, dev) ? nic_name(k->log, dev) : name));
    KL_TRY(kl_xml_set_int(k->xml, e, "dev", dev));
    double gbps = last ? strtod(last + 1, NULL) : n->bw;
    KL_TRY(kl_xml_set_int(k->xml, e, "speed", gbps > 0 && gbps < 100000 ? (int)(gbps * 8000 + 0.5) : 10000));
    KL_TRY(kl_xml_set_int(k->xml, e, "port", port ? (int)strtol(port, NULL, 10) : 1));
    uint64_t asic = kl_parse_hex(guid);
    KL_TRY(kl_xml_set_hex(k->xml, e, "guid", asic ? asic : (uint64_t)dev + 1));
    KL_TRY(kl_xml_set_int(k->xml, e, "maxconn", 131072));
    KL_TRY(kl_xml_set_int(k->xml, e, "gdr", has_gdr(k->log, dev)));
    k->nets++;
    return kl_xml_set_int(k->xml, e, "coll", 0);
}

static ncclResult_t add_nvlink(struct making *k, int node)
{
    const struct kl_log_node *n = &k->log->node[node];
    bool to_gpu = !strcmp(n->type, "GPU") || !strcmp(n->type, "DEV"), to_cpu = !strcmp(n->type, "CPU");
    int links = (int)(n->bw / kl_nvlink_bw(k->sm, k->nccl) + 0.5), e;
    char target[KL_BUSID_TEXT] = "fffffff:ff:ff.0";

    if (links < 1 || strcmp(kl_xml_tag(k->xml, k->elem[n->parent]), "gpu")) return ncclSuccess;
    if (to_gpu) kl_busid_text(busid_of(n->id), target);
    KL_TRY(kl_xml_add(k->xml, k->elem[n->parent], "nvlink", &e));
    KL_TRY(kl_xml_set(k->xml, e, "target", target));
    KL_TRY(kl_xml_set_int(k->xml, e, "count", links));
    return kl_xml_set(k->xml, e, "tclass", to_gpu ? "0x030200" : to_cpu ? "0x068001" : "0x068000");
}

static ncclResult_t add_c2c(struct making *k, int node)
{
    const struct kl_log_node *n = &k->log->node[node];
    int e;

    if (strcmp(kl_xml_tag(k->xml, k->elem[n->parent]), "gpu")) return ncclSuccess;
    KL_TRY(kl_xml_add(k->xml, k->elem[n->parent], "c2c", &e));
    KL_TRY(kl_xml_set_int(k->xml, e, "bw", (int)(n->bw * 1000 + 0.5)));
    return kl_xml_set_int(k->xml, e, "count", 1);
}

static ncclResult_t add_node(struct making *k, int node)
{
    const struct kl_log_node *n = &k->log->node[node];
    int e;

    k->elem[node] = -1;
    if (n->parent < 0) return strcmp(n->type, "CPU") ? ncclSuccess : add_cpu(k, node);
    if (k->elem[n->parent] < 0) return ncclSuccess;
    if (n->link == KL_PATH_NVL) return add_nvlink(k, node);
    if (n->link == KL_PATH_C2C) return add_c2c(k, node);
    if (!strcmp(n->type, "GPU")) return add_gpu(k, node);
    if (!strcmp(n->type, "DEV")) return add_dev(k, node);
    if (!strcmp(n->type, "NIC")) return add_nic(k, node);
    if (!strcmp(n->type, "NET")) return add_net(k, node);
    if (n->link != KL_PATH_PCI || strcmp(n->type, "PCI")) return ncclSuccess;
    KL_TRY(add_pci(k, node, "0x060400", &e));
    k->elem[node] = e;
    return ncclSuccess;
}

static int lowest_rank(const struct kl_log *log, int system)
{
    int lowest = -1;

    for (int i = log->system[system].first; i >= 0; i = log->node[i].next) {
        const struct kl_log_node *n = &log->node[i];
        const char *at = n->more;
        int rank;

        if (strcmp(n->type, "GPU") || n->link == KL_PATH_NVL) continue;
        if (kl_log_int(&at, &rank) && (lowest < 0 || rank < lowest)) lowest = rank;
    }
    return lowest < 0 ? 0 : lowest;
}

static ncclResult_t make(struct making *k)
{
    int root;

    KL_TRY(kl_xml_add(k->xml, KL_XML_NONE, "system", &root));
    KL_TRY(kl_xml_set_int(k->xml, root, "version", 1));
    for (int i = k->log->system[k->system].first; i >= 0; i = k->log->node[i].next) KL_TRY(add_node(k, i));
    if (!k->gpus) return KL_FAIL(ncclInvalidUsage, "%s: the system of the log holds no GPU", kl_xml_name(k->xml));
    return ncclSuccess;
}

ncclResult_t kl_log_machine(const struct kl_log *log, int system, int nccl, struct kl_xml **xml,
                            struct kl_log_assumed *assumed)
{
    struct making k = {.log = log, .system = system, .nccl = nccl, .lowest = lowest_rank(log, system)};
    const char *name = log->file[log->system[system].at.file].name;
    ncclResult_t rc;

    *xml = NULL;
    k.sm = find_sm(log, system, nccl, assumed);
    k.elem = calloc((size_t)log->nnode + 1, sizeof *k.elem);
    if (!k.elem) return KL_NOMEM("a machine of a log");
    KL_TRY_OR(rc, out, kl_xml_create(name, &k.xml));
    rc = make(&k);
out:
    free(k.elem);
    if (rc)
        kl_xml_free(k.xml);
    else
        *xml = k.xml;
    return rc;
}

/* ---- which system ---- */

int kl_log_system_of(const struct kl_log *log, const struct kl_log_comm *comm)
{
    int best = -1;

    for (int i = 0; i < log->nsystem; i++) {
        const struct kl_log_member *m = &log->member[log->system[i].member];

        if (!log->system[i].complete || (comm && m->comm != comm - log->comm)) continue;
        if (best < 0 || m->rank < log->member[log->system[best].member].rank) best = i;
    }
    return best;
}

static bool same_node(const struct kl_log_node *a, const struct kl_log_node *b)
{
    int host;

    if (a->depth != b->depth || a->link != b->link || a->bw != b->bw || strcmp(a->type, b->type)) return false;
    return !strcmp(a->type, "NET") || !strcmp(local_id(a->id, &host), local_id(b->id, &host));
}

bool kl_log_same_machine(const struct kl_log *log, int a, int b)
{
    int i = log->system[a].first, j = log->system[b].first;

    for (; i >= 0 && j >= 0; i = log->node[i].next, j = log->node[j].next)
        if (!same_node(&log->node[i], &log->node[j])) return false;
    return i < 0 && j < 0;
}
