/* SPDX-License-Identifier: Apache-2.0 */
/** test_machine.h - machines for tests: topologies out of text, by number, and random ones. For tests only. */
#ifndef KL_GRAPH_TEST_MACHINE_H
#define KL_GRAPH_TEST_MACHINE_H

#include "graph/graph.h"
#include "tests/kolo_test.h"
#include "topo/machine.h"
#include "topo/paths.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEST_MACHINE_TEXT = 1 << 16, TEST_MACHINE_GPUS = 64 };

/** The topology of rank 0 among `hosts` hosts that `text` describes. */
__attribute__((unused)) static struct kl_topo *machine_of(const char *text, int hosts)
{
    struct kl_host_device device[TEST_MACHINE_GPUS];
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_machine machine = {.device = device, .hosts = 1};
    struct kl_xml *xml = NULL;
    struct kl_topo *t = NULL;

    assert_int_equal(kl_xml_parse("test", text, strlen(text), kl_xml_topo_schema, &xml), ncclSuccess);
    machine.file = xml;
    machine.ndevices = kl_machine_file_gpus(xml);
    assert_in_range(machine.ndevices, 1, TEST_MACHINE_GPUS);
    for (int i = 0; i < machine.ndevices; i++) device[i] = (struct kl_host_device){.rank = i, .ordinal = i};
    assert_int_equal(kl_machine_topo(&machine, &options, 0, hosts * machine.ndevices, &t, NULL), ncclSuccess);
    kl_xml_free(xml);
    return t;
}

/** `n` host devices below one virtual switch. */
__attribute__((unused)) static struct kl_topo *host_devices(int n)
{
    struct kl_host_device device[TEST_MACHINE_GPUS];
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_machine machine = {.device = device, .ndevices = n, .hosts = 1};
    struct kl_topo *t = NULL;

    for (int i = 0; i < n; i++) device[i] = (struct kl_host_device){.rank = i, .ordinal = i};
    assert_int_equal(kl_machine_topo(&machine, &options, 0, n, &t, NULL), ncclSuccess);
    return t;
}

/* ---- random machines ---- */

struct machine_maker {
    char *text;
    size_t used;
    uint32_t seed;
    int ngpus, sm;
};

/** 0 to n - 1; xorshift, so that a seed that fails does so everywhere. */
__attribute__((unused)) static int any_of(uint32_t *seed, int n)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return (int)(*seed % (uint32_t)n);
}

#define PUT(m, ...) ((m)->used += (size_t)snprintf((m)->text + (m)->used, TEST_MACHINE_TEXT - (m)->used, __VA_ARGS__))

__attribute__((unused)) static void put_pci(struct machine_maker *m, int bus, const char *class)
{
    static const char *const speeds[] = {"8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe"};

    PUT(m, "<pci busid=\"0000:%02x:00.0\" class=\"%s\" link_speed=\"%s\" link_width=\"%d\">", bus, class,
        speeds[any_of(&m->seed, 3)], any_of(&m->seed, 4) ? 16 : 8);
}

/** NVLinks of GPU `g`: to a switch, to all others, or to its neighbours. */
__attribute__((unused)) static void put_nvlinks(struct machine_maker *m, int g, int kind)
{
    int n = m->ngpus;

    if (kind == 1) PUT(m, "<nvlink target=\"0000:f0:00.0\" count=\"%d\" tclass=\"0x068000\"/>", m->sm >= 90 ? 18 : 12);
    for (int k = 0; k < n && (kind == 2 || kind == 3); k++)
        if (k != g && (kind == 2 || k == (g + 1) % n || k == (g + n - 1) % n))
            PUT(m, "<nvlink target=\"0000:%02x:00.0\" count=\"2\" tclass=\"0x030200\"/>", 0x10 + k);
}

__attribute__((unused)) static void put_gpu(struct machine_maker *m, int g, int nvlinks)
{
    put_pci(m, 0x10 + g, "0x030200");
    PUT(m, "<gpu dev=\"%d\" sm=\"%d\" rank=\"%d\" gdr=\"1\">", g, m->sm, g);
    put_nvlinks(m, g, nvlinks);
    PUT(m, "</gpu></pci>\n");
}

__attribute__((unused)) static void put_nic(struct machine_maker *m, int dev)
{
    static const int speeds[] = {10000, 25000, 100000, 200000, 400000};

    put_pci(m, 0x80 + dev, "0x020000");
    PUT(m, "<nic><net name=\"n%d\" dev=\"%d\" speed=\"%d\" port=\"%d\" guid=\"0x%x\" gdr=\"%d\"/></nic></pci>\n", dev,
        dev, speeds[any_of(&m->seed, 5)], 1 + any_of(&m->seed, 2), 100 + dev / 2, any_of(&m->seed, 4) > 0);
}

/** A document of up to 2 sockets with up to 3 switches each, up to 8 GPUs and 4 NICs, with one of four kinds of NVLink. */
__attribute__((unused)) static void random_machine(uint32_t seed, char text[TEST_MACHINE_TEXT])
{
    static const int sms[] = {60, 70, 80, 90, 100};
    static const char *const cpus[] = {"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\"",
                                       "arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"143\" modelid=\"49\"",
                                       "arch=\"ppc64\"", "arch=\"arm64\""};
    struct machine_maker m = {.text = text, .seed = seed * 2654435761u + 1};
    int sockets = 1 + any_of(&m.seed, 2), nets = any_of(&m.seed, 5), nvlinks = any_of(&m.seed, 4), gpu = 0, net = 0;
    const char *cpu = cpus[any_of(&m.seed, 4)];

    m.ngpus = 1 + any_of(&m.seed, 8);
    m.sm = sms[any_of(&m.seed, 5)];
    PUT(&m, "<system version=\"1\">\n");
    for (int s = 0; s < sockets; s++) {
        int switches = 1 + any_of(&m.seed, 3);

        PUT(&m, "<cpu numaid=\"%d\" %s affinity=\"f\">\n", s, cpu);
        for (int i = 0; i < switches; i++) {
            int last = s == sockets - 1 && i == switches - 1, share = sockets * switches;

            put_pci(&m, 0xc0 + 8 * s + i, "0x060400");
            for (int k = 0; gpu < m.ngpus && (last || k < (m.ngpus + share - 1) / share); k++)
                put_gpu(&m, gpu++, nvlinks);
            for (int k = 0; net < nets && (last || k < (nets + share - 1) / share); k++) put_nic(&m, net++);
            PUT(&m, "</pci>\n");
        }
        PUT(&m, "</cpu>\n");
    }
    PUT(&m, "</system>\n");
    assert_true(m.used < TEST_MACHINE_TEXT);
}

/** The graph that a search of its own finds; free it, and `why` unless that is NULL. */
__attribute__((unused)) static struct kl_graph *
searched(const struct kl_topo *t, const struct kl_graph_request *request, struct kl_graph_why **why)
{
    struct kl_search *search = NULL;
    struct kl_graph *g = NULL;

    assert_int_equal(kl_search_create(t, &search), ncclSuccess);
    assert_int_equal(kl_search_run(search, request, NULL, &g, why), ncclSuccess);
    kl_search_free(search);
    return g;
}

#endif
