/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of switches out of each text, and texts that are none. */
#include "plan/switches.h"

#include "base/error.h"
#include "plan/host_list.h"
#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char joined[4096];

static ncclResult_t add_name(void *ctx, const char *name)
{
    (void)ctx;
    if (*joined) strcat(joined, " ");
    strcat(joined, name);
    return ncclSuccess;
}

static void a_list_has_ranges_and_several_brackets(void **state)
{
    static const struct {
        const char *list, *names;
    } cases[] = {{"n1", "n1"},
                 {"n[1-3,7],m", "n1 n2 n3 n7 m"},
                 {"n[008-011]", "n008 n009 n010 n011"},
                 {"r[1-2]n[a,b]x", "r1nax r1nbx r2nax r2nbx"},
                 {"gpu-[01,03-04]-ib", "gpu-01-ib gpu-03-ib gpu-04-ib"},
                 {"", ""}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        *joined = 0;
        assert_int_equal(kl_host_list("f:1", cases[i].list, add_name, NULL), ncclSuccess);
        assert_string_equal(joined, cases[i].names);
    }
}

static ncclResult_t drop_name(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    return ncclSuccess;
}

static void a_list_that_is_none_is_refused_with_its_place(void **state)
{
    static const char *const lists[] = {"n[1-",          "n[3-1]",          "n[]",    ",n1", "n[[1]]", "n]1[",
                                        "n[0-99999999]", "n[1-1234567890]", "n[1--2]"};

    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        assert_int_equal(kl_host_list("f:7", lists[i], drop_name, NULL), ncclInvalidUsage);
        assert_non_null(strstr(kl_error_text(), "f:7: the list \""));
    }
}

static void names_compare_as_people_count(void **state)
{
    (void)state;
    assert_true(kl_host_compare("n2", "n10") < 0);
    assert_true(kl_host_compare("n10", "n2") > 0);
    assert_true(kl_host_compare("n2", "n2a") < 0);
    assert_true(kl_host_compare("n02", "n2") != 0);
    assert_int_equal(kl_host_compare("rack1n3", "rack1n3"), 0);
}

/* The hosts by place, pods apart. */
static void expect_places(const char *text, enum kl_input_kind kind, int levels, const char *places)
{
    struct kl_switches s;
    char got[1024] = "";

    if (kl_switches_read("file", text, strlen(text), &s)) fail_msg("%s", kl_error_text());
    assert_int_equal(s.kind, kind);
    assert_int_equal(s.levels, levels);
    for (int i = 0; i < s.nhosts; i++) {
        const struct kl_switch_host *h = &s.host[s.by_place[i]];

        if (i) strcat(got, h->pod == s.host[s.by_place[i - 1]].pod ? " " : " | ");
        strcat(got, h->name);
    }
    assert_string_equal(got, places);
    kl_switches_fini(&s);
}

static void every_text_is_the_same_tree(void **state)
{
    static const char want[] = "n1 n3 | n2 n10 | n4";

    (void)state;
    expect_places("# made by hand\n"
                  "SwitchName=leaf0 Nodes=n[1,3] LinkSpeed=100\n"
                  "switchname=leaf1 nodes=n2,n10   # with keys in other cases\n"
                  "SwitchName=leaf2 \\\n  Nodes=n4\n"
                  "SwitchName=spineA Switches=leaf[0-1]\n"
                  "SwitchName=spineB Switches=leaf2\n"
                  "SwitchName=core Switches=spineA,spineB\n",
                  KL_INPUT_SLURM, 3, want);
    expect_places("BlockName=b0 Nodes=n[1,3]\nBlockName=b1 Nodes=n[2,10]\nBlockName=b2 Nodes=n4\nBlockSizes=2\n",
                  KL_INPUT_SLURM, 1, want);
    expect_places("- topology: t\n  cluster_default: true\n  tree:\n    switches:\n"
                  "      - switch: core\n        children: a,b,c\n"
                  "      - switch: a\n        nodes: n[1,3]\n"
                  "      - switch: b\n        nodes: 'n[2,10]'\n"
                  "      - switch: c\n        nodes: n4\n",
                  KL_INPUT_SLURM, 2, want);
    expect_places("switches:\n- name: core\n  switches: [a, b, c]\n- name: a\n  capacity_blocks: [cb1]\n- name: b\n"
                  "  nodes:\n  - n2\n  - \"n10\"\n- name: c\n  nodes: [ n4 ]\n"
                  "capacity_blocks:\n- name: cb1\n  type: GB200\n  nodes: [\"n1\", n3]\n",
                  KL_INPUT_TOPOGRAPH, 3, want);
}

