/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/fault.h"

#include "base/error.h"
#include "base/text.h"
#include "topo/parts.h"
#include "topo/placement.h"

#include <stdlib.h>
#include <string.h>

/* ---- the list ---- */

static ncclResult_t add(struct kl_faults *f, int code, struct kl_text *text)
{
    if (f->n == f->max) {
        int max = f->max ? 2 * f->max : 8;
        struct kl_fault *fault = realloc(f->fault, (size_t)max * sizeof *fault);

        if (!fault) return KL_NOMEM("the faults of a machine");
        f->fault = fault;
        f->max = max;
    }
    f->fault[f->n] = (struct kl_fault){.code = code};
    memcpy(f->fault[f->n++].text, text->start, text->length + 1);
    *text = kl_text_over(text->start, text->capacity);
    return ncclSuccess;
}

void kl_faults_fini(struct kl_faults *f)
{
    free(f->fault);
    *f = (struct kl_faults){.n = 0};
}

/* ---- words ---- */

struct look {
    const struct kl_xml *xml;
    struct kl_parts parts;
    struct kl_faults *faults;
    struct kl_text text; /* of the current fault */
};

static int gpu_name(const struct look *l, int gpu)
{
    int elem = l->parts.gpu[gpu].elem;

    return kl_xml_int(l->xml, elem, "rank", kl_xml_int(l->xml, elem, "dev", 0));
}

enum { NAMES = 4 }; /* the most names of a list before it is cut */

/* "A, B and 3 more", name by name: the `at`-th of `n`. */
static void add_name(struct kl_text *t, const char *type, int name, int at, int n)
{
    bool cut = n > NAMES + 1 && at >= NAMES;

    if (cut && at > NAMES) return;
    if (cut)
        kl_text_add(t, " and %d more", n - NAMES);
    else
        kl_text_add(t, "%s%s/%d", !at ? "" : at == n - 1 ? " and " : ", ", type, name);
}

/* ---- NVLinks ---- */

/* Both ends of an nvlink element of GPU `a`. Seen from the first of both GPUs, or from the only one that sees it. */
static void look_at_link(struct look *l, int a, int nvlink, int *pairs)
{
    const struct kl_nvlink_part *link = &l->parts.nvlink[nvlink];

    if (!link->first) return;
    int b = link->target, here = link->links, there = kl_parts_links(l->xml, &l->parts, b, a);

    if (here == there || (there && b < a)) return;
    if (!(*pairs)++)
        kl_text_add(&l->text, "GPU/%d sees %d NVLink%s to GPU/%d, which sees %d back", gpu_name(l, a), here,
                    kl_plural(here), gpu_name(l, b), there);
}

static ncclResult_t look_at_ends(struct look *l)
{
    int pairs = 0;

    for (int a = 0; a < l->parts.ngpus; a++)
        for (int e = kl_xml_child(l->xml, l->parts.gpu[a].elem, "nvlink"); e != KL_XML_NONE;
             e = kl_xml_next_same(l->xml, e))
            look_at_link(l, a, e, &pairs);
    if (pairs > 1) kl_text_add(&l->text, " (and %d more pair%s of GPUs likewise)", pairs - 1, kl_plural(pairs - 1));
    return pairs ? add(l->faults, KL_FAULT_UNEQUAL_ENDS, &l->text) : ncclSuccess;
}

static bool lacks_like(const struct kl_gpu_part *a, const struct kl_gpu_part *b)
{
    return b->peers && a->kind == b->kind && a->links == b->links;
}

/* All GPUs of the kind with as few NVLinks as the first of them. */
static ncclResult_t say_few(struct look *l, int first)
{
    const struct kl_gpu_part *g = l->parts.gpu, *f = &g[first];
    int n = 0, at = 0;

    for (int i = first; i < l->parts.ngpus; i++) n += lacks_like(f, &g[i]);
    for (int i = first; i < l->parts.ngpus; i++)
        if (lacks_like(f, &g[i])) add_name(&l->text, "GPU", gpu_name(l, i), at++, n);
    if (f->links)
        kl_text_add(&l->text, " %s only %d NVLink%s%s", n == 1 ? "has" : "have", f->links, kl_plural(f->links),
                    n == 1 ? "" : " each");
    else
        kl_text_add(&l->text, " %s no NVLink", n == 1 ? "has" : "have");
    kl_text_add(&l->text, " while %d other GPU%s of the same kind %s %d%s", f->peers, kl_plural(f->peers),
                f->peers == 1 ? "has" : "have", f->wanted, f->peers == 1 ? "" : " each");
    return add(l->faults, KL_FAULT_FEW_NVLINKS, &l->text);
}

