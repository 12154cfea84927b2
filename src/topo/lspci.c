/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/lspci.h"

#include "base/error.h"
#include "base/text.h"
#include "topo/input.h"
#include "topo/product.h"
#include "topo/types.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 1024, DEPTH = 48, SECOND_CPU = 0x80, DOMAIN_DIGITS = 7 };

/* A bus in brackets, or a function, and the column where it stands: deeper ones of later lines hang on it. */
struct place {
    int column;
    int domain, bus;
    int elem;  /* <pci> of a switch, <cpu> of a root bus */
    int level; /* bridges above it */
};

struct reader {
    struct kl_xml *xml;
    struct place place[DEPTH];
    int depth, line;
    int cpu[2]; /* elements; KL_XML_NONE: not made */
    int gpus, nics;
    const char *file, *first; /* the first GPU's name */
};

/* ---- places ---- */

static int parse_hex(const char **at, int digits)
{
    int value = 0, n = 0;

    while (n < digits && isxdigit((unsigned char)**at)) {
        value = value * 16 + (isdigit((unsigned char)**at) ? **at - '0' : tolower((unsigned char)**at) - 'a' + 10);
        ++*at;
        n++;
    }
    return n ? value : -1;
}

/* "[0000:17]", "[18-1c]": a bus, with a domain at the root. */
static bool take_bus(const char **at, int *domain, int *bus)
{
    const char *a = *at;

    if (*a++ != '[') return false;
    int first = parse_hex(&a, DOMAIN_DIGITS);

    if (first >= 0 && *a == ':') {
        a++;
        *domain = first;
        first = parse_hex(&a, 2);
    }
    if (*a == '-') {
        a++;
        parse_hex(&a, 2);
    }
    if (first < 0 || first > 0xff || *a != ']') return false;
    *bus = first;
    *at = a + 1;
    return true;
}

/* "1d.3" */
static bool take_function(const char **at, int *device, int *function)
{
    const char *a = *at;
    int d = parse_hex(&a, 2), f;

    if (d < 0 || a - *at != 2 || *a++ != '.') return false;
    f = parse_hex(&a, 1);
    if (f < 0 || f > 7 || isxdigit((unsigned char)*a)) return false;
    *device = d;
    *function = f;
    *at = a;
    return true;
}

/* ---- elements ---- */

static ncclResult_t cpu_of(struct reader *r, int bus, int *elem)
{
    const int which = bus >= SECOND_CPU;

    if (r->cpu[which] == KL_XML_NONE) {
        KL_TRY(kl_xml_add(r->xml, KL_XML_ROOT, "cpu", &r->cpu[which]));
        KL_TRY(kl_xml_set_int(r->xml, r->cpu[which], "numaid", which));
    }
    *elem = r->cpu[which];
    return ncclSuccess;
}

static ncclResult_t add_pci(struct reader *r, int parent, const char *busid, const char *class, int *elem)
{
    KL_TRY(kl_xml_add(r->xml, parent, "pci", elem));
    KL_TRY(kl_xml_set(r->xml, *elem, "busid", busid));
    return kl_xml_set(r->xml, *elem, "class", class);
}

static ncclResult_t set_ids(struct reader *r, int elem, int vendor, int device)
{
    KL_TRY(kl_xml_set_hex(r->xml, elem, "vendor", (uint64_t)vendor));
    return kl_xml_set_hex(r->xml, elem, "device", (uint64_t)device);
}

/* "[10de:2330]", of lspci -nn; false without. */
static bool ids_in(const char *text, int *vendor, int *device)
{
    for (const char *at = strchr(text, '['); at; at = strchr(at + 1, '[')) {
        const char *a = at + 1;

        *vendor = parse_hex(&a, 4);
        if (*vendor < 0 || a - at != 5 || *a++ != ':') continue;
        *device = parse_hex(&a, 4);
        if (*device >= 0 && *a == ']') return true;
    }
    return false;
}

