/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of lspci, as machines. */
#include "topo/lspci.h"

#include "base/error.h"
#include "tests/kolo_test.h"
#include "topo/machine.h"
#include "topo/paths.h"
#include "topo/placement.h"

#include <stdlib.h>
#include <string.h>

static const char tree[] =
    "-+-[0000:c0]-+-00.0  Advanced Micro Devices, Inc. [AMD] Starship/Matisse Root Complex\n"
    " |           \\-01.1-[c1-c6]----00.0-[c2-c6]--+-00.0-[c3]----00.0  NVIDIA Corporation GA100 [A100 SXM4 80GB]\n"
    " |                                           +-04.0-[c4]----00.0  Mellanox Technologies MT28908 Family "
    "[ConnectX-6]\n"
    " |                                           \\-08.0-[c5]----00.0  Samsung Electronics Co Ltd NVMe SSD\n"
    " +-[0000:40]-+-00.0  Advanced Micro Devices, Inc. [AMD] Starship/Matisse Root Complex\n"
    " |           +-01.1-[41]----00.0  NVIDIA Corporation GA100 [A100 SXM4 80GB]\n"
    " |           \\-03.1-[42]--+-00.0  Mellanox Technologies MT28908 Family [ConnectX-6 Virtual Function]\n"
    " |                        \\-00.1  Mellanox Technologies MT28908 Family [ConnectX-6]\n"
    " \\-[0000:00]-+-00.0  Advanced Micro Devices, Inc. [AMD] Starship/Matisse Root Complex\n"
    "             \\-14.0  Advanced Micro Devices, Inc. [AMD] FCH SMBus Controller\n";

static struct kl_topo *graph_of(struct kl_xml *xml, struct kl_assumed *assumed)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_topo *t;

    assert_int_equal(kl_placement_complete(xml, NULL, assumed), ncclSuccess);
    assert_int_equal(kl_machine_complete(xml, NULL), ncclSuccess);
    assert_int_equal(kl_topo_build(xml, &options, &t), ncclSuccess);
    assert_int_equal(kl_topo_paths(t), ncclSuccess);
    return t;
}

static void a_tree_is_a_machine(void **state)
{
    struct kl_assumed assumed = {.n = 0};
    struct kl_xml *xml;

    (void)state;
    assert_int_equal(kl_lspci_read("t", tree, strlen(tree), &assumed, &xml), ncclSuccess);
    assert_string_equal(assumed.summary, "2 GPUs (A100 SXM4 80 GB), 2 NICs");
    assert_int_not_equal(kl_xml_find(xml, "pci", "busid", "0000:c3:00.0"), KL_XML_NONE);
    assert_int_not_equal(kl_xml_find(xml, "pci", "busid", "0000:42:00.1"), KL_XML_NONE);
    assert_int_equal(kl_xml_find(xml, "pci", "busid", "0000:c5:00.0"), KL_XML_NONE); /* a disk */
    struct kl_topo *t = graph_of(xml, &assumed);

    assert_int_equal(t->count[KL_NODE_GPU], 2);
    assert_int_equal(t->count[KL_NODE_NET], 2);
    assert_int_equal(t->count[KL_NODE_CPU], 2);
    assert_int_equal(kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_NET, 0)->type, KL_PATH_PIX);
    kl_topo_free(t);
    kl_xml_free(xml);
}

static void ids_name_products_as_well(void **state)
{
    static const char text[] = "-[0000:17]-+-00.0  Intel\n"
                               "            \\-01.0-[18]----00.0  NVIDIA Corporation Device [10de:2330]\n";
    struct kl_assumed assumed = {.n = 0};
    struct kl_xml *xml;

    (void)state;
    assert_int_equal(kl_lspci_read("t", text, strlen(text), &assumed, &xml), ncclSuccess);
    assert_string_equal(assumed.summary, "1 GPU (H100 SXM5), 0 NICs");
    kl_xml_free(xml);
}

static void a_tree_without_gpus_is_refused(void **state)
{
    static const char text[] = "-[0000:17]-+-00.0  Intel\n            \\-01.0-[18]----00.0  Some disk\n";
    struct kl_xml *xml;

    (void)state;
    assert_int_equal(kl_lspci_read("t", text, strlen(text), NULL, &xml), ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "no GPU that is known"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_a_machine),
        cmocka_unit_test(ids_name_products_as_well),
        cmocka_unit_test(a_tree_without_gpus_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
