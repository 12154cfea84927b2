/* SPDX-License-Identifier: Apache-2.0 */
/* NVML's data (tests/nvml/fake_nvml.c), as facts, as records, and as NCCL's documents. */
#include "plan/gpus.h"

#include "device/nvml.h"
#include "tests/kolo_test.h"
#include "topo/machine.h"
#include "topo/record.h"
#include "topo/release.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void read_fake(const char *machine, struct kl_gpu_facts **gpu, int *n, char problem[KL_GPUS_PROBLEM_TEXT])
{
    setenv("FAKE_NVML", machine, 1);
    assert_int_equal(kl_gpus_read(gpu, n, problem), ncclSuccess);
}

static void newer_gpus_are_described(void **state)
{
    char problem[KL_GPUS_PROBLEM_TEXT];
    struct kl_gpu_facts *g;
    int n;

    (void)state;
    read_fake("hopper", &g, &n, problem);
    assert_int_equal(n, 2);
    assert_string_equal(problem, "");
    assert_string_equal(g[1].busid, "0000:ab:00.0");
    assert_string_equal(g[0].name, "NVIDIA H100 80GB HBM3");
    assert_true(g[0].sm == 90 && g[0].dev == 0 && g[1].dev == 1 && g[0].rank == -1 && g[0].memory == 85520809984);
    assert_int_equal(g[0].pci_id, 0x233010de);
    assert_int_equal(g[0].nnvlinks, 2);
    assert_string_equal(g[0].nvlink[1].target, "0000:c5:00.0");
    assert_true(g[0].nvlink[0].count == 9 && g[0].nvlink[1].count == 9);
    assert_true(g[1].nvlink[0].count == 9 && g[1].nvlink[1].count == 8); /* one is down */
    assert_true(g[0].c2c_count == 4 && g[0].c2c_mbps == 44712);
    assert_true(g[0].pcie_gen == 1 && g[0].pcie_max_gen == 5 && g[0].pcie_width == 16);
    free(g);
}

static void older_gpus_are_described(void **state)
{
    char problem[KL_GPUS_PROBLEM_TEXT];
    struct kl_gpu_facts *g;
    int n;

    (void)state;
    read_fake("volta", &g, &n, problem);
    assert_int_equal(g[0].nnvlinks, 2); /* the link that is not for peer access does not count */
    assert_string_equal(g[0].nvlink[0].target, "0000:ab:00.0");
    assert_int_equal(g[0].nvlink[0].count, 4);
    assert_string_equal(g[0].nvlink[1].target, "10000:02:00.0"); /* as sysfs writes it */
    assert_int_equal(g[0].c2c_count, 0);
    free(g);
}

static void fabric_peers_and_gpudirect_are_described(void **state)
{
    char problem[KL_GPUS_PROBLEM_TEXT];
    struct kl_gpu_facts *g;
    int n;

    (void)state;
    read_fake("fabric", &g, &n, problem);
    assert_int_equal(g[0].fabric, KL_FABRIC_READY);
    assert_string_equal(g[0].cluster, "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf");
    assert_int_equal(g[0].clique, 7);
    assert_true(g[0].no_p2p == 2 && g[1].no_p2p == 1);
    assert_true(g[0].gdr == 1 && g[1].gdr == 0);
    assert_int_equal(g[0].nvlink[0].far, KL_FAR_SWITCH);
    assert_int_equal(g[1].nnvlinks, 3); /* the link with an unreadable far end is apart */
    free(g);
    read_fake("hopper", &g, &n, problem);
    assert_true(!g[0].fabric && !g[0].no_p2p && g[0].gdr == 1 && g[1].gdr == 1);
    free(g);
}

static const struct trouble_case {
    const char *machine;
    int n;
    const char *problem;
} trouble_cases[] = {
    {"empty", 0, ""},
    {"unloaded", 0, ""},
    {"mismatch", 0, "NVML does not start (RM has detected an NVML/RM version mismatch.), so GPUs are not seen"},
    {"lost", 1, "NVML does not describe GPU 0, which is left out; nvidia-smi tells its state"},
};

static void trouble_is_told(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, trouble_cases)
    {
        char problem[KL_GPUS_PROBLEM_TEXT];
        struct kl_gpu_facts *g;
        int n;

        read_fake(c->machine, &g, &n, problem);
        expect_case(c->machine, n == c->n);
        if (strcmp(problem, c->problem)) fail_msg("%s: %s", c->machine, problem);
        free(g);
    }
}

