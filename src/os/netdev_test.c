/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces of a machine that is laid out in a directory: speeds through bonds and VLANs, NICs, and what only joins others. */
#include "os/netdev.h"

#include "tests/sysfs_tree.h"

static char root[64];

static int make(void **state)
{
    (void)state;
    sysfs_tree_make("interfaces", root);
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    sysfs_tree_remove(root);
    return 0;
}

static const struct {
    const char *name;
    int mbps;
} speeds[] = {
    {"eth0", 25000},                     /* says so */
    {"eth1", 25000},                     /* likewise */
    {"eth2", 0},                         /* down: -1 */
    {"bond0", 50000},                    /* two of its three slaves are up */
    {"bond1", 25000},                    /* active-backup: one at a time */
    {"eth0.7", 25000},                   /* a VLAN */
    {"bond0.8", 50000},                  /* a VLAN on a bond */
    {"mac0", 50000},                     /* a MACVLAN on that VLAN */
    {"knot0", 0},                        /* two that are said to carry each other */
    {"dummy0", 0},                       /* carried by nothing */
    {"absent", 0},                       /* not there */
    {"a-name-that-is-no-interface/", 0}, /* nor can be */
};

static void speeds_follow_what_carries(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, speeds)
    {
        expect_case(c->name, kl_netdev_speed(root, c->name) == c->mbps);
    }
}

static void devices_are_found(void **state)
{
    char path[PATH_MAX], real[PATH_MAX];

    (void)state;
    assert_true(kl_netdev_device(root, "eth0", path));
    assert_non_null(realpath(root, real));
    assert_memory_equal(path, real, strlen(real));
    assert_string_equal(path + strlen(real), "/devices/pci0000:00/0000:00:01.0");
    assert_false(kl_netdev_device(root, "bond0", path));
    assert_false(kl_netdev_device(root, "absent", path));
}

static const struct {
    const char *name;
    bool plumbing;
} uses[] = {
    {"eth0", true},  /* a slave */
    {"eth3", false}, /* a NIC */
    {"bond0", false},  {"bond0.8", false}, {"mac0", false},
    {"dummy0", false}, {"lan", true},                         /* a bridge, whatever it is called */
    {"port", true},                                           /* of that bridge */
    {"gre1", true},    {"vpn0", true},     {"overlay", true}, /* tunnels by type, by flags, by kind */
    {"docker0", true}, {"br-4f2", true},   {"veth1a2b", true},
    {"virbr0", true},  {"absent", false},
};

static void plumbing_is_recognised(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, uses)
    {
        expect_case(c->name, kl_netdev_is_plumbing(root, c->name) == c->plumbing);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speeds_follow_what_carries),
        cmocka_unit_test(devices_are_found),
        cmocka_unit_test(plumbing_is_recognised),
    };

    return cmocka_run_group_tests(tests, make, unmake);
}
