/* SPDX-License-Identifier: Apache-2.0 */
/* Known machines as documents, and files that say only where devices are. */
#include "topo/placement.h"

#include "base/error.h"
#include "tests/kolo_test.h"
#include "topo/fault.h"
#include "topo/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kl_xml *parse(const char *text)
{
    struct kl_xml *xml;

    if (kl_xml_parse("file.xml", text, strlen(text), kl_xml_topo_schema, &xml)) fail_msg("%s", kl_error_text());
    return xml;
}

static int count(const struct kl_xml *xml, const char *tag)
{
    int n = 0;

    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e))
        n += !strcmp(kl_xml_tag(xml, e), tag);
    return n;
}

/* NVLinks of a GPU, all elements together. */
static int links_of(const struct kl_xml *xml, int gpu)
{
    int n = 0;

    for (int e = kl_xml_child(xml, gpu, "nvlink"); e != KL_XML_NONE; e = kl_xml_next_same(xml, e))
        n += kl_xml_int(xml, e, "count", 0);
    return n;
}

/* ---- known machines ---- */

static void check_links(const struct kl_known *m, const struct kl_xml *xml)
{
    int want = m->wiring == KL_WIRING_NONE ? 0 : kl_known_product(m)->links;

    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e))
        if (!strcmp(kl_xml_tag(xml, e), "gpu")) expect_case(m->name, links_of(xml, e) == want);
}

/* Both ends of a link see it, and nothing differs from its like. */
static void check_sound(const struct kl_known *m, const struct kl_xml *xml)
{
    struct kl_faults faults;

    assert_int_equal(kl_faults_find(xml, KL_NCCL_DEFAULT, &faults), ncclSuccess);
    if (faults.n) fail_msg("%s: %s", m->name, faults.fault[0].text);
    kl_faults_fini(&faults);
}

static void check_machine(const struct kl_known *m)
{
    struct kl_host_device device[144];
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_known_parts parts = kl_known_count(m);
    struct kl_xml *xml;
    struct kl_topo *t;
    int trays = m->trays < 3 ? m->trays : 3, gpus = trays * parts.gpus;

    if (kl_known_document(m, trays, &xml)) fail_msg("%s: %s", m->name, kl_error_text());
    for (int i = 0; i < gpus; i++) device[i] = (struct kl_host_device){.rank = i, .ordinal = i};
    struct kl_machine machine = {.file = xml, .device = device, .ndevices = gpus};

    expect_case(m->name, kl_machine_file_gpus(xml) == gpus);
    expect_case(m->name, kl_machine_file_hosts(xml) == trays);
    options.mnnvl = trays > 1;
    if (kl_machine_whole(&machine, &options, &t, NULL)) fail_msg("%s: %s", m->name, kl_error_text());
    expect_case(m->name, t->count[KL_NODE_GPU] == gpus);
    expect_case(m->name, t->count[KL_NODE_NET] == trays * parts.nics * m->ports);
    expect_case(m->name, t->count[KL_NODE_CPU] == trays * parts.nodes);
    check_links(m, xml);
    check_sound(m, xml);
    kl_topo_free(t);
    kl_xml_free(xml);
}

static void every_known_machine_is_sound(void **state)
{
    (void)state;
    for (int i = 0; kl_known_at(i); i++) check_machine(kl_known_at(i));
}

static const struct {
    const char *name;
    int trays; /* 0: none is found */
} names[] = {{"dgx-h100", 1},
             {"DGX-H100", 1},
             {"gb200-nvl72", 18},
             {"gb200-nvl72:1", 1},
             {"gb200-nvl72:18", 18},
             {"gb200-nvl72:0", 0},
             {"gb200-nvl72:19", 0},
             {"gb200-nvl72:", 0},
             {"gb200-nvl72:4x", 0},
             {"gb200-nvl72:-1", 0},
             {"dgx-h100:2", 0},
             {"dgx-h10", 0},
             {"", 0},
             {":", 0}};

static void names_are_found(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, names)
    {
        int trays = 0;

        expect_case(c->name, (kl_known_named(c->name, &trays) != NULL) == (c->trays > 0));
        if (c->trays) expect_case(c->name, trays == c->trays);
    }
}

static void every_row_names_a_product_and_a_source(void **state)
{
    const struct kl_known *m;
    int trays;

    (void)state;
    for (int i = 0; (m = kl_known_at(i)); i++) {
        expect_case(m->name, kl_known_product(m) != NULL);
        expect_case(m->name, m->source && *m->source && m->title && *m->title);
        expect_case(m->name, kl_known_named(m->name, &trays) == m);
    }
}

/* ---- files that say only where devices are ---- */

#define SYSTEM(body) "<system version=\"1\">" body "</system>"
#define CPU(family, model)                                                                                             \
    "<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"" family "\" modelid=\"" model "\">"
