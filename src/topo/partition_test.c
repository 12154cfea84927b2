/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs that are split in two. */
#include "topo/partition.h"

#include "base/error.h"
#include "tests/kolo_test.h"
#include "topo/machine.h"
#include "topo/paths.h"
#include "topo/reasons.h"

#include <string.h>

#define GPU(dev, part, links)                                                                                          \
    "<gpu dev=\"" dev "\" sm=\"100\" gdr=\"1\" mlopart=\"" part "\">" links "<c2c bw=\"50000\" count=\"8\"/></gpu>"

#define TO(target) "<nvlink target=\"" target "\" count=\"6\" tclass=\"0x030200\"/>"

/* Two GPUs in two partitions each, joined by NVLink and each by C2C with a CPU, and a NIC. */
static const char document[] =
    "<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\">"
    "<pci busid=\"0000:01:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"
    "<pci busid=\"0000:02:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">" GPU(
        "0", "0", TO("0000:03:00.0"))
        GPU("1", "1", TO("0000:03:00.0")) "</pci>"
                                          "<pci busid=\"0000:03:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s "
                                          "PCIe\" link_width=\"16\">" GPU("2", "0", TO("0000:02:00.0"))
                                              GPU("3", "1",
                                                  TO("0000:02:00.0")) "</pci>"
                                                                      "<pci busid=\"0000:04:00.0\" class=\"0x020000\" "
                                                                      "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"
                                                                      "<nic><net name=\"n\" dev=\"0\" speed=\"400000\" "
                                                                      "gdr=\"1\"/></nic></pci>"
                                                                      "</pci></cpu></system>";

static ncclResult_t build(const struct kl_topo_options *options, int ndevices, struct kl_topo **t)
{
    struct kl_host_device device[4] = {{0}};
    struct kl_xml *file;

    for (int i = 0; i < ndevices; i++) device[i] = (struct kl_host_device){.rank = i, .ordinal = i};
    assert_int_equal(kl_xml_parse("p.xml", document, sizeof document - 1, kl_xml_topo_schema, &file), ncclSuccess);
    struct kl_machine m = {.file = file, .device = device, .ndevices = ndevices};
    ncclResult_t rc = kl_machine_whole(&m, options, t, NULL);
    kl_xml_free(file);
    return rc;
}

static float link_between(const struct kl_topo *t, int a, int b, enum kl_path_type type)
{
    for (int k = t->node[a].first_link; k < t->node[a].first_link + t->node[a].nlinks; k++)
        if (t->link[k].to == b && t->link[k].type == type) return t->link[k].bw;
    return 0;
}

static bool about(float x, double y)
{
    return x > y - 0.01 && x < y + 0.01;
}

static void partitions_are_devices_that_share_links(void **state)
{
    static const uint64_t ids[] = {0x2001, 0x2003, 0x3001, 0x3003};
    struct kl_topo *t;

    (void)state;
    assert_int_equal(build(&KL_TOPO_OPTIONS, 4, &t), ncclSuccess);
    assert_int_equal(t->count[KL_NODE_GPU], 4);
    assert_int_equal(t->count[KL_NODE_CXB], 2);
    for (int g = 0; g < 4; g++) {
        int gpu = kl_topo_at(t, KL_NODE_GPU, g), shared = kl_topo_at(t, KL_NODE_CXB, g / 2);

        assert_int_equal(t->node[gpu].id, ids[g]);
        assert_int_equal(t->node[gpu].gpu.partition, g % 2);
        assert_true(about(link_between(t, gpu, kl_topo_at(t, KL_NODE_GPU, g ^ 1), KL_PATH_LOC), 2618));
        for (int far = 0; far < 2; far++) /* 6 links of 40.1, half of them the other partition's, to two devices */
            assert_true(
                about(link_between(t, gpu, kl_topo_at(t, KL_NODE_GPU, (g / 2 ^ 1) * 2 + far), KL_PATH_NVL), 60.15));
        assert_true(about(link_between(t, gpu, shared, KL_PATH_C2C), 400));
        assert_true(about(link_between(t, shared, kl_topo_at(t, KL_NODE_CPU, 0), KL_PATH_C2C), 400));
        assert_true(about(link_between(t, gpu, kl_topo_at(t, KL_NODE_PCI, 0), KL_PATH_PCI), 48));
    }
    const struct kl_path *near = kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_GPU, 1);
    assert_true(near->type == KL_PATH_LOC && about(near->bw, 2618) && kl_path_length(t, near) == 3);
    assert_int_equal(kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_CPU, 0)->type, KL_PATH_C2C);
    kl_topo_free(t);
}

