/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/parts.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/parse.h"
#include "topo/topo.h"

#include <stdlib.h>
#include <string.h>

static const char *attr(const struct kl_xml *xml, int elem, const char *key)
{
    const char *value = kl_xml_attr(xml, elem, key);

    return value ? value : "";
}

static bool is(const struct kl_xml *xml, int elem, const char *tag)
{
    return !strcmp(kl_xml_tag(xml, elem), tag);
}

static bool same(const struct kl_xml *xml, int a, int b, const char *key)
{
    return !strcmp(attr(xml, a, key), attr(xml, b, key));
}

static const char *host_of(const struct kl_xml *xml, int elem)
{
    while (elem != KL_XML_ROOT && !is(xml, elem, "cpu")) elem = kl_xml_parent(xml, elem);
    return attr(xml, elem, "host_hash");
}

bool kl_parts_hash_lost(const char *a, const char *b)
{
    return *a && *b && strcmp(a, b) != 0 && kl_parse_hex(a) == kl_parse_hex(b);
}

/* ---- gathering ---- */

/* The pci element of a net; KL_XML_NONE for one that hangs on a cpu. */
static int card_of(const struct kl_xml *xml, int net)
{
    int pci = kl_xml_parent(xml, kl_xml_parent(xml, net));

    return pci != KL_XML_NONE && is(xml, pci, "pci") ? pci : KL_XML_NONE;
}

static uint64_t hash_attr(uint64_t hash, const struct kl_xml *xml, int elem, const char *key)
{
    const char *value = attr(xml, elem, key);

    return kl_hash_add(hash, value, strlen(value) + 1);
}

/* Hash of the fields that same_device compares. */
static uint64_t looks_of_device(const struct kl_xml *xml, int pci)
{
    uint64_t hash = hash_attr(KL_HASH_START, xml, pci, "vendor");

    return hash_attr(hash_attr(hash, xml, pci, "device"), xml, pci, "subsystem_device");
}

/* Hash of the fields that same_slot compares. */
static uint64_t looks_of_slot(const struct kl_xml *xml, int pci)
{
    int gpu = kl_xml_child(xml, pci, "gpu");
    uint64_t hash = looks_of_device(xml, pci);

    return gpu == KL_XML_NONE ? hash : hash_attr(hash, xml, gpu, "sm");
}

static void add_gpu(const struct kl_xml *xml, struct kl_parts *p, int elem)
{
    int pci = kl_xml_parent(xml, elem);

    p->gpu[p->ngpus++] =
        (struct kl_gpu_part){.elem = elem, .pci = pci, .host = host_of(xml, elem), .looks = looks_of_slot(xml, pci)};
}

static void add_net(const struct kl_xml *xml, struct kl_parts *p, int elem, int nccl)
{
    int dev = kl_xml_int(xml, elem, "dev", -1), pci = card_of(xml, elem);

    p->net[p->nnets++] = (struct kl_net_part){.elem = elem,
                                              .pci = pci,
                                              .host = host_of(xml, elem),
                                              .asic = kl_net_asic(xml, elem, (uint64_t)(int64_t)dev, nccl),
                                              .looks = pci == KL_XML_NONE ? 0 : looks_of_device(xml, pci),
                                              .port = kl_xml_int(xml, elem, "port", 0),
                                              .dev = dev,
                                              .speed = kl_xml_int(xml, elem, "speed", 0),
                                              .shares = -1};
}

static void add_slot(const struct kl_xml *xml, struct kl_parts *p, int elem)
{
    struct kl_slot_part s = {.pci = elem, .looks = looks_of_slot(xml, elem)};
    bool holds = kl_xml_child(xml, elem, "gpu") != KL_XML_NONE || kl_xml_child(xml, elem, "nic") != KL_XML_NONE;

    if (!holds || !kl_xml_attr(xml, elem, "link_width") || !kl_xml_attr(xml, elem, "link_speed")) return;
    if (!kl_pci_bw(xml, elem, &s.bw)) p->slot[p->nslots++] = s;
}