static void labels_are_a_tree(void **state)
{
    static const char want[] = "n1 n2 | n3";

    (void)state;
    expect_places(
        "NAME STATUS ROLES AGE VERSION LABELS\n"
        "n3 Ready <none> 4d v1.30 arch=amd64,network.topology.nvidia.com/leaf=s2,"
        "network.topology.nvidia.com/spine=t\n"
        "n1 Ready <none> 4d v1.30 network.topology.nvidia.com/leaf=s1,network.topology.nvidia.com/spine=t,x=y\n"
        "n2 Ready <none> 4d v1.30 network.topology.nvidia.com/leaf=s1,network.topology.nvidia.com/spine=t\n",
        KL_INPUT_TOPOGRAPH, 2, want);
    expect_places("items:\n- metadata:\n    labels:\n      network.topology.kubernetes.io/block: s1\n"
                  "      network.topology.kubernetes.io/datacenter: dc\n    name: n1\n"
                  "- metadata:\n    labels:\n      kubernetes.io/hostname: n2\n"
                  "      network.topology.kubernetes.io/block: s1\n"
                  "      network.topology.kubernetes.io/datacenter: dc\n    name: other\n"
                  "- metadata:\n    labels:\n      network.topology.kubernetes.io/block: s2\n    name: n3\n",
                  KL_INPUT_TOPOGRAPH, 2, want);
    expect_places("Name:               n1\nLabels:             arch=amd64\n"
                  "                    network.topology.nvidia.com/accelerator=nvl1\n"
                  "Name:               n2\nLabels:             network.topology.nvidia.com/accelerator=nvl1\n"
                  "Name:               n3\nLabels:             network.topology.nvidia.com/accelerator=nvl2\n",
                  KL_INPUT_TOPOGRAPH, 1, want);
    expect_places(
        "{\"items\": [{\"metadata\": {\"name\": \"n3\", \"labels\": {\"network.topology.nvidia.com/leaf\": \"s2\"}}},"
        "{\"metadata\": {\"name\": \"n2\", \"labels\": {\"network.topology.nvidia.com/leaf\": \"s1\"}}},"
        "{\"metadata\": {\"name\": \"n9\", \"labels\": {\"arch\": \"amd64\"}}},"
        "{\"metadata\": {\"name\": \"n1\", \"labels\": {\"network.topology.nvidia.com/leaf\": \"s1\"}}}]}",
        KL_INPUT_TOPOGRAPH, 1, want);
}

static void a_text_that_is_no_tree_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1\n", "file:2: host n1 is below a, and below b"},
        {"SwitchName=a Nodes=n1\nSwitchName=b Switches=a,c\n", "file:2: switch c has no line of its own"},
        {"SwitchName=a Switches=b\nSwitchName=b Switches=a Nodes=n1\n", "file: switch a is below itself"},
        {"SwitchName=a Nodes=n1\nNodes=n2\n", "file:2: a line without SwitchName"},
        {"SwitchName=a Nods=n1\n", "file:1: \"Nods=n1\" is not of topology.conf"},
        {"SwitchName=a\n", "file: no host is named"},
        {"SwitchName= Nodes=n1\n", "file:1: a switch without a name"},
        {"- switch: a\n  nodes: [n1,\n   n2]\n", "file:2: a list over several lines"},
        {"- switch: a\n  nodes: n[1\n", "file:2: the list \"n[1\""},
        {"x: y\n  network.topology.nvidia.com/leaf: a\n", "labels of a node without a name"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kl_switches s;

        assert_int_equal(kl_switches_read("file", cases[i].text, strlen(cases[i].text), &s), ncclInvalidUsage);
        if (!strstr(kl_error_text(), cases[i].why)) fail_msg("%s: %s", cases[i].why, kl_error_text());
        kl_switches_fini(&s);
    }
}

static void crossings_follow_the_order(void **state)
{
    static const char text[] = "SwitchName=a Nodes=n[1,3,5]\nSwitchName=b Nodes=n[2,4,6]\n";
    struct kl_switches s;

    (void)state;
    assert_int_equal(kl_switches_read("file", text, strlen(text), &s), ncclSuccess);
    assert_int_equal(kl_switches_crossings(&s, NULL), 6);
    assert_int_equal(kl_switches_crossings(&s, s.by_place), 2);
    kl_switches_fini(&s);
}

/* 50,000 hosts: finding names must not be quadratic. The test has a time limit. */
static void large_trees_are_read(void **state)
{
    struct kl_switches s;
    char *text = malloc(1 << 20);
    size_t n = 0;

    (void)state;
    assert_non_null(text);
    for (int i = 0; i < 1000; i++) n += (size_t)snprintf(text + n, 128, "SwitchName=leaf%d Nodes=n%d-[0-49]\n", i, i);
    n += (size_t)snprintf(text + n, 128, "SwitchName=top Switches=leaf[0-999]\n");
    assert_int_equal(kl_switches_read("file", text, n, &s), ncclSuccess);
    assert_int_equal(s.nhosts, 50000);
    assert_int_equal(s.npods, 1000);
    kl_switches_fini(&s);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_has_ranges_and_several_brackets),
        cmocka_unit_test(a_list_that_is_none_is_refused_with_its_place),
        cmocka_unit_test(names_compare_as_people_count),
        cmocka_unit_test(every_text_is_the_same_tree),
        cmocka_unit_test(labels_are_a_tree),
        cmocka_unit_test(a_text_that_is_no_tree_is_refused),
        cmocka_unit_test(crossings_follow_the_order),
        cmocka_unit_test(large_trees_are_read),
    };

    kl_error_quiet(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