/* "GA100 [A100 SXM4 40GB]": the name that counts stands in the last brackets. */
static const char *name_in(const char *text, char name[64])
{
    const char *open = strrchr(text, '['), *close = open ? strchr(open, ']') : NULL;

    snprintf(name, 64, "%.*s", close ? (int)(close - open - 1 < 63 ? close - open - 1 : 63) : 0, close ? open + 1 : "");
    return name;
}

static const struct kl_gpu_product *gpu_in(const char *text)
{
    char name[64];
    int vendor, device;

    if (ids_in(text, &vendor, &device)) return kl_gpu_product_of(vendor, device);
    if (!strstr(text, "NVIDIA")) return NULL;
    return kl_gpu_product_like(name_in(text, name));
}

static const struct kl_nic_product *nic_in(const char *text)
{
    char name[64];
    int vendor, device;

    if (ids_in(text, &vendor, &device)) return kl_nic_product_of(vendor, device);
    if (strstr(text, "Elastic Fabric Adapter")) return kl_nic_product_like("EFA");
    return kl_nic_product_like(name_in(text, name));
}

/* A leaf: a GPU or NIC gets an element, anything else none. Virtual functions are others' NICs. */
static ncclResult_t add_leaf(struct reader *r, int parent, const char *busid, const char *text)
{
    const struct kl_gpu_product *gpu = gpu_in(text);
    const struct kl_nic_product *nic = gpu || strstr(text, "Virtual Function") ? NULL : nic_in(text);
    int elem;

    if (gpu) {
        KL_TRY(add_pci(r, parent, busid, "0x030200", &elem));
        if (!r->gpus++) r->first = gpu->name;
        return set_ids(r, elem, KL_VENDOR_ID_NVIDIA, gpu->device[0]);
    }
    if (!nic) return ncclSuccess;
    KL_TRY(add_pci(r, parent, busid, kl_nic_traits[nic->kind].pci_class, &elem));
    r->nics++;
    return set_ids(r, elem, nic->vendor, nic->device);
}

/* ---- lines ---- */

/* The bus that functions at this column are on. */
static struct place *place_at(struct reader *r, int column)
{
    while (r->depth && r->place[r->depth - 1].column >= column) r->depth--;
    return r->depth ? &r->place[r->depth - 1] : NULL;
}

static ncclResult_t push(struct reader *r, struct place p)
{
    if (r->depth == DEPTH) return KL_FAIL(ncclInvalidUsage, "%s:%d: buses are nested too deep", r->file, r->line);
    r->place[r->depth++] = p;
    return ncclSuccess;
}

/* A function that leads to a bus is a bridge; others have a text behind two blanks. Bridges above each other are in turn a port, and the
 * upstream side of a switch: the switch alone becomes an element, as in NCCL's files. */
static ncclResult_t read_function(struct reader *r, const char **at, int column, int device, int function)
{
    struct place *on = place_at(r, column);
    char busid[KL_BUSID_TEXT];
    const char *next = *at;
    int domain = on ? on->domain : 0, bus, elem;

    if (!on) return ncclSuccess;
    snprintf(busid, sizeof busid, "%04x:%02x:%02x.%x", on->domain & 0xffff, on->bus, device, function);
    if (*next == '-') next++;
    if (*at != next && take_bus(&next, &domain, &bus)) {
        const int level = on->level;

        elem = on->elem;
        if (level % 2) KL_TRY(add_pci(r, on->elem, busid, "0x060400", &elem));
        *at = next;
        return push(r, (struct place){column + 1, domain, bus, elem, level + 1});
    }
    next = *at + strspn(*at, " ");
    *at = next + strlen(next);
    return add_leaf(r, on->elem, busid, next);
}

static ncclResult_t read_root(struct reader *r, int column, int domain, int bus)
{
    int cpu;

    r->depth = 0;
    KL_TRY(cpu_of(r, bus, &cpu));
    return push(r, (struct place){column, domain, bus, cpu, 0});
}

