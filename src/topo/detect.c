/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/detect.h"

#include "base/error.h"
#include "base/log.h"
#include "topo/pcie.h"
#include "topo/release.h"
#include "topo/sysfs.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_TEXT = 4096 };

static ncclResult_t set_if_absent(struct kl_xml *xml, int elem, const char *key, const char *value)
{
    return kl_xml_attr(xml, elem, key) ? ncclSuccess : kl_xml_set(xml, elem, key, value);
}

static ncclResult_t set_int_if_absent(struct kl_xml *xml, int elem, const char *key, int value)
{
    return kl_xml_attr(xml, elem, key) ? ncclSuccess : kl_xml_set_int(xml, elem, key, value);
}

/* ---- cpu ---- */

/* The facts are as older releases count them: extended family and model always count, the family's shifted. */
static ncclResult_t set_model(const struct kl_detect *d, int elem)
{
    int family = d->cpu->family, model = d->cpu->model, base = family & 15;

    if (kl_nccl_has(d->nccl, KL_CHANGE_CPUID)) {
        family = base == 15 ? base + (family >> 4) : base;
        model = base == 6 || base == 15 ? model : model & 15;
    }
    KL_TRY(kl_xml_set_int(d->xml, elem, "familyid", family));
    return kl_xml_set_int(d->xml, elem, "modelid", model);
}

static ncclResult_t complete_cpu(const struct kl_detect *d, int elem)
{
    char dir[KL_SYSFS_PATH_TEXT], text[FILE_TEXT];

    snprintf(dir, sizeof dir, "%s/devices/system/node/node%s", d->sysfs, kl_xml_attr(d->xml, elem, "numaid"));
    if (!kl_xml_attr(d->xml, elem, "affinity") && kl_sysfs_text(dir, "cpumap", text, sizeof text))
        KL_TRY(kl_xml_set(d->xml, elem, "affinity", text));
    KL_TRY(set_if_absent(d->xml, elem, "arch", d->cpu->arch));
    if (strcmp(kl_xml_attr(d->xml, elem, "arch"), "x86_64") != 0) return ncclSuccess;
    KL_TRY(set_if_absent(d->xml, elem, "vendor", d->cpu->vendor));
    return kl_xml_attr(d->xml, elem, "familyid") ? ncclSuccess : set_model(d, elem);
}

static int cpu_with(const struct kl_xml *xml, const char *numaid)
{
    int c = kl_xml_child(xml, KL_XML_ROOT, "cpu");

    for (; c != KL_XML_NONE; c = kl_xml_next_same(xml, c)) {
        const char *there = kl_xml_attr(xml, c, "numaid");
        if (there && !strcmp(there, numaid)) break;
    }
    return c;
}

ncclResult_t kl_detect_cpu(const struct kl_detect *d, int numa, int *elem)
{
    char numaid[16];
    int cpu;

    if (numa < 0 && d->only_numa >= 0) numa = d->only_numa;
    snprintf(numaid, sizeof numaid, "%d", numa);
    cpu = cpu_with(d->xml, numaid);
    if (cpu == KL_XML_NONE) {
        KL_TRY(kl_xml_add(d->xml, KL_XML_ROOT, "cpu", &cpu));
        if (d->host_hash) KL_TRY(kl_xml_set_hex(d->xml, cpu, "host_hash", d->host_hash));
        KL_TRY(kl_xml_set(d->xml, cpu, "numaid", numaid));
    }
    KL_TRY(complete_cpu(d, cpu));
    *elem = cpu;
    return ncclSuccess;
}

/* ---- pci ---- */

/* "16.0 GT/s PCIe" as 16; any other text means no limit. */
static double transfer_rate(const char *text)
{
    char *end;
    double rate = strtod(text, &end);

    return end != text && !strncmp(end, " GT/s", 5) ? rate : INFINITY;
}

/* A link is as fast as the slower of its two ends: the device and the port above it. */
static ncclResult_t complete_speed(const struct kl_detect *d, int elem, const char *dir)
{
    char device[64] = "", port[64] = "";

    if (kl_xml_attr(d->xml, elem, "link_speed")) return ncclSuccess;
    if (dir) {
        kl_sysfs_text(dir, "max_link_speed", device, sizeof device);
        kl_sysfs_text(dir, "../max_link_speed", port, sizeof port);
    }
    const char *speed = transfer_rate(port) < transfer_rate(device) ? port : device;
    bool told = *speed || !kl_nccl_has(d->nccl, KL_CHANGE_NO_LINK_SPEED);

    return kl_xml_set(d->xml, elem, "link_speed", told ? speed : kl_pcie_generation(4)->speed);
}

