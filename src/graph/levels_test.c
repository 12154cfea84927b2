/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/levels.h"

#include "tests/kolo_test.h"

#include <math.h>

/* The arithmetic that the table stands for. */
static float reference(float left, float need)
{
    return roundf((left - need) * 1000) / 1000;
}

static void every_value_has_one_level(void **state)
{
    struct kl_levels v = {0};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        int level = kl_level_of(&v, (float)i * 0.37f);

        assert_int_equal(level, i * KL_LEVEL_STEP);
        assert_int_equal(v.next[level + KL_LEVEL_WHOLE], (int)((float)i * 0.37f));
    }
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(kl_level_of(&v, (float)i * 0.37f), i * KL_LEVEL_STEP);
        assert_true(kl_level_value(&v, i * KL_LEVEL_STEP) == (float)i * 0.37f);
    }
    kl_levels_fini(&v);
}

/* Taking until a link refuses, and giving back: bit for bit the result of the arithmetic, the first and the second time. */
static void taking_is_the_arithmetic(void **state)
{
    static const float starts[] = {370.80002f, 240, 24, 12.5f, 5000, 0.125f, 10.0005f};
    static const float needs[] = {20, 2.4f, 17.5f / 8, 0.12f, 2.4f * 6 / 5, 48};
    struct kl_levels v = {0};

    (void)state;
    FOR_EACH_CASE(need, needs)
    {
        kl_levels_begin(&v);
        v.need[3] = *need;
        v.need[7] = -*need;
        FOR_EACH_CASE(start, starts)
        {
            for (int again = 0; again < 2; again++) {
                float left = *start;
                int level = kl_level_of(&v, left);

                for (int n = 0; left >= *need && n < 100; n++) {
                    level = kl_level_next(&v, level, 3);
                    left = reference(left, *need);
                    assert_true(kl_level_value(&v, level) == left);
                    assert_true(kl_level_value(&v, kl_level_next(&v, level, 7)) == reference(left, -*need));
                }
                if (left < *need) assert_int_equal(kl_level_next(&v, level, 3), KL_LEVEL_REFUSED);
            }
        }
    }
    assert_false(v.nomem);
    kl_levels_fini(&v);
}

/* A column with a new need forgets its entries. */
static void columns_are_forgotten(void **state)
{
    struct kl_levels v = {0};
    int level = kl_level_of(&v, 100);

    (void)state;
    v.need[0] = 30;
    assert_true(kl_level_value(&v, kl_level_next(&v, level, 0)) == 70);
    kl_levels_begin(&v);
    v.need[0] = 60;
    assert_true(kl_level_value(&v, kl_level_next(&v, level, 0)) == 40);
    kl_levels_fini(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_has_one_level),
        cmocka_unit_test(taking_is_the_arithmetic),
        cmocka_unit_test(columns_are_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
