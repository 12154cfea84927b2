/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters on paper: hosts and GPUs, edits of them, and plans with either set of constants. */
#include "plan/cluster.h"

#include "api/param_sets.h"
#include "base/error.h"
#include "plan/planned.h"
#include "tests/kolo_test.h"

#include <stdlib.h>
#include <string.h>

#define SYNTHETIC "tests/data/topologies/synthetic/"

static const char dgx1v[] = SYNTHETIC "dgx1v-hcm-4nic.xml", a100[] = SYNTHETIC "a100-nvsw-8nic-200g.xml";

static struct kl_cluster_request request_for(const char *topo, int hosts)
{
    return (struct kl_cluster_request){.topo = topo, .hosts = hosts, .edits = {.params = &kl_param_registry}};
}

static struct kl_cluster opened(const struct kl_cluster_request *request)
{
    struct kl_cluster c;

    if (kl_cluster_open(request, &c)) fail_msg("%s", kl_error_text());
    return c;
}

/* ---- hosts and GPUs ---- */

static void ranks_go_on_over_hosts(void **state)
{
    struct kl_cluster_request q = request_for(dgx1v, 3);
    struct kl_cluster c = opened(&q);
    struct kl_topo *t;

    (void)state;
    assert_int_equal(c.gpus, 8);
    assert_int_equal(kl_cluster_topo(&c, 17, &t), ncclSuccess);
    assert_int_equal(t->count[KL_NODE_GPU], 8);
    for (int g = 0; g < 8; g++) assert_in_range(t->node[kl_topo_at(t, KL_NODE_GPU, g)].gpu.rank, 16, 23);
    kl_topo_free(t);
    kl_cluster_close(&c);
}

static int gpu_count(const struct kl_cluster_request *q)
{
    struct kl_cluster c = opened(q);
    int n = c.gpus;

    kl_cluster_close(&c);
    return n;
}

static void gpus_are_those_of_the_list(void **state)
{
    static const char *const wrong[] = {"", "8", "0,", "0 1", "x", "0,0,0,0,0,0,0,0,0"};
    struct kl_cluster_request q = request_for(dgx1v, 1);
    struct kl_cluster c;

    (void)state;
    q.gpus = "5,2,7";
    assert_int_equal(gpu_count(&q), 3);
    kl_error_quiet(1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        q.gpus = wrong[i];
        expect_case(wrong[i], kl_cluster_open(&q, &c) == ncclInvalidUsage);
    }
    kl_error_quiet(0);
}

static void a_topology_file_of_no_use_is_told(void **state)
{
    struct kl_cluster_request q = request_for(NULL, 1);
    struct kl_cluster c;

    (void)state;
    q.ranks = 3;
    setenv("NCCL_TOPO_FILE", "/nonexistent", 1);
    c = opened(&q);
    assert_true(c.setting_failed && !c.from_setting && c.cpus);
    assert_int_equal(c.gpus, 3);
    kl_cluster_close(&c);
    setenv("NCCL_TOPO_FILE", dgx1v, 1);
    c = opened(&q);
    assert_true(c.from_setting && !c.setting_failed && !c.cpus);
    assert_int_equal(c.gpus, 8);
    kl_cluster_close(&c);
    unsetenv("NCCL_TOPO_FILE");
}

/* ---- edits ---- */

static struct kl_edit_list list_of(const char *const *text)
{
    return (struct kl_edit_list){text, text[0] ? 1 : 0};
}

