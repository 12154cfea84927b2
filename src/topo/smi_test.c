/* SPDX-License-Identifier: Apache-2.0 */
/* Machines from the output of nvidia-smi. */
#include "topo/smi.h"

#include "base/error.h"
#include "tests/kolo_test.h"
#include "topo/machine.h"
#include "topo/paths.h"

#include <stdio.h>
#include <stdlib.h>

static const char matrix[] =
    "\t\033[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\n"
    "GPU0\t X \tNV12\tNV12\tNV12\tPXB\tSYS\t0-31,64-95\t0\t\tN/A\n"
    "GPU1\tNV12\t X \tNV12\tNV12\tPIX\tSYS\t0-31,64-95\t0\t\tN/A\n"
    "GPU2\tNV12\tNV12\t X \tNV12\tSYS\tNODE\t32-63,96-127\t1\t\tN/A\n"
    "GPU3\tNV12\tNV12\tNV12\t X \tSYS\tPIX\t32-63,96-127\t1\t\tN/A\n"
    "NIC0\tPXB\tPIX\tSYS\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tSYS\tNODE\tPIX\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_7\n";

static const char nvlinks[] = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n"
                              "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)\n";

static struct kl_xml *document_of(const char *first, const char *second, struct kl_assumed *assumed)
{
    struct kl_smi *smi = malloc(sizeof *smi);
    struct kl_xml *xml = NULL;

    *assumed = (struct kl_assumed){.n = 0};
    kl_smi_init(smi);
    assert_int_equal(kl_smi_parse(smi, "topo.txt", first), ncclSuccess);
    if (second) assert_int_equal(kl_smi_parse(smi, "links.txt", second), ncclSuccess);
    assert_int_equal(kl_smi_document(smi, "a machine", assumed, &xml), ncclSuccess);
    free(smi);
    return xml;
}

static struct kl_topo *graph_of(struct kl_xml *xml)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_topo *t;

    assert_int_equal(kl_machine_complete(xml, NULL), ncclSuccess);
    assert_int_equal(kl_topo_build(xml, &options, &t), ncclSuccess);
    assert_int_equal(kl_topo_paths(t), ncclSuccess);
    return t;
}

static void levels_become_paths(void **state)
{
    static const struct {
        int gpu, net;
        enum kl_path_type type;
    } want[] = {{0, 0, KL_PATH_PXB}, {1, 0, KL_PATH_PIX}, {3, 1, KL_PATH_PIX}};
    struct kl_assumed assumed;
    struct kl_xml *xml = document_of(matrix, nvlinks, &assumed);
    struct kl_topo *t = graph_of(xml);

    (void)state;
    assert_int_equal(t->count[KL_NODE_GPU], 4);
    assert_int_equal(t->count[KL_NODE_NET], 2);
    assert_int_equal(t->count[KL_NODE_CPU], 2);
    assert_int_equal(t->count[KL_NODE_NVS], 1);
    assert_int_equal(t->node[t->first[KL_NODE_GPU]].gpu.sm, 80);
    FOR_EACH_CASE(c, want)
    {
        if (kl_path_between(t, KL_NODE_GPU, c->gpu, KL_NODE_NET, c->net)->type != c->type)
            fail_msg("GPU %d, NET %d", c->gpu, c->net);
    }
    assert_int_equal(kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_GPU, 3)->type, KL_PATH_NVL);
    assert_int_not_equal(kl_xml_find(xml, "net", "name", "mlx5_7"), KL_XML_NONE);
    assert_int_equal(assumed.n, 6);
    assert_string_equal(assumed.summary,
                        "4 GPUs (A100 SXM4 80 GB, sm 80, PCIe 4), 12 NVLinks of each lead to NVSwitches");
    assert_string_equal(assumed.at[1].product->name, "A100 SXM4 80 GB");
    kl_topo_free(t);
    kl_xml_free(xml);
}

static const char direct[] = "     GPU0 GPU1 GPU2 CPU Affinity\n"
                             "GPU0  X   NV2  NV4\nGPU1 NV2   X   PHB\nGPU2 NV4  PHB   X\n";

static void links_between_gpus_are_not_switched(void **state)
{
    struct kl_assumed assumed;
    struct kl_xml *xml = document_of(direct, NULL, &assumed);
    struct kl_topo *t = graph_of(xml);

    (void)state;
    assert_int_equal(t->count[KL_NODE_NVS], 0);
    assert_int_equal(t->node[t->first[KL_NODE_GPU]].gpu.sm, 70); /* by the number of links */
    assert_int_equal(kl_path_between(t, KL_NODE_GPU, 0, KL_NODE_GPU, 1)->type, KL_PATH_NVL);
    assert_int_equal(kl_path_between(t, KL_NODE_GPU, 1, KL_NODE_GPU, 2)->type, KL_PATH_NVB);
    kl_topo_free(t);
    kl_xml_free(xml);
}

