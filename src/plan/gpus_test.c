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

static void records_keep_all_of_it(void **state)
{
    char problem[KL_GPUS_PROBLEM_TEXT], root[] = "/tmp/kolo_gpus_XXXXXX", path[64];
    struct kl_recorded facts = {0}, again;

    (void)state;
    assert_non_null(mkdtemp(root));
    read_fake("hopper", &facts.gpu, &facts.ngpus, problem);
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

/* The link speed that a release plans with: the port's maximum, or its current speed. */
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
        cmocka_unit_test(trouble_is_told),
        cmocka_unit_test(records_keep_all_of_it),
        cmocka_unit_test(the_current_link_counts_in_newer_releases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
