/* SPDX-License-Identifier: Apache-2.0 */
/* A machine's interfaces laid out in a directory: speeds through bonds and VLANs, NICs, and interfaces that only
 * connect others. */
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
    {"eth0", 25000},                     /* by its speed file */
    {"eth1", 25000},                     /* by its speed file */
    {"eth2", 0},                         /* down: -1 */
    {"bond0", 50000},                    /* two of its three slaves are up */
    {"bond1", 25000},                    /* active-backup: one at a time */
    {"eth0.7", 25000},                   /* a VLAN */
    {"bond0.8", 50000},                  /* a VLAN on a bond */
    {"mac0", 50000},                     /* a MACVLAN on that VLAN */
    {"knot0", 0},                        /* two that claim to carry each other */
    {"dummy0", 0},                       /* no device below */
    {"absent", 0},                       /* missing */
    {"a-name-that-is-no-interface/", 0}, /* not a valid name */
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
    enum kl_netdev_role role;
    const char *master;
} uses[] = {
    {"eth0", KL_NETDEV_PORT, "bond0"}, /* a slave */
    {"eth3", KL_NETDEV_NIC, ""},          {"bond0", KL_NETDEV_NIC, ""},
    {"bond0.8", KL_NETDEV_NIC, ""},       {"mac0", KL_NETDEV_NIC, ""},
    {"dummy0", KL_NETDEV_NIC, ""},        {"lan", KL_NETDEV_BRIDGE, ""},  /* independent of the name */
    {"port", KL_NETDEV_PORT, "lan"},      {"gre1", KL_NETDEV_TUNNEL, ""}, /* by type, by flags, by kind */
    {"vpn0", KL_NETDEV_TUNNEL, ""},       {"overlay", KL_NETDEV_TUNNEL, ""},
    {"docker0", KL_NETDEV_CONTAINER, ""}, /* by name, of the interface and of the one below */
    {"br-4f2", KL_NETDEV_BRIDGE, ""},     {"veth1a2b", KL_NETDEV_CONTAINER, ""},
    {"virbr0", KL_NETDEV_BRIDGE, ""},     {"lo", KL_NETDEV_LOOPBACK, ""},
    {"absent", KL_NETDEV_NIC, ""},
};

static void roles_are_recognised(void **state)
{
    char master[KL_NETDEV_TEXT];

    (void)state;
    FOR_EACH_CASE(c, uses)
    {
        expect_case(c->name, kl_netdev_role(root, c->name, master) == c->role);
        expect_case(c->name, !strcmp(master, c->master));
        expect_case(c->name, kl_netdev_is_plumbing(root, c->name) == (c->role > KL_NETDEV_LOOPBACK));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speeds_follow_what_carries),
        cmocka_unit_test(devices_are_found),
        cmocka_unit_test(roles_are_recognised),
    };

    return cmocka_run_group_tests(tests, make, unmake);
}
