/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/warn.h"

#include "topo/fault.h"
#include "topo/release.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_ELEMENTS = KL_FAULT_ELEMENTS
}; /* larger documents take long to check, and their warnings would be unreadable */

struct look {
    const struct kl_xml *xml;
    kl_topo_warning *warn;
    void *ctx;
};

static void say(const struct look *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(const struct look *l, const char *fmt, ...)
{
    char text[640];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    l->warn(l->ctx, text);
}

static const char *attr(const struct look *l, int elem, const char *key)
{
    const char *value = kl_xml_attr(l->xml, elem, key);

    return value ? value : "";
}

/* ---- single elements ---- */

static void look_at_cpu(const struct look *l, int elem)
{
    if (!strcmp(attr(l, elem, "numaid"), "-1"))
        say(l, "a CPU without a NUMA node: its devices are taken to be near all others; check the firmware's NUMA "
               "setting");
}

/* Facts that many elements share are said once: the first, and how many more. */
struct tally {
    int n, first;
};

static void count(struct tally *t, int elem)
{
    if (!t->n++) t->first = elem;
}

static void look_at_pci(const struct look *l, int elem, struct tally *widths, struct tally *speeds)
{
    if (kl_xml_int(l->xml, elem, "link_width", 0) <= 0) count(widths, elem);
    if (!strstr(attr(l, elem, "link_speed"), "GT/s")) count(speeds, elem);
}

static void say_tally(const struct look *l, const struct tally *t, const char *key, const char *others,
                      const char *what)
{
    const char *name = t->n ? attr(l, t->first, key) : "";

    if (t->n == 1) say(l, "%s: %s", name, what);
    if (t->n > 1) say(l, "%s and %d other %s: %s", name, t->n - 1, others, what);
}

static const char *host_of(const struct look *l, int elem)
{
    while (strcmp(kl_xml_tag(l->xml, elem), "cpu") != 0 && elem != KL_XML_ROOT) elem = kl_xml_parent(l->xml, elem);
    return attr(l, elem, "host_hash");
}

static bool same_net(const struct look *l, int a, int b)
{
    return *attr(l, a, "name") && !strcmp(attr(l, a, "name"), attr(l, b, "name")) &&
           !strcmp(attr(l, a, "dev"), attr(l, b, "dev")) && !strcmp(host_of(l, a), host_of(l, b));
}

static void look_at_net(const struct look *l, int elem, struct tally *slow, struct tally *repeated)
{
    int first = kl_xml_find(l->xml, "net", "name", attr(l, elem, "name"));

    if (kl_xml_int(l->xml, elem, "speed", 0) <= 0) count(slow, elem);
    if (first != KL_XML_NONE && first != elem && same_net(l, first, elem)) count(repeated, elem);
}

/* ---- limits of NCCL ---- */

static int room(int nccl)
{
    if (kl_nccl_has(nccl, KL_CHANGE_NODES_640)) return 640;
    return kl_nccl_has(nccl, KL_CHANGE_NODES_576) ? 576 : 256;
}

static void look_at_room(const struct look *l, const char *tag, const char *what, int nccl)
{
    char release[KL_NCCL_TEXT];
    int n = 0;

    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(l->xml, KL_XML_ROOT, e))
        n += !strcmp(kl_xml_tag(l->xml, e), tag);
    if (n > room(nccl))
        say(l, "%d %s: NCCL %s has room for %d of a kind, and fails where there are more", n, what,
            kl_nccl_text(nccl, release), room(nccl));
}

/* ---- parts that differ from their like ---- */

static void look_for_faults(const struct look *l, int nccl)
{
    struct kl_faults faults;

    if (kl_faults_find(l->xml, nccl, &faults)) return;
    for (int i = 0; i < faults.n; i++) say(l, "%s. %s", faults.fault[i].text, kl_fault_remedy(faults.fault[i].code));
    kl_faults_fini(&faults);
}

/* ---- the whole ---- */

static bool hangs_on_cpu(const struct look *l, int elem)
{
    int pci = kl_xml_parent(l->xml, elem);

    return !strcmp(kl_xml_tag(l->xml, kl_xml_parent(l->xml, pci)), "cpu");
}

static void look_for_switches(const struct look *l, const struct kl_cpu_facts *cpu)
{
    int gpus = 0, flat = 0;

    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(l->xml, KL_XML_ROOT, e))
        if (!strcmp(kl_xml_tag(l->xml, e), "gpu")) {
            gpus++;
            flat += hangs_on_cpu(l, e);
        }
    if (cpu && cpu->hypervisor && gpus && flat == gpus)
        say(l,
            "a virtual machine without PCI switches: GPUs and NICs look far from each other, and GPUDirect stays off; "
            "set NCCL_TOPO_FILE to the provider's topology");
}

void kl_topo_warn(const struct kl_xml *xml, int nccl, const struct kl_cpu_facts *cpu, kl_topo_warning *warn, void *ctx)
{
    struct look l = {.xml = xml, .warn = warn, .ctx = ctx};
    struct tally widths = {0}, speeds = {0}, slow = {0}, repeated = {0};

    if (kl_xml_empty(xml) || kl_xml_count(xml) > MAX_ELEMENTS) return;
    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e)) {
        const char *tag = kl_xml_tag(xml, e);

        if (!strcmp(tag, "cpu")) look_at_cpu(&l, e);
        if (!strcmp(tag, "pci")) look_at_pci(&l, e, &widths, &speeds);
        if (!strcmp(tag, "net")) look_at_net(&l, e, &slow, &repeated);
    }
    say_tally(&l, &widths, "busid", "PCI devices", "link width is not known, 16 lanes are assumed");
    say_tally(&l, &speeds, "busid", "PCI devices", "link speed is not known, 8 GT/s is assumed");
    say_tally(&l, &slow, "name", "NETs", "speed is not known, 10 Gb/s is assumed");
    say_tally(&l, &repeated, "name", "NETs", "there is another one with this name and number before it, which counts");
    look_at_room(&l, "gpu", "GPUs", nccl);
    look_at_room(&l, "net", "NETs", nccl);
    look_for_faults(&l, nccl);
    look_for_switches(&l, cpu);
}
