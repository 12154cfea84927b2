/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that differ from their like are named, and a mended document has them no more; odd but sound machines have none. */
#include "topo/fault.h"
#include "topo/release.h"

#include "base/error.h"
#include "tests/kolo_test.h"

#include <stdio.h>
#include <string.h>

#define CPU                   "<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">"
#define LINK                  "link_speed=\"16.0 GT/s PCIe\" link_width=\"16\""
#define SLOT(bus, link, body) "<pci busid=\"0000:" bus ":00.0\" class=\"0x030200\" " link ">" body "</pci>"
#define GPU(bus, n, body)     SLOT(bus, LINK, "<gpu dev=\"" n "\" rank=\"" n "\" sm=\"80\" gdr=\"1\">" body "</gpu>")
#define TO(bus, count)        "<nvlink target=\"0000:" bus ":00.0\" count=\"" count "\" tclass=\"0x030200\"/>"
#define SWITCH(count)         "<nvlink target=\"0000:c4:00.0\" count=\"" count "\" tclass=\"0x068000\"/>"
#define NIC(bus, dev, speed, guid, port)                                                                               \
    "<pci busid=\"0000:" bus ":00.0\" class=\"0x020000\" vendor=\"0x15b3\" device=\"0x1021\" " LINK                    \
    "><nic><net name=\"n" dev "\" dev=\"" dev "\" speed=\"" speed "\" port=\"" port "\" guid=\"" guid                  \
    "\"/></nic></pci>"

static const struct fault_case {
    const char *name, *body; /* of the cpu */
    int code;                /* -1: no fault */
    const char *text;
} fault_cases[] = {
    {"sound switch", GPU("01", "0", SWITCH("12")) GPU("02", "1", SWITCH("12")), -1, NULL},
    {"no NVLink anywhere", GPU("01", "0", "") GPU("02", "1", ""), -1, NULL},
    {"none at one", GPU("01", "0", SWITCH("12")) GPU("02", "1", "") GPU("03", "2", SWITCH("12")), KL_FAULT_FEW_NVLINKS,
     "GPU/1 has no NVLink while 2 other GPUs of the same kind have 12 each"},
    {"none at half of a switch's", GPU("01", "0", "") GPU("02", "1", SWITCH("12")), KL_FAULT_FEW_NVLINKS,
     "GPU/0 has no NVLink while 1 other GPU of the same kind has 12"},
    {"a bridge over half of them",
     GPU("01", "0", TO("02", "4")) GPU("02", "1", TO("01", "4")) GPU("03", "2", "") GPU("04", "3", ""), -1, NULL},
    {"a bridge, and one left over", GPU("01", "0", TO("02", "4")) GPU("02", "1", TO("01", "4")) GPU("03", "2", ""), -1,
     NULL},
    {"one of a bridge that sees nothing, and one left over",
     GPU("01", "0", TO("02", "4")) GPU("02", "1", "") GPU("03", "2", ""), KL_FAULT_UNEQUAL_ENDS,
     "GPU/0 sees 4 NVLinks to GPU/1, which sees 0 back"},
    {"half the links", GPU("01", "0", SWITCH("12")) GPU("02", "1", SWITCH("6")) GPU("03", "2", SWITCH("12")),
     KL_FAULT_FEW_NVLINKS, "GPU/1 has only 6 NVLinks while 2 other GPUs of the same kind have 12 each"},
    {"unequal ends", GPU("01", "0", TO("02", "1")) GPU("02", "1", TO("01", "12")), KL_FAULT_UNEQUAL_ENDS,
     "GPU/0 sees 1 NVLink to GPU/1, which sees 12 back"},
    {"links of a pair in several elements", GPU("01", "0", TO("02", "1") TO("02", "1")) GPU("02", "1", TO("01", "1")),
     KL_FAULT_UNEQUAL_ENDS, "GPU/0 sees 2 NVLinks to GPU/1, which sees 1 back"},
    {"one end", GPU("01", "0", TO("02", "4")) GPU("02", "1", ""), KL_FAULT_UNEQUAL_ENDS,
     "GPU/0 sees 4 NVLinks to GPU/1, which sees 0 back"},
    {"one end of a pair, the second",
     GPU("01", "0", TO("02", "4")) GPU("02", "1", TO("01", "4")) GPU("03", "2", "") GPU("04", "3", TO("03", "4"))
         GPU("05", "4", TO("06", "4")) GPU("06", "5", TO("05", "4")),
     KL_FAULT_UNEQUAL_ENDS, "GPU/3 sees 4 NVLinks to GPU/2, which sees 0 back"},
    {"a mesh without one side",
     GPU("01", "0", TO("02", "2") TO("03", "2")) GPU("02", "1", TO("01", "2") TO("04", "2"))
         GPU("03", "2", TO("01", "2")) GPU("04", "3", TO("02", "2")) GPU("05", "4", TO("06", "4"))
             GPU("06", "5", TO("05", "4")),
     KL_FAULT_FEW_NVLINKS, "GPU/2 and GPU/3 have only 2 NVLinks each while 4 other GPUs of the same kind have 4 each"},
    {"a narrow slot",
     GPU("01", "0", "") GPU("02", "1", "")
         SLOT("03", "link_speed=\"16.0 GT/s PCIe\" link_width=\"4\"", "<gpu dev=\"2\" rank=\"2\" sm=\"80\"/>"),
     KL_FAULT_NARROW_PCI, "GPU/2 has a PCI link of 6 GB/s while 2 others of the same kind have 24"},
    {"two ports of a card", NIC("01", "0", "100000", "0x7", "1") NIC("02", "1", "100000", "0x7", "2"), -1, NULL},
    {"one port", NIC("01", "0", "100000", "0x7", "1") NIC("02", "1", "100000", "0x7", "1"), KL_FAULT_SHARED_PORT,
     "NET/0 and NET/1 count as one port of 100 Gb/s because they have the same guid (0x7) and port (1)"},
    {"a NIC that stands at two places", NIC("01", "0", "100000", "0x7", "1") NIC("02", "0", "100000", "0x7", "1"), -1,
     NULL},
    {"guids that are no numbers", NIC("01", "0", "100000", "4", "1") NIC("02", "1", "100000", "5", "1"),
     KL_FAULT_SHARED_PORT,
     "NET/0 and NET/1 count as one port of 100 Gb/s because their guid is not written as 0x... (guid=\"4\") and so "
     "reads "
     "as 0"},
    {"a bridge that stands for NICs",
     "<pci busid=\"0000:00:00.0\" class=\"0x060000\" vendor=\"0x8086\" device=\"0x1\" " LINK
     "><nic><net name=\"a\" dev=\"0\" speed=\"400000\"/><net name=\"b\" dev=\"1\" speed=\"400000\"/>"
     "<net name=\"c\" dev=\"2\" speed=\"100000\"/></nic></pci>",
     -1, NULL},
    {"a slow NIC",
     NIC("01", "0", "400000", "0x1", "1") NIC("02", "1", "400000", "0x2", "1") NIC("03", "2", "100000", "0x3", "1"),
     KL_FAULT_SLOW_NET, "NET/2 has 100 Gb/s while 2 other NICs of the same kind have 400"},
    {"the largest speed there is",
     NIC("01", "0", "2147483647", "0x1", "1") NIC("02", "1", "2147483647", "0x2", "1")
         NIC("03", "2", "100000", "0x3", "1"),
     KL_FAULT_SLOW_NET, "NET/2 has 100 Gb/s while 2 other NICs of the same kind have 2.14748e+06"},
};

