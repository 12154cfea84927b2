/* SPDX-License-Identifier: Apache-2.0 */
/* A row of the table of known machines as a document. */
#include "topo/known.h"

#include "base/error.h"
#include "topo/pcie.h"
#include "topo/types.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_GPUS = 16, MAX_BUS = 255 };

static const char *const switch_target = "fffffff:ffff:ff"; /* as NCCL writes NVSwitches that the host does not see */

/* ---- NVLinks ---- */

ncclResult_t kl_known_link(struct kl_xml *xml, int gpu, const char *target, int count)
{
    int link;

    KL_TRY(kl_xml_add(xml, gpu, "nvlink", &link));
    KL_TRY(kl_xml_set(xml, link, "target", target ? target : switch_target));
    KL_TRY(kl_xml_set_int(xml, link, "count", count));
    return kl_xml_set(xml, link, "tclass", target ? "0x030200" : "0x068000");
}

/* NVLinks between two GPUs of the hybrid cube mesh. */
static int cube_links(enum kl_wiring wiring, int a, int b)
{
    static const char v100[8][9] = {"-1122...", "1-21.2..", "12-2..1.", "212-...1",
                                    "2...-112", ".2..1-21", "..1.12-2", "...1212-"};
    static const char p100[8][9] = {"-1111...", "1-11.1..", "11-1..1.", "111-...1",
                                    "1...-111", ".1..1-11", "..1.11-1", "...1111-"};
    char c = (wiring == KL_WIRING_CUBE ? p100 : v100)[a][b];

    return isdigit((unsigned char)c) ? c - '0' : 0;
}

/* NVLinks between GPUs a and b of n, which have `links` each. */
static int links_between(enum kl_wiring wiring, int n, int links, int a, int b)
{
    if (a == b) return 0;
    if (wiring == KL_WIRING_PAIRS) return a / 2 == b / 2 ? links : 0;
    if (wiring == KL_WIRING_ALL) return links / (n - 1);
    return cube_links(wiring, a, b);
}

static bool has_place(enum kl_wiring wiring, int n)
{
    if (wiring == KL_WIRING_CUBE || wiring == KL_WIRING_CUBE_V100) return n == 8;
    return wiring != KL_WIRING_PAIRS || n % 2 == 0;
}

static ncclResult_t wire_one(struct kl_xml *xml, const int *pci, int n, int i, enum kl_wiring wiring, int links)
{
    int gpu = kl_xml_child(xml, pci[i], "gpu");

    if (wiring == KL_WIRING_SWITCH) return kl_known_link(xml, gpu, NULL, links);
    for (int k = 0; k < n; k++) {
        int count = links_between(wiring, n, links, i, k);

        if (count) KL_TRY(kl_known_link(xml, gpu, kl_xml_attr(xml, pci[k], "busid"), count));
    }
    return ncclSuccess;
}

ncclResult_t kl_known_wire(struct kl_xml *xml, const int *pci, int n, enum kl_wiring wiring, int links, bool *wired)
{
    *wired = wiring != KL_WIRING_NONE && has_place(wiring, n);
    for (int i = 0; *wired && i < n; i++) KL_TRY(wire_one(xml, pci, n, i, wiring, links));
    return ncclSuccess;
}

/* ---- nets ---- */

/* As the plugins call them: mlx5_3, rdmap79s0 by its place, eth0. */
static void net_name(enum kl_nic_kind kind, const char *busid, int number, char *name, size_t bytes)
{
    uint64_t id = busid ? kl_busid_parse(busid) : 0;

    if (kind == KL_NIC_EFA && busid)
        snprintf(name, bytes, "rdmap%ds%d", kl_busid_bus(id), kl_busid_device(id));
    else
        snprintf(name, bytes, "%s%d",
                 kind == KL_NIC_SLINGSHOT                        ? "cxi"
                 : kind == KL_NIC_SOCKETS || kind == KL_NIC_TCPX ? "eth"
                                                                 : "mlx5_",
                 number);
}

