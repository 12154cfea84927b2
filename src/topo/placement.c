/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/placement.h"

#include "base/error.h"
#include "topo/pcie.h"
#include "topo/types.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ELEMENTS = 20000, SM_OF_AMD = 80 };

enum kind { IS_UNKNOWN, IS_GPU, IS_NIC, IS_OTHER };

struct leaf {
    int elem;
    enum kind kind;
    uint64_t busid;
};

/* A file, its pci elements without others below, and their identity. */
struct work {
    struct kl_xml *xml;
    struct kl_assumed *assumed;
    struct leaf *leaf; /* by bus id */
    int nleaves, ngpus, nnics, nunknown, nswitches;
    const struct kl_known *machine;
    int *pci; /* of the GPUs, by bus id */
};

/* A vendor's or device's id. */
static int id_of(const struct kl_xml *xml, int elem, const char *key)
{
    return (int)kl_xml_hex(xml, elem, key);
}

static bool is_tag(const struct kl_xml *xml, int elem, const char *tag)
{
    return !strcmp(kl_xml_tag(xml, elem), tag);
}

const struct kl_gpu_product *kl_placement_product(const struct kl_xml *xml, int pci)
{
    return kl_gpu_product_of(id_of(xml, pci, "vendor"), id_of(xml, pci, "device"));
}

/* ---- the file's contents ---- */

/* A display of the mainboard is no GPU: its vendor is neither NVIDIA nor AMD. */
static enum kind kind_of(const struct kl_xml *xml, int elem)
{
    const char *class = kl_xml_attr(xml, elem, "class");
    int vendor = id_of(xml, elem, "vendor");

    if (!class || !*class) return kl_xml_child(xml, elem, "nic") != KL_XML_NONE ? IS_NIC : IS_UNKNOWN;
    if (!strncmp(class, "0x02", 4)) return IS_NIC;
    if (strncmp(class, "0x03", 4) != 0) return IS_OTHER;
    return !vendor || vendor == 0xffff || vendor == KL_VENDOR_ID_NVIDIA ? IS_GPU : IS_OTHER;
}

static bool has_class(const struct kl_xml *xml, int elem, const char *begin)
{
    const char *class = kl_xml_attr(xml, elem, "class");

    return class && !strncmp(class, begin, strlen(begin));
}

static int by_busid(const void *x, const void *y)
{
    const struct leaf *a = x, *b = y;

    if (a->busid != b->busid) return a->busid < b->busid ? -1 : 1;
    return a->elem - b->elem;
}

static void add_leaf(struct work *w, int elem)
{
    const char *busid = kl_xml_attr(w->xml, elem, "busid");
    enum kind kind = kind_of(w->xml, elem);

    if (has_class(w->xml, elem, "0x06")) return;
    w->leaf[w->nleaves++] = (struct leaf){elem, kind, busid ? kl_busid_parse(busid) : 0};
    w->ngpus += kind == IS_GPU;
    w->nnics += kind == IS_NIC;
    w->nunknown += kind == IS_UNKNOWN;
}

static ncclResult_t gather(struct work *w)
{
    if (kl_xml_count(w->xml) > MAX_ELEMENTS)
        return kl_xml_fail(w->xml, KL_XML_ROOT, ncclInvalidUsage,
                           "%d elements, and none is a <gpu>; at most %d are completed", kl_xml_count(w->xml),
                           MAX_ELEMENTS);
    w->leaf = calloc((size_t)kl_xml_count(w->xml) + 1, sizeof *w->leaf);
    w->pci = calloc((size_t)kl_xml_count(w->xml) + 1, sizeof *w->pci);
    if (!w->leaf || !w->pci) return KL_NOMEM("a topology");
    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(w->xml, KL_XML_ROOT, e)) {
        if (!is_tag(w->xml, e, "pci")) continue;
        if (kl_xml_child(w->xml, e, "pci") == KL_XML_NONE)
            add_leaf(w, e);
        else
            w->nswitches += has_class(w->xml, e, "0x0604");
    }
    qsort(w->leaf, (size_t)w->nleaves, sizeof *w->leaf, by_busid);
    return ncclSuccess;
}

/* ---- which machine it is ---- */

static bool agrees(const char *value, const char *want)
{
    return !value || !want || !strcmp(value, want);
}

