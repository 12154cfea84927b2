/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/host.h"

#include "base/error.h"
#include "topo/partition.h"

#include <stdio.h>
#include <string.h>

enum { MAX_NODES = 256, MAX_DEVICES = 255 * 32, MAX_FUNCTIONS = 16 };
enum { OWN = 0xff, OWN_SHIFT = 28 }; /* how bus ids of host devices begin: ff, above node, bus, device and function */

static ncclResult_t set_virtual(struct kl_xml *xml, int elem, const char *busid, const char *class)
{
    KL_TRY(kl_xml_set(xml, elem, "busid", busid));
    KL_TRY(kl_xml_set(xml, elem, "class", class));
    KL_TRY(kl_xml_set(xml, elem, "link_speed", "8.0 GT/s PCIe"));
    return kl_xml_set(xml, elem, "link_width", "16");
}

/* The virtual device with this bus id below `parent`, made in bus id order if it is not there. */
static ncclResult_t virtual_pci(struct kl_xml *xml, int parent, const char *busid, const char *class, int *elem)
{
    *elem = kl_xml_find(xml, "pci", "busid", busid);
    if (*elem != KL_XML_NONE) return ncclSuccess;
    KL_TRY(kl_xml_new(xml, "pci", elem));
    KL_TRY(set_virtual(xml, *elem, busid, class));
    kl_xml_place(xml, *elem, parent, busid);
    return ncclSuccess;
}

ncclResult_t kl_host_device_place(const struct kl_detect *d, const struct kl_host_device *device)
{
    unsigned node = device->numa > 0 ? (unsigned)device->numa : 0, i = (unsigned)device->ordinal;
    char bus[KL_BUSID_TEXT], busid[KL_BUSID_TEXT];
    int cpu, up, pci, gpu;

    if (node >= MAX_NODES || i >= MAX_DEVICES || device->replica < 0 || device->replica >= MAX_FUNCTIONS)
        return KL_FAIL(ncclInvalidUsage,
                       "host device %d on NUMA node %u with rank %d: at most %d nodes, %d devices and "
                       "%d ranks on each",
                       device->ordinal, node, device->rank, MAX_NODES, MAX_DEVICES, MAX_FUNCTIONS);
    snprintf(bus, sizeof bus, "ff%02x:00:00.0", node);
    snprintf(busid, sizeof busid, "ff%02x:%02x:%02x.%x", node, 1 + i / 32, i % 32, (unsigned)device->replica);
    KL_TRY(kl_detect_cpu(d, (int)node, &cpu));
    KL_TRY(virtual_pci(d->xml, cpu, bus, "0x060400", &up));
    KL_TRY(virtual_pci(d->xml, up, busid, "0x030200", &pci));
    KL_TRY(kl_xml_add(d->xml, pci, "gpu", &gpu));
    KL_TRY(kl_xml_set_int(d->xml, gpu, "dev", device->ordinal));
    KL_TRY(kl_xml_set(d->xml, gpu, "sm", "80"));
    KL_TRY(kl_xml_set_int(d->xml, gpu, "rank", device->rank));
    KL_TRY(kl_xml_set(d->xml, gpu, "gdr", "1"));
    if (device->replica) KL_TRY(kl_xml_set_int(d->xml, gpu, "replica", device->replica));
    return kl_xml_set(d->xml, gpu, "keep", "1");
}

bool kl_host_device_is_own(uint64_t busid)
{
    return busid >> OWN_SHIFT == OWN;
}

/* ---- several ranks on one GPU of a file ---- */

/* A bus id that differs from `busid` in the function only, and is not taken. */
static ncclResult_t free_function(const struct kl_xml *xml, int pci, const char *busid, char out[KL_BUSID_TEXT])
{
    size_t last = strlen(busid);

    if (last && last < KL_BUSID_TEXT)
        for (int f = 0; f < MAX_FUNCTIONS; f++) {
            memcpy(out, busid, last + 1);
            out[last - 1] = "0123456789abcdef"[f];
            if (kl_xml_find(xml, "pci", "busid", out) == KL_XML_NONE) return ncclSuccess;
        }
    return kl_xml_fail(xml, pci, ncclInvalidUsage, "GPU %s: at most %d ranks can share it", busid, MAX_FUNCTIONS);
}

/* Every GPU with an NVLink to `old` gets an equal one to `new`. */
static ncclResult_t link_back(struct kl_xml *xml, const char *old, const char *new)
{
    int end = kl_xml_count(xml), link;

    for (int e = 0; e < end; e++) {
        const char *target = kl_xml_attr(xml, e, "target");

        if (strcmp(kl_xml_tag(xml, e), "nvlink") != 0 || !target || kl_busid_parse(target) != kl_busid_parse(old))
            continue;
        KL_TRY(kl_xml_copy(xml, kl_xml_parent(xml, e), xml, e, &link));
        KL_TRY(kl_xml_set(xml, link, "target", new));
    }
    return ncclSuccess;
}

ncclResult_t kl_host_device_share(struct kl_xml *xml, int gpu, int *copy)
{
    int pci = kl_xml_parent(xml, gpu), twin;
    char busid[KL_BUSID_TEXT];
    const char *old;

    KL_TRY(kl_xml_need(xml, pci, "busid", &old));
    if (kl_partition_of(xml, gpu) >= 0)
        return kl_xml_fail(xml, gpu, ncclInvalidUsage, "GPU %s: ranks cannot share a partition of it (mlopart)", old);
    KL_TRY(free_function(xml, pci, old, busid));
    KL_TRY(kl_xml_copy(xml, kl_xml_parent(xml, pci), xml, pci, &twin));
    KL_TRY(kl_xml_set(xml, twin, "busid", busid));
    KL_TRY(link_back(xml, old, busid));
    *copy = kl_xml_child(xml, twin, "gpu");
    return kl_xml_set(xml, *copy, "replica", "1");
}