static void edits_are_made_or_refused(void **state)
{
    static const struct {
        const char *label;
        const char *with[1], *without[1], *link[1];
        ncclResult_t rc;
        int gpus;
    } cases[] = {
        {"a GPU less", {0}, {"GPU/3"}, {0}, ncclSuccess, 7},
        {"a NIC less", {0}, {"NET/1"}, {0}, ncclSuccess, 8},
        {"a link less", {0}, {0}, {"GPU/0-GPU/3:1"}, ncclSuccess, 8},
        {"by long names", {0}, {0}, {"GPU/0-11000-GPU/3"}, ncclSuccess, 8},
        {"a setting", {"NCCL_P2P_LEVEL=SYS"}, {0}, {0}, ncclSuccess, 8},
        {"no such GPU", {0}, {"GPU/8"}, {0}, ncclInvalidUsage, 0},
        {"a CPU", {0}, {"CPU/0-0"}, {0}, ncclInvalidUsage, 0},
        {"no such link", {0}, {0}, {"GPU/0-GPU/5"}, ncclInvalidUsage, 0},
        {"too many links", {0}, {0}, {"GPU/0-GPU/3:3"}, ncclInvalidUsage, 0},
        {"no pair", {0}, {0}, {"GPU/0"}, ncclInvalidArgument, 0},
        {"no number", {0}, {0}, {"GPU/0-GPU/3:x"}, ncclInvalidArgument, 0},
        {"a wrong value", {"NCCL_P2P_LEVEL=FAR"}, {0}, {0}, ncclInvalidUsage, 0},
        {"no such setting", {"NCCL_P2P_LVEL=SYS"}, {0}, {0}, ncclInvalidArgument, 0},
        {"no value", {"NCCL_P2P_LEVEL"}, {0}, {0}, ncclInvalidArgument, 0},
    };

    (void)state;
    kl_error_quiet(1);
    FOR_EACH_CASE(k, cases)
    {
        struct kl_cluster_request q = request_for(dgx1v, 1);
        struct kl_cluster c;

        q.edits.with = list_of(k->with);
        q.edits.without = list_of(k->without);
        q.edits.without_link = list_of(k->link);
        expect_case(k->label, kl_cluster_open(&q, &c) == k->rc);
        if (k->rc) continue;
        expect_case(k->label, c.gpus == k->gpus);
        kl_cluster_close(&c);
    }
    kl_error_quiet(0);
}

static void settings_of_edits_count_first(void **state)
{
    static const char *const with[] = {"NCCL_P2P_LEVEL=SYS", "NCCL_P2P_LEVEL=LOC"};
    struct kl_cluster_request q = request_for(dgx1v, 1);
    struct kl_cluster c;

    (void)state;
    q.edits.with = (struct kl_edit_list){with, 2};
    c = opened(&q);
    assert_int_equal(c.options.p2p_level, KL_PATH_LOC); /* of two with one name the later */
    kl_cluster_close(&c);
}

/* ---- plans ---- */

static float time_with(const struct kl_tuning_constants *constants)
{
    struct kl_cluster_request q = request_for(a100, 2);
    struct kl_planned planned;
    struct kl_tuning_op op = kl_tuning_op_of(KL_FUNC_ALL_REDUCE, 1 << 20, ncclFloat, ncclSum);
    struct kl_tuning_choice choice;

    q.constants = constants;
    struct kl_cluster c = opened(&q);

    assert_int_equal(kl_planned_init(&c, &planned), ncclSuccess);
    assert_ptr_equal(planned.plan->tuning.constants, constants ? constants : &kl_tuning_reference);
    assert_int_equal(planned.plan->nranks, 16);
    assert_int_equal(kl_tuning_choose(&planned.plan->tuning, &op, &choice, NULL), ncclSuccess);
    kl_planned_fini(&planned);
    kl_cluster_close(&c);
    return choice.time;
}

static void constants_are_those_asked_for(void **state)
{
    (void)state;
    assert_true(time_with(NULL) == time_with(&kl_tuning_reference));
    assert_true(time_with(&kl_tuning_host) != time_with(&kl_tuning_reference));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_go_on_over_hosts),
        cmocka_unit_test(gpus_are_those_of_the_list),
        cmocka_unit_test(a_topology_file_of_no_use_is_told),
        cmocka_unit_test(edits_are_made_or_refused),
        cmocka_unit_test(settings_of_edits_count_first),
        cmocka_unit_test(constants_are_those_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