static bool cpu_agrees(const struct kl_xml *xml, const struct kl_known_cpu *cpu)
{
    int e = kl_xml_child(xml, KL_XML_ROOT, "cpu");

    if (e == KL_XML_NONE || !kl_xml_attr(xml, e, "arch")) return true;
    return agrees(kl_xml_attr(xml, e, "arch"), cpu->arch) && agrees(kl_xml_attr(xml, e, "vendor"), cpu->vendor) &&
           kl_xml_int(xml, e, "familyid", cpu->family) == cpu->family &&
           kl_xml_int(xml, e, "modelid", cpu->model) == cpu->model;
}

/* Do all GPUs and NICs allow the machine's: by their ids and class, and sm where there are gpu elements? */
static bool leaves_agree(const struct work *w, const struct kl_known *m)
{
    const struct kl_gpu_product *product = kl_known_product(m);
    const char *class = kl_nic_traits[m->nic].pci_class;

    for (int i = 0; i < w->nleaves; i++) {
        int e = w->leaf[i].elem, gpu = kl_xml_child(w->xml, e, "gpu");
        const struct kl_gpu_product *own = kl_placement_product(w->xml, e);

        if (w->leaf[i].kind == IS_GPU && own && own != product) return false;
        if (gpu != KL_XML_NONE && kl_xml_int(w->xml, gpu, "sm", product->sm) != product->sm) return false;
        if (w->leaf[i].kind == IS_NIC && !has_class(w->xml, e, class)) return false;
    }
    return true;
}

/* Where no class is given: are the devices where the machine has them? */
static bool places_agree(const struct work *w, const struct kl_known *m)
{
    int gpus = kl_known_count(m).gpus, nics = m->nic_at ? kl_known_count(m).nics : 0;

    if (!m->gpu_at || w->nleaves != gpus + nics) return false;
    for (int i = 0; i < w->nleaves; i++) {
        const char *busid = kl_xml_attr(w->xml, w->leaf[i].elem, "busid");
        uint64_t id = busid ? kl_busid_parse(busid) : 0;
        int device = kl_busid_device(id);

        if (!busid || id >> 12) return false;
        bool gpu = device >= m->gpu_at && device < m->gpu_at + gpus;
        if (!gpu && device != m->nic_at) return false;
    }
    return true;
}

static bool looks_like(const struct work *w, const struct kl_known *m)
{
    struct kl_known_parts parts = kl_known_count(m);

    if (!m->published || !cpu_agrees(w->xml, m->cpu)) return false;
    if (w->nunknown) return !w->ngpus && !w->nnics && places_agree(w, m);
    return w->ngpus == parts.gpus && w->nnics == parts.nics && w->nswitches == parts.switches && leaves_agree(w, m);
}

/* Is one of the machine's words in the file's name? */
static bool name_means(const struct kl_xml *xml, const struct kl_known *m)
{
    const char *slash = strrchr(kl_xml_name(xml), '/'), *file = slash ? slash + 1 : kl_xml_name(xml);
    char word[32];
    int length;

    for (const char *at = m->hints; at && sscanf(at, "%31s%n", word, &length) == 1; at += length)
        if (strcasestr(file, word)) return true;
    return false;
}

/* Other clouds have other GPUs where a few bare bus ids are: the file's name must say so. */
static bool needs_name(const struct kl_known *m)
{
    return m->gpu_at && !m->nic_at;
}

static bool same_plan(const struct kl_known *a, const struct kl_known *b)
{
    const struct kl_gpu_product *p = kl_known_product(a), *q = kl_known_product(b);

    return p->sm == q->sm && p->links == q->links && a->wiring == b->wiring && a->gbps == b->gbps;
}

/* The first machine that fits the file; one with a word of the file's name is preferred. */
static void find_machine(struct work *w)
{
    const struct kl_known *found = NULL, *other = NULL, *m;
    bool named = false;

    for (int i = 0; (m = kl_known_at(i)); i++) {
        if (!looks_like(w, m)) continue;
        bool means = name_means(w->xml, m);

        if (!means && needs_name(m)) continue;
        if (found && !(means && !named)) {
            if (!other && same_plan(found, m)) other = m;
            continue;
        }
        other = found && same_plan(found, m) ? found : other;
        found = m;
        named = means;
    }
    w->machine = found;
    if (found)
        kl_assume(w->assumed, (struct kl_assumption){.code = KL_ASSUMED_MACHINE,
                                                     .from = named && needs_name(found) ? KL_FROM_NAME : KL_FROM_FORM,
                                                     .machine = found,
                                                     .other = other});
}

