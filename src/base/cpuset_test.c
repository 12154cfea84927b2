/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpuset.h"

#include "tests/kolo_test.h"

#include <stdlib.h>

enum { LIST, MAP };

static bool parse(int form, const char *text, struct kl_cpuset *set)
{
    return form == LIST ? kl_cpuset_parse_list(text, set) : kl_cpuset_parse_map(text, set);
}

static const char *print(int form, const struct kl_cpuset *set)
{
    static char room[4 * KL_CPUSET_CPUS];
    struct kl_text text = kl_text_in(room, sizeof room);

    (form == LIST ? kl_cpuset_add_list : kl_cpuset_add_map)(&text, set);
    assert_false(text.cut);
    return room;
}

static const struct {
    int form;
    const char *text, *list, *map; /* NULL: refused */
} cases[] = {
    {LIST, "0", "0", "01"},
    {LIST, "0-3,8\n", "0-3,8", "010f"},
    {LIST, "8,0-2,3", "0-3,8", "010f"},
    {LIST, "", "", "00"},
    {LIST, "\n", "", "00"},
    {LIST, "63-64", "63-64", "01,80000000,00000000"},
    {LIST, "31,32", "31-32", "01,80000000"},
    {LIST, "0-10:2/4", "0-1,4-5,8-9", "0333"},
    {LIST, "5-5:1/1", "5", "20"},
    {LIST, "8191", "8191", NULL},
    {LIST, "8192", NULL, NULL},
    {LIST, "99999999999999999999", NULL, NULL},
    {LIST, "3-1", NULL, NULL},
    {LIST, "1-", NULL, NULL},
    {LIST, "-1", NULL, NULL},
    {LIST, ",", NULL, NULL},
    {LIST, "1,", NULL, NULL},
    {LIST, "1,\n", NULL, NULL},
    {LIST, "1,,2", NULL, NULL},
    {LIST, "1 ", NULL, NULL},
    {LIST, "1\n\n", NULL, NULL},
    {LIST, "a", NULL, NULL},
    {LIST, "0-3:0/2", NULL, NULL},
    {LIST, "0-3:3/2", NULL, NULL},
    {LIST, "0-3:1", NULL, NULL},
    {LIST, "0-3:", NULL, NULL},
    {MAP, "0000000f,ffff0000", "16-35", "0f,ffff0000"},
    {MAP, "ff\n", "0-7", "ff"},
    {MAP, "F", "0-3", "0f"},
    {MAP, "0003ff,f0003fff", "0-13,28-41", "03ff,f0003fff"},
    {MAP, "1,0,0", "64", "01,00000000,00000000"}, /* each word is 32 bits, however short */
    {MAP, "1,00000000", "32", "01,00000000"},
    {MAP, "0", "", "00"},
    {MAP, "00000000,00000000", "", "00"},
    {MAP, "123456789", NULL, NULL},
    {MAP, "", NULL, NULL},
    {MAP, "f,", NULL, NULL},
    {MAP, ",f", NULL, NULL},
    {MAP, "0xf", NULL, NULL},
    {MAP, "g", NULL, NULL},
    {MAP, "f f", NULL, NULL},
};

static void texts_are_read_and_written(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_cpuset set = {{77}};

        expect_case(c->text, parse(c->form, c->text, &set) == (c->list != NULL));
        if (!c->list) {
            expect_case(c->text, set.words[0] == 77 && !set.words[1]);
            continue;
        }
        assert_string_equal(print(LIST, &set), c->list);
        if (c->map) assert_string_equal(print(MAP, &set), c->map);
    }
}

static void what_was_written_reads_back(void **state)
{
    (void)state;
    srandom(7);
    for (int round = 0; round < 50; round++) {
        struct kl_cpuset set = {0}, read;

        for (int i = 0; i < round; i++) kl_cpuset_add(&set, (int)(random() % KL_CPUSET_CPUS));
        assert_int_equal(kl_cpuset_count(&set) > 0, round > 0);
        for (int form = LIST; form <= MAP; form++) {
            assert_true(parse(form, print(form, &set), &read));
            assert_memory_equal(&set, &read, sizeof(struct kl_cpuset));
        }
    }
}

static void a_map_may_be_wider_than_the_set(void **state)
{
    char text[9 * 300] = "";
    struct kl_cpuset set;

    (void)state;
    for (int i = 0; i < 299; i++) strcat(text, "00000000,");
    strcat(text, "5");
    assert_true(kl_cpuset_parse_map(text, &set));
    assert_string_equal(print(LIST, &set), "0,2");
    text[0] = '1';
    assert_false(kl_cpuset_parse_map(text, &set));
}

static void members_are_counted_and_walked(void **state)
{
    struct kl_cpuset set, other;
    int sum = 0;

    (void)state;
    assert_true(kl_cpuset_parse_list("1,63-65,8191", &set));
    assert_int_equal(kl_cpuset_count(&set), 5);
    for (int c = -1; (c = kl_cpuset_next(&set, c + 1)) >= 0;) sum += c;
    assert_int_equal(sum, 1 + 63 + 64 + 65 + 8191);
    assert_int_equal(kl_cpuset_next(&set, 66), 8191);
    assert_int_equal(kl_cpuset_next(&set, 8192), -1);
    assert_true(kl_cpuset_has(&set, 64));
    assert_false(kl_cpuset_has(&set, 66));
    assert_false(kl_cpuset_has(&set, -1));
    assert_false(kl_cpuset_has(&set, 8192));

    assert_true(kl_cpuset_parse_list("0-64", &other));
    kl_cpuset_intersect(&set, &other);
    assert_string_equal(print(LIST, &set), "1,63-64");
    assert_memory_not_equal(&set, &other, sizeof(struct kl_cpuset));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_read_and_written),
        cmocka_unit_test(what_was_written_reads_back),
        cmocka_unit_test(a_map_may_be_wider_than_the_set),
        cmocka_unit_test(members_are_counted_and_walked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
