/* SPDX-License-Identifier: Apache-2.0 */
#include "os/address.h"

#include "base/error.h"
#include "tests/kolo_test.h"

#include <netdb.h>
#include <stdio.h>

static const struct text_case {
    const char *text;
    ncclResult_t rc;
    const char *back; /* formatted again */
} text_cases[] = {
    {"1.2.3.4:5", ncclSuccess, "1.2.3.4:5"},
    {"127.0.0.1:0", ncclSuccess, "127.0.0.1:0"},
    {"0.0.0.0:65535", ncclSuccess, "0.0.0.0:65535"},
    {"[::1]:80", ncclSuccess, "[::1]:80"},
    {"[fd00:0:0::2]:65535", ncclSuccess, "[fd00::2]:65535"},
    {"[fe80::1%lo]:7", ncclSuccess, "[fe80::1%lo]:7"},
    {"", ncclInvalidArgument, NULL},
    {":80", ncclInvalidArgument, NULL},
    {"1.2.3.4", ncclInvalidArgument, NULL},
    {"1.2.3.4:", ncclInvalidArgument, NULL},
    {"1.2.3.4:65536", ncclInvalidArgument, NULL},
    {"1.2.3.4:99999999999999999999", ncclInvalidArgument, NULL},
    {"1.2.3.4:-1", ncclInvalidArgument, NULL},
    {"1.2.3.4: 80", ncclInvalidArgument, NULL},
    {"1.2.3.4:80x", ncclInvalidArgument, NULL},
    {"::1:80", ncclInvalidArgument, NULL}, /* the last colon is ambiguous */
    {"[::1]", ncclInvalidArgument, NULL},
    {"[::1]80", ncclInvalidArgument, NULL},
    {"[::1:80", ncclInvalidArgument, NULL},
    {"[]:80", ncclInvalidArgument, NULL},
    {"[1.2.3.4]:80", ncclInvalidArgument, NULL},
    {"[::1]%lo:80", ncclInvalidArgument, NULL},
    {"[fe80::1%]:7", ncclInvalidArgument, NULL},
    {"[fe80::1%no-such-if]:7", ncclInvalidArgument, NULL},
    {"[fe80::1%a-name-that-no-interface-can-have]:7", ncclInvalidArgument, NULL},
    {"no-such-host.invalid:80", ncclInvalidArgument, NULL},
};

static void text_is_parsed_and_formatted(void **state)
{
    (void)state;
    kl_error_quiet(1);
    FOR_EACH_CASE(c, text_cases)
    {
        union kl_address a, untouched;
        char back[KL_ADDRESS_TEXT];

        memset(&a, 0x55, sizeof a);
        untouched = a;
        expect_case(c->text, kl_address_parse(c->text, &a) == c->rc);
        if (c->rc) expect_case(c->text, !memcmp(&a, &untouched, sizeof a));
        if (c->rc) expect_case(c->text, strstr(kl_error_text(), c->text));
        if (c->back) expect_case(c->text, !strcmp(kl_address_format(&a, back), c->back));
    }
}

/* If the name resolves: a system without /etc/hosts may know no localhost. */
static void names_are_looked_up(void **state)
{
    struct addrinfo *known = NULL;
    union kl_address a;

    (void)state;
    if (getaddrinfo("localhost", NULL, NULL, &known)) {
        printf("skipped names_are_looked_up: nobody knows localhost here (/etc/hosts)\n");
        return;
    }
    freeaddrinfo(known);
    assert_int_equal(kl_address_parse("localhost:9", &a), ncclSuccess);
    assert_int_equal(kl_address_port(&a), 9);
}

static union kl_address address(const char *text)
{
    union kl_address a;

    assert_int_equal(kl_address_parse(text, &a), ncclSuccess);
    return a;
}

static void wire_form_survives_a_round_trip(void **state)
{
    static const char *const texts[] = {"1.2.3.4:5", "255.255.255.255:65535", "[fd00::2]:443", "[fe80::1%lo]:7"};
    unsigned char wire[KL_ADDRESS_WIRE];
    union kl_address none = {0}, back;

    (void)state;
    FOR_EACH_CASE(text, texts)
    {
        union kl_address a = address(*text);
        kl_address_pack(&a, wire);
        expect_case(*text, kl_address_unpack(wire, &back));
        expect_case(*text, !memcmp(&a, &back, sizeof a));
    }
    kl_address_pack(&none, wire);
    assert_true(kl_address_unpack(wire, &back));
    assert_true(kl_address_is_none(&back));
    wire[0] = 5; /* no such family */
    assert_false(kl_address_unpack(wire, &back));
}

static void wire_form_is_the_documented_one(void **state)
{
    static const unsigned char want[KL_ADDRESS_WIRE] = {4, 0, 0x34, 0x12, 10, 0, 0, 7};
    union kl_address a = address("10.0.0.7:4660");
    unsigned char wire[KL_ADDRESS_WIRE];

    (void)state;
    kl_address_pack(&a, wire);
    assert_memory_equal(wire, want, sizeof want);
}