/* ---- GPUs ---- */

static const struct kl_gpu_product *product_of(const struct work *w, int pci)
{
    const struct kl_gpu_product *own = kl_placement_product(w->xml, pci);

    return own || !w->machine ? own : kl_known_product(w->machine);
}

static ncclResult_t refuse_gpu(const struct work *w, int pci)
{
    int vendor = id_of(w->xml, pci, "vendor"), device = id_of(w->xml, pci, "device");

    if (vendor == KL_VENDOR_ID_NVIDIA && device)
        return kl_xml_fail(
            w->xml, pci, ncclInvalidUsage,
            "the file has no <gpu> elements, and the GPU with device id 0x%04x is not known; name the machine "
            "with --machine, or add <gpu dev=\"0\" sm=\"80\"/>",
            (unsigned)device);
    return kl_xml_fail(
        w->xml, pci, ncclInvalidUsage,
        "the file has no <gpu> elements, no vendor and device of the GPU, and looks like no known machine; "
        "name it with --machine (kolo topo --machines lists them)");
}

static ncclResult_t check_machine(const struct work *w)
{
    if (!w->machine) return ncclSuccess;
    for (int i = 0; i < w->nleaves; i++) {
        const struct kl_gpu_product *own = kl_placement_product(w->xml, w->leaf[i].elem);
        const struct kl_gpu_product *known = kl_known_product(w->machine);

        if (own && (own->sm != known->sm || own->form != known->form))
            return kl_xml_fail(w->xml, w->leaf[i].elem, ncclInvalidUsage,
                               "this GPU is a %s, but %s has %s; name another machine, or none", own->name,
                               w->machine->name, w->machine->gpu);
    }
    return ncclSuccess;
}

static ncclResult_t fill(struct kl_xml *xml, int elem, const char *key, const char *value)
{
    return kl_xml_attr(xml, elem, key) ? ncclSuccess : kl_xml_set(xml, elem, key, value);
}

/* Write the PCI ids of a product, so that later readers of the document find it. */
static ncclResult_t set_ids(struct kl_xml *xml, int pci, const struct kl_gpu_product *product)
{
    if (kl_placement_product(xml, pci)) return ncclSuccess;
    KL_TRY(kl_xml_set(xml, pci, "vendor", "0x10de"));
    return kl_xml_set_hex(xml, pci, "device", (uint64_t)product->device[0]);
}

static ncclResult_t make_gpu(struct work *w, int pci, int order)
{
    const struct kl_gpu_product *product = product_of(w, pci);
    int gpu;

    if (!product) return refuse_gpu(w, pci);
    KL_TRY(fill(w->xml, pci, "class", "0x030200"));
    KL_TRY(set_ids(w->xml, pci, product));
    KL_TRY(kl_xml_add(w->xml, pci, "gpu", &gpu));
    KL_TRY(kl_xml_set_int(w->xml, gpu, "dev", order));
    KL_TRY(kl_xml_set_int(w->xml, gpu, "sm", product->sm));
    KL_TRY(kl_xml_set_int(w->xml, gpu, "gdr", 1));
    w->pci[order] = pci;
    return ncclSuccess;
}

static void note_gpus(struct work *w, int n, bool by_ids)
{
    const struct kl_gpu_product *product = product_of(w, w->pci[0]);

    kl_assume(w->assumed,
              (struct kl_assumption){
                  .code = KL_ASSUMED_GPUS, .from = by_ids ? KL_FROM_IDS : KL_FROM_MACHINE, .n = n, .product = product});
    kl_assume(w->assumed, (struct kl_assumption){.code = KL_ASSUMED_GPU_ORDER, .from = KL_FROM_DEFAULT, .n = n});
}