#define PCI(busid, class, ids) "<pci busid=\"0000:" busid ":00.0\" class=\"" class "\" " ids "/>"
#define IDS(vendor, device)    "vendor=\"" vendor "\" device=\"" device "\""
#define A100(busid)            PCI(busid, "0x030200", IDS("0x10de", "0x20b2"))
#define BARE(device)           "<pci busid=\"0000:00:" device ".0\"/>"
#define GPU8(ids)                                                                                                      \
    PCI("01", "0x030200", ids)                                                                                         \
    PCI("02", "0x030200", ids)                                                                                         \
    PCI("03", "0x030200", ids)                                                                                         \
    PCI("04", "0x030200", ids)                                                                                         \
    PCI("05", "0x030200", ids)                                                                                         \
    PCI("06", "0x030200", ids) PCI("07", "0x030200", ids) PCI("08", "0x030200", ids)

static const struct {
    const char *name, *text, *machine;
    int gpus, nets, sm, links; /* gpus 0: refused */
    const char *codes;         /* of the assumptions; or a part of the error message */
    const char *link;          /* speed of the first GPU's PCI link */
    int mbps;                  /* of each NIC */
} cases[] = {
    {"ids", SYSTEM("<cpu>" A100("02") A100("01") "</cpu>"), NULL, 2, 0, 80, 12,
     "gpus gpu_order nvlinks_to_switches pci_links", "16.0 GT/s PCIe", 0},
    {"ids and a NIC", SYSTEM("<cpu>" A100("01") PCI("02", "0x020700", IDS("0x15b3", "0x1021")) "</cpu>"), NULL, 1, 1,
     80, 0, "gpus gpu_order nic_speed pci_links", "16.0 GT/s PCIe", 400000},
    {"an unknown NIC", SYSTEM("<cpu>" A100("01") PCI("02", "0x020000", IDS("0x1234", "0x1")) "</cpu>"), NULL, 1, 1, 80,
     0, "gpus gpu_order nics_unknown pci_links", "16.0 GT/s PCIe", 10000},
    {"cards that may have a bridge",
     SYSTEM("<cpu>" PCI("01", "0x030200", IDS("0x10de", "0x20b5"))
                PCI("02", "0x030200", IDS("0x10de", "0x20b5")) "</cpu>"),
     NULL, 2, 0, 80, 0, "gpus gpu_order no_bridge pci_links", "16.0 GT/s PCIe", 0},
    {"boards with unknown wiring",
     SYSTEM("<cpu>" PCI("01", "0x030200", IDS("0x10de", "0x1db5"))
                PCI("02", "0x030200", IDS("0x10de", "0x1db5")) "</cpu>"),
     NULL, 2, 0, 70, 0, "gpus gpu_order no_nvlinks pci_links", "8.0 GT/s PCIe", 0},
    {"a display of the mainboard", SYSTEM("<cpu>" A100("01") PCI("02", "0x030000", IDS("0x1a03", "0x2000")) "</cpu>"),
     NULL, 1, 0, 80, 0, "gpus gpu_order pci_links", "16.0 GT/s PCIe", 0},
    {"the form of Azure's", SYSTEM(CPU("6", "85") GPU8("") PCI("11", "0x020700", "") "</cpu>"), NULL, 8, 1, 70, 6,
     "machine gpus gpu_order nvlinks_between_gpus nics pci_links", "8.0 GT/s PCIe", 100000},
    {"the same with other CPUs", SYSTEM(CPU("6", "86") GPU8("") PCI("11", "0x020700", "") "</cpu>"), NULL, 0, 0, 0, 0,
     "looks like no known machine", "", 0},
    {"the same, named", SYSTEM(CPU("6", "86") GPU8("") PCI("11", "0x020700", "") "</cpu>"), "dgx-h100", 8, 1, 90, 18,
     "machine gpus gpu_order nvlinks_to_switches nics pci_links", "32.0 GT/s PCIe", 400000},
    {"bus ids of g5.48xlarge",
     SYSTEM("<cpu>" BARE("15") BARE("16") BARE("17") BARE("18") BARE("19") BARE("1a") BARE("1b") BARE("1c")
                BARE("1d") "</cpu>"),
     NULL, 8, 1, 86, 0, "machine gpus gpu_order nics pci_links cpu", "16.0 GT/s PCIe", 100000},
    {"bus ids that several machines have", SYSTEM("<cpu>" BARE("1b") BARE("1c") BARE("1d") BARE("1e") "</cpu>"), NULL,
     0, 0, 0, 0, "nothing tells GPUs from NICs", "", 0},
    {"the same, named", SYSTEM("<cpu>" BARE("1b") BARE("1c") BARE("1d") BARE("1e") "</cpu>"), "aws-g5.12xlarge", 4, 0,
     86, 0, "machine gpus gpu_order pci_links cpu", "16.0 GT/s PCIe", 0},
    {"another machine than its GPUs", SYSTEM("<cpu>" A100("01") "</cpu>"), "dgx-h100", 0, 0, 0, 0, "A100 SXM4 80 GB",
     "", 0},
    {"the same chip on another board", SYSTEM("<cpu>" A100("01") "</cpu>"), "azure-nc24ads-v4", 0, 0, 0, 0,
     "azure-nc24ads-v4 has A100 PCIe", "", 0},
    {"a GPU of tomorrow", SYSTEM("<cpu>" PCI("01", "0x030200", IDS("0x10de", "0x7777")) "</cpu>"), NULL, 0, 0, 0, 0,
     "0x7777", "", 0},
    {"GPUs in the file",
     SYSTEM("<cpu><pci busid=\"0000:01:00.0\" class=\"0x030200\"><gpu sm=\"80\"/></pci>" A100("02") "</cpu>"), NULL, 1,
     0, 80, 0, "", "", 0},
    {"AMD's",
     "<system version=\"2\"><cpu><pci busid=\"0000:01:00.0\" class=\"0x038000\"><gpu sm=\"304\" "
     "gcn=\"gfx942\"/></pci></cpu></system>",
     NULL, 1, 0, 80, 0, "amd_gpus", "", 0},
};