static ncclResult_t look_at_counts(struct look *l)
{
    const struct kl_gpu_part *g = l->parts.gpu;

    for (int i = 0; i < l->parts.ngpus; i++) {
        int k = 0;

        if (!g[i].peers) continue;
        while (k < i && !lacks_like(&g[i], &g[k])) k++;
        if (k == i) KL_TRY(say_few(l, i));
    }
    return ncclSuccess;
}

/* ---- NVLinks that the product has ---- */

const struct kl_gpu_product *kl_parts_board(const struct kl_xml *xml, const struct kl_parts *parts, bool more, int *n)
{
    const struct kl_gpu_product *board = NULL;

    *n = 0;
    for (int i = 0; i < parts->ngpus; i++) {
        const struct kl_gpu_part *g = &parts->gpu[i];
        const struct kl_gpu_product *p = kl_placement_product(xml, g->pci);

        if (!p || p->form != KL_FORM_BOARD || !p->links) continue;
        if (more ? g->links > p->links && (!board || p == board) : !g->links && (!board || p == board)) {
            board = p;
            ++*n;
        } else if (!more && p == board)
            return NULL; /* some have links: few_nvlinks is more precise */
    }
    return *n > 1 ? board : NULL;
}

static ncclResult_t look_at_boards(struct look *l)
{
    int n;
    const struct kl_gpu_product *board = kl_parts_board(l->xml, &l->parts, false, &n);

    if (board) {
        kl_text_add(&l->text, "%d SXM GPUs (%s) have no NVLink in the file, while this product has %d", n, board->name,
                    board->links);
        KL_TRY(add(l->faults, KL_FAULT_NO_NVLINK, &l->text));
    }
    board = kl_parts_board(l->xml, &l->parts, true, &n);
    if (!board) return ncclSuccess;
    kl_text_add(&l->text, "%d GPUs (%s) have more NVLinks in the file than the %d that this product has", n,
                board->name, board->links);
    return add(l->faults, KL_FAULT_MANY_NVLINKS, &l->text);
}

/* ---- PCI and NICs ---- */

static void slot_name(const struct look *l, int pci, struct kl_text *t)
{
    int gpu = kl_xml_child(l->xml, pci, "gpu");

    if (gpu != KL_XML_NONE)
        kl_text_add(t, "GPU/%d", kl_xml_int(l->xml, gpu, "rank", kl_xml_int(l->xml, gpu, "dev", 0)));
    else
        kl_text_add(t, "the NIC at %s", kl_xml_attr(l->xml, pci, "busid") ? kl_xml_attr(l->xml, pci, "busid") : "?");
}

static ncclResult_t look_at_slots(struct look *l)
{
    int n = 0;
    const struct kl_slot_part *first = NULL;

    for (int s = l->parts.nslots - 1; s >= 0; s--)
        if (l->parts.slot[s].peers) first = &l->parts.slot[s], n++;
    if (!n) return ncclSuccess;
    slot_name(l, first->pci, &l->text);
    kl_text_add(&l->text, " has a PCI link of %g GB/s while %d other%s of the same kind have %g", (double)first->bw,
                first->peers, kl_plural(first->peers), (double)first->wanted);
    if (n > 1) kl_text_add(&l->text, " (and %d more like it)", n - 1);
    return add(l->faults, KL_FAULT_NARROW_PCI, &l->text);
}

static ncclResult_t look_at_speeds(struct look *l)
{
    for (int n = 0; n < l->parts.nnets; n++) {
        const struct kl_net_part *p = &l->parts.net[n];

        if (!p->peers) continue;
        kl_text_add(&l->text, "NET/%d has %g Gb/s while %d other NIC%s of the same kind have %g", p->dev,
                    p->speed / 1000.0, p->peers, kl_plural(p->peers), p->wanted / 1000.0);
        KL_TRY(add(l->faults, KL_FAULT_SLOW_NET, &l->text));
    }
    return ncclSuccess;
}

static void say_why_shared(struct look *l, const struct kl_net_part *p)
{
    const char *guid = kl_xml_attr(l->xml, p->elem, "guid");

    if (guid && strncmp(guid, "0x", 2) != 0)
        kl_text_add(&l->text, " because their guid is not written as 0x... (guid=\"%.20s\") and so reads as 0", guid);
    else
        kl_text_add(&l->text, " because they have the same guid (%.20s) and port (%d)", guid ? guid : "none", p->port);
}

static ncclResult_t say_shared(struct look *l, int first)
{
    const struct kl_net_part *p = l->parts.net;
    int n = 0, at = 0;

    for (int i = 0; i < l->parts.nnets; i++) n += p[i].shares == first;
    for (int i = 0; i < l->parts.nnets; i++)
        if (p[i].shares == first) add_name(&l->text, "NET", p[i].dev, at++, n);
    kl_text_add(&l->text, " count as one port of %g Gb/s", p[first].speed / 1000.0);
    say_why_shared(l, &p[first]);
    return add(l->faults, KL_FAULT_SHARED_PORT, &l->text);
}

