/* SPDX-License-Identifier: Apache-2.0 */
#include "base/scatter.h"

#include "tests/kolo_test.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A permutation, from any starting number. */
static void each_place_is_used_once(void **state)
{
    static const uint64_t begins[] = {0, 5, 1023, UINT64_MAX - 100};
    static bool used[1 << KL_SCATTER_BITS];

    (void)state;
    for (unsigned bits = 0; bits <= KL_SCATTER_BITS; bits++)
        for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
            memset(used, 0, sizeof used);
            for (uint32_t k = 0; k < 1u << bits; k++) {
                const uint32_t place = kl_scatter(begins[i] + k, bits);
                assert_true(place < 1u << bits && !used[place]);
                used[place] = true;
            }
        }
}

/* Of 512 slots: no step goes to the adjacent slot or repeats the previous distance. */
static void no_two_steps_are_alike(void **state)
{
    enum { BITS = 9, NEAR = 16 };
    int before = 0;

    (void)state;
    for (uint64_t turn = 0; turn < 1 << BITS; turn++) {
        const int step = (int)kl_scatter(turn + 1, BITS) - (int)kl_scatter(turn, BITS);
        assert_true(abs(step) >= NEAR && step != before);
        before = step;
    }
}

/* Sixteen successive slots lie in different cache sets. */
static void successive_places_do_not_meet(void **state)
{
    enum { BITS = 9, SETS = 16 };

    (void)state;
    for (uint64_t turn = 0; turn < 1 << BITS; turn += SETS) {
        unsigned sets = 0;
        for (uint64_t i = 0; i < SETS; i++) sets |= 1u << kl_scatter(turn + i, BITS) % SETS;
        assert_int_equal(sets, (1u << SETS) - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_place_is_used_once),
        cmocka_unit_test(no_two_steps_are_alike),
        cmocka_unit_test(successive_places_do_not_meet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
