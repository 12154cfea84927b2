/* SPDX-License-Identifier: Apache-2.0 */
#include "os/address_space.h"

#include "tests/kolo_test.h"

#include <stdint.h>

static void memory_lies_within(void **state)
{
    static int global;
    int local = 0;
    const void *const some[] = {&global, &local, *state, (void *)memory_lies_within, NULL};

    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        const size_t left = kl_address_space_from(some[i]), end = left + (uintptr_t)some[i];

        assert_true(left > 0 && left < SIZE_MAX / 2);
        assert_int_equal(end & (end - 1), 0);
        assert_int_equal(end, kl_address_space_from(NULL)); /* the same end for all */
    }
}

static void what_lies_higher_has_an_end_of_its_own(void **state)
{
    const size_t all = kl_address_space_from(NULL);

    (void)state;
    assert_int_equal(kl_address_space_from((void *)(all - 1)), 1);
    assert_int_equal(kl_address_space_from((void *)all), all);
    assert_int_equal(kl_address_space_from((void *)UINTPTR_MAX), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_lies_within),
        cmocka_unit_test(what_lies_higher_has_an_end_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