static ncclResult_t make_gpus(struct work *w, int *n)
{
    bool by_ids = false;

    *n = 0;
    for (int i = 0; i < w->nleaves; i++) {
        if (w->leaf[i].kind != IS_GPU) continue;
        by_ids |= kl_placement_product(w->xml, w->leaf[i].elem) != NULL;
        KL_TRY(make_gpu(w, w->leaf[i].elem, (*n)++));
    }
    if (*n) note_gpus(w, *n, by_ids);
    return ncclSuccess;
}

/* Boards of one product with a switch are wired by product, others by machine. */
static ncclResult_t wire(struct work *w, int n)
{
    const struct kl_gpu_product *product = product_of(w, w->pci[0]);
    enum kl_wiring wiring = w->machine ? w->machine->wiring : product->switched ? KL_WIRING_SWITCH : KL_WIRING_NONE;
    struct kl_assumption what = {.from = w->machine ? KL_FROM_MACHINE : KL_FROM_IDS,
                                 .n = product->links,
                                 .product = product,
                                 .machine = w->machine};
    bool wired;

    for (int i = 0; i < n; i++)
        if (product_of(w, w->pci[i])->links != product->links) wiring = KL_WIRING_NONE;
    if (!product->links || n < 2) return ncclSuccess;
    KL_TRY(kl_known_wire(w->xml, w->pci, n, wiring, product->links, &wired));
    if (wired)
        what.code = wiring == KL_WIRING_SWITCH ? KL_ASSUMED_SWITCHED : KL_ASSUMED_WIRED;
    else if (product->form == KL_FORM_BRIDGE)
        what.code = KL_ASSUMED_NO_BRIDGE;
    else
        what =
            (struct kl_assumption){.code = KL_ASSUMED_NOT_WIRED, .from = KL_FROM_DEFAULT, .n = n, .product = product};
    kl_assume(w->assumed, what);
    return ncclSuccess;
}

/* ---- NICs ---- */

/* Nets of the file only need a speed: the card's. */
static ncclResult_t fill_speeds(struct work *w, int nic, int gbps, int *n)
{
    for (int net = kl_xml_child(w->xml, nic, "net"); net != KL_XML_NONE; net = kl_xml_next_same(w->xml, net)) {
        if (kl_xml_attr(w->xml, net, "speed")) continue;
        KL_TRY(kl_xml_set_int(w->xml, net, "speed", gbps * 1000));
        (*n)++;
    }
    return ncclSuccess;
}

struct nics {
    int made, filled, unknown, nets;
    const struct kl_nic_product *product;
};

/* A card by its machine, or by its ids. */
static ncclResult_t make_nic(struct work *w, int pci, struct nics *n)
{
    const struct kl_nic_product *product =
        kl_nic_product_of(id_of(w->xml, pci, "vendor"), id_of(w->xml, pci, "device"));
    const struct kl_known *m = w->machine;
    int nic = kl_xml_child(w->xml, pci, "nic"), gbps = m ? m->gbps : product ? product->gbps : 10;
    enum kl_nic_kind kind = m ? m->nic : product ? product->kind : KL_NIC_SOCKETS;

    if (!m && product) n->product = product;
    n->unknown += !m && !product;
    if (nic != KL_XML_NONE) return fill_speeds(w, nic, gbps, &n->filled);
    if (!m && kind == KL_NIC_ROCE && has_class(w->xml, pci, "0x0207")) kind = KL_NIC_INFINIBAND;
    KL_TRY(fill(w->xml, pci, "class", kl_nic_traits[kind].pci_class));
    n->made++;
    return kl_known_nets(w->xml, pci, kind, gbps, m ? m->ports : 1, 0, &n->nets);
}

static ncclResult_t make_nics(struct work *w)
{
    const struct kl_known *m = w->machine;
    struct nics n = {.made = 0};

    for (int i = 0; i < w->nleaves; i++)
        if (w->leaf[i].kind == IS_NIC) KL_TRY(make_nic(w, w->leaf[i].elem, &n));
    if (m && n.made + n.filled)
        kl_assume(w->assumed, (struct kl_assumption){.code = KL_ASSUMED_NICS,
                                                     .from = KL_FROM_MACHINE,
                                                     .n = n.made + n.filled,
                                                     .more = m->ports,
                                                     .gbps = m->gbps});
    if (n.product && n.made + n.filled > n.unknown)
        kl_assume(w->assumed, (struct kl_assumption){.code = KL_ASSUMED_NIC_SPEED,
                                                     .from = KL_FROM_IDS,
                                                     .n = n.made + n.filled - n.unknown,
                                                     .gbps = n.product->gbps,
                                                     .nic = n.product});
    if (n.unknown)
        kl_assume(w->assumed,
                  (struct kl_assumption){.code = KL_ASSUMED_NICS_UNKNOWN, .from = KL_FROM_DEFAULT, .n = n.unknown});
    return ncclSuccess;
}