static void expect_codes(const char *label, const struct kl_assumed *assumed, const char *codes)
{
    char have[256] = "";

    for (int i = 0; i < assumed->n; i++) {
        if (i) strcat(have, " ");
        strcat(have, kl_assumed_name(assumed->at[i].code));
    }
    if (strcmp(have, codes) != 0) fail_msg("case \"%s\": assumed %s", label, have);
}

/* Links of the first GPU, and speeds of all NICs. */
static void expect_speeds(const char *label, const struct kl_xml *xml, const char *link, int mbps)
{
    int pci = kl_xml_parent(xml, kl_xml_find(xml, "gpu", NULL, NULL));
    const char *have = kl_xml_attr(xml, pci, "link_speed");

    if (strcmp(have ? have : "", link) != 0) fail_msg("case \"%s\": a PCI link of %s", label, have);
    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e))
        if (!strcmp(kl_xml_tag(xml, e), "net") && kl_xml_int(xml, e, "speed", 0) != mbps)
            fail_msg("case \"%s\": a NIC of %d Mb/s", label, kl_xml_int(xml, e, "speed", 0));
}

static void files_are_completed_or_refused(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        int trays;
        const struct kl_known *machine = c->machine ? kl_known_named(c->machine, &trays) : NULL;
        struct kl_assumed assumed = {.n = 0};
        struct kl_xml *xml = parse(c->text);
        ncclResult_t rc = kl_placement_complete(xml, machine, &assumed);

        expect_case(c->name, rc == (c->gpus ? ncclSuccess : ncclInvalidUsage));
        if (rc && !strstr(kl_error_text(), c->codes)) fail_msg("case \"%s\": %s", c->name, kl_error_text());
        if (!rc) {
            int gpu = kl_xml_find(xml, "gpu", NULL, NULL);

            expect_case(c->name, count(xml, "gpu") == c->gpus && count(xml, "net") == c->nets);
            expect_case(c->name, kl_xml_int(xml, gpu, "sm", 0) == c->sm && links_of(xml, gpu) == c->links);
            expect_speeds(c->name, xml, c->link, c->mbps);
            expect_codes(c->name, &assumed, c->codes);
        }
        kl_xml_free(xml);
    }
}

static void devices_are_numbered_by_bus_id(void **state)
{
    struct kl_xml *xml = parse(SYSTEM("<cpu>" A100("02") A100("01") "</cpu>"));
    int first = kl_xml_find(xml, "pci", "busid", "0000:01:00.0"),
        second = kl_xml_find(xml, "pci", "busid", "0000:02:00.0");

    (void)state;
    assert_int_equal(kl_placement_complete(xml, NULL, NULL), ncclSuccess);
    assert_int_equal(kl_xml_int(xml, kl_xml_child(xml, first, "gpu"), "dev", -1), 0);
    assert_int_equal(kl_xml_int(xml, kl_xml_child(xml, second, "gpu"), "dev", -1), 1);
    kl_xml_free(xml);
}

static void what_a_file_states_stays(void **state)
{
    struct kl_xml *xml =
        parse(SYSTEM("<cpu arch=\"arm64\"><pci busid=\"0000:01:00.0\" class=\"0x030200\" vendor=\"0x10de\" "
                     "device=\"0x20b2\" link_speed=\"2.5 GT/s\" link_width=\"1\"/></cpu>"));
    int pci = kl_xml_find(xml, "pci", NULL, NULL);

    (void)state;
    assert_int_equal(kl_placement_complete(xml, NULL, NULL), ncclSuccess);
    assert_string_equal(kl_xml_attr(xml, pci, "link_speed"), "2.5 GT/s");
    assert_string_equal(kl_xml_attr(xml, pci, "link_width"), "1");
    kl_xml_free(xml);
}

