/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/parts.h"

#include "base/error.h"
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
    return *a && *b && strcmp(a, b) != 0 && strtoull(a, NULL, 16) == strtoull(b, NULL, 16);
}

/* ---- gathering ---- */

/* The pci element of a net; KL_XML_NONE for one that hangs on a cpu. */
static int card_of(const struct kl_xml *xml, int net)
{
    int pci = kl_xml_parent(xml, kl_xml_parent(xml, net));

    return pci != KL_XML_NONE && is(xml, pci, "pci") ? pci : KL_XML_NONE;
}

static void add_gpu(const struct kl_xml *xml, struct kl_parts *p, int elem)
{
    p->gpu[p->ngpus++] =
        (struct kl_gpu_part){.elem = elem, .pci = kl_xml_parent(xml, elem), .host = host_of(xml, elem)};
}

static void add_net(const struct kl_xml *xml, struct kl_parts *p, int elem)
{
    int dev = kl_xml_int(xml, elem, "dev", -1);

    p->net[p->nnets++] = (struct kl_net_part){.elem = elem,
                                              .pci = card_of(xml, elem),
                                              .host = host_of(xml, elem),
                                              .asic = kl_net_asic(xml, elem, dev),
                                              .port = kl_xml_int(xml, elem, "port", 0),
                                              .dev = dev,
                                              .speed = kl_xml_int(xml, elem, "speed", 0),
                                              .shares = -1};
}

static void add_slot(const struct kl_xml *xml, struct kl_parts *p, int elem)
{
    struct kl_slot_part s = {.pci = elem};
    bool holds = kl_xml_child(xml, elem, "gpu") != KL_XML_NONE || kl_xml_child(xml, elem, "nic") != KL_XML_NONE;

    if (!holds || !kl_xml_attr(xml, elem, "link_width") || !kl_xml_attr(xml, elem, "link_speed")) return;
    if (!kl_pci_bw(xml, elem, &s.bw)) p->slot[p->nslots++] = s;
}