static ncclResult_t gather(const struct kl_xml *xml, int nccl, struct kl_parts *p)
{
    size_t most = (size_t)kl_xml_count(xml) + 1;

    p->nelems = kl_xml_count(xml);
    p->gpu = malloc(most * sizeof *p->gpu);
    p->slot = malloc(most * sizeof *p->slot);
    p->net = malloc(most * sizeof *p->net);
    p->nvlink = malloc(most * sizeof *p->nvlink);
    if (!p->gpu || !p->slot || !p->net || !p->nvlink) return KL_NOMEM("the parts of a machine");
    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e)) {
        if (is(xml, e, "gpu")) add_gpu(xml, p, e);
        if (is(xml, e, "net")) add_net(xml, p, e, nccl);
        if (is(xml, e, "pci")) add_slot(xml, p, e);
    }
    return ncclSuccess;
}

/* ---- NVLinks ---- */

static int target_of(const struct kl_xml *xml, const struct kl_parts *p, int from, int nvlink)
{
    const char *target = attr(xml, nvlink, "target");

    for (int g = 0; g < p->ngpus; g++)
        if (!strcmp(attr(xml, p->gpu[g].pci, "busid"), target) && !strcmp(p->gpu[g].host, p->gpu[from].host)) return g;
    return -1;
}

int kl_parts_count(const struct kl_xml *xml, int nvlink)
{
    enum { MOST = 1 << 16 };
    int n = kl_xml_int(xml, nvlink, "count", 0);

    return n < 0 ? 0 : n > MOST ? MOST : n;
}

int kl_parts_links(const struct kl_xml *xml, const struct kl_parts *p, int from, int to)
{
    for (int e = kl_xml_child(xml, p->gpu[from].elem, "nvlink"); e != KL_XML_NONE; e = kl_xml_next_same(xml, e))
        if (e < p->nelems && p->nvlink[e].target == to && p->nvlink[e].first) return p->nvlink[e].links;
    return 0;
}

/* `first` is by GPU: -1, also when this returns. */
static void add_nvlinks(const struct kl_xml *xml, struct kl_parts *p, int g, int *first)
{
    int start = kl_xml_child(xml, p->gpu[g].elem, "nvlink");

    for (int e = start; e != KL_XML_NONE; e = kl_xml_next_same(xml, e)) {
        int to = target_of(xml, p, g, e);

        p->nvlink[e] = (struct kl_nvlink_part){.target = to};
        if (to < 0) continue;
        if (first[to] < 0) {
            first[to] = e;
            p->nvlink[e].first = true;
        }
        p->nvlink[first[to]].links += kl_parts_count(xml, e);
    }
    for (int e = start; e != KL_XML_NONE; e = kl_xml_next_same(xml, e))
        if (p->nvlink[e].target >= 0) first[p->nvlink[e].target] = -1;
}

static void count_link(const struct kl_xml *xml, struct kl_parts *p, int g, int nvlink)
{
    const struct kl_nvlink_part *l = &p->nvlink[nvlink];

    if (l->target < 0) {
        p->gpu[g].links += kl_parts_count(xml, nvlink);
        p->gpu[g].switched = true;
        return;
    }
    if (!l->first) return;
    int there = kl_parts_links(xml, p, l->target, g), n = l->links > there ? l->links : there;

    if (there && l->target < g) return; /* counted from there */
    p->gpu[g].links += n;
    p->gpu[l->target].links += n;
}

static ncclResult_t count_links(const struct kl_xml *xml, struct kl_parts *p)
{
    int *first = malloc(((size_t)p->ngpus + 1) * sizeof *first);

    if (!first) return KL_NOMEM("the parts of a machine");
    for (int g = 0; g < p->ngpus; g++) first[g] = -1;
    for (int g = 0; g < p->ngpus; g++) add_nvlinks(xml, p, g, first);
    free(first);
    for (int g = 0; g < p->ngpus; g++)
        for (int e = kl_xml_child(xml, p->gpu[g].elem, "nvlink"); e != KL_XML_NONE; e = kl_xml_next_same(xml, e))
            count_link(xml, p, g, e);
    return ncclSuccess;
}

/* ---- kinds ---- */

