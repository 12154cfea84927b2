/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/smi.h"

#include "base/error.h"
#include "topo/pcie.h"
#include "topo/types.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Sets of devices with a common parent, each as its lowest device. */
struct sets {
    int cpu[KL_SMI_DEVICES], upper[KL_SMI_DEVICES], lower[KL_SMI_DEVICES];
};

struct making {
    const struct kl_smi *smi;
    struct kl_xml *xml;
    struct sets sets;
    const struct kl_gpu_product *product; /* of the first GPU; NULL: not known */
    int sm, bus;                          /* the next bus id that is free */
};

/* ---- sets ---- */

static void join(int *set, int n, int a, int b)
{
    int low = set[a] < set[b] ? set[a] : set[b], high = set[a] < set[b] ? set[b] : set[a];

    for (int i = 0; i < n && low != high; i++)
        if (set[i] == high) set[i] = low;
}

static void find_sets(const struct kl_smi *s, struct sets *x)
{
    int n = s->ndevices;

    for (int i = 0; i < n; i++) x->cpu[i] = x->upper[i] = x->lower[i] = i;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            enum kl_smi_level l = s->level[i][k];

            if (l == KL_SMI_PIX) join(x->lower, n, i, k);
            if (l == KL_SMI_PIX || l == KL_SMI_PXB) join(x->upper, n, i, k);
            if (l >= KL_SMI_PIX && l <= KL_SMI_NODE) join(x->cpu, n, i, k);
            if (i < s->ngpus && k < s->ngpus && s->numa[i] >= 0 && s->numa[i] == s->numa[k]) join(x->cpu, n, i, k);
        }
}

/* ---- NVLinks ---- */

static int most_links(const struct kl_smi *s, int gpu)
{
    int most = 0;

    for (int i = 0; i < s->ngpus; i++)
        if (s->links[gpu][i] > most) most = s->links[gpu][i];
    return most;
}

/* All links of a GPU lead to each other GPU: only switches can do that. */
static bool is_switched(const struct making *m, int gpu)
{
    int sum = 0, most = m->product && m->product->links ? m->product->links : 18;

    for (int i = 0; i < m->smi->ngpus; i++) sum += m->smi->links[gpu][i];
    if (m->smi->active[gpu] > 0) most = m->smi->active[gpu];
    return sum > most || (m->product && m->product->switched && sum);
}

static void busid_of(int gpu, char text[KL_BUSID_TEXT])
{
    snprintf(text, KL_BUSID_TEXT, "0001:%02x:00.0", gpu);
}

static ncclResult_t add_link(struct making *m, int elem, const char *target, const char *class, int count)
{
    int link;

    KL_TRY(kl_xml_add(m->xml, elem, "nvlink", &link));
    KL_TRY(kl_xml_set(m->xml, link, "target", target));
    KL_TRY(kl_xml_set_int(m->xml, link, "count", count));
    return kl_xml_set(m->xml, link, "tclass", class);
}

static ncclResult_t add_links(struct making *m, int gpu, int elem)
{
    char target[KL_BUSID_TEXT];

    if (is_switched(m, gpu)) return add_link(m, elem, "0002:00:00.0", "0x068000", most_links(m->smi, gpu));
    for (int i = 0; i < m->smi->ngpus; i++) {
        if (!m->smi->links[gpu][i]) continue;
        busid_of(i, target);
        KL_TRY(add_link(m, elem, target, "0x030200", m->smi->links[gpu][i]));
    }
    return ncclSuccess;
}

/* ---- devices ---- */

static ncclResult_t add_pci(struct making *m, int parent, const char *busid, const char *class, int *elem)
{
    KL_TRY(kl_xml_add(m->xml, parent, "pci", elem));
    KL_TRY(kl_xml_set(m->xml, *elem, "busid", busid));
    KL_TRY(kl_xml_set(m->xml, *elem, "class", class));
    KL_TRY(kl_xml_set(m->xml, *elem, "link_speed", kl_pcie_generation(m->product ? m->product->pcie : 4)->speed));
    return kl_xml_set(m->xml, *elem, "link_width", "16");
}

static ncclResult_t add_gpu(struct making *m, int parent, int gpu)
{
    char busid[KL_BUSID_TEXT];
    int pci, elem;

    busid_of(gpu, busid);
    KL_TRY(add_pci(m, parent, busid, "0x030200", &pci));
    KL_TRY(kl_xml_add(m->xml, pci, "gpu", &elem));
    KL_TRY(kl_xml_set_int(m->xml, elem, "dev", gpu));
    KL_TRY(kl_xml_set_int(m->xml, elem, "sm", m->sm));
    KL_TRY(kl_xml_set(m->xml, elem, "gdr", "1"));
    return add_links(m, gpu, elem);
}

/* The usual speed of NICs in machines with such GPUs. */
static int usual_gbps(int sm)
{
    return sm >= 90 ? 400 : sm >= 80 ? 200 : 100;
}