/* ---- the rest ---- */

static bool lacks_link(const struct kl_xml *xml, int pci)
{
    const char *speed = kl_xml_attr(xml, pci, "link_speed");

    return !speed || !*speed;
}

/* A PCI link without a speed is as fast as the GPUs'. */
static ncclResult_t fill_links(struct work *w)
{
    int generation = product_of(w, w->pci[0])->pcie, n = 0;

    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(w->xml, KL_XML_ROOT, e)) {
        if (!is_tag(w->xml, e, "pci") || !lacks_link(w->xml, e)) continue;
        KL_TRY(kl_xml_set(w->xml, e, "link_speed", kl_pcie_generation(generation)->speed));
        KL_TRY(kl_xml_set(w->xml, e, "link_width", "16"));
        KL_TRY(fill(w->xml, e, "class", "0x060400"));
        n++;
    }
    if (n)
        kl_assume(w->assumed, (struct kl_assumption){
                                  .code = KL_ASSUMED_PCI_LINKS, .from = KL_FROM_IDS, .n = n, .more = generation});
    return ncclSuccess;
}

static ncclResult_t fill_cpus(struct work *w)
{
    const struct kl_known_cpu *cpu = w->machine ? w->machine->cpu : NULL;
    int n = 0;

    for (int e = kl_xml_child(w->xml, KL_XML_ROOT, "cpu"); cpu && e != KL_XML_NONE; e = kl_xml_next_same(w->xml, e)) {
        if (kl_xml_attr(w->xml, e, "arch")) continue;
        KL_TRY(kl_xml_set(w->xml, e, "arch", cpu->arch));
        n++;
        if (!cpu->vendor) continue;
        KL_TRY(kl_xml_set(w->xml, e, "vendor", cpu->vendor));
        KL_TRY(kl_xml_set_int(w->xml, e, "familyid", cpu->family));
        KL_TRY(kl_xml_set_int(w->xml, e, "modelid", cpu->model));
    }
    if (n)
        kl_assume(w->assumed, (struct kl_assumption){
                                  .code = KL_ASSUMED_CPU, .from = KL_FROM_MACHINE, .n = n, .machine = w->machine});
    return ncclSuccess;
}

/* Devices without a class are NICs where the known machine has one, else GPUs. */
static void classify(struct work *w)
{
    const struct kl_known *m = w->machine;

    for (int i = 0; m && w->nunknown && i < w->nleaves; i++) {
        unsigned device = (unsigned)(w->leaf[i].busid >> 4) & 0xff;

        if (w->leaf[i].kind != IS_UNKNOWN) continue;
        w->leaf[i].kind = m->nic_at && (int)device == m->nic_at ? IS_NIC : IS_GPU;
        w->ngpus += w->leaf[i].kind == IS_GPU;
    }
}

/* The first GPU with unknown ids; KL_XML_NONE: there is none. */
static int untold_gpu(const struct work *w)
{
    for (int i = 0; i < w->nleaves; i++)
        if (w->leaf[i].kind == IS_GPU && !kl_placement_product(w->xml, w->leaf[i].elem)) return w->leaf[i].elem;
    return KL_XML_NONE;
}

static ncclResult_t refuse_file(const struct work *w)
{
    if (w->nunknown)
        return kl_xml_fail(
            w->xml, w->leaf[0].elem, ncclInvalidUsage,
            "no <gpu> elements, and no class, vendor and device in its <pci> elements, so nothing tells GPUs "
            "from NICs; name the machine with --machine (kolo topo --machines lists them)");
    return ncclSuccess;
}