static ncclResult_t add_net(struct kl_xml *xml, int nic, const char *busid, enum kl_nic_kind kind, int gbps, int port,
                            int host, int number)
{
    const struct kl_nic_traits *traits = &kl_nic_traits[kind];
    char name[64], latency[32];
    int net;

    net_name(kind, busid, number, name, sizeof name);
    snprintf(latency, sizeof latency, "%g", (double)traits->latency_us);
    KL_TRY(kl_xml_add(xml, nic, "net", &net));
    KL_TRY(kl_xml_set(xml, net, "name", name));
    KL_TRY(kl_xml_set_int(xml, net, "dev", number));
    KL_TRY(kl_xml_set_int(xml, net, "speed", gbps * 1000));
    KL_TRY(kl_xml_set_int(xml, net, "port", port));
    KL_TRY(kl_xml_set(xml, net, "latency", latency));
    KL_TRY(kl_xml_set_hex(xml, net, "guid", 0x10000u + 0x100u * (unsigned)host + (unsigned)(number - port + 1)));
    KL_TRY(kl_xml_set_int(xml, net, "maxconn", traits->max_comms));
    return kl_xml_set_int(xml, net, "gdr", traits->gdr);
}

ncclResult_t kl_known_nets(struct kl_xml *xml, int pci, enum kl_nic_kind kind, int gbps, int ports, int host,
                           int *number)
{
    int nic;

    KL_TRY(kl_xml_add(xml, pci, "nic", &nic));
    for (int p = 1; p <= ports; p++)
        KL_TRY(add_net(xml, nic, kl_xml_attr(xml, pci, "busid"), kind, gbps, p, host, (*number)++));
    return ncclSuccess;
}

/* ---- the tree ---- */

struct maker {
    const struct kl_known *machine;
    const struct kl_gpu_product *product;
    struct kl_xml *xml;
    int host;
    int bus, nodes;    /* given out on this host */
    int gpus, nets;    /* on all of them, and on this one */
    int pci[MAX_GPUS]; /* of this host's GPUs */
    int npci;
};

/* The lowest generation of PCIe that a card of this speed needs; sixteen lanes carry 100 Gb/s with the third. */
static int generation_of_nic(int gbps)
{
    return gbps > 400 ? 6 : gbps > 200 ? 5 : gbps > 100 ? 4 : 3;
}

static ncclResult_t add_pci(struct maker *m, int parent, const char *class, int generation, int *pci)
{
    char busid[32];

    if (++m->bus > MAX_BUS) return KL_FAIL(ncclInternalError, "%s: a layout of too many devices", m->machine->name);
    snprintf(busid, sizeof busid, "0000:%02x:00.0", (unsigned)m->bus);
    KL_TRY(kl_xml_add(m->xml, parent, "pci", pci));
    KL_TRY(kl_xml_set(m->xml, *pci, "busid", busid));
    KL_TRY(kl_xml_set(m->xml, *pci, "class", class));
    KL_TRY(kl_xml_set(m->xml, *pci, "link_speed", kl_pcie_generation(generation)->speed));
    return kl_xml_set(m->xml, *pci, "link_width", "16");
}

static ncclResult_t add_c2c(struct maker *m, int gpu)
{
    int c2c;

    KL_TRY(kl_xml_add(m->xml, gpu, "c2c", &c2c));
    KL_TRY(kl_xml_set_int(m->xml, c2c, "bw", 44712)); /* as a dump of GB300 has it */
    return kl_xml_set_int(m->xml, c2c, "count", 5);
}

static ncclResult_t add_gpu(struct maker *m, int parent)
{
    int pci, gpu;

    if (m->npci == MAX_GPUS) return KL_FAIL(ncclInternalError, "%s: a layout of too many GPUs", m->machine->name);
    KL_TRY(add_pci(m, parent, "0x030200", m->product->pcie, &pci));
    KL_TRY(kl_xml_set(m->xml, pci, "vendor", "0x10de"));
    KL_TRY(kl_xml_set_hex(m->xml, pci, "device", (uint64_t)m->product->device[0]));
    KL_TRY(kl_xml_add(m->xml, pci, "gpu", &gpu));
    KL_TRY(kl_xml_set_int(m->xml, gpu, "dev", m->npci));
    KL_TRY(kl_xml_set_int(m->xml, gpu, "sm", m->product->sm));
    KL_TRY(kl_xml_set_int(m->xml, gpu, "rank", m->gpus++));
    KL_TRY(kl_xml_set_int(m->xml, gpu, "gdr", 1));
    m->pci[m->npci++] = pci;
    return m->product->c2c ? add_c2c(m, gpu) : ncclSuccess;
}