static ncclResult_t read_line(struct reader *r, const char *line)
{
    const char *at = line;
    bool seen = false; /* a bus or function of this line */

    while (*at) {
        int domain = 0, bus, device, function, column = (int)(at - line);

        if (take_bus(&at, &domain, &bus)) {
            KL_TRY(read_root(r, column, domain, bus));
            seen = true;
        } else if (isxdigit((unsigned char)*at) && (at == line || !isxdigit((unsigned char)at[-1])) &&
                   take_function(&at, &device, &function)) {
            KL_TRY(read_function(r, &at, column, device, function));
            seen = true;
        } else if (!seen && !strchr(" |+\\-`", *at))
            return ncclSuccess; /* not a line of the tree */
        else
            at++;
    }
    return ncclSuccess;
}

static ncclResult_t read_lines(struct reader *r, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const char *stop = memchr(text + at, '\n', bytes - at);
        size_t n = stop ? (size_t)(stop - text) - at : bytes - at, kept = n < LINE_BYTES - 1 ? n : LINE_BYTES - 1;
        char line[LINE_BYTES];

        for (size_t i = 0; i < kept; i++) line[i] = (unsigned char)text[at + i] < ' ' ? ' ' : text[at + i];
        line[kept] = 0;
        r->line++;
        KL_TRY(read_line(r, line));
        at += n + (stop != NULL);
    }
    return ncclSuccess;
}

/* ---- bridges without devices ---- */

/* Bridges below which nothing was kept would be GPUs or NICs without a product. */
static bool is_bare(const struct kl_xml *xml, int e)
{
    return !strcmp(kl_xml_tag(xml, e), "pci") && kl_xml_child(xml, e, "pci") == KL_XML_NONE &&
           !strcmp(kl_xml_attr(xml, e, "class"), "0x060400");
}

static void drop_bare(struct kl_xml *xml, int e)
{
    for (int c = kl_xml_first(xml, e), next; c != KL_XML_NONE; c = next) {
        next = kl_xml_next(xml, c);
        drop_bare(xml, c);
        if (is_bare(xml, c)) kl_xml_remove(xml, c);
    }
}

static ncclResult_t finish(struct reader *r, struct kl_assumed *assumed)
{
    if (!r->gpus)
        return KL_FAIL(ncclInvalidUsage, "%s: the tree of lspci names no GPU that is known here; use lspci -tvnn",
                       r->file);
    drop_bare(r->xml, KL_XML_ROOT);
    if (!assumed) return ncclSuccess;
    struct kl_text t = kl_text_in(assumed->summary, sizeof assumed->summary);

    assumed->read_as = kl_input_name(KL_INPUT_LSPCI);
    kl_text_add(&t, "%d GPU%s (%s), %d NIC%s", r->gpus, kl_plural(r->gpus), r->first, r->nics, kl_plural(r->nics));
    kl_assume(assumed, (struct kl_assumption){.code = KL_ASSUMED_ROOTS,
                                              .from = KL_FROM_DEFAULT,
                                              .n = 1 + (r->cpu[0] != KL_XML_NONE && r->cpu[1] != KL_XML_NONE)});
    return ncclSuccess;
}

ncclResult_t kl_lspci_read(const char *file, const char *text, size_t bytes, struct kl_assumed *assumed,
                           struct kl_xml **xml)
{
    struct reader r = {.cpu = {KL_XML_NONE, KL_XML_NONE}, .file = file};
    ncclResult_t rc;
    int root;

    KL_TRY(kl_xml_create(file, &r.xml));
    KL_TRY_OR(rc, out, kl_xml_add(r.xml, KL_XML_NONE, "system", &root));
    KL_TRY_OR(rc, out, kl_xml_set(r.xml, root, "version", "1"));
    KL_TRY_OR(rc, out, read_lines(&r, text, bytes));
    rc = finish(&r, assumed);
out:
    if (rc)
        kl_xml_free(r.xml);
    else
        *xml = r.xml;
    return rc;
}
