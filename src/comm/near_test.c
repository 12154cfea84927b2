/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/comm.h"

#include "os/affinity.h"
#include "tests/kolo_test.h"
#include "topo/machine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct kl_topo *machine_with(const char *affinity)
{
    struct kl_host_device device = {.rank = 0, .ordinal = 0};
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_machine machine = {.device = &device, .ndevices = 1};
    struct kl_topo *t = NULL;
    struct kl_xml *xml;
    char text[512];

    snprintf(text, sizeof text,
             "<system version=\"1\"><cpu numaid=\"0\" affinity=\"%s\"><pci busid=\"0000:01:00.0\" class=\"0x030200\">"
             "<gpu dev=\"0\"/></pci></cpu></system>",
             affinity);
    assert_int_equal(kl_xml_parse("test", text, strlen(text), kl_xml_topo_schema, &xml), ncclSuccess);
    machine.file = xml;
    assert_int_equal(kl_machine_topo(&machine, &options, 0, 1, &t, NULL), ncclSuccess);
    kl_xml_free(xml);
    return t;
}

/* A communicator of which only the machine is known. */
static struct ncclComm *fresh(void)
{
    static struct ncclComm comm;

    memset(&comm, 0, sizeof comm);
    return &comm;
}

static struct kl_cpuset here(void)
{
    struct kl_cpuset set;

    assert_int_equal(kl_affinity_get(&set), ncclSuccess);
    return set;
}

/* The lowest CPU that the test may use, as a set and as a topology file's text. */
static struct kl_cpuset first_cpu(char *map, size_t size)
{
    struct kl_cpuset all = here(), one = {{0}};
    struct kl_text text = kl_text_over(map, size);

    kl_cpuset_add(&one, kl_cpuset_next(&all, 0));
    kl_cpuset_add_map(&text, &one);
    assert_false(text.cut);
    return one;
}

static void expect_here(const struct kl_cpuset *expected)
{
    struct kl_cpuset now = here();

    assert_true(kl_cpuset_equal(&now, expected));
}

static void a_thread_goes_near_its_device_and_back(void **state)
{
    char map[4096];
    struct kl_cpuset before = here(), near = first_cpu(map, sizeof map);
    struct kl_topo *t = machine_with(map);
    struct ncclComm *comm = fresh();

    (void)state;
    comm->topo = t;
    assert_int_equal(kl_comm_move_near(comm), ncclSuccess);
    expect_here(&near);
    kl_comm_move_back(comm);
    expect_here(&before);
    kl_comm_move_back(comm); /* harmless */
    kl_topo_free(t);
}

/* CPUs that do not exist, or are not allowed, change nothing; if the setting insists, they are tried. */
static void cpus_of_another_machine_change_nothing(void **state)
{
    struct kl_cpuset before = here();
    struct kl_topo *t =
        machine_with("80000000,00000000,00000000,00000000,00000000,00000000,00000000,00000000,00000000,00000000");
    struct ncclComm *comm = fresh();

    (void)state;
    comm->topo = t;
    for (int ignore = 0; ignore <= 1; ignore++) {
        t->options.ignore_cpu_affinity = ignore;
        assert_int_equal(kl_comm_move_near(comm), ncclSuccess);
        assert_null(comm->init.home);
        expect_here(&before);
    }
    kl_topo_free(t);
}

static void ignoring_the_affinity_leaves_the_mask(void **state)
{
    char map[4096];
    struct kl_cpuset before = here(), first = first_cpu(map, sizeof map), others = before;
    struct kl_topo *t = machine_with(map);
    struct ncclComm *comm = fresh();

    (void)state;
    others.words[kl_cpuset_next(&first, 0) / 64] &= ~first.words[kl_cpuset_next(&first, 0) / 64];
    if (!kl_cpuset_count(&others)) exit(KOLO_TEST_SKIP); /* one CPU */
    comm->topo = t;
    assert_int_equal(kl_affinity_pin(&others, NULL), ncclSuccess);
    assert_int_equal(kl_comm_move_near(comm), ncclSuccess);
    expect_here(&others); /* none of them is near */
    t->options.ignore_cpu_affinity = true;
    assert_int_equal(kl_comm_move_near(comm), ncclSuccess);
    expect_here(&first);
    kl_comm_move_back(comm);
    expect_here(&others);
    assert_int_equal(kl_affinity_pin(&before, NULL), ncclSuccess);
    kl_topo_free(t);
}

/* Ranks of one machine; another's do not count. A thread may be moved again at any time, so it is polled until it was
 * seen there. */
static void ranks_that_share_cpus_begin_on_them_in_turn(void **state)
{
    static struct kl_peer peers[4] = {{.machine = 1}, {.machine = 2}, {.machine = 1}, {.machine = 1}};
    static const int place[] = {0, 0, 1, 2};
    struct kl_cpuset before = here();
    struct ncclComm *comm = fresh();
    int n = kl_cpuset_count(&before);

    (void)state;
    comm->peers = peers;
    for (comm->rank = 0; comm->rank < 4; comm->rank++) {
        int cpu = -1, tries = 1000;
        for (int i = place[comm->rank] % n; i >= 0; i--) cpu = kl_cpuset_next(&before, cpu + 1);
        do kl_comm_spread(comm);
        while (sched_getcpu() != cpu && --tries);
        assert_true(tries);
        expect_here(&before);
    }
}

/* ---- whole communicators ---- */

static ncclResult_t init_with(const char *name, const char *value, ncclComm_t *comm)
{
    ncclUniqueId id;

    setenv(name, value, 1);
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    ncclResult_t rc = ncclCommInitRank(comm, 1, id, 0);
    unsetenv(name);
    return rc;
}

static void init_leaves_the_mask_as_it_was(void **state)
{
    char map[4096], path[] = "/tmp/kolo-near-XXXXXX";
    struct kl_cpuset before = here();
    FILE *file = fdopen(mkstemp(path), "w");
    ncclComm_t comm;

    (void)state;
    first_cpu(map, sizeof map);
    fprintf(file,
            "<system version=\"1\"><cpu numaid=\"0\" affinity=\"%s\"><pci busid=\"0000:01:00.0\" class=\"0x030200\">"
            "<gpu dev=\"0\"/></pci></cpu></system>\n",
            map);
    fclose(file);
    assert_int_equal(init_with("NCCL_TOPO_FILE", path, &comm), ncclSuccess);
    expect_here(&before);
    assert_int_equal(ncclCommDestroy(comm), ncclSuccess);
    setenv("NCCL_TOPO_FILE", path, 1);
    assert_int_equal(init_with("NCCL_ALGO", "nonsense", &comm), ncclInvalidUsage); /* after the thread has moved */
    expect_here(&before);
    unsetenv("NCCL_TOPO_FILE");
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_goes_near_its_device_and_back),
        cmocka_unit_test(cpus_of_another_machine_change_nothing),
        cmocka_unit_test(ignoring_the_affinity_leaves_the_mask),
        cmocka_unit_test(ranks_that_share_cpus_begin_on_them_in_turn),
        cmocka_unit_test(init_leaves_the_mask_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