/* Devices without a class count as GPUs only if the machine has so many. */
static ncclResult_t check_count(const struct work *w)
{
    const int gpus = w->machine ? kl_known_count(w->machine).gpus : w->ngpus;

    if (!w->nunknown || w->ngpus == gpus) return ncclSuccess;
    return kl_xml_fail(w->xml, KL_XML_ROOT, ncclInvalidUsage,
                       "%d devices would be GPUs, but %s has %d; give NICs class=\"0x02\"", w->ngpus, w->machine->name,
                       gpus);
}

static ncclResult_t complete_placement(struct work *w)
{
    int n;

    if (w->machine)
        kl_assume(w->assumed,
                  (struct kl_assumption){.code = KL_ASSUMED_MACHINE, .from = KL_FROM_OPTION, .machine = w->machine});
    else
        find_machine(w);
    KL_TRY(check_machine(w));
    classify(w);
    if (!w->ngpus) return refuse_file(w);
    KL_TRY(check_count(w));
    if (!w->machine && untold_gpu(w) != KL_XML_NONE) return refuse_gpu(w, untold_gpu(w));
    KL_TRY(make_gpus(w, &n));
    KL_TRY(wire(w, n));
    KL_TRY(make_nics(w));
    KL_TRY(fill_links(w));
    return fill_cpus(w);
}

/* ---- files with GPUs ---- */

/* Their `sm` counts compute units: as a compute capability it would select the wrong rules. */
static ncclResult_t translate_amd(struct work *w)
{
    int n = 0;

    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(w->xml, KL_XML_ROOT, e)) {
        if (!is_tag(w->xml, e, "gpu") || !kl_xml_attr(w->xml, e, "gcn")) continue;
        KL_TRY(kl_xml_set_int(w->xml, e, "sm", SM_OF_AMD));
        n++;
    }
    if (n) kl_assume(w->assumed, (struct kl_assumption){.code = KL_ASSUMED_AMD, .from = KL_FROM_DEFAULT, .n = n});
    return ncclSuccess;
}

static bool any_nvlink(const struct kl_xml *xml)
{
    return kl_xml_find(xml, "nvlink", NULL, NULL) != KL_XML_NONE || kl_xml_find(xml, "xgmi", NULL, NULL) != KL_XML_NONE;
}

static bool any_amd(const struct kl_xml *xml)
{
    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e))
        if (is_tag(xml, e, "gpu") && kl_xml_attr(xml, e, "gcn")) return true;
    return false;
}

/* GPUs without ids and NVLinks in a file that looks like a provider's: note the product, which implies the NVLinks. */
static ncclResult_t note_products(struct work *w)
{
    int n = 0;

    if (any_nvlink(w->xml) || any_amd(w->xml) || (w->ngpus && untold_gpu(w) == KL_XML_NONE)) return ncclSuccess;
    if (!w->machine)
        find_machine(w);
    else
        kl_assume(w->assumed,
                  (struct kl_assumption){.code = KL_ASSUMED_MACHINE, .from = KL_FROM_OPTION, .machine = w->machine});
    if (!w->machine) return ncclSuccess;
    for (int i = 0; i < w->nleaves; i++) {
        if (kl_xml_child(w->xml, w->leaf[i].elem, "gpu") == KL_XML_NONE) continue;
        KL_TRY(set_ids(w->xml, w->leaf[i].elem, kl_known_product(w->machine)));
        n++;
    }
    kl_assume(w->assumed, (struct kl_assumption){.code = KL_ASSUMED_PRODUCT,
                                                 .from = KL_FROM_MACHINE,
                                                 .n = n,
                                                 .product = kl_known_product(w->machine)});
    return ncclSuccess;
}

ncclResult_t kl_placement_complete(struct kl_xml *xml, const struct kl_known *machine, struct kl_assumed *assumed)
{
    bool has_gpus = !kl_xml_empty(xml) && kl_xml_find(xml, "gpu", NULL, NULL) != KL_XML_NONE;
    struct work w = {.xml = xml, .assumed = assumed, .machine = machine};
    ncclResult_t rc;

    if (kl_xml_empty(xml)) return ncclSuccess;
    if (has_gpus) KL_TRY(translate_amd(&w));
    if (has_gpus && kl_xml_count(xml) > MAX_ELEMENTS) return ncclSuccess;
    KL_TRY_OR(rc, out, gather(&w));
    rc = has_gpus ? note_products(&w) : complete_placement(&w);
out:
    free(w.leaf);
    free(w.pci);
    return rc;
}