static struct kl_xml *document(const char *body)
{
    static char text[1 << 14];
    struct kl_xml *xml;

    snprintf(text, sizeof text, "<system version=\"1\">" CPU "%s</cpu></system>", body);
    if (kl_xml_parse("t.xml", text, strlen(text), kl_xml_topo_schema, &xml)) fail_msg("%s", kl_error_text());
    return xml;
}

static void faults_are_named(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, fault_cases)
    {
        struct kl_xml *xml = document(c->body);
        struct kl_faults f;

        assert_int_equal(kl_faults_find(xml, KL_NCCL_2_26_3, &f), ncclSuccess);
        expect_case(c->name, f.n == (c->code >= 0));
        if (f.n) expect_case(c->name, f.fault[0].code == c->code);
        if (f.n && strcmp(f.fault[0].text, c->text) != 0) fail_msg("%s: %s", c->name, f.fault[0].text);
        kl_faults_fini(&f);
        kl_xml_free(xml);
    }
}

static void mended_documents_have_none(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, fault_cases)
    {
        struct kl_xml *xml = document(c->body);
        struct kl_faults f;
        bool mended = false;

        if (c->code >= 0) {
            assert_int_equal(kl_fault_mend(xml, (enum kl_fault_code)c->code, KL_NCCL_2_26_3, &mended), ncclSuccess);
            expect_case(c->name, mended);
        }
        assert_int_equal(kl_faults_find(xml, KL_NCCL_2_26_3, &f), ncclSuccess);
        expect_case(c->name, f.n == 0);
        kl_faults_fini(&f);
        kl_xml_free(xml);
    }
}

#define HOST(hash, body) "<cpu host_hash=\"" hash "\" numaid=\"0\" arch=\"arm64\">" body "</cpu>"

