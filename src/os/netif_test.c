/* SPDX-License-Identifier: Apache-2.0 */
#include "os/netif.h"

#include "base/error.h"
#include "tests/kolo_test.h"

#include <stdio.h>

/* ---- a host made of text: "name address/mask" ---- */

struct row {
    const char *name, *address, *mask;
};

static const struct row server[] = {{"lo", "127.0.0.1:0", "255.0.0.0:0"},
                                    {"lo", "[::1]:0", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:0"},
                                    {"docker0", "172.17.0.1:0", "255.255.0.0:0"},
                                    {"eth0", "[fe80::1%lo]:0", "[ffff:ffff:ffff:ffff::]:0"},
                                    {"eth0", "[fd00::2]:0", "[ffff:ffff:ffff:ffff::]:0"},
                                    {"eth0", "10.0.0.2:0", "255.255.255.0:0"},
                                    {"eth0", "10.9.0.2:0", "255.255.255.0:0"},
                                    {"eth1", "10.0.1.2:0", "255.255.255.0:0"},
                                    {"ib0", "192.168.7.1:0", "255.255.255.0:0"},
                                    {"ib1", "192.168.8.1:0", "255.255.255.0:0"},
                                    {NULL, NULL, NULL}};
static const struct row laptop[] = {{"lo", "127.0.0.1:0", "255.0.0.0:0"},
                                    {"docker0", "172.17.0.1:0", "255.255.0.0:0"},
                                    {"wlan0", "[fe80::1%lo]:0", "[ffff:ffff:ffff:ffff::]:0"},
                                    {NULL, NULL, NULL}};
static const struct row container[] = {
    {"lo", "127.0.0.1:0", "255.0.0.0:0"}, {"docker0", "172.17.0.1:0", "255.255.0.0:0"}, {NULL, NULL, NULL}};
static const struct row isolated[] = {{"lo", "127.0.0.1:0", "255.0.0.0:0"},
                                      {"lo", "[::1]:0", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:0"},
                                      {NULL, NULL, NULL}};

static const struct row bare[] = {{"lo", "[::1]:0", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:0"}, {NULL, NULL, NULL}};
static const struct row wired[] = {{"lo", "[::1]:0", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:0"},
                                   {"eth0", "10.0.0.2:0", "255.255.255.0:0"},
                                   {NULL, NULL, NULL}};

static const struct choice_case {
    const char *label;
    const struct row *host;
    const char *names;
    int family;
    const char *near;
    const char *chosen; /* "name=address name=address " */
} choice_cases[] = {
    {"InfiniBand first", server, NULL, 0, NULL, "ib0=192.168.7.1:0 ib1=192.168.8.1:0 "},
    {"empty names are no constraint", server, "", 0, NULL, "ib0=192.168.7.1:0 ib1=192.168.8.1:0 "},
    {"then others", laptop, NULL, 0, NULL, "wlan0=[fe80::1%lo]:0 "},
    {"then docker", container, NULL, 0, NULL, "docker0=172.17.0.1:0 "},
    {"then loopback", isolated, NULL, 0, NULL, "lo=127.0.0.1:0 "},
    {"a class without the family is empty", server, NULL, AF_INET6, NULL, "eth0=[fd00::2]:0 "},
    {"IPv6 loopback, if it was asked for", isolated, NULL, AF_INET6, NULL, "lo=[::1]:0 "},
    {"IPv6 loopback where nothing else is", bare, NULL, 0, NULL, "lo=[::1]:0 "},
    {"IPv6 loopback is skipped beside others", wired, NULL, AF_INET6, NULL, ""},
    {"IPv4 only", laptop, NULL, AF_INET, NULL, "docker0=172.17.0.1:0 "},
    {"a prefix", server, "eth", 0, NULL, "eth0=10.0.0.2:0 eth1=10.0.1.2:0 "},
    {"a list, in the system's order", server, "ib1,eth1", 0, NULL, "eth1=10.0.1.2:0 ib1=192.168.8.1:0 "},
    {"prefix and family", server, "eth", AF_INET6, NULL, "eth0=[fd00::2]:0 "},
    {"an exact name", server, "=eth1", 0, NULL, "eth1=10.0.1.2:0 "},
    {"an exact name does not match a prefix", server, "=eth", 0, NULL, ""},
    {"exclude", server, "^eth,docker", 0, NULL, "lo=127.0.0.1:0 ib0=192.168.7.1:0 ib1=192.168.8.1:0 "},
    {"exclude exactly", server, "^=eth0,lo,docker0", 0, NULL, "eth1=10.0.1.2:0 ib0=192.168.7.1:0 ib1=192.168.8.1:0 "},
    {"a port is ignored", server, "eth1:1", 0, NULL, "eth1=10.0.1.2:0 "},
    {"nothing matches", server, "wlan", 0, NULL, ""},
    {"near", server, NULL, 0, "10.0.1.77:5", "eth1=10.0.1.2:0 "},
    {"near a second address", server, NULL, 0, "10.9.0.77:5", "eth0=10.9.0.2:0 "},
    {"near IPv6", server, NULL, 0, "[fd00::9]:5", "eth0=[fd00::2]:0 "},
    {"near counts before names", server, "ib", 0, "10.0.1.77:5", "eth1=10.0.1.2:0 "},
    {"near loopback", server, NULL, 0, "127.0.0.1:5", "lo=127.0.0.1:0 "},
    {"near IPv6 loopback", isolated, NULL, 0, "[::1]:5", "lo=[::1]:0 "},
    {"near nothing, so by names", server, "eth1", 0, "8.8.8.8:5", "eth1=10.0.1.2:0 "},
    {"near nothing, so by itself", laptop, NULL, 0, "8.8.8.8:5", "wlan0=[fe80::1%lo]:0 "},
};

static union kl_address address(const char *text)
{
    union kl_address a;

    assert_int_equal(kl_address_parse(text, &a), ncclSuccess);
    return a;
}

static int build(const struct row *rows, struct kl_netif *list)
{
    int n = 0;

    for (; rows[n].name; n++) {
        list[n] = (struct kl_netif){.address = address(rows[n].address), .mask = address(rows[n].mask)};
        snprintf(list[n].name, sizeof list[n].name, "%s", rows[n].name);
    }
    return n;
}

static void interfaces_are_chosen_in_order(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, choice_cases)
    {
        struct kl_netif list[16], chosen[KL_NETIF_MAX];
        char got[256] = "", text[KL_ADDRESS_TEXT];
        union kl_address near = {0};
        struct kl_netif_constraints constraints = {
            .names = c->names, .family = c->family, .near = c->near ? &near : NULL};

        if (c->near) near = address(c->near);
        int count = kl_netif_select(list, build(c->host, list), &constraints, chosen);
        for (int i = 0; i < count; i++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s=%s ", chosen[i].name,
                     kl_address_format(&chosen[i].address, text));
        if (strcmp(got, c->chosen)) fail_msg("%s: chose \"%s\", not \"%s\"", c->label, got, c->chosen);
    }
}

static void no_more_than_the_most_are_chosen(void **state)
{
    struct kl_netif list[KL_NETIF_MAX + 4], chosen[KL_NETIF_MAX];
    struct kl_netif_constraints constraints = {0};

    (void)state;
    for (int i = 0; i < KL_NETIF_MAX + 4; i++) {
        list[i] = (struct kl_netif){.address = address("10.0.0.1:0"), .mask = address("255.0.0.0:0")};
        snprintf(list[i].name, sizeof list[i].name, "eth%d", i);
    }
    assert_int_equal(kl_netif_select(list, KL_NETIF_MAX + 4, &constraints, chosen), KL_NETIF_MAX);
}

static void this_host_has_an_interface(void **state)
{
    struct kl_netif list[64], chosen[KL_NETIF_MAX];
    struct kl_netif_constraints constraints = {0};
    int n = 0, count = 0;

    (void)state;
    assert_int_equal(kl_netif_list(list, 64, &n), ncclSuccess);
    assert_int_equal(kl_netif_choose(&constraints, chosen, &count), ncclSuccess);
    assert_in_range(count, 1, n);
    for (int i = 0; i < count; i++) assert_int_equal(kl_address_port(&chosen[i].address), 0);
}

static void a_failed_choice_says_what_exists(void **state)
{
    struct kl_netif chosen[KL_NETIF_MAX];
    struct kl_netif_constraints constraints = {.names = "=no-such-one"};
    int count = 77;

    (void)state;
    kl_error_quiet(1);
    assert_int_equal(kl_netif_choose(&constraints, chosen, &count), ncclSystemError);
    assert_int_equal(count, 77);
    assert_non_null(strstr(kl_error_text(), "=no-such-one"));
    assert_non_null(strstr(kl_error_text(), "lo (127.0.0.1)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interfaces_are_chosen_in_order),
        cmocka_unit_test(no_more_than_the_most_are_chosen),
        cmocka_unit_test(this_host_has_an_interface),
        cmocka_unit_test(a_failed_choice_says_what_exists),
    };

    return cmocka_run_group_tests_name("netif", tests, NULL, NULL);
}