static bool same_device(const struct kl_xml *xml, int a, int b)
{
    return same(xml, a, b, "vendor") && same(xml, a, b, "device") && same(xml, a, b, "subsystem_device");
}

/* A NIC's own PCI device, and not a bridge that stands for it, as in virtual machines. */
static bool is_known_nic(const struct kl_xml *xml, int pci)
{
    return pci != KL_XML_NONE && *attr(xml, pci, "device") && !strncmp(attr(xml, pci, "class"), "0x02", 4);
}

static bool same_slot(const struct kl_xml *xml, int a, int b)
{
    int ga = kl_xml_child(xml, a, "gpu"), gb = kl_xml_child(xml, b, "gpu");

    if ((ga == KL_XML_NONE) != (gb == KL_XML_NONE) || !same_device(xml, a, b)) return false;
    return ga == KL_XML_NONE ? is_known_nic(xml, a) : same(xml, ga, gb, "sm");
}

static bool same_gpu_kind(const struct kl_xml *xml, const struct kl_gpu_part *a, const struct kl_gpu_part *b)
{
    return a->looks == b->looks && same_slot(xml, a->pci, b->pci);
}

static bool same_slot_kind(const struct kl_xml *xml, const struct kl_slot_part *a, const struct kl_slot_part *b)
{
    return a->looks == b->looks && same_slot(xml, a->pci, b->pci);
}

static bool same_net_kind(const struct kl_xml *xml, const struct kl_net_part *a, const struct kl_net_part *b)
{
    return a->looks == b->looks && b->kind >= 0 && same_device(xml, a->pci, b->pci);
}

static void sort_into_kinds(const struct kl_xml *xml, struct kl_parts *p)
{
    for (int i = 0; i < p->ngpus; i++)
        while (p->gpu[i].kind < i && !same_gpu_kind(xml, &p->gpu[i], &p->gpu[p->gpu[i].kind])) p->gpu[i].kind++;
    for (int i = 0; i < p->nslots; i++)
        while (p->slot[i].kind < i && !same_slot_kind(xml, &p->slot[i], &p->slot[p->slot[i].kind])) p->slot[i].kind++;
    for (int i = 0; i < p->nnets; i++) {
        struct kl_net_part *net = &p->net[i];

        if (!is_known_nic(xml, net->pci))
            net->kind = -1;
        else
            while (net->kind < i && !same_net_kind(xml, net, &p->net[net->kind])) net->kind++;
    }
}

/* ---- the values of the majority ---- */

/* One value of a kind, and how many have it. */
struct tally {
    double value;
    int n, all;
};

/* The commonest value of a kind, of equally common ones the largest. `at(parts, i, &value)`: the kind of the i-th. */
static struct tally commonest(const struct kl_parts *p, int count, int kind,
                              int (*at)(const struct kl_parts *, int, double *))
{
    struct tally best = {.n = 0};

    for (int i = kind; i < count; i++) {
        double value, other;
        int n = 0;

        if (at(p, i, &value) != kind) continue;
        best.all++;
        for (int k = kind; k < count; k++) n += at(p, k, &other) == kind && other == value;
        if (n > best.n || (n == best.n && value > best.value)) best.n = n, best.value = value;
    }
    return best;
}

static int links_at(const struct kl_parts *p, int i, double *value)
{
    *value = p->gpu[i].links;
    return p->gpu[i].kind;
}

static int slot_at(const struct kl_parts *p, int i, double *value)
{
    *value = (double)p->slot[i].bw;
    return p->slot[i].kind;
}

static int speed_at(const struct kl_parts *p, int i, double *value)
{
    *value = p->net[i].speed;
    return p->net[i].kind;
}

static bool kind_is_switched(const struct kl_parts *p, int kind)
{
    for (int g = kind; g < p->ngpus; g++)
        if (p->gpu[g].kind == kind && p->gpu[g].switched) return true;
    return false;
}

static int partners(const struct kl_xml *xml, const struct kl_parts *p, int gpu)
{
    int n = 0;

    for (int k = 0; k < p->ngpus; k++) n += k != gpu && kl_parts_links(xml, p, gpu, k) > 0;
    return n;
}