static void hosts_are_told_apart_by_numbers(void **state)
{
    static const char text[] = "<system version=\"1\">" HOST("0xALPHA", GPU("01", "0", ""))
        HOST("0xALFA", GPU("01", "1", "")) HOST("0xBETA", GPU("01", "2", "")) "</system>";
    struct kl_faults f;
    struct kl_xml *xml;
    bool mended = false;

    (void)state;
    assert_int_equal(kl_xml_parse("t.xml", text, strlen(text), kl_xml_topo_schema, &xml), ncclSuccess);
    assert_int_equal(kl_faults_find(xml, KL_NCCL_2_26_3, &f), ncclSuccess);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.fault[0].code, KL_FAULT_HOST_HASH);
    assert_string_equal(f.fault[0].text,
                        "GPU/0 and GPU/1 count as one GPU, and their hosts as one host (host_hash \"0xALPHA\" and "
                        "\"0xALFA\" read as the same number)");
    kl_faults_fini(&f);
    assert_int_equal(kl_fault_mend(xml, KL_FAULT_HOST_HASH, KL_NCCL_2_26_3, &mended), ncclSuccess);
    assert_true(mended);
    assert_int_equal(kl_faults_find(xml, KL_NCCL_2_26_3, &f), ncclSuccess);
    assert_int_equal(f.n, 0);
    kl_faults_fini(&f);
    kl_xml_free(xml);
}

static int hosts_with(const struct kl_xml *xml, const char *hash)
{
    int n = 0;

    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e))
        n += kl_xml_attr(xml, e, "host_hash") && !strcmp(kl_xml_attr(xml, e, "host_hash"), hash);
    return n;
}

/* A CPU without GPUs stays with its host. */
static void hosts_stay_whole(void **state)
{
    static const char text[] = "<system version=\"1\">" HOST("0xALPHA", GPU("01", "0", "")) HOST("0xALPHA", "")
        HOST("0xALFA", GPU("01", "1", "")) "</system>";
    struct kl_xml *xml;
    bool mended = false;

    (void)state;
    assert_int_equal(kl_xml_parse("t.xml", text, strlen(text), kl_xml_topo_schema, &xml), ncclSuccess);
    assert_int_equal(kl_fault_mend(xml, KL_FAULT_HOST_HASH, KL_NCCL_2_26_3, &mended), ncclSuccess);
    assert_true(mended);
    assert_int_equal(hosts_with(xml, "0x10000000"), 2);
    assert_int_equal(hosts_with(xml, "0x10000001"), 1);
    kl_xml_free(xml);
}

/* Sums of a file's numbers must not overflow. */
static void counts_beyond_any_machine_are_bounded(void **state)
{
#define ALL TO("01", "2147483647") TO("02", "2147483647") SWITCH("2147483647")
    struct kl_xml *xml = document(GPU("01", "0", ALL) GPU("02", "1", ALL) GPU("03", "2", SWITCH("-2147483648")));
    struct kl_faults f;

    (void)state;
    assert_int_equal(kl_faults_find(xml, KL_NCCL_2_26_3, &f), ncclSuccess);
    assert_int_equal(f.n, 1);
    assert_string_equal(f.fault[0].text, "GPU/2 has no NVLink while 2 other GPUs of the same kind have 262144 each");
    kl_faults_fini(&f);
    kl_xml_free(xml);
}

#define PAIRS                                                                                                          \
    GPU("01", "0", TO("02", "2"))                                                                                      \
    GPU("02", "1", TO("01", "2")) GPU("03", "2", TO("04", "2")) GPU("04", "3", TO("03", "2"))

/* Which link of a mesh is missing cannot be told when it is not just one, nor between GPUs that lack different numbers. */
static void what_cannot_be_guessed_stays(void **state)
{
    static const char *const bodies[] = {PAIRS GPU("05", "4", ""),
                                         PAIRS GPU("05", "4", TO("99", "1")) GPU("06", "5", "")};

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct kl_xml *xml = document(bodies[i]);
        bool mended = true;

        assert_int_equal(kl_fault_mend(xml, KL_FAULT_FEW_NVLINKS, KL_NCCL_2_26_3, &mended), ncclSuccess);
        assert_false(mended);
        kl_xml_free(xml);
    }
}

static void an_empty_document_has_none(void **state)
{
    struct kl_xml *xml;
    struct kl_faults f;

    (void)state;
    assert_int_equal(kl_xml_create("empty", &xml), ncclSuccess);
    assert_int_equal(kl_faults_find(xml, KL_NCCL_2_26_3, &f), ncclSuccess);
    assert_int_equal(f.n, 0);
    kl_xml_free(xml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(mended_documents_have_none),
        cmocka_unit_test(hosts_are_told_apart_by_numbers),
        cmocka_unit_test(hosts_stay_whole),
        cmocka_unit_test(counts_beyond_any_machine_are_bounded),
        cmocka_unit_test(what_cannot_be_guessed_stays),
        cmocka_unit_test(an_empty_document_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