static ncclResult_t gather(const struct kl_xml *xml, struct kl_parts *p)
{
    size_t most = (size_t)kl_xml_count(xml) + 1;

    p->nelems = kl_xml_count(xml);
    p->gpu = malloc(most * sizeof *p->gpu);
    p->slot = malloc(most * sizeof *p->slot);
    p->net = malloc(most * sizeof *p->net);
    p->target = malloc(most * sizeof *p->target);
    if (!p->gpu || !p->slot || !p->net || !p->target) return KL_NOMEM("the parts of a machine");
    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e)) {
        if (is(xml, e, "gpu")) add_gpu(xml, p, e);
        if (is(xml, e, "net")) add_net(xml, p, e);
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

int kl_parts_links(const struct kl_xml *xml, const struct kl_parts *p, int from, int to)
{
    int n = 0;

    for (int e = kl_xml_child(xml, p->gpu[from].elem, "nvlink"); e != KL_XML_NONE; e = kl_xml_next_same(xml, e))
        if ((e < p->nelems ? p->target[e] : target_of(xml, p, from, e)) == to) n += kl_xml_int(xml, e, "count", 0);
    return n;
}

/* Is this the first element of the GPU for its target? */
static bool first_for_target(const struct kl_xml *xml, int gpu, int nvlink)
{
    int e = kl_xml_child(xml, gpu, "nvlink");

    while (e != nvlink && !same(xml, e, nvlink, "target")) e = kl_xml_next_same(xml, e);
    return e == nvlink;
}

static void count_link(const struct kl_xml *xml, struct kl_parts *p, int g, int nvlink)
{
    int to = p->target[nvlink];

    if (to < 0) {
        p->gpu[g].links += kl_xml_int(xml, nvlink, "count", 0);
        p->gpu[g].switched = true;
        return;
    }
    if (!first_for_target(xml, p->gpu[g].elem, nvlink)) return;
    int here = kl_parts_links(xml, p, g, to), there = kl_parts_links(xml, p, to, g), n = here > there ? here : there;

    if (there && to < g) return; /* counted from there */
    p->gpu[g].links += n;
    p->gpu[to].links += n;
}

static void count_links(const struct kl_xml *xml, struct kl_parts *p)
{
    for (int g = 0; g < p->ngpus; g++)
        for (int e = kl_xml_child(xml, p->gpu[g].elem, "nvlink"); e != KL_XML_NONE; e = kl_xml_next_same(xml, e))
            p->target[e] = target_of(xml, p, g, e);
    for (int g = 0; g < p->ngpus; g++)
        for (int e = kl_xml_child(xml, p->gpu[g].elem, "nvlink"); e != KL_XML_NONE; e = kl_xml_next_same(xml, e))
            count_link(xml, p, g, e);
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

static bool same_gpu(const struct kl_xml *xml, int a, int b)
{
    return same_slot(xml, kl_xml_parent(xml, a), kl_xml_parent(xml, b));
}

static void sort_into_kinds(const struct kl_xml *xml, struct kl_parts *p)
{
    for (int g = 0; g < p->ngpus; g++)
        while (!same_gpu(xml, p->gpu[g].elem, p->gpu[p->gpu[g].kind].elem)) p->gpu[g].kind++;
    for (int s = 0; s < p->nslots; s++)
        while (p->slot[s].kind < s && !same_slot(xml, p->slot[s].pci, p->slot[p->slot[s].kind].pci)) p->slot[s].kind++;
    for (int n = 0; n < p->nnets; n++) {
        struct kl_net_part *net = &p->net[n];

        if (!is_known_nic(xml, net->pci)) {
            net->kind = -1;
            continue;
        }
        while (net->kind < n && (p->net[net->kind].kind < 0 || !same_device(xml, net->pci, p->net[net->kind].pci)))
            net->kind++;
    }
}

/* ---- what most of a kind have ---- */

/* One value of a kind, and how many have it. */
struct tally {
    float value;
    int n, all;
};

/* The commonest value of a kind, of equally common ones the largest. `at(parts, i, &value)`: the kind of the i-th. */
static struct tally commonest(const struct kl_parts *p, int count, int kind,
                              int (*at)(const struct kl_parts *, int, float *))
{
    struct tally best = {.n = 0};

    for (int i = kind; i < count; i++) {
        float value, other;
        int n = 0;

        if (at(p, i, &value) != kind) continue;
        best.all++;
        for (int k = kind; k < count; k++) n += at(p, k, &other) == kind && other == value;
        if (n > best.n || (n == best.n && value > best.value)) best.n = n, best.value = value;
    }
    return best;
}

static int links_at(const struct kl_parts *p, int i, float *value)
{
    *value = (float)p->gpu[i].links;
    return p->gpu[i].kind;
}

static int slot_at(const struct kl_parts *p, int i, float *value)
{
    *value = p->slot[i].bw;
    return p->slot[i].kind;
}

static int speed_at(const struct kl_parts *p, int i, float *value)
{
    *value = (float)p->net[i].speed;
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
 * Whoever has less than most of its kind lacks something. Where as many have as have not, the machine may be meant to
 * be so, but not with a switch: that all GPUs should reach.
 */
static void compare_gpus(const struct kl_xml *xml, struct kl_parts *p)
{
    for (int kind = 0; kind < p->ngpus; kind++) {
        if (p->gpu[kind].kind != kind) continue;
        struct tally most = commonest(p, p->ngpus, kind, links_at);

        if (2 * most.n <= most.all && !kind_is_switched(p, kind)) continue;
        if (is_left_over(xml, p, kind)) continue;
        for (int g = kind; g < p->ngpus; g++)
            if (p->gpu[g].kind == kind && (float)p->gpu[g].links < most.value)
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
            if (p->slot[s].kind == kind && p->slot[s].bw < most.value)
                p->slot[s].wanted = most.value, p->slot[s].peers = most.n;
    }
}

static void compare_speeds(struct kl_parts *p)
{
    for (int kind = 0; kind < p->nnets; kind++) {
        if (p->net[kind].kind != kind) continue;
        struct tally most = commonest(p, p->nnets, kind, speed_at);

        if (2 * most.n <= most.all) continue;
        for (int n = kind; n < p->nnets; n++)
            if (p->net[n].kind == kind && (float)p->net[n].speed < most.value)
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

ncclResult_t kl_parts_gather(const struct kl_xml *xml, struct kl_parts *p)
{
    *p = (struct kl_parts){.ngpus = 0};
    KL_TRY(gather(xml, p));
    count_links(xml, p);
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
    free(p->target);
    *p = (struct kl_parts){.ngpus = 0};
}