/* Are all of a kind joined by bridges, two by two, but for one that is left over? That one lacks nothing. */
static bool is_left_over(const struct kl_xml *xml, const struct kl_parts *p, int kind)
{
    int alone = 0;

    for (int g = kind; g < p->ngpus; g++) {
        if (p->gpu[g].kind != kind) continue;
        if (p->gpu[g].links && partners(xml, p, g) > 1) return false;
        alone += !p->gpu[g].links;
    }
    return alone == 1 && !kind_is_switched(p, kind);
}

/*
 * A GPU with less than most of its kind lacks something. If half of them have it, the machine may be meant to be so; but
 * not with a switch: all GPUs should reach it.
 */
static void compare_gpus(const struct kl_xml *xml, struct kl_parts *p)
{
    for (int kind = 0; kind < p->ngpus; kind++) {
        if (p->gpu[kind].kind != kind) continue;
        struct tally most = commonest(p, p->ngpus, kind, links_at);

        if (2 * most.n <= most.all && !kind_is_switched(p, kind)) continue;
        if (is_left_over(xml, p, kind)) continue;
        for (int g = kind; g < p->ngpus; g++)
            if (p->gpu[g].kind == kind && p->gpu[g].links < most.value)
                p->gpu[g].wanted = (int)most.value, p->gpu[g].peers = most.n;
    }
}

static void compare_slots(struct kl_parts *p)
{
    for (int kind = 0; kind < p->nslots; kind++) {
        if (p->slot[kind].kind != kind) continue;
        struct tally most = commonest(p, p->nslots, kind, slot_at);

        if (2 * most.n <= most.all) continue;
        for (int s = kind; s < p->nslots; s++)
            if (p->slot[s].kind == kind && (double)p->slot[s].bw < most.value)
                p->slot[s].wanted = (float)most.value, p->slot[s].peers = most.n;
    }
}

static void compare_speeds(struct kl_parts *p)
{
    for (int kind = 0; kind < p->nnets; kind++) {
        if (p->net[kind].kind != kind) continue;
        struct tally most = commonest(p, p->nnets, kind, speed_at);

        if (2 * most.n <= most.all) continue;
        for (int n = kind; n < p->nnets; n++)
            if (p->net[n].kind == kind && p->net[n].speed < most.value)
                p->net[n].wanted = (int)most.value, p->net[n].peers = most.n;
    }
}

/* ---- ports ---- */

/* Up to the last colon: functions and virtual functions of a card share domain and bus. */
static bool same_card(const struct kl_xml *xml, int a, int b)
{
    const char *x = attr(xml, a, "busid"), *y = attr(xml, b, "busid"), *end = strrchr(x, ':');

    return a == b || (end && !strncmp(x, y, (size_t)(end - x) + 1));
}

static bool look_alike(const struct kl_net_part *a, const struct kl_net_part *b)
{
    return a->asic == b->asic && a->port == b->port && a->dev != b->dev && !strcmp(a->host, b->host);
}

static void compare_ports(const struct kl_xml *xml, struct kl_parts *p)
{
    for (int n = 0; n < p->nnets; n++)
        for (int k = 0; k < p->nnets && p->net[n].shares < 0; k++) {
            if (!look_alike(&p->net[n], &p->net[k])) continue;
            if (p->net[n].pci == KL_XML_NONE || p->net[k].pci == KL_XML_NONE) continue;
            if (!same_card(xml, p->net[n].pci, p->net[k].pci)) p->net[n].shares = k < n ? k : n;
        }
}

ncclResult_t kl_parts_gather(const struct kl_xml *xml, int nccl, struct kl_parts *p)
{
    *p = (struct kl_parts){.ngpus = 0};
    KL_TRY(gather(xml, nccl, p));
    KL_TRY(count_links(xml, p));
    sort_into_kinds(xml, p);
    compare_gpus(xml, p);
    compare_slots(p);
    compare_speeds(p);
    compare_ports(xml, p);
    return ncclSuccess;
}

void kl_parts_fini(struct kl_parts *p)
{
    free(p->gpu);
    free(p->slot);
    free(p->net);
    free(p->nvlink);
    *p = (struct kl_parts){.ngpus = 0};
}