/* How texts of other forms are read: NVSwitches, CPUs, NETs, sm, NVLinks of the first GPU, and the summary. */
static const struct form {
    const char *text, *summary;
    int switches, cpus, nets, sm, first_links;
} forms[] = {
    /* pairs alone */
    {"GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n"
     "        GPU0    GPU1    GPU2    GPU3\nGPU0     X      NV12    SYS     SYS\nGPU1    NV12     X      SYS     SYS\n"
     "GPU2    SYS     SYS      X      NV12\nGPU3    SYS     SYS     NV12     X\n",
     "4 GPUs (A100 SXM4 40 GB, sm 80, PCIe 4), NVLinks between 2 of 6 pairs only (GPU/0-GPU/1 12, GPU/2-GPU/3 12), no "
     "switch",
     0, 4, 0, 80, 12},
    /* pairs that show more than the table of products says: one peer is no switch */
    {"index, name\n0, NVIDIA H100 NVL\n1, NVIDIA H100 NVL\n2, NVIDIA H100 NVL\n3, NVIDIA H100 NVL\n"
     "        GPU0    GPU1    GPU2    GPU3\nGPU0     X      NV18    SYS     SYS\nGPU1    NV18     X      SYS     SYS\n"
     "GPU2    SYS     SYS      X      NV18\nGPU3    SYS     SYS     NV18     X\n",
     "4 GPUs (H100 NVL, sm 90, PCIe 5), NVLinks between 2 of 6 pairs only (GPU/0-GPU/1 18, GPU/2-GPU/3 18), no switch",
     0, 4, 0, 90, 18},
    /* names alone, and names in quotes behind other columns, with and without a head */
    {"name\nNVIDIA A100-SXM4-40GB\nNVIDIA A100-SXM4-40GB\nGPU0 GPU1\nGPU0 X NV12\nGPU1 NV12 X\n",
     "2 GPUs (A100 SXM4 40 GB, sm 80, PCIe 4), 12 NVLinks of each lead to NVSwitches", 1, 2, 0, 80, 12},
    {"index, uuid, name, driver_version\n0, GPU-aa, \"NVIDIA H200\", 550.54\n1, GPU-bb, \"NVIDIA H200\", 550.54\n"
     "GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\n",
     "2 GPUs (H200 SXM5, sm 90, PCIe 5), no NVLink", 0, 2, 0, 90, 0},
    {"0, GPU-aa, NVIDIA H200\n1, GPU-bb, NVIDIA H200\nGPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\n",
     "2 GPUs (H200 SXM5, sm 90, PCIe 5), no NVLink", 0, 2, 0, 90, 0},
    /* a mesh: the links of all pairs add up to the product's */
    {"\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\nGPU0\tX\tNV4\tNV4\tNV4\t0-7\nGPU1\tNV4\tX\tNV4\tNV4\t0-7\n"
     "GPU2\tNV4\tNV4\tX\tNV4\t8-15\nGPU3\tNV4\tNV4\tNV4\tX\t8-15\nindex, name\n0, NVIDIA A100-SXM4-80GB\n",
     "4 GPUs (A100 SXM4 80 GB, sm 80, PCIe 4), 4 NVLinks between all pairs: a mesh, no switch", 0, 2, 0, 80, 4},
    /* more links than a GPU has, though no name tells how many that are */
    {"GPU0 GPU1 GPU2\nGPU0 X NV12 NV12\nGPU1 NV12 X NV12\nGPU2 NV12 NV12 X\n",
     "3 GPUs, 12 NVLinks of each lead to NVSwitches", 1, 3, 0, 80, 12},
    /* some lost links: still switched */
    {"GPU 0: NVIDIA H100 80GB HBM3\nGPU0 GPU1 GPU2\nGPU0 X NV18 NV16\nGPU1 NV18 X NV16\nGPU2 NV16 NV16 X\n",
     "3 GPUs (H100 SXM5, sm 90, PCIe 5), 16 to 18 NVLinks of each lead to NVSwitches", 1, 3, 0, 90, 18},
    /* names that ran into each other, of three kinds */
    {"     GPU0 GPU1mlx5_0mlx5_1CPU Affinity\nGPU0 X PIX PIX SYS 0-3\nGPU1 PIX X PIX SYS 0-3\n", "2 GPUs, no NVLink", 0,
     2, 2, 80, 0},
    /* Markdown, and the old name of SYS */
    {"| | GPU0 | GPU1 | NIC0 |\n|--|--|--|--|\n| GPU0 | X | SOC | PHB |\n| GPU1 | SOC | X | SOC |\n",
     "2 GPUs, no NVLink", 0, 2, 1, 80, 0},
    /* the overview, and a list in another order */
    {"|   0  NVIDIA L40S                    On  | 00000000:01:00.0 Off |\nGPU0 GPU1\nGPU0 X PHB\nGPU1 PHB X\n",
     "2 GPUs (L40S, sm 89, PCIe 4), no NVLink", 0, 1, 0, 89, 0},
    {"memory.total [MiB], name, index\n10 MiB, NVIDIA H200, 0\nGPU0 GPU1\nGPU0 X NV18\nGPU1 NV18 X\n",
     "2 GPUs (H200 SXM5, sm 90, PCIe 5), 18 NVLinks of each lead to NVSwitches", 1, 2, 0, 90, 18},
    {"GPU 00000000:0F:00.0\n    Product Name   : NVIDIA H100 PCIe\nGPU0 GPU1\nGPU0 X NV12\nGPU1 NV12 X\n",
     "2 GPUs (H100 PCIe, sm 90, PCIe 5), 12 NVLinks between the two, no switch", 0, 2, 0, 90, 12},
};