static ncclResult_t add_nic(struct making *m, int parent, int device)
{
    char busid[KL_BUSID_TEXT], guid[24];
    int pci, nic, net, dev = device - m->smi->ngpus;

    snprintf(busid, sizeof busid, "0003:%02x:00.0", dev);
    snprintf(guid, sizeof guid, "0x%x", dev + 1);
    KL_TRY(add_pci(m, parent, busid, "0x020700", &pci));
    KL_TRY(kl_xml_add(m->xml, pci, "nic", &nic));
    KL_TRY(kl_xml_add(m->xml, nic, "net", &net));
    KL_TRY(kl_xml_set(m->xml, net, "name", m->smi->name[device]));
    KL_TRY(kl_xml_set_int(m->xml, net, "dev", dev));
    KL_TRY(kl_xml_set_int(m->xml, net, "speed", 1000 * usual_gbps(m->sm)));
    KL_TRY(kl_xml_set(m->xml, net, "port", "1"));
    KL_TRY(kl_xml_set(m->xml, net, "guid", guid));
    KL_TRY(kl_xml_set(m->xml, net, "maxconn", "131072"));
    return kl_xml_set(m->xml, net, "gdr", "1");
}

static ncclResult_t add_device(struct making *m, int parent, int device)
{
    return device < m->smi->ngpus ? add_gpu(m, parent, device) : add_nic(m, parent, device);
}

/* ---- switches and CPUs ---- */

static int size_of(const int *set, int n, int of)
{
    int size = 0;

    for (int i = 0; i < n; i++) size += set[i] == of;
    return size;
}

static ncclResult_t add_switch(struct making *m, int parent, int *elem)
{
    char busid[KL_BUSID_TEXT];

    snprintf(busid, sizeof busid, "0004:%02x:00.0", m->bus++);
    return add_pci(m, parent, busid, "0x060400", elem);
}

/* The devices of one switch, or of one below a common one: there each has a switch, even alone. */
static ncclResult_t add_lower(struct making *m, int parent, int set, bool alone)
{
    int n = m->smi->ndevices, at = parent;

    if (!alone || size_of(m->sets.lower, n, set) > 1) KL_TRY(add_switch(m, parent, &at));
    for (int i = 0; i < n; i++)
        if (m->sets.lower[i] == set) KL_TRY(add_device(m, at, i));
    return ncclSuccess;
}

static ncclResult_t add_upper(struct making *m, int cpu, int set)
{
    int n = m->smi->ndevices, at = cpu, first = m->sets.lower[set];
    bool one = size_of(m->sets.upper, n, set) == size_of(m->sets.lower, n, first);

    if (!one) KL_TRY(add_switch(m, cpu, &at));
    for (int i = 0; i < n; i++)
        if (m->sets.upper[i] == set && m->sets.lower[i] == i) KL_TRY(add_lower(m, at, i, one));
    return ncclSuccess;
}

static ncclResult_t add_cpu(struct making *m, int set, int numa)
{
    int n = m->smi->ndevices, cpu;

    KL_TRY(kl_xml_add(m->xml, KL_XML_ROOT, "cpu", &cpu));
    KL_TRY(kl_xml_set_int(m->xml, cpu, "numaid", numa));
    if (m->product && m->product->c2c) KL_TRY(kl_xml_set(m->xml, cpu, "arch", "arm64"));
    for (int i = 0; i < n; i++)
        if (m->sets.cpu[i] == set && m->sets.upper[i] == i) KL_TRY(add_upper(m, cpu, i));
    return ncclSuccess;
}

/* ---- all ---- */

/* Without a product the number of NVLinks determines the generation. */
static int sm_of(const struct making *m)
{
    int links = 0;

    if (m->product) return m->product->sm;
    for (int i = 0; i < m->smi->ngpus; i++)
        if (most_links(m->smi, i) > links) links = most_links(m->smi, i);
    return links > 12 ? 90 : links > 6 || !links ? 80 : 70;
}

static void note(const struct making *m, struct kl_assumed *assumed)
{
    int nics = m->smi->ndevices - m->smi->ngpus;

    kl_assume(assumed, (struct kl_assumption){.code = KL_ASSUMED_BUSIDS, .from = KL_FROM_DEFAULT});
    kl_assume(assumed, (struct kl_assumption){.code = KL_ASSUMED_SM,
                                              .from = m->product ? KL_FROM_NAME : KL_FROM_FORM,
                                              .n = m->smi->ngpus,
                                              .more = m->sm,
                                              .product = m->product});
    if (nics)
        kl_assume(assumed,
                  (struct kl_assumption){
                      .code = KL_ASSUMED_USUAL_SPEED, .from = KL_FROM_DEFAULT, .n = nics, .gbps = usual_gbps(m->sm)});
}

static ncclResult_t make(struct making *m)
{
    int root, numa = 0;

    KL_TRY(kl_xml_add(m->xml, KL_XML_NONE, "system", &root));
    KL_TRY(kl_xml_set(m->xml, root, "version", "1"));
    for (int i = 0; i < m->smi->ndevices; i++)
        if (m->sets.cpu[i] == i) KL_TRY(add_cpu(m, i, numa++));
    return ncclSuccess;
}

ncclResult_t kl_smi_document(const struct kl_smi *smi, struct kl_assumed *assumed, struct kl_xml **xml)
{
    struct making m = {.smi = smi, .product = kl_gpu_product_like(smi->product[0])};

    m.sm = sm_of(&m);
    find_sets(smi, &m.sets);
    KL_TRY(kl_xml_create("nvidia-smi's machine", &m.xml));
    ncclResult_t rc = make(&m);
    if (rc) {
        kl_xml_free(m.xml);
        return rc;
    }
    note(&m, assumed);
    *xml = m.xml;
    return ncclSuccess;
}