static ncclResult_t look_at_ports(struct look *l)
{
    for (int n = 0; n < l->parts.nnets; n++)
        if (l->parts.net[n].shares == n) KL_TRY(say_shared(l, n));
    return ncclSuccess;
}

/* ---- hosts ---- */

static bool same_bus(const struct look *l, int a, int b)
{
    const char *x = kl_xml_attr(l->xml, l->parts.gpu[a].pci, "busid"),
               *y = kl_xml_attr(l->xml, l->parts.gpu[b].pci, "busid");

    return x && y && !strcmp(x, y);
}

static ncclResult_t look_at_hosts(struct look *l)
{
    const struct kl_gpu_part *g = l->parts.gpu;
    int pairs = 0;

    for (int b = 0; b < l->parts.ngpus; b++)
        for (int a = 0; a < b; a++) {
            if (!kl_parts_hash_lost(g[a].host, g[b].host) || !same_bus(l, a, b)) continue;
            if (!pairs++)
                kl_text_add(&l->text,
                            "GPU/%d and GPU/%d count as one GPU, and their hosts as one host (host_hash \"%.20s\" and "
                            "\"%.20s\" "
                            "read as the same number)",
                            gpu_name(l, a), gpu_name(l, b), g[a].host, g[b].host);
        }
    if (pairs > 1) kl_text_add(&l->text, ", like %d other pair%s", pairs - 1, kl_plural(pairs - 1));
    return pairs ? add(l->faults, KL_FAULT_HOST_HASH, &l->text) : ncclSuccess;
}

/* ---- the whole ---- */

ncclResult_t kl_faults_find(const struct kl_xml *xml, int nccl, struct kl_faults *faults)
{
    char text[KL_FAULT_TEXT];
    struct look l = {.xml = xml, .faults = faults, .text = kl_text_over(text, sizeof text)};
    ncclResult_t rc;

    *faults = (struct kl_faults){.n = 0};
    if (kl_xml_empty(xml) || kl_xml_count(xml) > KL_FAULT_ELEMENTS) return ncclSuccess;
    KL_TRY_OR(rc, out, kl_parts_gather(xml, nccl, &l.parts));
    KL_TRY_OR(rc, out, look_at_ends(&l));
    KL_TRY_OR(rc, out, look_at_counts(&l));
    KL_TRY_OR(rc, out, look_at_slots(&l));
    KL_TRY_OR(rc, out, look_at_ports(&l));
    KL_TRY_OR(rc, out, look_at_speeds(&l));
    KL_TRY_OR(rc, out, look_at_boards(&l));
    KL_TRY_OR(rc, out, look_at_hosts(&l));
out:
    kl_parts_fini(&l.parts);
    if (rc) kl_faults_fini(faults);
    return rc;
}

static const struct {
    const char *name, *mended, *remedy;
} words[KL_FAULTS] = {
    [KL_FAULT_UNEQUAL_ENDS] =
        {"unequal_nvlinks", "with as many NVLinks as the other end sees",
         "Look for links that are down: nvidia-smi nvlink --status, and the fabric manager's log."},
    [KL_FAULT_FEW_NVLINKS] =
        {"few_nvlinks", "with as many NVLinks as the others",
         "Look for links that are down: nvidia-smi nvlink --status, and the fabric manager's log."},
    [KL_FAULT_NO_NVLINK] =
        {"no_nvlinks", "with the NVLinks that this product has",
         "Take a dump of the machine itself (NCCL_TOPO_DUMP_FILE): NVLinks may be missing in the file only."},
    [KL_FAULT_MANY_NVLINKS] = {"many_nvlinks", "with as many NVLinks as this product has",
                               "Take a dump of the machine itself (NCCL_TOPO_DUMP_FILE): the file seems to be edited."},
    [KL_FAULT_NARROW_PCI] = {"narrow_pci", "with PCI links like the others",
                             "Reseat the card, and compare LnkSta with LnkCap in lspci -vv."},
    [KL_FAULT_SHARED_PORT] = {"shared_port", "with a guid of its own for every card",
                              "Write guids as 0x... in the topology file, a different one for each card."},
    [KL_FAULT_SLOW_NET] = {"slow_nic", "with NICs as fast as the others",
                           "Look at the speed that the port negotiated: ibstat or ethtool."},
    [KL_FAULT_HOST_HASH] = {"host_hash", "with hosts told apart",
                            "Write host_hash as a hexadecimal number, a different one for each host."},
};

const char *kl_fault_name(int code)
{
    return code >= 0 && code < KL_FAULTS ? words[code].name : "unknown";
}

const char *kl_fault_mended(int code)
{
    return code >= 0 && code < KL_FAULTS ? words[code].mended : "mended";
}

const char *kl_fault_remedy(int code)
{
    return code >= 0 && code < KL_FAULTS ? words[code].remedy : "";
}