static int first_links(const struct kl_xml *xml)
{
    int link = kl_xml_find(xml, "nvlink", NULL, NULL);

    return link == KL_XML_NONE ? 0 : kl_xml_int(xml, link, "count", 0);
}

static void texts_of_many_forms_are_read(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, forms)
    {
        struct kl_assumed assumed;
        struct kl_xml *xml = document_of(c->text, NULL, &assumed);
        int links = first_links(xml);
        struct kl_topo *t = graph_of(xml);

        if (strcmp(assumed.summary, c->summary)) fail_msg("%s\n%s", c->text, assumed.summary);
        expect_case(c->text, t->count[KL_NODE_NVS] == c->switches && t->count[KL_NODE_NET] == c->nets);
        expect_case(c->text, t->count[KL_NODE_CPU] == c->cpus);
        expect_case(c->text, t->node[t->first[KL_NODE_GPU]].gpu.sm == c->sm && links == c->first_links);
        kl_topo_free(t);
        kl_xml_free(xml);
    }
}

static void rows_may_not_be_missing(void **state)
{
    struct kl_smi *smi = malloc(sizeof *smi);

    (void)state;
    kl_smi_init(smi);
    assert_int_equal(kl_smi_parse(smi, "t", "GPU0 GPU1\nGPU0 X PIX\n"), ncclSuccess);
    assert_int_equal(kl_smi_check(smi, "t"), ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "a column GPU1, but no row"));
    kl_smi_init(smi);
    assert_int_equal(kl_smi_parse(smi, "t", "\tGPU0\tGPU1\nGPU0\tX\tNV2\nGPU1\tSYS\tX\n"), ncclSuccess);
    assert_int_equal(kl_smi_check(smi, "t"), ncclInvalidUsage);
    assert_non_null(strstr(kl_error_text(), "t:3: GPU1 has no NVLink to GPU0, which has 2 to it in line 2; paste"));
    free(smi);
}

static const struct bad_case {
    const char *text, *error;
} bad_cases[] = {
    {"\tGPU0\tGPU1\nGPU0\tX\n", "t:2: 1 cells; expected 2, one for each column"},
    {"\tGPU0\tGPU1\nGPU0\tX\tNEAR\n", "t:2: \"NEAR\"; expected X, NV#, PIX, PXB, PHB, NODE or SYS"},
    {"\tGPU0\tGPU1\nGPU0\tX\tNV0\n", "t:2: \"NV0\"; expected"},
    {"\tGPU0\tNIC0\tGPU1\n", "t:1: GPU1 stands behind a NIC; expected GPUs first"},
    {"\tGPU0\tNIC0\nNIC0\tNV4\tX\n", "t:2: \"NV4\"; expected"},
};

static void mistakes_have_a_place(void **state)
{
    struct kl_smi *smi = malloc(sizeof *smi);

    (void)state;
    FOR_EACH_CASE(c, bad_cases)
    {
        kl_smi_init(smi);
        expect_case(c->text, kl_smi_parse(smi, "t", c->text) == ncclInternalError);
        if (!strstr(kl_error_text(), c->error)) fail_msg("%s", kl_error_text());
    }
    free(smi);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_become_paths),          cmocka_unit_test(links_between_gpus_are_not_switched),
        cmocka_unit_test(texts_of_many_forms_are_read), cmocka_unit_test(rows_may_not_be_missing),
        cmocka_unit_test(mistakes_have_a_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
