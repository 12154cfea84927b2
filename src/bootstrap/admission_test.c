/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/admission.h"

#include "base/error.h"
#include "tests/kolo_test.h"

#define ZEROES "000000000000000000000000000000000000000000000000000000000000"

static union kl_address address_of(const char *text)
{
    union kl_address address;

    assert_int_equal(kl_address_parse(text, &address), ncclSuccess);
    return address;
}

static void who_is_of_this_host_or_listed_may_come(void **state)
{
    static const struct {
        const char *label, *list, *here, *there;
        bool admitted;
    } cases[] = {
        {"loopback", "", "127.0.0.1:7", "127.0.0.1:9", true},
        {"another loopback", "", "127.0.0.1:7", "127.0.0.2:9", true},
        {"loopback, version 6", "", "[::1]:7", "[::1]:9", true},
        {"own address", "", "10.1.2.3:7", "10.1.2.3:9", true},
        {"a neighbour", "", "10.1.2.3:7", "10.1.2.4:9", false},
        {"version 6 neighbour", "", "[fd00::1]:7", "[fd00::2]:9", false},
        {"everybody", "1", "10.1.2.3:7", "203.0.113.9:9", true},
        {"network", "10.1.0.0/16", "10.1.2.3:7", "10.1.9.9:9", true},
        {"outside of it", "10.1.0.0/16", "10.1.2.3:7", "10.2.0.1:9", false},
        {"address", "192.0.2.7, 10.1.2.4", "10.1.2.3:7", "10.1.2.4:9", true},
        {"next to it", "10.1.2.4", "10.1.2.3:7", "10.1.2.5:9", false},
        {"odd bits", "10.1.2.4/31", "10.1.2.3:7", "10.1.2.5:9", true},
        {"whole space", "0.0.0.0/0", "10.1.2.3:7", "203.0.113.9:9", true},
        {"of the other version", "0.0.0.0/0", "[fd00::1]:7", "[fd00::2]:9", false},
        {"version 6 network", "fd00::/8", "[fd00::1]:7", "[fd12::2]:9", true},
        {"too long", "10.0.0.0/" ZEROES "8", "10.1.2.3:7", "203.0.113.9:9", false}, /* truncated it would be /0 */
        {"no network at all", "10.1.2", "10.1.2.3:7", "10.1.2.5:9", false},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        bool admitted = kl_admission_allows(c->list, address_of(c->here), address_of(c->there));
        expect_case(c->label, admitted == c->admitted);
    }
}

/* A connection that is broken already has no addresses. */
static void who_is_not_known_does_not_come(void **state)
{
    const union kl_address none = {0};

    (void)state;
    assert_false(kl_admission_allows("", none, none));
    assert_false(kl_admission_allows("0.0.0.0/0", none, none));
}

static void what_is_no_network_is_refused(void **state)
{
    static const char *const sound[] = {"", "1", "10.0.0.1", "10.0.0.0/8,fd00::/8", " 10.0.0.1 , ::1/128 "};
    static const char *const broken[] = {"10.0.0", "10.0.0.0/33", "10.0.0.0/",   "10.0.0.0/8x",         "host",
                                         "1,",     "fd00::/129",  "10.0.0.0/-1", "10.0.0.0/" ZEROES "8"};

    (void)state;
    kl_error_quiet(1);
    FOR_EACH_CASE(text, sound) expect_case(*text, kl_admission_check(*text) == ncclSuccess);
    FOR_EACH_CASE(text, broken) expect_case(*text, kl_admission_check(*text) == ncclInvalidArgument);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_of_this_host_or_listed_may_come),
        cmocka_unit_test(who_is_not_known_does_not_come),
        cmocka_unit_test(what_is_no_network_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
