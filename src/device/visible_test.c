/* SPDX-License-Identifier: Apache-2.0 */
#include "device/visible.h"

#include "tests/kolo_test.h"

#include <stdio.h>

enum { COUNT = 4, HOST = 77, TEXT = 41 };

static const struct {
    const char *text;
    int n, list[COUNT], extent;
} cases[] = {
    {NULL, 4, {0, 1, 2, 3}, 0}, {"", 0, {0}, 0},           {"2", 1, {2}, 3},
    {"3,1", 2, {3, 1}, 4},      {" 1 , 0 ", 2, {1, 0}, 2}, {"0,2,-1,1", 2, {0, 2}, 3},
    {"-1", 0, {0}, 0},          {"0,4,1", 1, {0}, 5}, /* out of range */
    {"1,1", 0, {0}, 2},                               /* twice: none */
    {"1,2,1", 0, {0}, 3},       {"0,x,1", 1, {0}, 1},      {"0x1", 0, {0}, 0},
    {"2,", 1, {2}, 3},          {",2", 0, {0}, 0},         {"99999999999999999999", 0, {0}, 0},
    {"4095", 0, {0}, 4096},     {"4096", 0, {0}, 0},       {"MIG-1", 0, {0}, 0},
    {"0,GPU-", 1, {0}, 1}, /* matches all */
    {"GPU-zzzz,0", 0, {0}, 0},
};

static void lists_name_devices_in_the_process_s_order(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        const char *label = c->text ? c->text : "unset";
        int list[COUNT];
        expect_case(label, kl_visible_devices(c->text, COUNT, HOST, list) == c->n);
        expect_case(label, !memcmp(list, c->list, (size_t)c->n * sizeof(int)));
        expect_case(label, kl_visible_extent(c->text) == c->extent);
    }
}

static void write_uuid(const unsigned char *uuid, char *text)
{
    int used = snprintf(text, TEXT, "GPU");

    for (int i = 0; i < 16; i++)
        used += snprintf(text + used, (size_t)(TEXT - used), "%s%02x",
                         i == 0 || (i >= 4 && i <= 10 && !(i % 2)) ? "-" : "", uuid[i]);
}

static void uuids_may_be_cut_short_while_one_device_fits(void **state)
{
    char text[3][TEXT], both[3 * TEXT];
    unsigned char uuid[16], again[16];
    int list[COUNT];

    (void)state;
    for (int i = 0; i < 3; i++) {
        kl_uuid_of(HOST, i, uuid);
        write_uuid(uuid, text[i]);
    }
    kl_uuid_of(HOST, 2, again);
    assert_memory_equal(uuid, again, 16);
    kl_uuid_of(HOST + 1, 2, again);
    assert_memory_not_equal(uuid, again, 16);
    assert_int_equal(strlen(text[0]), TEXT - 1);
    snprintf(both, sizeof both, "%s,0,%.12s", text[2], text[1]);
    assert_int_equal(kl_visible_devices(both, COUNT, HOST, list), 3);
    assert_true(list[0] == 2 && list[1] == 0 && list[2] == 1);
    snprintf(both, sizeof both, "1,%s0", text[2]); /* longer than one */
    assert_int_equal(kl_visible_devices(both, COUNT, HOST, list), 1);
    snprintf(both, sizeof both, "2,%s", text[2]);
    assert_int_equal(kl_visible_devices(both, COUNT, HOST, list), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_name_devices_in_the_process_s_order),
        cmocka_unit_test(uuids_may_be_cut_short_while_one_device_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
