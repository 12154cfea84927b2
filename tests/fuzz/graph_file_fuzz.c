/* SPDX-License-Identifier: Apache-2.0 */
/* A graph file offered for a small machine with NICs: every graph in it is taken or refused with a reason, soon. */
#include "graph/graph_xml.h"
#include "topo/machine.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char machine_text[] =
    "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">"
    "<pci busid=\"0000:01:00.0\" class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
    "<pci busid=\"0000:02:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
    "<gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/></pci>"
    "<pci busid=\"0000:03:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
    "<gpu dev=\"1\" sm=\"80\" rank=\"1\" gdr=\"1\"/></pci>"
    "<pci busid=\"0000:04:00.0\" class=\"0x020000\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
    "<nic><net name=\"n0\" dev=\"0\" speed=\"100000\" port=\"1\" guid=\"0x1\" maxconn=\"64\" gdr=\"1\"/></nic></pci>"
    "</pci></cpu></system>";

static struct kl_topo *make_machine(void)
{
    static const struct kl_host_device devices[] = {{.rank = 0, .ordinal = 0}, {.rank = 1, .ordinal = 1}};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *file;
    struct kl_topo *topo = NULL;

    if (kl_xml_parse("machine", machine_text, strlen(machine_text), kl_xml_topo_schema, &file)) return NULL;
    struct kl_machine machine = {.file = file, .device = devices, .ndevices = 2};
    kl_machine_topo(&machine, &options, 0, 4, &topo, NULL); /* of four ranks, so that the NIC stays */
    kl_xml_free(file);
    return topo;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct kl_topo *topo;
    struct kl_xml *file;

    if (!topo) topo = make_machine();
    if (!topo) __builtin_trap();
    if (kl_xml_parse("fuzz", (const char *)data, bytes, kl_xml_graph_schema, &file)) return 0;
    for (int id = 0; id < KL_GRAPHS; id++) {
        struct kl_graph_request request = kl_graph_request_for((enum kl_graph_id)id);
        struct kl_graph *graph = NULL;
        char reason[KL_GRAPH_REASON];

        if (!kl_graph_from_xml(file, topo, &request, &graph, reason)) kl_graph_free(graph);
    }
    kl_xml_free(file);
    return 0;
}
