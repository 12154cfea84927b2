/* SPDX-License-Identifier: Apache-2.0 */
/** test_cluster.h - clusters for tests: identical hosts from a file, and plans for them. For tests only. */
#ifndef KL_PLAN_TEST_CLUSTER_H
#define KL_PLAN_TEST_CLUSTER_H

#include "graph/test_machine.h"
#include "plan/plan.h"

struct cluster {
    struct kl_xml *file;
    struct kl_host_device device[TEST_MACHINE_GPUS];
    struct kl_topo_options options;
    struct kl_machine machine;
    struct kl_graph_config config;
    struct kl_plan *plan;
};

/** Hosts like the one in `path`, without any settings. */
__attribute__((unused)) static struct cluster *open_cluster(const char *path)
{
    struct cluster *c = calloc(1, sizeof *c);
    static char *none[] = {NULL};
    struct kl_settings settings;

    kl_settings_open(&settings, none, "/nonexistent");
    kl_graph_config_load_from(&c->config, &settings);
    kl_settings_close(&settings);
    c->options = KL_TOPO_OPTIONS;
    assert_int_equal(kl_xml_load(path, kl_xml_topo_schema, &c->file), ncclSuccess);
    c->machine = (struct kl_machine){
        .file = c->file, .device = c->device, .ndevices = kl_machine_file_gpus(c->file), .hosts = 1};
    assert_in_range(c->machine.ndevices, 1, TEST_MACHINE_GPUS);
    for (int i = 0; i < c->machine.ndevices; i++) c->device[i] = (struct kl_host_device){.rank = i, .ordinal = i};
    return c;
}

/** The plan for so many of them, in place of the earlier one. */
__attribute__((unused)) static const struct kl_plan *plan_cluster(struct cluster *c, int hosts)
{
    struct kl_plan_request request = {
        .machine = &c->machine, .options = &c->options, .config = &c->config, .hosts = hosts};

    kl_plan_free(c->plan);
    assert_int_equal(kl_plan_create(&request, &c->plan), ncclSuccess);
    return c->plan;
}

__attribute__((unused)) static void drop_cluster(struct cluster *c)
{
    kl_plan_free(c->plan);
    kl_xml_free(c->file);
    free(c);
}

#endif