static ncclResult_t add_nic(struct maker *m, int parent)
{
    const struct kl_known *k = m->machine;
    const struct kl_nic_traits *traits = &kl_nic_traits[k->nic];
    int pci;

    KL_TRY(add_pci(m, parent, traits->pci_class, generation_of_nic(k->gbps * k->ports), &pci));
    KL_TRY(kl_xml_set(m->xml, pci, "vendor", traits->vendor));
    KL_TRY(kl_xml_set(m->xml, pci, "device", traits->device));
    return kl_known_nets(m->xml, pci, k->nic, k->gbps, k->ports, m->host, &m->nets);
}

static ncclResult_t add_cpu(struct maker *m, const char *at, uint64_t host, int *cpu)
{
    const struct kl_known_cpu *c = m->machine->cpu;
    bool numbered = isdigit((unsigned char)at[0]) && at[1] == ':';

    KL_TRY(kl_xml_add(m->xml, KL_XML_ROOT, "cpu", cpu));
    if (host) KL_TRY(kl_xml_set_hex(m->xml, *cpu, "host_hash", host));
    KL_TRY(kl_xml_set_int(m->xml, *cpu, "numaid", numbered ? *at - '0' : m->nodes));
    m->nodes++;
    KL_TRY(kl_xml_set(m->xml, *cpu, "affinity", "")); /* not of this machine's CPUs */
    KL_TRY(kl_xml_set(m->xml, *cpu, "arch", c->arch));
    if (!c->vendor) return ncclSuccess;
    KL_TRY(kl_xml_set(m->xml, *cpu, "vendor", c->vendor));
    KL_TRY(kl_xml_set_int(m->xml, *cpu, "familyid", c->family));
    return kl_xml_set_int(m->xml, *cpu, "modelid", c->model);
}

static const char *end_of(const char *item)
{
    if (*item == '(')
        while (*item != ')') item++;
    return item + 1;
}

static ncclResult_t add_item(struct maker *m, int parent, const char *item);

/* Add the items from `at` to `end`; a number repeats the item after it. */
static ncclResult_t add_items(struct maker *m, int parent, const char *at, char end)
{
    for (int times = 1; *at && *at != end;) {
        if (isdigit((unsigned char)*at) && at[1] == ':') {
            at += 2;
            continue;
        }
        if (isdigit((unsigned char)*at)) {
            times = *at++ - '0';
            continue;
        }
        for (; times > 0; times--) KL_TRY(add_item(m, parent, at));
        at = end_of(at);
        times = 1;
    }
    return ncclSuccess;
}

static ncclResult_t add_item(struct maker *m, int parent, const char *item)
{
    int pci;

    if (*item == 'G') return add_gpu(m, parent);
    if (*item == 'N') return add_nic(m, parent);
    KL_TRY(add_pci(m, parent, "0x060400", m->product->pcie, &pci));
    return add_items(m, pci, item + 1, ')');
}

static ncclResult_t add_host(struct maker *m, int host, uint64_t hash)
{
    int cpu;
    bool wired;

    m->host = host;
    m->bus = m->nodes = m->npci = m->nets = 0;
    for (const char *at = m->machine->layout; at; at = strchr(at, '|')) {
        at += *at == '|';
        KL_TRY(add_cpu(m, at, hash, &cpu));
        KL_TRY(add_items(m, cpu, at, '|'));
    }
    return kl_known_wire(m->xml, m->pci, m->npci, m->machine->wiring, m->product->links, &wired);
}

static ncclResult_t make(struct maker *m, int trays)
{
    int root;

    KL_TRY(kl_xml_add(m->xml, KL_XML_NONE, "system", &root));
    KL_TRY(kl_xml_set(m->xml, root, "version", "1"));
    for (int t = 0; t < trays; t++) KL_TRY(add_host(m, t, trays > 1 ? 0x1000u + (unsigned)t : 0));
    return ncclSuccess;
}

ncclResult_t kl_known_document(const struct kl_known *machine, int trays, struct kl_xml **xml)
{
    struct maker m = {.machine = machine, .product = kl_known_product(machine)};
    char name[64];

    if (!m.product) return KL_FAIL(ncclInternalError, "%s: no product \"%s\"", machine->name, machine->gpu);
    if (machine->trays > 1)
        snprintf(name, sizeof name, "%s:%d", machine->name, trays);
    else
        snprintf(name, sizeof name, "%s", machine->name);
    KL_TRY(kl_xml_create(name, &m.xml));
    ncclResult_t rc = make(&m, trays);
    if (rc)
        kl_xml_free(m.xml);
    else
        *xml = m.xml;
    return rc;
}