/* A partition without users shares nothing. */
static void one_partition_has_all_links(void **state)
{
    struct kl_topo *t;

    (void)state;
    assert_int_equal(build(&KL_TOPO_OPTIONS, 3, &t), ncclSuccess);
    int last = kl_topo_at(t, KL_NODE_GPU, 2);
    assert_true(about(link_between(t, last, kl_topo_at(t, KL_NODE_GPU, 0), KL_PATH_NVL), 120.3));
    assert_true(about(link_between(t, kl_topo_at(t, KL_NODE_GPU, 0), last, KL_PATH_NVL), 120.3));
    assert_true(about(link_between(t, last, kl_topo_at(t, KL_NODE_CPU, 0), KL_PATH_C2C), 400));
    assert_int_equal(t->count[KL_NODE_CXB], 1);
    kl_topo_free(t);
}

static void partitions_have_no_gdr_unless_asked(void **state)
{
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        struct kl_topo_options options = KL_TOPO_OPTIONS;
        struct kl_topo *t;
        struct kl_gdr gdr;

        options.gdr_mlopart = asked;
        assert_int_equal(build(&options, 4, &t), ncclSuccess);
        assert_int_equal(kl_topo_gdr(t, 1, 0, false, &gdr), ncclSuccess);
        assert_int_equal(gdr.why, asked ? KL_GDR_ALLOWED : KL_GDR_PARTITION);
        assert_int_equal(gdr.mode != KL_GDR_OFF, asked);
        kl_topo_free(t);
    }
}

/* They reach NICs up to P2C then, unless NCCL_NET_GDR_LEVEL says otherwise. */
static void partitions_have_gdr_by_themselves_from_2_32_on(void **state)
{
    static const struct {
        int nccl, asked, level;
        enum kl_gdr_why why;
    } rows[] = {{23102, -1, KL_PATH_PXB, KL_GDR_PARTITION},
                {23203, -1, KL_PATH_P2C, KL_GDR_ALLOWED},
                {23203, KL_PATH_LOC, KL_PATH_LOC, KL_GDR_TOO_FAR}};

    (void)state;
    FOR_EACH_CASE(row, rows)
    {
        struct kl_topo_options options = KL_TOPO_OPTIONS;
        struct kl_topo *t;
        struct kl_gdr gdr;

        options.nccl = row->nccl;
        options.gdr_level = row->asked;
        options.gdr_c2c = 0; /* for others the default is PXB then */
        assert_int_equal(build(&options, 4, &t), ncclSuccess);
        assert_int_equal(kl_topo_gdr(t, 1, 0, false, &gdr), ncclSuccess);
        assert_int_equal(gdr.why, row->why);
        assert_int_equal(gdr.level, row->level);
        kl_topo_free(t);
    }
}

/* Then two ranks would share one device. Where only the first is used, there is nothing to share, and no partition. */
static void before_and_without_splitting_there_is_one_device(void **state)
{
    (void)state;
    for (int before = 0; before < 2; before++) {
        struct kl_topo_options options = KL_TOPO_OPTIONS;
        struct kl_topo *t;
        struct kl_gdr gdr;

        options.nccl = before ? 23004 : KL_NCCL_DEFAULT;
        options.split_mlopart = before;
        assert_int_equal(build(&options, 2, &t), ncclInvalidUsage);
        assert_non_null(strstr(kl_error_text(), "0000:02:00.0"));
        assert_int_equal(build(&options, 1, &t), ncclSuccess);
        assert_int_equal(t->node[kl_topo_at(t, KL_NODE_GPU, 0)].id, 0x2000);
        assert_int_equal(kl_topo_gdr(t, 0, 0, false, &gdr), ncclSuccess);
        assert_int_equal(gdr.why, before ? KL_GDR_ALLOWED : KL_GDR_PARTITION);
        kl_topo_free(t);
    }
}

static void ranks_do_not_share_partitions(void **state)
{
    struct kl_host_device device[2] = {{.rank = 0, .ordinal = 1}, {.rank = 1, .ordinal = 1}};
    struct kl_xml *file;
    struct kl_topo *t;

    (void)state;
    assert_int_equal(kl_xml_parse("p.xml", document, sizeof document - 1, kl_xml_topo_schema, &file), ncclSuccess);
    struct kl_machine m = {.file = file, .device = device, .ndevices = 2};
    assert_int_equal(kl_machine_whole(&m, &KL_TOPO_OPTIONS, &t, NULL), ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "share a partition"));
    kl_xml_free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partitions_are_devices_that_share_links),
        cmocka_unit_test(one_partition_has_all_links),
        cmocka_unit_test(partitions_have_no_gdr_unless_asked),
        cmocka_unit_test(partitions_have_gdr_by_themselves_from_2_32_on),
        cmocka_unit_test(ranks_do_not_share_partitions),
        cmocka_unit_test(before_and_without_splitting_there_is_one_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