static ncclResult_t complete_width(const struct kl_detect *d, int elem, const char *dir)
{
    char device[64] = "", port[64] = "";

    if (kl_xml_attr(d->xml, elem, "link_width")) return ncclSuccess;
    if (!dir) return kl_xml_set(d->xml, elem, "link_width", "");
    kl_sysfs_text(dir, "max_link_width", device, sizeof device);
    kl_sysfs_text(dir, "../max_link_width", port, sizeof port);
    long a = strtol(device, NULL, 0), b = strtol(port, NULL, 0);
    return kl_xml_set_int(d->xml, elem, "link_width", (int)(a < b ? a : b));
}

static ncclResult_t complete_ids(const struct kl_detect *d, int elem, const char *dir)
{
    static const char *const id[] = {"vendor", "device", "subsystem_vendor", "subsystem_device"};
    char text[64];

    if (!dir) return ncclSuccess;
    if (kl_sysfs_text(dir, "class", text, sizeof text)) KL_TRY(kl_xml_set(d->xml, elem, "class", text));
    for (size_t i = 0; i < sizeof id / sizeof id[0]; i++)
        if (!kl_xml_attr(d->xml, elem, id[i]) && kl_sysfs_text(dir, id[i], text, sizeof text))
            KL_TRY(kl_xml_set(d->xml, elem, id[i], text));
    return ncclSuccess;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool has_pcilink(const struct kl_xml *xml, int elem, const char *target)
{
    int l = kl_xml_child(xml, elem, "pcilink");

    for (; l != KL_XML_NONE; l = kl_xml_next_same(xml, l)) {
        const char *there = kl_xml_attr(xml, l, "target");
        if (there && !strcmp(there, target)) return true;
    }
    return false;
}

static ncclResult_t add_pcilink(const struct kl_detect *d, int elem, const char *target)
{
    char dir[KL_SYSFS_PATH_TEXT];
    int link;

    if (strlen(target) != 12 || !kl_sysfs_pci_dir(d->sysfs, target, dir)) return ncclSuccess;
    if (has_pcilink(d->xml, elem, target)) return ncclSuccess;
    KL_TRY(kl_xml_add(d->xml, elem, "pcilink", &link));
    return kl_xml_set(d->xml, link, "target", target);
}

/* Broadcom's kernel module lists the switches that one is joined with inside the chip. */
static ncclResult_t complete_peers(const struct kl_detect *d, int elem, const char *busid)
{
    const char *vendor = kl_xml_attr(d->xml, elem, "vendor");
    char dir[KL_SYSFS_PATH_TEXT];
    struct dirent **entry;
    ncclResult_t rc = ncclSuccess;

    if (!vendor || strcmp(vendor, "0x1000") != 0) return ncclSuccess;
    snprintf(dir, sizeof dir, "%s/kernel/pci_switch_link/virtual_switch_links/%s", d->sysfs, busid);
    int n = scandir(dir, &entry, NULL, by_name);
    for (int i = 0; i < n; i++) {
        if (!rc) rc = add_pcilink(d, elem, entry[i]->d_name);
        free(entry[i]);
    }
    if (n >= 0) free(entry);
    return rc;
}

void kl_detect_refresh(const char *sysfs)
{
    char text[64];

    kl_sysfs_text(sysfs, "kernel/pci_switch_link/refresh_switch_toplogy", text, sizeof text);
}

/* The node as the kernel writes it, -1 where it does not. */
static int numa_of(const char *dir)
{
    char text[64];

    return kl_sysfs_text(dir, "numa_node", text, sizeof text) ? (int)strtol(text, NULL, 0) : -1;
}

/*
 * Bus id of the switch above a device, "" when the root complex is. Every second directory counts: the one in between
 * is a port of the switch above, or the root port.
 */
static void switch_above(const char *dir, char busid[KL_BUSID_TEXT])
{
    char path[KL_SYSFS_PATH_TEXT];

    *busid = 0;
    snprintf(path, sizeof path, "%s", dir);
    for (int stripped = 1;; stripped++) {
        char *slash = strrchr(path, '/');
        if (!slash) return;
        *slash = 0;
        slash = strrchr(path, '/');
        if (!slash || !kl_sysfs_is_busid(slash + 1)) return;
        if (stripped == 2) {
            snprintf(busid, KL_BUSID_TEXT, "%s", slash + 1);
            return;
        }
    }
}

static ncclResult_t find_or_make_pci(const struct kl_detect *d, const char *busid, int *elem)
{
    int e = kl_xml_find(d->xml, "pci", "busid", busid);

    if (e == KL_XML_NONE) {
        KL_TRY(kl_xml_new(d->xml, "pci", &e));
        KL_TRY(kl_xml_set(d->xml, e, "busid", busid));
    }
    *elem = e;
    return ncclSuccess;
}

/* Give an element without a parent its place below a switch (which may be new itself) or a cpu. */
static ncclResult_t find_parent(const struct kl_detect *d, int elem, const char *dir, const char *busid)
{
    char above[KL_BUSID_TEXT] = "";
    int parent;

    if (dir) switch_above(dir, above);
    if (*above)
        KL_TRY(find_or_make_pci(d, above, &parent));
    else
        KL_TRY(kl_detect_cpu(d, dir ? numa_of(dir) : -1, &parent));
    kl_xml_place(d->xml, elem, parent, busid);
    return ncclSuccess;
}

/* From a device up to its cpu; elements from a file are completed too. The way up has at most as many steps as a sysfs path. */
static ncclResult_t complete_pci(const struct kl_detect *d, int elem)
{
    char dir[KL_SYSFS_PATH_TEXT];
    const char *busid;

    for (; !strcmp(kl_xml_tag(d->xml, elem), "pci"); elem = kl_xml_parent(d->xml, elem)) {
        KL_TRY(kl_xml_need(d->xml, elem, "busid", &busid));
        const char *known = kl_sysfs_pci_dir(d->sysfs, busid, dir) ? dir : NULL;
        if (!known) KL_INFO(KL_GRAPH, "%s is not in sysfs", busid);
        KL_TRY(complete_ids(d, elem, known));
        KL_TRY(complete_speed(d, elem, known));
        KL_TRY(complete_width(d, elem, known));
        KL_TRY(complete_peers(d, elem, busid));
        if (kl_xml_parent(d->xml, elem) == KL_XML_NONE) KL_TRY(find_parent(d, elem, known, busid));
    }
    return complete_cpu(d, elem);
}

/* NCCL's text, which shortens the unit for an unknown generation. */
static const char *speed_of(int generation)
{
    const struct kl_pcie *pcie = kl_pcie_generation(generation);

    return pcie ? pcie->speed : "16.0 GT/s";
}

/* The link state that the driver reports for a GPU overrides the maximum that sysfs reports. */
static ncclResult_t set_current_link(const struct kl_detect *d, int pci, const struct kl_gpu_facts *gpu)
{
    if (!gpu->pcie_gen || !kl_nccl_has(d->nccl, KL_CHANGE_CURRENT_LINK)) return ncclSuccess;
    KL_TRY(set_if_absent(d->xml, pci, "link_speed", speed_of(gpu->pcie_gen)));
    return set_int_if_absent(d->xml, pci, "link_width", gpu->pcie_width > 0 ? gpu->pcie_width : 16);
}

/* The element of a device, complete, with a class even without one in sysfs. `gpu`: NULL for other devices. */
static ncclResult_t place_pci(const struct kl_detect *d, const char *busid, const char *class,
                              const struct kl_gpu_facts *gpu, int *elem)
{
    KL_TRY(find_or_make_pci(d, busid, elem));
    if (gpu) KL_TRY(set_current_link(d, *elem, gpu));
    KL_TRY(set_if_absent(d->xml, *elem, "class", class));
    return complete_pci(d, *elem);
}

static ncclResult_t find_or_add(struct kl_xml *xml, int parent, const char *tag, int *elem)
{
    *elem = kl_xml_child(xml, parent, tag);
    return *elem == KL_XML_NONE ? kl_xml_add(xml, parent, tag, elem) : ncclSuccess;
}

/* ---- gpu ---- */

static int nvlink_to(const struct kl_xml *xml, int gpu, const char *target)
{
    int l = kl_xml_child(xml, gpu, "nvlink");

    for (; l != KL_XML_NONE; l = kl_xml_next_same(xml, l)) {
        const char *there = kl_xml_attr(xml, l, "target");
        if (there && !strcmp(there, target)) break;
    }
    return l;
}

/* Class of the far end, NULL for sysfs to tell. */
static const char *class_of(enum kl_far_end far)
{
    return far == KL_FAR_SWITCH ? "0x068000" : far == KL_FAR_GPU ? "0x030200" : far == KL_FAR_NPU ? "0x068001" : NULL;
}

static ncclResult_t add_nvlinks(const struct kl_detect *d, int elem, const struct kl_gpu_facts *gpu)
{
    bool asked = kl_nccl_has(d->nccl, KL_CHANGE_NVLINK_FAR);
    struct kl_xml *xml = d->xml;

    if (kl_xml_child(xml, elem, "nvlink") != KL_XML_NONE) return ncclSuccess;
    for (int i = 0; i < gpu->nnvlinks && i < KL_GPU_MAX_NVLINKS; i++) {
        enum kl_far_end far = asked ? gpu->nvlink[i].far : KL_FAR_UNASKED;
        char target[KL_BUSID_TEXT];
        int link;

        if (far == KL_FAR_UNREADABLE) continue;
        kl_sysfs_busid(far == KL_FAR_SWITCH ? "fffffff:ffff:ff" : gpu->nvlink[i].target, target);
        link = nvlink_to(xml, elem, target);
        if (link == KL_XML_NONE) {
            KL_TRY(kl_xml_add(xml, elem, "nvlink", &link));
            KL_TRY(kl_xml_set(xml, link, "target", target));
            if (class_of(far)) KL_TRY(kl_xml_set(xml, link, "tclass", class_of(far)));
        }
        KL_TRY(kl_xml_set_int(xml, link, "count", kl_xml_int(xml, link, "count", 0) + gpu->nvlink[i].count));
    }
    return ncclSuccess;
}

/* The target of an NVLink: a device that sysfs shows, or a switch that it does not show (as in virtual machines). */
static ncclResult_t classify_nvlinks(const struct kl_detect *d, int elem)
{
    for (int l = kl_xml_child(d->xml, elem, "nvlink"); l != KL_XML_NONE; l = kl_xml_next_same(d->xml, l)) {
        const char *target = kl_xml_attr(d->xml, l, "target");
        char dir[KL_SYSFS_PATH_TEXT], class[64] = "";

        if (kl_xml_attr(d->xml, l, "tclass") || !target) continue;
        if (kl_sysfs_pci_dir(d->sysfs, target, dir)) kl_sysfs_text(dir, "class", class, sizeof class);
        KL_TRY(kl_xml_set(d->xml, l, "tclass", *class ? class : "0x068000"));
    }
    return ncclSuccess;
}

static ncclResult_t add_c2c(struct kl_xml *xml, int elem, const struct kl_gpu_facts *gpu)
{
    int c2c;

    if (gpu->c2c_count <= 0 || kl_xml_child(xml, elem, "c2c") != KL_XML_NONE) return ncclSuccess;
    KL_TRY(kl_xml_add(xml, elem, "c2c", &c2c));
    KL_TRY(kl_xml_set_int(xml, c2c, "bw", gpu->c2c_mbps));
    return kl_xml_set_int(xml, c2c, "count", gpu->c2c_count);
}

/* For people and Kolo: NCCL reads none of these. */
static ncclResult_t add_fabric(struct kl_xml *xml, int elem, const struct kl_gpu_facts *gpu)
{
    if (!gpu->fabric) return ncclSuccess;
    KL_TRY(kl_xml_set(xml, elem, "fabric", kl_fabric_state_name[gpu->fabric]));
    if (!*gpu->cluster) return ncclSuccess;
    KL_TRY(kl_xml_set(xml, elem, "cluster", gpu->cluster));
    return kl_xml_set_int(xml, elem, "clique", (int)gpu->clique);
}

ncclResult_t kl_detect_gpu(const struct kl_detect *d, const struct kl_gpu_facts *gpu)
{
    char busid[KL_BUSID_TEXT];
    int pci, elem;

    kl_sysfs_busid(gpu->busid, busid);
    KL_TRY(place_pci(d, busid, "0x03", gpu, &pci));
    KL_TRY(find_or_add(d->xml, pci, "gpu", &elem));
    KL_TRY(set_int_if_absent(d->xml, elem, "dev", gpu->dev));
    if (kl_xml_int(d->xml, elem, "dev", -1) == -1) return ncclSuccess;
    KL_TRY(set_int_if_absent(d->xml, elem, "sm", gpu->sm));
    KL_TRY(add_nvlinks(d, elem, gpu));
    KL_TRY(add_fabric(d->xml, elem, gpu));
    if (gpu->no_p2p) KL_TRY(kl_xml_set_hex(d->xml, elem, "no_p2p", gpu->no_p2p));
    KL_TRY(add_c2c(d->xml, elem, gpu));
    KL_TRY(classify_nvlinks(d, elem));
    KL_TRY(kl_xml_set(d->xml, elem, "keep", "1"));
    KL_TRY(kl_xml_set_int(d->xml, elem, "rank", gpu->rank));
    return set_int_if_absent(d->xml, elem, "gdr", gpu->gdr);
}

/* ---- net ---- */

static ncclResult_t net_parent(const struct kl_detect *d, const struct kl_net_facts *net, int *parent)
{
    char path[KL_SYSFS_PATH_TEXT], subsystem[64] = "";
    const char *slash;

    kl_sysfs_below(d->sysfs, net->pci_path, path);
    if (*path) kl_sysfs_link_name(path, "subsystem", subsystem, sizeof subsystem);
    slash = strrchr(path, '/');
    if (slash && !strcmp(subsystem, "pci")) return place_pci(d, slash + 1, "0x02", NULL, parent);
    if (*path) KL_INFO(KL_GRAPH, "NET %s: %s is not a PCI device, the NET is put on the first CPU", net->name, path);
    *parent = kl_xml_child(d->xml, KL_XML_ROOT, "cpu");
    return *parent == KL_XML_NONE ? kl_detect_cpu(d, -1, parent) : ncclSuccess;
}

static ncclResult_t find_or_place_net(const struct kl_detect *d, const struct kl_net_facts *net, int parent, int *elem)
{
    int nic;

    *elem = kl_xml_find(d->xml, "net", "name", net->name);
    if (*elem != KL_XML_NONE) return ncclSuccess;
    if (parent == KL_XML_NONE) KL_TRY(net_parent(d, net, &parent));
    if (!strcmp(kl_xml_tag(d->xml, parent), "nic"))
        nic = parent;
    else
        KL_TRY(find_or_add(d->xml, parent, "nic", &nic));
    KL_TRY(kl_xml_add(d->xml, nic, "net", elem));
    return kl_xml_set(d->xml, *elem, "name", net->name);
}

static ncclResult_t set_guid(struct kl_xml *xml, int elem, uint64_t guid)
{
    char text[24];

    snprintf(text, sizeof text, "0x%" PRIx64, guid);
    return set_if_absent(xml, elem, "guid", text);
}

ncclResult_t kl_detect_net(const struct kl_detect *d, const struct kl_net_facts *net, bool keep, int parent)
{
    int elem;

    KL_TRY(find_or_place_net(d, net, parent, &elem));
    KL_TRY(kl_xml_set(d->xml, elem, "keep", keep ? "1" : "0"));
    KL_TRY(kl_xml_set_int(d->xml, elem, "dev", net->dev));
    KL_TRY(set_int_if_absent(d->xml, elem, "latency", (int)kl_latency(net->latency_us)));
    KL_TRY(set_int_if_absent(d->xml, elem, "speed", net->speed_mbps));
    KL_TRY(set_int_if_absent(d->xml, elem, "port", net->port));
    KL_TRY(set_guid(d->xml, elem, net->guid));
    KL_TRY(set_int_if_absent(d->xml, elem, "maxconn", net->max_comms));
    KL_TRY(set_int_if_absent(d->xml, elem, "gdr", net->gdr));
    return net->coll ? set_int_if_absent(d->xml, elem, "coll", 1) : ncclSuccess;
}
