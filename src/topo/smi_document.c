/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/smi.h"

#include "base/error.h"
#include "base/text.h"
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
    int sm, bus, cpus;                    /* bus: the next bus id that is free */
    bool switched;                        /* NVLinks lead to switches */
};

/* ---- sets ---- */

static void join(int *set, int n, int a, int b)
{
    int low = set[a] < set[b] ? set[a] : set[b], high = set[a] < set[b] ? set[b] : set[a];

    for (int i = 0; i < n && low != high; i++)
        if (set[i] == high) set[i] = low;
}

/* GPUs of one NUMA node; where the matrix shows their NVLinks instead of a level, also those with the same CPUs. */
static bool is_near(const struct kl_smi *s, int a, int b)
{
    if (s->numa[a] >= 0 || s->numa[b] >= 0) return s->numa[a] == s->numa[b];
    return s->level[a][b] == KL_SMI_NVLINK && *s->cpus[a] && !strcmp(s->cpus[a], s->cpus[b]);
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
            if (i < s->ngpus && k < s->ngpus && is_near(s, i, k)) join(x->cpu, n, i, k);
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

static int sum_of_links(const struct kl_smi *s, int gpu)
{
    int sum = 0;

    for (int i = 0; i < s->ngpus; i++) sum += s->links[gpu][i];
    return sum;
}

/* NVLinks of one GPU: as many as are up, as the product has, or the most that any GPU has; as many at least as one peer shows, for a
 * single peer is no sign of a switch. */
static int links_of(const struct making *m, int gpu)
{
    enum { MOST_LINKS = 18 };
    int links = m->product && m->product->links ? m->product->links : MOST_LINKS;

    if (m->smi->active[gpu] > 0) links = m->smi->active[gpu];
    return links > most_links(m->smi, gpu) ? links : most_links(m->smi, gpu);
}

/* The matrix decides. Links lead to switches where a GPU shows more of them than it has, as each pair shows them all; or where all
 * pairs show as many as a product has that is made for switches. */
static bool has_switches(const struct making *m)
{
    const struct kl_smi *s = m->smi;
    bool all = m->product && m->product->switched && s->ngpus > 1;

    for (int i = 0; i < s->ngpus; i++) {
        if (sum_of_links(s, i) > links_of(m, i)) return true;
        for (int k = 0; k < s->ngpus; k++) all &= i == k || (m->product && s->links[i][k] == m->product->links);
    }
    return all;
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

    if (m->switched && most_links(m->smi, gpu))
        return add_link(m, elem, "0002:00:00.0", "0x068000", most_links(m->smi, gpu));
    for (int i = 0; i < m->smi->ngpus; i++) {
        if (!m->smi->links[gpu][i]) continue;
        busid_of(i, target);
        KL_TRY(add_link(m, elem, target, "0x030200", m->smi->links[gpu][i]));
    }
    return ncclSuccess;
}

/* ---- devices ---- */

/* The generation of PCIe links: the product's, or that of such GPUs. */
static int pcie_of(const struct making *m)
{
    if (m->product) return m->product->pcie;
    return m->sm >= 90 ? 5 : m->sm >= 80 ? 4 : 3;
}

static ncclResult_t add_pci(struct making *m, int parent, const char *busid, const char *class, int *elem)
{
    KL_TRY(kl_xml_add(m->xml, parent, "pci", elem));
    KL_TRY(kl_xml_set(m->xml, *elem, "busid", busid));
    KL_TRY(kl_xml_set(m->xml, *elem, "class", class));
    KL_TRY(kl_xml_set(m->xml, *elem, "link_speed", kl_pcie_generation(pcie_of(m))->speed));
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

/* The usual speed of NICs in machines with such GPUs, Gb/s. */
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

/* Without a name the number of NVLinks tells the generation. */
static int sm_of(const struct making *m)
{
    int links = 0, named = kl_gpu_sm_like(m->smi->product[0]);

    if (m->product) return m->product->sm;
    if (named) return named;
    for (int i = 0; i < m->smi->ngpus; i++)
        if (most_links(m->smi, i) > links) links = most_links(m->smi, i);
    return links > 12 ? 90 : links > 6 || !links ? 80 : 70;
}

/* ---- notes ---- */

/* Pairs with NVLinks, those without, and the fewest and most links of a pair. */
struct wiring {
    int linked, bare, fewest, most;
};

static struct wiring wiring_of(const struct kl_smi *s)
{
    struct wiring w = {.fewest = 255};

    for (int i = 0; i < s->ngpus; i++)
        for (int k = i + 1; k < s->ngpus; k++) {
            int n = s->links[i][k] > s->links[k][i] ? s->links[i][k] : s->links[k][i];

            if (!n) {
                w.bare++;
                continue;
            }
            w.linked++;
            if (n < w.fewest) w.fewest = n;
            if (n > w.most) w.most = n;
        }
    return w;
}

/* "GPU/0-GPU/1 12, GPU/2-GPU/3 10": the first pairs. */
static void add_pairs(const struct kl_smi *s, struct kl_text *t)
{
    enum { SHOWN = 6 };
    int n = 0;

    for (int i = 0; i < s->ngpus; i++)
        for (int k = i + 1; k < s->ngpus; k++) {
            if (!s->links[i][k] || n++ >= SHOWN) continue;
            kl_text_add(t, "%sGPU/%d-GPU/%d %d", n > 1 ? ", " : "", i, k, s->links[i][k]);
        }
    if (n > SHOWN) kl_text_add(t, " and %d more", n - SHOWN);
}

static void summarize(const struct making *m, struct kl_text *t)
{
    const struct kl_smi *s = m->smi;
    const struct wiring w = wiring_of(s);

    kl_text_add(t, "%d GPU%s", s->ngpus, kl_plural(s->ngpus));
    if (m->product)
        kl_text_add(t, " (%s, sm %d, PCIe %d)", m->product->name, m->sm, pcie_of(m));
    else if (*s->product[0])
        kl_text_add(t, " (%s, sm %d)", s->product[0], m->sm);
    if (s->ngpus < 2) return;
    if (!w.linked)
        kl_text_add(t, ", no NVLink");
    else if (m->switched && w.fewest == w.most)
        kl_text_add(t, ", %d NVLinks of each lead to NVSwitches", w.most);
    else if (m->switched)
        kl_text_add(t, ", %d to %d NVLinks of each lead to NVSwitches", w.fewest, w.most);
    else if (!w.bare && w.fewest == w.most)
        kl_text_add(t, ", %d NVLinks between %s, no switch", w.most, s->ngpus > 2 ? "all pairs: a mesh" : "the two");
    else if (!w.bare)
        kl_text_add(t, ", %d to %d NVLinks between all pairs: a mesh, no switch", w.fewest, w.most);
    else {
        kl_text_add(t, ", NVLinks between %d of %d pairs only (", w.linked, w.linked + w.bare);
        add_pairs(s, t);
        kl_text_add(t, "), no switch");
        if (w.fewest < w.most) kl_text_add(t, ": some pairs have %d, others %d", w.fewest, w.most);
    }
}

static void note(const struct making *m, struct kl_assumed *assumed)
{
    int gpus = m->smi->ngpus, nics = m->smi->ndevices - gpus;
    bool named = m->product || kl_gpu_sm_like(m->smi->product[0]);

    if (!assumed) return;
    kl_assume(assumed, (struct kl_assumption){.code = KL_ASSUMED_BUSIDS, .from = KL_FROM_DEFAULT});
    kl_assume(assumed, (struct kl_assumption){.code = KL_ASSUMED_SM,
                                              .from = named ? KL_FROM_PRODUCT : KL_FROM_CONTENTS,
                                              .n = gpus,
                                              .more = m->sm,
                                              .product = m->product});
    kl_assume(assumed, (struct kl_assumption){.code = KL_ASSUMED_PCI_LINKS,
                                              .from = m->product ? KL_FROM_PRODUCT : KL_FROM_DEFAULT,
                                              .n = gpus + nics,
                                              .more = pcie_of(m)});
    kl_assume(assumed, (struct kl_assumption){.code = KL_ASSUMED_CPUS, .from = KL_FROM_DEFAULT, .n = m->cpus});
    if (m->switched)
        kl_assume(assumed, (struct kl_assumption){
                               .code = KL_ASSUMED_SWITCHED, .from = KL_FROM_CONTENTS, .n = wiring_of(m->smi).most});
    if (nics)
        kl_assume(assumed,
                  (struct kl_assumption){
                      .code = KL_ASSUMED_USUAL_SPEED, .from = KL_FROM_DEFAULT, .n = nics, .gbps = usual_gbps(m->sm)});
    struct kl_text t = kl_text_in(assumed->summary, sizeof assumed->summary);

    assumed->read_as = "the matrix of nvidia-smi topo -m";
    summarize(m, &t);
}

static ncclResult_t make(struct making *m)
{
    int root;

    KL_TRY(kl_xml_add(m->xml, KL_XML_NONE, "system", &root));
    KL_TRY(kl_xml_set(m->xml, root, "version", "1"));
    for (int i = 0; i < m->smi->ndevices; i++)
        if (m->sets.cpu[i] == i) KL_TRY(add_cpu(m, i, m->cpus++));
    return ncclSuccess;
}

ncclResult_t kl_smi_document(const struct kl_smi *smi, const char *name, struct kl_assumed *assumed,
                             struct kl_xml **xml)
{
    struct making m = {.smi = smi, .product = kl_gpu_product_like(smi->product[0])};

    m.sm = sm_of(&m);
    m.switched = has_switches(&m);
    find_sets(smi, &m.sets);
    KL_TRY(kl_xml_create(name, &m.xml));
    ncclResult_t rc = make(&m);
    if (rc) {
        kl_xml_free(m.xml);
        return rc;
    }
    note(&m, assumed);
    *xml = m.xml;
    return ncclSuccess;
}
