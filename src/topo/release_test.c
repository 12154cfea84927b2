/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/release.h"

#include "tests/kolo_test.h"

static const struct {
    const char *text;
    int nccl;
} texts[] = {
    {"2.26.3", 22603}, {"2.29.7", 22907}, {"2.30.7", 23007}, {"2.29", 22907},   {"2.26", 22606},   {"2.27.4", 22703},
    {"2.29.1", 22902}, {"2.27.8", -1},    {"2.26.2", -1},    {"2.25", -1},      {"2.31.0", 23102}, {"2.31.2", 23102},
    {"2.31.3", -1},    {"2.31", 23102},   {"2.32", 23203},   {"2.32.2", 23203}, {"2.32.3", 23203}, {"2.32.4", -1},
    {"2.33", -1},      {"2.33.1", -1},    {"2.99", -1},      {"2.99.1", -1},    {"3.1", -1},       {"3.0.0", -1},
    {"99.99.99", -1},  {"", -1},          {"2", -1},         {"2.", -1},        {"2.29.", -1},     {"2.29.7.1", -1},
    {"v2.29", -1},     {"2.29.7 ", -1},   {"2.-1", -1},      {"2.29.123", -1},
};

static void texts_mean_releases(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, texts) expect_case(c->text, kl_nccl_parse(c->text) == c->nccl);
}

static void every_text_has_a_nearest_release(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, texts) if (c->nccl >= 0) expect_case(c->text, kl_nccl_nearest(c->text, 23003) == c->nccl);
    assert_int_equal(kl_nccl_nearest("2.27.8", 23003), 22707);
    assert_int_equal(kl_nccl_nearest("2.31.7", 23003), 23102);
    assert_int_equal(kl_nccl_nearest("2.33", 23003), 23203);
    assert_int_equal(kl_nccl_nearest("3.0.0", 23003), 23203);
    assert_int_equal(kl_nccl_nearest("2.9.9", 23003), KL_NCCL_2_26_3);
    assert_int_equal(kl_nccl_nearest("2.26.2", 23003), KL_NCCL_2_26_3);
    assert_int_equal(kl_nccl_nearest("none", 23003), 23003);
    assert_int_equal(kl_nccl_nearest(NULL, 23003), 23003);
}

static void a_refusal_lists_what_is_known(void **state)
{
    char text[KL_NCCL_EXPECTED];

    (void)state;
    assert_non_null(strstr(kl_nccl_expected(text), ": 2.26.3, "));
    assert_non_null(strstr(text, " 2.31.2 or 2.32.3"));
    assert_true(strlen(text) < KL_NCCL_EXPECTED - 1);
}

/* Unread releases begin after the newest one that was read as a whole. */
static void unread_code_is_named(void **state)
{
    (void)state;
    assert_true(kl_nccl_unread(23102, KL_CHANGE_TREE_LESSER) && kl_nccl_unread(23203, KL_CHANGE_TREE_LESSER));
    assert_true(kl_nccl_unread(23102, KL_CHANGE_RING_PLATEAU) && !kl_nccl_unread(23203, KL_CHANGE_RING_PLATEAU));
    assert_true(!kl_nccl_unread(23102, KL_CHANGE_AMD_SOCKETS) && kl_nccl_unread(23203, KL_CHANGE_AMD_SOCKETS));
    for (int i = 0; i < KL_CHANGES; i++) {
        int other = kl_nccl_otherwise(23102, (enum kl_change)i);

        assert_false(kl_nccl_unread(23007, (enum kl_change)i));
        for (int k = 0; k < KL_CHANGES; k++)
            assert_int_equal(kl_nccl_has(other, (enum kl_change)k), kl_nccl_has(23102, (enum kl_change)k) != (i == k));
    }
}

static void releases_are_written_as_they_are_read(void **state)
{
    char text[KL_NCCL_TEXT];

    (void)state;
    FOR_EACH_CASE(c, texts)
    if (c->nccl >= 0) expect_case(c->text, kl_nccl_parse(kl_nccl_text(c->nccl, text)) == c->nccl);
    assert_int_equal(kl_nccl_parse(KL_NCCL_DEFAULT_TEXT), KL_NCCL_DEFAULT);
}

static void every_change_begins_with_a_release_that_is_known(void **state)
{
    char text[KL_NCCL_TEXT];

    (void)state;
    for (int i = 0; i < KL_CHANGES; i++) {
        const struct kl_change_facts *f = kl_change_facts((enum kl_change)i);

        assert_non_null(f->name);
        expect_case(f->name, f->text && *f->text && f->text[strlen(f->text) - 1] != '.');
        expect_case(f->name, kl_nccl_parse(kl_nccl_text(f->since, text)) == f->since);
        expect_case(f->name, !kl_nccl_has(KL_NCCL_2_26_3, (enum kl_change)i));
        expect_case(f->name, !kl_nccl_has(f->since - 1, (enum kl_change)i));
        expect_case(f->name, kl_nccl_has(f->since, (enum kl_change)i));
    }
}

static void a_mix_has_some_changes_of_another_release(void **state)
{
    static const int ends[][2] = {{22603, 23007}, {23007, 22603}, {22809, 22902}, {22907, 22907}, {23203, 23102}};
    char text[KL_NCCL_TEXT];

    (void)state;
    FOR_EACH_CASE(e, ends)
    for (int first = 0; first <= KL_CHANGES; first += 7)
        for (int last = first; last <= KL_CHANGES; last++) {
            int mix = kl_nccl_mix((*e)[0], (*e)[1], first, last);

            assert_int_equal(kl_nccl_parse(kl_nccl_text(mix, text)), (*e)[0]);
            for (int i = 0; i < KL_CHANGES; i++) {
                int like = i >= first && i < last ? (*e)[1] : (*e)[0];

                assert_int_equal(kl_nccl_has(mix, (enum kl_change)i), kl_nccl_has(like, (enum kl_change)i));
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_mean_releases),
        cmocka_unit_test(every_text_has_a_nearest_release),
        cmocka_unit_test(a_refusal_lists_what_is_known),
        cmocka_unit_test(unread_code_is_named),
        cmocka_unit_test(releases_are_written_as_they_are_read),
        cmocka_unit_test(every_change_begins_with_a_release_that_is_known),
        cmocka_unit_test(a_mix_has_some_changes_of_another_release),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