static void records_keep(const char *machine)
{
    char problem[KL_GPUS_PROBLEM_TEXT], root[] = "/tmp/kolo_gpus_XXXXXX", path[64];
    struct kl_recorded facts = {0}, again;

    assert_non_null(mkdtemp(root));
    read_fake(machine, &facts.gpu, &facts.ngpus, problem);
    assert_int_equal(kl_record_save(root, &facts), ncclSuccess);
    assert_int_equal(kl_record_check(root), ncclSuccess);
    assert_int_equal(kl_record_load(root, &again), ncclSuccess);
    assert_int_equal(again.ngpus, 2);
    for (int i = 0; i < 2; i++) {
        facts.gpu[i].rank = again.gpu[i].rank; /* ranks are not recorded */
        assert_memory_equal(&facts.gpu[i], &again.gpu[i], sizeof facts.gpu[i]);
    }
    kl_record_free(&facts);
    kl_record_free(&again);
    snprintf(path, sizeof path, "%s/kolo-facts", root);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(kl_record_check(root), ncclInvalidUsage); /* an empty folder is no machine */
    assert_int_equal(rmdir(root), 0);
    assert_int_equal(kl_record_check(root), ncclInvalidUsage);
    assert_int_equal(kl_record_check("/dev/null"), ncclInvalidUsage);
}

static void records_keep_all_of_it(void **state)
{
    (void)state;
    records_keep("hopper");
    records_keep("fabric");
}

/* The document of a machine by the rules of a release; freed by the caller. */
static char *document_of(const char *machine, const char *nccl)
{
    char problem[KL_GPUS_PROBLEM_TEXT], *text;
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_machine m = {.sysfs = "/nonexistent"};
    struct kl_gpu_facts *g;
    struct kl_xml *xml;
    size_t bytes;

    read_fake(machine, &g, &m.ngpus, problem);
    for (int i = 0; i < m.ngpus; i++) g[i].rank = i;
    m.gpu = g;
    options.nccl = kl_nccl_parse(nccl);
    assert_int_equal(kl_machine_document(&m, &options, &xml), ncclSuccess);
    assert_int_equal(kl_xml_text(xml, &text, &bytes), ncclSuccess);
    kl_xml_free(xml);
    free(g);
    return text;
}

/* Annex 2.2: from sysfs, or as NVML tells, with switches under one name and without links that cannot be read. */
static void far_ends_are_those_of_nvml_in_newer_releases(void **state)
{
    static const struct {
        const char *nccl, *machine, *link;
    } cases[] = {
        {"2.30.7", "hopper", "<nvlink target=\"0000:c4:00.0\" count=\"9\" tclass=\"0x068000\"/>"},
        {"2.31.2", "hopper", "<nvlink target=\"fffffff:ffff:ff\" tclass=\"0x068000\" count=\"18\"/>"},
        {"2.30.7", "fabric", "<nvlink target=\"0000:c5:00.0\" count=\"8\" tclass=\"0x068000\"/>"},
        {"2.31.2", "fabric", "<nvlink target=\"fffffff:ffff:ff\" tclass=\"0x068000\" count=\"16\"/>"},
        {"2.31.2", "volta", "<nvlink target=\"0000:ab:00.0\" tclass=\"0x030200\" count=\"4\"/>"},
        {"2.31.2", "fabric",
         "fabric=\"ready\" cluster=\"a0a1a2a3a4a5a6a7a8a9aaabacadaeaf\" clique=\"7\" no_p2p=\"0x2\""},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        char *text = document_of(c->machine, c->nccl);

        if (!strstr(text, c->link)) fail_msg("%s, %s: no %s in\n%s", c->machine, c->nccl, c->link, text);
        free(text);
    }
}

/* Which link a release plans with: what the port can do, or what it does now. */
static void the_current_link_counts_in_newer_releases(void **state)
{
    static const struct {
        const char *nccl, *link;
        bool low;
    } cases[] = {{"2.29.7", "link_speed=\"\" link_width=\"\"", false},
                 {"2.30.7", "link_speed=\"2.5 GT/s PCIe\" link_width=\"16\"", true}};
    char problem[KL_GPUS_PROBLEM_TEXT];
    struct kl_machine m = {.sysfs = "/nonexistent"};
    struct kl_gpu_facts *g;

    (void)state;
    read_fake("hopper", &g, &m.ngpus, problem);
    for (int i = 0; i < m.ngpus; i++) g[i].rank = i;
    m.gpu = g;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_topo_options options = KL_TOPO_OPTIONS;
        struct kl_xml *xml;
        char *text;
        size_t bytes;

        options.nccl = kl_nccl_parse(c->nccl);
        expect_case(c->nccl, kl_gpu_link_is_low(&g[0], options.nccl) == c->low);
        assert_int_equal(kl_machine_document(&m, &options, &xml), ncclSuccess);
        assert_int_equal(kl_xml_text(xml, &text, &bytes), ncclSuccess);
        expect_case(c->nccl, strstr(text, c->link));
        expect_case(c->nccl, strstr(text, "<nvlink target=\"0000:c4:00.0\" count=\"9\" tclass=\"0x068000\"/>"));
        expect_case(c->nccl, strstr(text, "<c2c bw=\"44712\" count=\"4\"/>"));
        free(text);
        kl_xml_free(xml);
    }
    free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newer_gpus_are_described),
        cmocka_unit_test(older_gpus_are_described),
        cmocka_unit_test(fabric_peers_and_gpudirect_are_described),
        cmocka_unit_test(far_ends_are_those_of_nvml_in_newer_releases),
        cmocka_unit_test(trouble_is_told),
        cmocka_unit_test(records_keep_all_of_it),
        cmocka_unit_test(the_current_link_counts_in_newer_releases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