/* ---- files with too few or too many NVLinks for the board ---- */

#define SXM(busid, link)                                                                                               \
    "<pci busid=\"0000:" busid                                                                                         \
    ":00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" link_speed=\"32.0 GT/s PCIe\" "                    \
    "link_width=\"16\"><gpu dev=\"0x" busid "\" sm=\"90\" rank=\"0x" busid "\" gdr=\"1\">" link "</gpu></pci>"
#define LINKS(n) "<nvlink target=\"fffffff:ffff:ff\" count=\"" n "\" tclass=\"0x068000\"/>"

static const struct {
    const char *name, *text;
    int code, links; /* of the fault, and of a GPU of the mended machine */
} boards[] = {
    {"none", SYSTEM(CPU("6", "143") SXM("01", "") SXM("02", "") "</cpu>"), KL_FAULT_NO_NVLINK, 18},
    {"one GPU alone", SYSTEM(CPU("6", "143") SXM("01", "") "</cpu>"), -1, 0},
    {"as they should be", SYSTEM(CPU("6", "143") SXM("01", LINKS("18")) SXM("02", LINKS("18")) "</cpu>"), -1, 18},
    {"too many", SYSTEM(CPU("6", "143") SXM("01", LINKS("126")) SXM("02", LINKS("126")) "</cpu>"),
     KL_FAULT_MANY_NVLINKS, 18},
};

static void boards_are_compared_with_their_product(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, boards)
    {
        struct kl_xml *xml = parse(c->text);
        struct kl_faults faults;
        bool mended = false;

        assert_int_equal(kl_faults_find(xml, KL_NCCL_DEFAULT, &faults), ncclSuccess);
        expect_case(c->name, c->code < 0 ? !faults.n : faults.n == 1 && faults.fault[0].code == c->code);
        kl_faults_fini(&faults);
        if (c->code >= 0)
            assert_int_equal(kl_fault_mend(xml, (enum kl_fault_code)c->code, KL_NCCL_DEFAULT, &mended), ncclSuccess);
        expect_case(c->name, mended == (c->code >= 0));
        expect_case(c->name, links_of(xml, kl_xml_find(xml, "gpu", NULL, NULL)) == c->links);
        kl_xml_free(xml);
    }
}

/* ---- AMD's links ---- */

static void xgmi_links_have_the_speed_of_their_gpu(void **state)
{
    static const struct {
        const char *gcn;
        float bw;
    } speeds[] = {{"906", 24},    {"908", 24},    {"90a", 36}, {"910", 36}, {"942", 48},
                  {"gfx942", 48}, {"gfx950", 48}, {"803", 0},  {"", 0}};

    (void)state;
    FOR_EACH_CASE(c, speeds) expect_case(c->gcn, kl_xgmi_bw(c->gcn) == c->bw);
}

static void xgmi_links_are_links_between_gpus(void **state)
{
#define XGMI(busid, other)                                                                                             \
    "<pci busid=\"0000:" busid ":00.0\" class=\"0x120000\"><gpu sm=\"304\" gcn=\"gfx942\"><xgmi target=\"0000:" other  \
    ":00.0\" count=\"2\" tclass=\"0x120000\"/></gpu></pci>"
    struct kl_host_device device[2] = {{.rank = 0, .ordinal = 0}, {.rank = 1, .ordinal = 1}};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *xml =
        parse("<system version=\"2\">" CPU("6", "143") XGMI("01", "02") XGMI("02", "01") "</cpu></system>");
    struct kl_machine machine = {.file = xml, .device = device, .ndevices = 2};
    struct kl_topo *t;

    (void)state;
    assert_int_equal(kl_placement_complete(xml, NULL, NULL), ncclSuccess);
    assert_int_equal(kl_machine_whole(&machine, &options, &t, NULL), ncclSuccess);
    assert_int_equal(t->link[t->node[0].first_link].type, KL_PATH_NVL);
    assert_true(t->link[t->node[0].first_link].bw == 96);
    kl_topo_free(t);
    kl_xml_free(xml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_known_machine_is_sound),
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(every_row_names_a_product_and_a_source),
        cmocka_unit_test(files_are_completed_or_refused),
        cmocka_unit_test(devices_are_numbered_by_bus_id),
        cmocka_unit_test(what_a_file_states_stays),
        cmocka_unit_test(boards_are_compared_with_their_product),
        cmocka_unit_test(xgmi_links_have_the_speed_of_their_gpu),
        cmocka_unit_test(xgmi_links_are_links_between_gpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