static const struct subnet_case {
    const char *a, *b, *mask;
    bool same;
} subnet_cases[] = {
    {"10.1.2.3:1", "10.1.9.9:2", "255.255.0.0:0", true},
    {"10.1.2.3:1", "10.2.2.3:1", "255.255.0.0:0", false},
    {"10.1.2.3:1", "10.1.2.3:1", "255.255.255.255:0", true},
    {"[fd00::1]:1", "[fd00::ffff:2]:2", "[ffff:ffff:ffff:ffff::]:0", true},
    {"[fd00::1]:1", "[fd00:0:0:1::1]:1", "[ffff:ffff:ffff:ffff::]:0", false},
    {"[fe80::1%lo]:1", "[fe80::2%lo]:1", "[ffff:ffff:ffff:ffff::]:0", true},
    {"[fe80::1%lo]:1", "[fe80::2]:1", "[ffff:ffff:ffff:ffff::]:0", false}, /* another link */
    {"10.1.2.3:1", "[fd00::1]:1", "255.255.0.0:0", false},
};

static void subnets_are_compared_under_the_mask(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, subnet_cases)
    {
        union kl_address a = address(c->a), b = address(c->b), mask = address(c->mask);
        expect_case(c->b, kl_address_same_subnet(&a, &b, &mask) == c->same);
    }
}

static const struct host_case {
    const char *a, *b;
    bool same;
} host_cases[] = {
    {"10.1.2.3:1", "10.1.2.3:2", true},       {"10.1.2.3:1", "10.1.2.4:1", false},
    {"[fd00::1]:1", "[fd00::1]:2", true},     {"[fd00::1]:1", "[fd00::2]:1", false},
    {"[fe80::1%lo]:1", "[fe80::1]:1", false}, /* another link */
    {"127.0.0.1:1", "[::1]:1", false},
};

static void hosts_are_compared_without_ports(void **state)
{
    const union kl_address none = {0}, some = address("10.1.2.3:1");

    (void)state;
    FOR_EACH_CASE(c, host_cases)
    {
        union kl_address a = address(c->a), b = address(c->b);
        expect_case(c->b, kl_address_same_host(&a, &b) == c->same);
    }
    assert_false(kl_address_same_host(&none, &none)); /* no address */
    assert_false(kl_address_same_host(&none, &some) || kl_address_same_host(&some, &none));
}

static void kinds_of_addresses_are_told_apart(void **state)
{
    union kl_address v4 = address("127.9.9.9:1"), v6 = address("[::1]:1"), link = address("[fe80::1]:1"),
                     other = address("128.0.0.1:1"), none = {0};

    (void)state;
    assert_true(kl_address_is_loopback(&v4) && kl_address_is_loopback(&v6));
    assert_false(kl_address_is_loopback(&other) || kl_address_is_loopback(&link) || kl_address_is_loopback(&none));
    assert_true(kl_address_is_link_local(&link));
    assert_false(kl_address_is_link_local(&v6) || kl_address_is_link_local(&v4));
    assert_true(kl_address_is_none(&none));
    assert_int_equal(kl_address_port(&none), 0);
}

/* Unix addresses differ by number and place, and have neither a port nor a sockaddr_in. */
static void unix_sockets_are_addresses(void **state)
{
    union kl_address local = kl_address_new_unix(7), other = kl_address_new_unix(8), back;
    const union kl_address none = {.any = {0}};
    unsigned char wire[KL_ADDRESS_WIRE];
    struct sockaddr_storage system;
    char text[KL_ADDRESS_TEXT];

    (void)state;
    assert_string_equal(kl_address_format(&local, text), "this host");
    assert_false(kl_address_is_none(&local) || kl_address_is_bound(&local) || kl_address_is_loopback(&local));
    local.un.number[0] = other.un.number[0] = 0xab;
    assert_string_equal(kl_address_format(&local, text), "unix:@kolo-00000000000000ab");
    assert_true(kl_address_is_bound(&local) && kl_address_is_unix_of(&local, 7) && !kl_address_is_unix_of(&local, 8));
    assert_false(kl_address_is_unix_of(&none, 0));
    assert_true(kl_address_same_port(&local, &other) && !kl_address_same_host(&local, &other));

    kl_address_pack(&local, wire);
    assert_true(kl_address_unpack(wire, &back) && !memcmp(&back, &local, sizeof back));
    assert_int_equal(kl_address_sockaddr(&local, &system), sizeof(sa_family_t) + sizeof "kolo-00000000000000ab");
    assert_int_equal(system.ss_family, AF_UNIX);

    kl_address_unbind(&back);
    assert_false(kl_address_is_bound(&back) || kl_address_same_port(&back, &local));
    assert_true(kl_address_same_host(&back, &local));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unix_sockets_are_addresses),
        cmocka_unit_test(text_is_parsed_and_formatted),
        cmocka_unit_test(names_are_looked_up),
        cmocka_unit_test(wire_form_survives_a_round_trip),
        cmocka_unit_test(wire_form_is_the_documented_one),
        cmocka_unit_test(subnets_are_compared_under_the_mask),
        cmocka_unit_test(kinds_of_addresses_are_told_apart),
        cmocka_unit_test(hosts_are_compared_without_ports),
    };

    return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
